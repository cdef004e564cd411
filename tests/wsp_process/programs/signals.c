// Handlers, masks, alternate stacks, and signals that wait, for a thread and for all of them.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "kept.h"

static atomic_int heard_by_process;
static atomic_int heard_by_thread;
static atomic_int value_heard;
static atomic_int on_alternate_stack;
static atomic_int thread_is_ready;
static char* alternate;
enum { kStackBytes = 65536 };

static void hear_process(int signal, siginfo_t* information, void* context) {
  (void)signal;
  (void)context;
  heard_by_process = 1;
  value_heard = information->si_value.sival_int;
}

static void hear_thread(int signal) {
  (void)signal;
  char here = 0;
  on_alternate_stack = &here > alternate && &here < alternate + kStackBytes;
  heard_by_thread = (int)syscall(SYS_gettid);
}

static void* wait_masked(void* argument) {
  sigset_t mask;
  stack_t stack = {.ss_sp = alternate = malloc(kStackBytes), .ss_size = kStackBytes};
  CHECK(sigaltstack(&stack, NULL) == 0);
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR2);
  CHECK(pthread_sigmask(SIG_BLOCK, &mask, NULL) == 0);
  CHECK(pthread_kill(pthread_self(), SIGUSR2) == 0);
  thread_is_ready = (int)syscall(SYS_gettid);
  wait_to_go_on();
  CHECK(!heard_by_thread);
  CHECK(pthread_sigmask(SIG_UNBLOCK, &mask, NULL) == 0);
  CHECK(heard_by_thread == thread_is_ready);
  CHECK(on_alternate_stack);
  return argument;
}

int main(void) {
  struct sigaction action = {.sa_sigaction = hear_process, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGRTMIN, &action, NULL) == 0);
  action = (struct sigaction){.sa_handler = hear_thread, .sa_flags = SA_ONSTACK};
  CHECK(sigaction(SIGUSR2, &action, NULL) == 0);
  CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGRTMIN);
  CHECK(sigprocmask(SIG_BLOCK, &mask, NULL) == 0);
  CHECK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 4711}) == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, wait_masked, NULL) == 0);
  while (!thread_is_ready) usleep(100);
  tell("ready");
  wait_to_go_on();
  CHECK(!heard_by_process);
  CHECK(sigprocmask(SIG_SETMASK, NULL, &mask) == 0);
  CHECK(sigismember(&mask, SIGRTMIN) == 1 && sigismember(&mask, SIGUSR2) == 0);
  CHECK(sigprocmask(SIG_UNBLOCK, &mask, NULL) == 0);
  CHECK(heard_by_process && value_heard == 4711);
  struct sigaction pipe_action;
  CHECK(sigaction(SIGPIPE, NULL, &pipe_action) == 0 && pipe_action.sa_handler == SIG_IGN);
  CHECK(pthread_join(thread, NULL) == 0);
  done();
}
