/* Operations of which each needs a rule of the compiler that others do not: when one is broken
 * (compiler/fase/faults.h), a crash in one of these is not recovered from.  Compiled at -O1, which
 * leaves the loops as they are. */
#include <pthread.h>

#include "crash_run_time.h"

enum { kNumbers = 16 };

struct data {
  pthread_mutex_t lock;
  long first, second, third;
  long numbers[kNumbers + 2];
};

/* What is read after the cut before the first store is what the second one overwrites. */
__attribute__((noinline)) static void store_and_add(struct data* data, long* to, long* sum,
                                                    long number) {
  pthread_mutex_lock(&data->lock);
  *to = number;
  *sum += number;
  pthread_mutex_unlock(&data->lock);
}

/* Each turn reads what the next one overwrites.  In one turn the two are never the same. */
__attribute__((noinline)) static void move_down(struct data* data, long number) {
  pthread_mutex_lock(&data->lock);
  for (int i = 0; i < kNumbers; ++i) data->numbers[i] = data->numbers[i + 1] + number;
  pthread_mutex_unlock(&data->lock);
}

/* The same, with the store first: only the turns before have read what a turn overwrites. */
__attribute__((noinline)) static void hand_on(struct data* data, long number) {
  pthread_mutex_lock(&data->lock);
  for (int i = 0; i < kNumbers; ++i) {
    data->numbers[i] = number;
    number = data->numbers[i + 2] + 1;
  }
  pthread_mutex_unlock(&data->lock);
}

/* What a function has read after a cut of its own its caller overwrites. */
__attribute__((noinline)) static long store_and_read(long* to, const long* from, long number) {
  *to = number;
  return *from;
}
__attribute__((noinline)) static void add_to_read(struct data* data, long* to, long* sum,
                                                  long number) {
  pthread_mutex_lock(&data->lock);
  data->third = number;
  *sum = store_and_read(to, sum, number) + number;
  pthread_mutex_unlock(&data->lock);
}

/* One cut serves both stores, of which only the second one needs it. */
__attribute__((noinline)) static void store_twice(struct data* data, long* here, long* to,
                                                  long number) {
  pthread_mutex_lock(&data->lock);
  *here = number;
  *to = number;
  pthread_mutex_unlock(&data->lock);
}

/* What a section reads of a variable of the program it has from its frame, when it is resumed. */
void follow_setting(struct data* data) {
  pthread_mutex_lock(&data->lock);
  data->first += data->second;
  data->second = data->first + own_number;
  pthread_mutex_unlock(&data->lock);
}

void operation(unsigned number) {
  struct data* data = (struct data*)ARENA;
  long here = 0;
  switch (number % 6) {
    case 0:
      store_and_add(data, &data->first, &data->second, number);
      break;
    case 1:
      move_down(data, number);
      break;
    case 2:
      hand_on(data, number);
      break;
    case 3:
      add_to_read(data, &data->first, &data->second, number);
      break;
    case 4:
      store_twice(data, &here, &data->third, number);
      break;
    case 5:
      follow_setting(data);
      break;
  }
}

int main(void) { return run_operations(18); }
