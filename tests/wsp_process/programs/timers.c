// Calls that wait, in the middle of which the power fails: none of them ends early, none with
// EINTR, and what was to come still comes.
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/timerfd.h>

#include "kept.h"

static atomic_int alarms;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int is_signalled;
static int ends[2];
static atomic_int waiting;

static void hear_alarm(int signal) {
  (void)signal;
  ++alarms;
}

static void* wait_in_nanosleep(void* argument) {
  const struct timespec pause = {1, 0};
  ++waiting;
  errno = 0;
  CHECK(nanosleep(&pause, NULL) == 0);
  CHECK(may_go_on());
  return argument;
}

static void* wait_in_poll(void* argument) {
  struct pollfd none = {.fd = -1};
  ++waiting;
  CHECK(poll(&none, 1, 1000) == 0);
  CHECK(may_go_on());
  return argument;
}

static void* wait_in_epoll(void* argument) {
  const int set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0x123456789abcdef0};
  CHECK(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event) == 0);
  ++waiting;
  memset(&event, 0, sizeof(event));
  CHECK(epoll_wait(set, &event, 1, -1) == 1);
  CHECK(event.data.u64 == 0x123456789abcdef0 && may_go_on());
  return argument;
}

static void* wait_in_read(void* argument) {
  char byte = 0;
  int* pipe_ends = argument;
  ++waiting;
  CHECK(read(pipe_ends[0], &byte, 1) == 1 && byte == 'r');
  return NULL;
}

static void* wait_for_condition(void* argument) {
  CHECK(pthread_mutex_lock(&mutex) == 0);
  ++waiting;
  while (!is_signalled) CHECK(pthread_cond_wait(&condition, &mutex) == 0);
  CHECK(pthread_mutex_unlock(&mutex) == 0);
  return argument;
}

int main(void) {
  struct sigaction action = {.sa_handler = hear_alarm, .sa_flags = SA_RESTART};
  CHECK(sigaction(SIGALRM, &action, NULL) == 0);
  int reads[2];
  CHECK(pipe(ends) == 0 && pipe(reads) == 0);
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  const struct itimerspec in_a_while = {.it_value = {.tv_sec = 1}, .it_interval = {.tv_sec = 900}};
  const int expired = timerfd_create(CLOCK_MONOTONIC, 0);
  const struct itimerspec at_once = {.it_value = {.tv_nsec = 1}};
  CHECK(timerfd_settime(expired, 0, &at_once, NULL) == 0);
  struct pollfd until_expired = {.fd = expired, .events = POLLIN};
  CHECK(poll(&until_expired, 1, -1) == 1);
  void* (*const waits[])(void*) = {wait_in_nanosleep, wait_in_poll, wait_in_epoll, wait_in_read,
                                   wait_for_condition};
  pthread_t threads[5];
  for (int i = 0; i < 5; ++i) CHECK(pthread_create(&threads[i], NULL, waits[i], reads) == 0);
  while (waiting != 5) usleep(100);
  const struct itimerval soon = {.it_value = {.tv_sec = 1}};
  CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
  CHECK(timerfd_settime(timer, 0, &in_a_while, NULL) == 0);
  errno = E2BIG;  // each thread has its own, and keeps it
  tell("ready");
  wait_to_go_on();
  CHECK(errno == ENOENT || errno == E2BIG);  // access(2) says the first until the file is there
  uint64_t ticks = 0;
  CHECK(read(expired, &ticks, sizeof(ticks)) == sizeof(ticks) && ticks == 1);
  struct pollfd until_timer = {.fd = timer, .events = POLLIN};
  while (poll(&until_timer, 1, 60000) != 1) CHECK(errno == EINTR);
  CHECK(read(timer, &ticks, sizeof(ticks)) == sizeof(ticks) && ticks == 1);
  struct itimerspec left;
  CHECK(timerfd_gettime(timer, &left) == 0 && left.it_interval.tv_sec == 900);
  while (alarms == 0) usleep(1000);
  CHECK(write(ends[1], "x", 1) == 1 && write(reads[1], "r", 1) == 1);
  CHECK(pthread_mutex_lock(&mutex) == 0);
  is_signalled = 1;
  CHECK(pthread_cond_broadcast(&condition) == 0 && pthread_mutex_unlock(&mutex) == 0);
  for (int i = 0; i < 5; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  done();
}
