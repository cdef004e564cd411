/* What must not be in a failure-atomic section, and is told of with its line. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>

#include "crash_run_time.h"

static pthread_mutex_t lock;
static long setting;
static long count;
static _Atomic long atomic_count;
static jmp_buf jump;

/* What ends sections is another function for each: errors are told of once a line. */
void output(long* to) {
  pthread_mutex_lock(&lock);
  *to = 1;
  printf("%ld\n", *to); /* expected-error {{printf(): input and output cannot be done again}} */
  pthread_mutex_unlock(&lock);
}

void allocates(char** to) {
  pthread_mutex_lock(&lock);
  *to = malloc(10); /* expected-error {{malloc(): volatile memory is allocated or freed}} */
  pthread_mutex_unlock(&lock);
}

void allocates_before(char** to) {
  char* block = malloc(10);
  pthread_mutex_lock(&lock);
  *to = block;
  pthread_mutex_unlock(&lock);
}

void reads_volatile(long* to) {
  pthread_mutex_lock(&lock);
  *to = 1;
  to[1] = setting; /* expected-error {{'setting' is read after something persistent was stored}} */
  pthread_mutex_unlock(&lock);
}

void reads_volatile_before(long* to) {
  pthread_mutex_lock(&lock);
  const long now = setting;
  *to = 1;
  to[1] = now;
  count++;
  pthread_mutex_unlock(&lock);
}

void set(long value) { setting = value; }

void atomics(long* to) {
  pthread_mutex_lock(&lock);
  *to = 1;
  atomic_fetch_add((_Atomic long*)to, 1); /* expected-error {{an atomic operation}} */
  atomic_count++;
  pthread_mutex_unlock(&lock);
}

void jumps(long* to) {
  pthread_mutex_lock(&lock);
  *to = 1;
  if (to[1] != 0) longjmp(jump, 1); /* expected-error {{longjmp(): control leaves}} */
  pthread_mutex_unlock(&lock);
}

void assembly(long* to) {
  pthread_mutex_lock(&lock);
  /* expected-error@+1 {{inline assembly that uses memory}} */
  __asm__ volatile("movq $1, %0" : "=m"(*to));
  __asm__ volatile("" ::: "memory");
  pthread_mutex_unlock(&lock);
}

void appends(char* to) {
  pthread_mutex_lock(&lock);
  strcat(to, to + 100); /* expected-error {{append once more}} */
  pthread_mutex_unlock(&lock);
}

void stops_where_it_reads(char* to, const char* from) {
  pthread_mutex_lock(&lock);
  memccpy(to, from, 0, 10); /* expected-error {{memccpy(): what it copies says where it ends}} */
  pthread_mutex_unlock(&lock);
}

void depends_on_locale(const char* from, long* to) {
  pthread_mutex_lock(&lock);
  *to = strcoll(from, "a"); /* expected-error {{Pawl does not know that it can be done again}} */
  pthread_mutex_unlock(&lock);
}

void variable_length(long* to, int size) {
  pthread_mutex_lock(&lock);
  long numbers[size]; /* expected-error {{an array of variable length}} */
  memset(numbers, 1, sizeof numbers);
  to[0] = numbers[to[1]];
  to[1] = numbers[to[2]]; /* expected-error {{read after something persistent was stored}} */
  pthread_mutex_unlock(&lock);
}

/* Many ways to a return; on one the lock is still held. */
int keeps_lock(long* to) {
  if (pthread_mutex_trylock(&lock) != 0) return 0;
  *to = 1;
  return 1;
} /* expected-error {{returns with a lock that it has taken}} */

static int enter(long* to) {
  if (pthread_mutex_trylock(&lock) != 0) return 0;
  *to = 1;
  return 1;
}
static void leave(void) { pthread_mutex_unlock(&lock); }
void enters(long* to) {
  if (!enter(to)) return;
  to[1] = 2;
  leave();
}

static __attribute__((noinline)) void called(long* to) {
  to[0] = 1;
  puts("inside"); /* expected-error {{puts(): input and output cannot be done again}} */
}
void calls(long* to) {
  pthread_mutex_lock(&lock);
  called(to);
  pthread_mutex_unlock(&lock);
}

static __attribute__((noinline)) void called_outside(long* to) {
  to[0] = 1;
  puts("outside");
}
void calls_outside(long* to) {
  pthread_mutex_lock(&lock);
  to[0] = 2;
  pthread_mutex_unlock(&lock);
  called_outside(to);
}

int (*take)(pthread_mutex_t*);
/* expected-error@+1 {{the address of pthread_mutex_lock is taken}} */
void address(void) { take = pthread_mutex_lock; }
void other(const struct timespec* until) {
  /* expected-error@+1 {{Pawl has no such function}} */
  pthread_rwlock_timedrdlock((pthread_rwlock_t*)&lock, until);
}

/* The section has a function change the variable, by its address. */
static long found_last;
static __attribute__((noinline)) void find(long* found, const long* in) { *found = in[7]; }
void finds(long* to) {
  pthread_mutex_lock(&lock);
  find(&found_last, to);
  to[0] = 1;
  to[1] = found_last; /* expected-error {{'found_last' is read after something persistent}} */
  pthread_mutex_unlock(&lock);
}

/* Not held where something is told of it. */
int tells_that_it_is_busy(long* to) {
  if (pthread_mutex_trylock(&lock) == EBUSY) {
    puts("busy");
    return 0;
  }
  *to = 1;
  pthread_mutex_unlock(&lock);
  return 1;
}
int switches_by_result(long* to) {
  switch (pthread_mutex_trylock(&lock)) {
    case 0:
      *to = 1;
      pthread_mutex_unlock(&lock);
      return 1;
    case EBUSY:
      puts("busy");
      to[1] = 2;
      return 0;
    default:
      return -1;
  }
}
int tries_of_c11(mtx_t* mutex, long* to) {
  if (mtx_trylock(mutex) == thrd_busy) {
    to[1] = 2;
    return 0;
  }
  *to = 1;
  mtx_unlock(mutex);
  return 1;
}

static __attribute__((noinline)) long sum_of(int number, ...) {
  long sum = 0;
  va_list numbers;
  va_start(numbers, number); /* expected-error {{a variable number of arguments is gone}} */
  while (number-- > 0) sum += va_arg(numbers, long);
  va_end(numbers); /* expected-error {{a variable number of arguments is gone}} */
  return sum;
}
void sums(long* to) {
  pthread_mutex_lock(&lock);
  *to = sum_of(2, to[1], to[2]);
  pthread_mutex_unlock(&lock);
}

void formats(char* to) {
  pthread_mutex_lock(&lock);
  snprintf(to, 10, "%d", to[20]); /* expected-error {{into a local array, and copy that}} */
  pthread_mutex_unlock(&lock);
}
