// recording_runtime.h says what this is.
#define _GNU_SOURCE
#include "recording_runtime.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char* memory;     // what the program stores to
static char* committed;  // what marks have taken of it
static _Atomic unsigned long marks;
static _Atomic unsigned long marked;  // bytes
static _Atomic unsigned long failures;
static unsigned long cases;
static const char* running = "(no case)";

char* arena(void) {
  void* const wanted = (void*)((uintptr_t)0x10 << 40);
  if (memory != NULL) return memory;
  memory = mmap(wanted, kArenaBytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  committed = malloc(kArenaBytes);
  if (memory != wanted || committed == NULL) {
    perror("no memory at the address of mappings");
    exit(2);
  }
  memset(committed, 0, kArenaBytes);
  return memory;
}

void pawl_stored(const void* address, size_t length) {
  const uintptr_t first = (uintptr_t)arena();
  const uintptr_t end = first + kArenaBytes;
  uintptr_t from = (uintptr_t)address;
  uintptr_t to = from + length;
  marks++;
  if (to < from) {
    printf("%s: a mark of %zu bytes\n", running, length);
    failures++;
    return;
  }
  marked += length;
  if (from < first) from = first;
  if (to > end) to = end;
  if (from < to) memcpy(committed + (from - first), (const void*)from, to - from);
}

void collect(void) {
#ifdef UNINSTRUMENTED
  return;  // the same program, compiled without marks
#endif
  for (size_t i = 0; i < kArenaBytes; ++i) {
    if (memory[i] == committed[i]) continue;
    printf("%s: byte %zu changed and was not marked\n", running, i);
    failures++;
    memcpy(committed, memory, kArenaBytes);
    return;
  }
}

unsigned long marks_made(void) { return marks; }
unsigned long bytes_marked(void) { return marked; }

void expect(int holds, const char* what) {
  if (holds) return;
  printf("%s: not so: %s\n", running, what);
  failures++;
}

void run_case(const char* name, void (*body)(char*), unsigned long marks_max) {
  for (unsigned pattern = 0; pattern < 2; ++pattern) {
    for (size_t i = 0; i < kArenaBytes; ++i) {
      // Small numbers in the first: some cases read what they find.
      arena()[i] = (char)(pattern == 0 ? 0 : i * 7 + 0xa5);
    }
    memcpy(committed, memory, kArenaBytes);
    running = name;
    marks = 0;
    marked = 0;
    body(memory);
    if (marks_max != 0 && marks > marks_max) {
      printf("%s: %lu marks; %lu are enough\n", name, (unsigned long)marks, marks_max);
      failures++;
    }
    collect();
  }
  cases++;
}

int report(void) {
  printf("%lu cases, %lu failures\n", cases, (unsigned long)failures);
  return failures != 0 || cases == 0;
}

int report_failures(void) { return failures != 0; }

struct large make_large(long seed) {
  struct large made;
  for (int i = 0; i < 9; ++i) made.words[i] = seed + i;
  return made;
}

void opaque(void* pointer) { (void)pointer; }

// Wrappers, of the functions that the cases use.

char* pawl_stored_strcpy(char* to, const char* from) {
  strcpy(to, from);
  pawl_stored(to, strlen(to) + 1);
  return to;
}

void* pawl_stored_memcpy(void* to, const void* from, size_t length) {
  memcpy(to, from, length);
  pawl_stored(to, length);
  return to;
}

void* pawl_stored_memset(void* to, int byte, size_t length) {
  memset(to, byte, length);
  pawl_stored(to, length);
  return to;
}

ssize_t pawl_stored_read(int descriptor, void* buffer, size_t length) {
  const ssize_t got = read(descriptor, buffer, length);
  if (got > 0) pawl_stored(buffer, (size_t)got);
  return got;
}

int pawl_stored_pipe(int* ends) {
  const int result = pipe(ends);
  pawl_stored(ends, 2 * sizeof *ends);
  return result;
}

int pawl_stored_printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = vprintf(format, arguments);
  va_end(arguments);
  return length;
}

int pawl_stored_snprintf(char* to, size_t size, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(to, size, format, arguments);
  va_end(arguments);
  pawl_stored(to, size);
  return length;
}

void pawl_stored_qsort(void* base, size_t count, size_t size,
                       int (*compare)(const void*, const void*)) {
  qsort(base, count, size, compare);
  pawl_stored(base, count * size);
}

// What the code of an element-wise atomic copy calls.
void __llvm_memcpy_element_unordered_atomic_4(void* to, const void* from, size_t length);
void __llvm_memcpy_element_unordered_atomic_4(void* to, const void* from, size_t length) {
  memcpy(to, from, length);
}
void __llvm_memmove_element_unordered_atomic_4(void* to, const void* from, size_t length);
void __llvm_memmove_element_unordered_atomic_4(void* to, const void* from, size_t length) {
  memmove(to, from, length);
}
void __llvm_memset_element_unordered_atomic_4(void* to, unsigned char byte, size_t length);
void __llvm_memset_element_unordered_atomic_4(void* to, unsigned char byte, size_t length) {
  memset(to, byte, length);
}
