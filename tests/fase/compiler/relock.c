/* relock FILE: takes a lock that finds errors, and again what the thread has already; says what the
 * functions that change the data and the last release return, the data, and how many sections the
 * second change took. */
#include <errno.h>
#include <pawl/fase.h>
#include <pthread.h>
#include <stdio.h>

struct data {
  pthread_mutex_t lock;
  long first, second;
};
static pawl_fase* file;

#ifdef TESTS_FOR_ALL
#define IS_TOLD(error) ((error) != 0)
#else
/* Goes on with EDEADLK: without a lock of its own. */
#define IS_TOLD(error) ((error) == EAGAIN)
#endif

__attribute__((noinline)) static int change(struct data* data) {
  if (IS_TOLD(pthread_mutex_lock(&data->lock))) return -1;
  ++data->first;
  ++data->second;
  return pthread_mutex_unlock(&data->lock);
}

static unsigned long sections(void) {
  struct pawl_fase_statistics statistics;
  pawl_fase_stats(file, &statistics);
  return statistics.sections;
}

int main(int count, char** arguments) {
  file = pawl_fase_open(arguments[count - 1], NULL);
  struct data* const data = file == NULL ? NULL : pawl_fase_calloc(file, 1, sizeof *data);
  if (data == NULL) return 1;
  pthread_mutexattr_t finds_errors;
  pthread_mutexattr_init(&finds_errors);
  pthread_mutexattr_settype(&finds_errors, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&data->lock, &finds_errors);
  const int alone = change(data);
  const unsigned long before = sections();
  pthread_mutex_lock(&data->lock);
  ++data->first;
  const int nested = change(data);
  ++data->second;
  const int last = pthread_mutex_unlock(&data->lock);
  printf("%d %d %s %ld %ld %lu\n", alone, nested,
         last == EPERM ? "EPERM"
         : last == 0   ? "0"
                       : "?",
         data->first, data->second, sections() - before);
  return pawl_fase_close(file);
}
