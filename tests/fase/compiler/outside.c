/* Code before, between and behind sections, which reads and changes variables of the program that
 * no section changes: by an index, by an address that was chosen, in other functions.  With
 * -DIN_MAIN no caller can be in a section, and what is small is inlined into main(). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "crash_run_time.h"

enum { kCount = 4, kTableCount = 700 };
struct table {
  long numbers[kTableCount]; /* more bytes than a page has */
};
struct data {
  pthread_mutex_t lock, other;
  long put, sum, list[8];
};

static struct data* const data = (struct data*)ARENA;
static struct table* const table = (struct table*)(ARENA + kRootBytes / 2);
static long acked[kCount], scanned[kCount];
long* handed_out = scanned; /* others may store there, outside of sections */
static double shares[kCount];
static __thread long of_thread[kCount];
static _Atomic long together[kCount];
static char text[64];
static size_t lengths[kCount];
static struct table tables[2];
struct table* handed_out_tables = tables;
static struct {
  struct {
    struct {
      struct {
        struct {
          long numbers[kCount][2];
        } e;
      } d[2];
    } c;
  } b[2];
} deep[2];

#ifdef IN_MAIN
#define OPERATION static
#else
#define OPERATION
#endif

static void remember(long value) {
  memset(of_thread, (int)value, sizeof of_thread);
  for (int i = 0; i < kCount; ++i) {
    acked[i] = handed_out[i] = value + i;
    shares[i] = (double)value / 2;
    together[i] = value;
    for (int k = 0; k < 2; ++k) deep[k].b[k].c.d[k].e.numbers[i][k] = value;
  }
}
static void forget(void) { remember(1000); }

OPERATION void add_twice_and_count(int n) {
  pthread_mutex_lock(&data->lock);
  data->put++;
  pthread_mutex_unlock(&data->lock);
  acked[n]++;
  pthread_mutex_lock(&data->lock);
  data->put += n;
  pthread_mutex_unlock(&data->lock);
  acked[n]++;
}

OPERATION void count_in_loop(int n) {
  for (int i = 0; i < 3; i++) {
    pawl_fase_begin();
    data->put++;
    data->list[i] = data->put;
    pawl_fase_end();
    acked[n]++;
    shares[n] *= 1.5;
  }
}

OPERATION void add_what_was_counted(int n) {
  for (long v = 1; v < 4; v++) {
    const long so_far = acked[n];
    pthread_mutex_lock(&data->lock);
    data->put += v;
    data->sum += so_far;
    pthread_mutex_unlock(&data->lock);
    acked[n] += v;
    of_thread[n] += v;
  }
}

static __attribute__((noinline)) void put(long v) {
  pthread_mutex_lock(&data->lock);
  data->put += v;
  pthread_mutex_unlock(&data->lock);
}
OPERATION void count_calls(int n) {
  for (int i = 0; i < 3; i++) {
    put(acked[n]);
    acked[n]++;
  }
}

OPERATION void count_one_of_two(int n) {
  long* mine = n % 2 == 0 ? &acked[n] : &scanned[n];
  double* share = n % 2 == 0 ? &shares[n] : &shares[0];
  put(*mine);
  ++*mine;
  pthread_mutex_lock(&data->lock);
  data->sum++;
  pthread_mutex_unlock(&data->lock);
  *share += 1;
  *mine *= 3;
}

OPERATION void count_all(int n) {
  for (long* each = acked; each != acked + kCount; ++each) {
    const long before = *each;
    pthread_mutex_lock(&data->lock);
    data->put += before;
    data->list[n] ^= before;
    pthread_mutex_unlock(&data->lock);
    *each += n;
  }
}

OPERATION void count_deep(int n) {
  for (int i = 0; i < 2; ++i) {
    put(3);
    pthread_mutex_lock(&data->lock);
    pthread_mutex_lock(&data->other);
    data->sum++;
    pthread_mutex_unlock(&data->other);
    data->put++;
    pthread_mutex_unlock(&data->lock);
    deep[i].b[i].c.d[i].e.numbers[n][i] += 2;
  }
}

OPERATION void count_for_all_threads(int n) {
  ++together[n];
  put(1);
  ++together[n];
  if (atomic_fetch_add(&together[n], 3) > 70) acked[n] = together[n];
  put(2);
}

/* Also by an address, in functions that a section might call, and which it would refuse then. */
__attribute__((noinline)) long count_at(_Atomic long* count) { return atomic_fetch_add(count, 2); }
__attribute__((noinline)) int set_at(_Atomic long* count, long expected, long value) {
  return atomic_compare_exchange_strong(count, &expected, value);
}
OPERATION void count_by_address(int n) {
  const long before = count_at(&together[n]);
  put(before);
  while (!set_at(&together[n], together[n], before * 3)) {
  }
  if (atomic_exchange(&together[n], before + 1) != before * 3) put(5);
  put(before + 1);
}

OPERATION void write_text(int n) {
  put(1);
  snprintf(text, sizeof text, "%ld", acked[n]);
  lengths[n] = strlen(text);
  memcpy(text + 20 * n, &acked[n], 3);
  const long length = (long)lengths[n];
  put(length);
}

/* Optimisation makes a memset() of the loops. */
OPERATION void fill_tables(int n) {
  struct table* mine = &handed_out_tables[n % 2];
  long* last = &mine->numbers[kTableCount - 1];
  memset(mine, n, sizeof *mine);
  put(*last);
  for (int i = 0; i < kTableCount; ++i) mine->numbers[i] = 0;
  mine->numbers[n] = n;
  *last += n;
  pthread_mutex_lock(&data->lock);
  data->put++;
  memset(mine, n + 1, sizeof *mine);
  memset(table, n, sizeof *table - 8 * (size_t)n);
  for (int i = 0; i < kTableCount - 1; ++i) mine->numbers[i] = 0;
  for (int i = 0; i < kTableCount - 1; ++i) table->numbers[i + 1] = 0;
  mine->numbers[n] = n;
  *last = n;
  data->put++;
  pthread_mutex_unlock(&data->lock);
  handed_out_tables[1] = handed_out_tables[0];
  put(*last);
}

/* Without optimisation the branch stays. */
OPERATION void take_no_dead_branch(int n) {
  for (unsigned i = 0; i < 2; ++i) {
    pthread_mutex_lock(&data->lock);
    if ((i == 6 ? i : 7) % 2 == 0) {
      pthread_mutex_lock(&data->other);
      data->sum += n;
      pthread_mutex_unlock(&data->other);
      memcpy(data->list, data->list + 4, i);
    }
    data->put++;
    pthread_mutex_unlock(&data->lock);
  }
}

static struct data* make(long sum) {
  pawl_fase_begin();
  struct data* made = pawl_fase_calloc(NULL, 1, sizeof *made);
  if (made != NULL) {
    pthread_mutex_init(&made->lock, NULL);
    made->sum = sum;
  }
  pawl_fase_end();
  return made;
}
/* Who has the address could change the variable in a section, for all that the compiler knows. */
long number_of(const long* mine) { return mine - scanned; }
OPERATION void make_and_scan(int n) {
  struct data* made = make(n);
  long total = 0;
  for (int i = 0; i < kCount; ++i) total += scanned[i] + made->list[i];
  const double share = shares[0] + shares[1];
  if (scanned[0] + scanned[1] > total) return;
  put(total + (long)share);
  if (scanned[n] == 77) printf("%ld\n", number_of(&scanned[n]));
}

static void one(unsigned number) {
  const int n = (int)number % kCount;
  remember((long)number);
  switch (number % 12u) {
    case 0:
      add_twice_and_count(n);
      break;
    case 1:
      count_in_loop(n);
      break;
    case 2:
      add_what_was_counted(n);
      break;
    case 3:
      count_calls(n);
      break;
    case 4:
      count_one_of_two(n);
      break;
    case 5:
      count_all(n);
      break;
    case 6:
      count_deep(n);
      break;
    case 7:
      make_and_scan(n);
      break;
    case 8:
      count_for_all_threads(n);
      count_by_address(n);
      break;
    case 9:
      take_no_dead_branch(n);
      break;
    case 10:
      fill_tables(n);
      break;
    default:
      write_text(n);
      break;
  }
}

#ifdef IN_MAIN
int main(int number, char** arguments) {
  forget_volatile = forget;
  if (arguments != NULL) return run_operations_in_main(48);
  one((unsigned)number);
  return 0;
}
#else
void operation(unsigned number) { one(number); }
int main(void) {
  forget_volatile = forget;
  return run_operations(48);
}
#endif
