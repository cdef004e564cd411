// A run-time for programs of these tests, in place of Pawl's.  A mark takes the marked bytes as
// they are at that moment; a commit demands that nothing else has changed.  So a mark that is
// missing, too short or before its store is seen.
#ifndef PAWL_TESTS_COMPILER_RECORDING_RUNTIME_H
#define PAWL_TESTS_COMPILER_RECORDING_RUNTIME_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { kArenaBytes = 1 << 16 };

// What a program stores to: memory where mappings lie.
char* arena(void);

// A commit.  Bytes that changed without a mark are a failure of the running case.
void collect(void);

// Marks since the case began, and the bytes that they cover together.
unsigned long marks_made(void);
unsigned long bytes_marked(void);

// Fails the running case.
void expect(int holds, const char* what);

// Runs a case twice, on memory of different content, so that each store changes something once.
// Where marks_max is not 0 it fails with more marks.
void run_case(const char* name, void (*body)(char*), unsigned long marks_max);

// 0 when all cases passed, and what main() returns.
int report(void);

// The same for a program that has no cases.
int report_failures(void);

// What is not instrumented, and cannot be seen through.
struct large {
  long words[9];
};
struct large make_large(long seed);
void opaque(void* pointer);

#ifdef __cplusplus
}
#endif
#endif
