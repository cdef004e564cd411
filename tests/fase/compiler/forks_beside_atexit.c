/* forks_beside_atexit FILE: a process forks while another of its threads calls atexit(), whose lock
 * its children find held.  They must not take it. */
#include <pawl/fase.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kForks = 300, kFunctionsMax = 3000000 };

static volatile int ended;
static void at_end(void) { ended = 1; }

static void* add_functions(void* unused) {
  for (int i = 0; i < kFunctionsMax; ++i) atexit(at_end);
  return unused;
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  if (pawl_fase_open(arguments[1], NULL) == NULL)
    return fprintf(stderr, "%s\n", pawl_last_error()), 1;
  pthread_t thread;
  if (pthread_create(&thread, NULL, add_functions, NULL) != 0) return 1;
  for (int i = 0; i < kForks; ++i) {
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) _exit(0);
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) _exit(1);
  }
  _exit(0);
}
