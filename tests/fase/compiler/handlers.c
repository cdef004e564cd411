/* handlers FILE WHAT: signals interrupt sections, and their handlers do what handlers do.
 *   run    until each handler has interrupted sections; the sections end whole
 *   kill   a handler ends the process in the midst of a section
 *   lock   a handler takes a lock there
 *   check  what a kill left is whole */
#include <errno.h>
#include <fcntl.h>
#include <pawl/fase.h>
#include <pawl/pawl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { kTurns = 2000, kSums = 32, kHitsEach = 5, kSignals = 3, kSecondsMax = 20 };

struct data {
  pthread_mutex_t lock;
  long first, second, sums[kSums], seen;
};
struct statistics {
  long calls, longest;
};

static pawl_fase* file;
static struct data* data;
static struct statistics* statistics; /* in the memory of malloc() */
static volatile sig_atomic_t inside;  /* a section is under way */
static int ends[2];
static int hits[kSignals + 1], failures; /* the last one is of none of them */
static const char* what;

static __attribute__((noinline)) long longer(const struct statistics* of) {
  return of->calls > of->longest ? of->calls : of->longest;
}

static void count(int number) {
  const int error_number = errno;
  const char byte = (char)number;
  if (write(ends[1], &byte, 1) != 1 && errno != EAGAIN) failures++;
  statistics->calls++;
  statistics->longest = longer(statistics);
  if (inside) {
    hits[number]++;
    data->seen = statistics->calls; /* outside of the section, for all that it is inside */
    if (pawl_fase_malloc(file, 64) != NULL || errno != EBUSY) failures++;
    if (strcmp(what, "lock") == 0) {
      pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
      pthread_mutex_lock(&own);
      pthread_mutex_unlock(&own);
    }
    if (strcmp(what, "kill") == 0 && hits[number] > 3) kill(getpid(), SIGKILL);
  }
  errno = error_number;
}

static void on_alarm(int number) { count(number == SIGALRM ? 0 : kSignals); }
static void on_user(int number, siginfo_t* information, void* context) {
  (void)context;
  count(number == SIGUSR1 && information->si_signo == number ? 1 : kSignals);
}
static void on_other(void) { count(2); }

static __attribute__((noinline)) void add(struct data* to, long turns) {
  pthread_mutex_lock(&to->lock);
  inside = 1;
  for (long i = 0; i < turns; i++) {
    to->first++;
    to->sums[i % kSums] += to->first;
    to->second++;
  }
  inside = 0;
  pthread_mutex_unlock(&to->lock);
}

static struct data* make(void) {
  pawl_fase_begin();
  struct data* made = pawl_fase_calloc(file, 1, sizeof *made);
  if (made != NULL) {
    pthread_mutex_init(&made->lock, NULL);
    pawl_fase_set_root(file, made);
  }
  pawl_fase_end();
  return made;
}

/* Sends the other signals, for a timer has only the one. */
static void* send(void* receiver) {
  for (;;) {
    usleep(300);
    pthread_kill(*(pthread_t*)receiver, SIGUSR1);
    usleep(300);
    pthread_kill(*(pthread_t*)receiver, SIGUSR2);
  }
  return NULL;
}

static void start_signals(void) {
  static pthread_t receiver;
  pthread_t sender;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_flags = SA_RESTART;
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, NULL);
  action.sa_handler = (void (*)(int))(void (*)(void))on_other;
  sigaction(SIGUSR2, &action, NULL);
  action.sa_flags |= SA_SIGINFO;
  action.sa_sigaction = on_user;
  sigaction(SIGUSR1, &action, NULL);
  /* The sender gets none of them. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  receiver = pthread_self();
  if (pthread_create(&sender, NULL, send, &receiver) != 0) failures++;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  const struct itimerval often = {{0, 500}, {0, 500}};
  setitimer(ITIMER_REAL, &often, NULL);
}

static int is_enough(void) {
  for (int i = 0; i < kSignals; i++) {
    if (hits[i] < kHitsEach) return 0;
  }
  return strcmp(what, "run") == 0;
}

int main(int count_of, char** arguments) {
  if (count_of != 3) return 2;
  what = arguments[2];
  statistics = calloc(1, sizeof *statistics);
  file = pawl_fase_open(arguments[1], NULL);
  if (file == NULL) return fprintf(stderr, "%s\n", pawl_last_error()), 1;
  data = pawl_fase_root(file);
  if (data == NULL) data = make();
  if (pipe2(ends, O_NONBLOCK) != 0) return 1;
  if (strcmp(what, "check") != 0) {
    start_signals();
    const time_t until = time(NULL) + kSecondsMax;
    while (!is_enough() && time(NULL) < until) {
      add(data, kTurns);
      char bytes[64];
      while (read(ends[0], bytes, sizeof bytes) > 0) {
      }
    }
    if (!is_enough()) return fprintf(stderr, "too few sections were interrupted\n"), 1;
  }
  if (data->first != data->second || data->first % kTurns != 0 || failures != 0) {
    fprintf(stderr, "%ld and %ld, %d failures\n", data->first, data->second, failures);
    return 1;
  }
  signal(SIGALRM, SIG_IGN);
  printf("%ld\n", data->first);
  return pawl_fase_close(file) != 0;
}
