// CASE(name, marks) { ... } is a case of a file of cases, run on the arena `a`; `marks` is how many
// are enough when optimised, or 0 for any number.
#ifndef PAWL_TESTS_COMPILER_CASES_H
#define PAWL_TESTS_COMPILER_CASES_H

#include "recording_runtime.h"

#if defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
#define MARKS_WHEN_OPTIMISED(marks) (marks)
#else
#define MARKS_WHEN_OPTIMISED(marks) 0
#endif

struct test_case {
  const char* name;
  void (*body)(char*);
  unsigned long marks;
  struct test_case* next;
};

#ifdef __cplusplus
extern "C" struct test_case* first_case;
#else
extern struct test_case* first_case;
#endif

#define CASE(title, marks_enough) \
  static void title(char* a); \
  static struct test_case title##_case = {#title, title, MARKS_WHEN_OPTIMISED(marks_enough), 0}; \
  __attribute__((constructor)) static void title##_register(void) { \
    title##_case.next = first_case; \
    first_case = &title##_case; \
  } \
  __attribute__((noinline)) static void title(char* a)

#endif
