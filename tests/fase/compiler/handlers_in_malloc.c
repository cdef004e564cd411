/* handlers_in_malloc FILE COUNT: a signal interrupts malloc() in threads that are in no section,
 * known to the run-time and not.  Its handler changes memory of all kinds, through pointers.  So
 * many functions wait for the end of the program: the C library allocates memory for each 32nd. */
#include <pawl/fase.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

struct data {
  pthread_mutex_t lock;
  long sum, last, seen;
};

void* allocate(void* unused); /* interrupted_malloc.c */

long limit = 10; /* sections read it behind their frames */
static long calls;
static struct data* data;
long *to_limit = &limit, *to_calls = &calls;

static void on_signal(int number) {
  (void)number;
  *to_calls += 1;
  *to_limit += 1;
  data->seen = *to_calls;
}

static volatile int ended;
static void at_end(void) { ended = 1; }

static __attribute__((noinline)) void add(struct data* to) {
  pthread_mutex_lock(&to->lock);
  to->sum += limit;
  to->last = limit;
  pthread_mutex_unlock(&to->lock);
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  pawl_fase* const file = pawl_fase_open(arguments[1], NULL);
  if (file == NULL) return fprintf(stderr, "%s\n", pawl_last_error()), 1;
  data = pawl_fase_calloc(file, 1, sizeof *data);
  if (data == NULL) return fprintf(stderr, "%s\n", pawl_last_error()), 1;
  add(data);
  for (int left = atoi(arguments[2]); left > 0; --left) atexit(at_end);
  signal(SIGUSR1, on_signal);
  allocate(NULL);
  pthread_t thread;
  if (pthread_create(&thread, NULL, allocate, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  add(data);
  if (data->seen != 2 || data->sum != 22 || data->last != 12) {
    return fprintf(stderr, "%ld, %ld, %ld\n", data->seen, data->sum, data->last), 1;
  }
  return pawl_fase_close(file) != 0;
}
