/* run: cc -std=gnu11 -Wall -Wextra -Werror errors.c -o errors $(pkg-config --cflags --libs pawl) && ./errors */
#include <fcntl.h>
#include <pawl/pawl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int asked = 0;

static void ask_for_the_other_name(void) { asked = 1; }

int main(void) {
  const size_t length = 4096;
  const pid_t child = fork();
  if (child == 0) {
    const int here = open("here.data", O_RDWR | O_CREAT, 0600);
    char *memory = pawl_mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_ATOMIC, here, 0);
    if (memory == MAP_FAILED || pawl_ftruncate(here, (off_t)length) != 0) exit(1);
    memory[0] = 1;
    if (pawl_msync(memory, length, MS_SYNC) != 0) exit(1);
    raise(SIGKILL);
  }
  int status;
  if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) return 1;
  if (rename("here.data", "there.data") != 0) return 1;
  const int fd = open("there.data", O_RDWR);
  FRAGMENT
  return asked ? 0 : (fprintf(stderr, "not asked: %s\n", pawl_last_error()), 1);
}
