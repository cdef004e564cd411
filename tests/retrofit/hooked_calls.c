/* Between the preload library and the C library: a program's own work in the midst of one call,
 * just before the C library is called or just behind it.
 *
 *   work_in_call(NUMBER, BEFORE, BEHIND)   once, in the next call about this descriptor; -1:
 * truncate()
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { NOTHING = -2 };

static atomic_int awaited = NOTHING;
static void (*before)(void);
static void (*behind)(void);

void work_in_call(int number, void (*work_before)(void), void (*work_behind)(void));
void work_in_call(int number, void (*work_before)(void), void (*work_behind)(void)) {
  before = work_before;
  behind = work_behind;
  atomic_store(&awaited, number);
}

#define AROUND(is_it, result, name, ...) \
  do { \
    __typeof__(name)* next_; \
    *(void**)&next_ = dlsym(RTLD_NEXT, #name); \
    int number_ = atomic_load(&awaited); \
    const int is_hooked_ = number_ != NOTHING && (is_it) && \
                           atomic_compare_exchange_strong(&awaited, &number_, NOTHING); \
    if (is_hooked_ && before != NULL) before(); \
    result = next_(__VA_ARGS__); \
    if (is_hooked_ && behind != NULL) behind(); \
    return result; \
  } while (0)

int close(int number) {
  int result;
  AROUND(number == number_, result, close, number);
}
int dup2(int from, int number) {
  int result;
  AROUND(number == number_, result, dup2, from, number);
}
int close_range(unsigned first, unsigned last, int flags) {
  int result;
  AROUND(number_ >= 0 && first <= (unsigned)number_ && last >= (unsigned)number_, result,
         close_range, first, last, flags);
}
int fclose(FILE* stream) {
  const int number = fileno(stream);
  int result;
  AROUND(number == number_, result, fclose, stream);
}
FILE* freopen(const char* path, const char* mode, FILE* stream) {
  const int number = fileno(stream);
  FILE* result;
  AROUND(number == number_, result, freopen, path, mode, stream);
}
int truncate(const char* path, off_t size) {
  int result;
  AROUND(number_ == -1, result, truncate, path, size);
}
