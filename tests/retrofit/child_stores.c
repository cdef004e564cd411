/* child_stores FILE WHAT: a child does WHAT with the mapping of FILE; the parent's is as it was. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBytes = 1 << 16 };

static char* map(const char* path, int* descriptor) {
  *descriptor = open(path, O_RDWR | O_CREAT, 0644);
  if (*descriptor < 0 || ftruncate(*descriptor, kBytes) != 0) _exit(10);
  char* at = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, *descriptor, 0);
  if (at == MAP_FAILED) _exit(11);
  at[0] = 'P';
  at[5000] = 'P';
  if (msync(at, kBytes, MS_SYNC) != 0) _exit(12);
  return at;
}

static int ended_well(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void on_fault(int signal) {
  (void)signal;
  _exit(0);
}

static int as_child(char* at, char* other, const char* what) {
  if (strcmp(what, "stores") == 0 || strcmp(what, "stored-before") == 0) {
    for (int i = 0; i < kBytes; i += 100) at[i] = 'C';
    return at[5000] == 'C' ? 0 : 1;
  }
  if (strcmp(what, "reads-into") == 0) {
    int ends[2];
    return pipe(ends) == 0 && write(ends[1], "CC", 2) == 2 && read(ends[0], at, 2) == 2 &&
                   at[0] == 'C'
               ? 0
               : 2;
  }
  if (strcmp(what, "exits-at-once") == 0) {
    at[0] = 'C';
    _exit(0);
  }
  if (strcmp(what, "two-files") == 0) {
    at[0] = 'C';
    other[0] = 'C';
    return 0;
  }
  if (strcmp(what, "grandchild") == 0) {
    at[0] = 'C';
    const pid_t child = fork();
    if (child == 0) {
      at[0] = 'G';
      _exit(at[0] == 'G' ? 0 : 3);
    }
    return ended_well(child) && at[0] == 'C' ? 0 : 4;
  }
  if (strcmp(what, "loads") == 0) return at[0] == 'P' && at[5000] == 'P' ? 0 : 5;
  if (strcmp(what, "execs") == 0) {
    execl("/bin/true", "true", (char*)NULL);
    return 6;
  }
  if (strcmp(what, "read-only") == 0) {
    /* The program's own protection holds, and the fault is the program's. */
    signal(SIGSEGV, on_fault);
    at[0] = 'C';
    return 7;
  }
  return 8;
}

int main(int count, char** arguments) {
  if (count != 3) return 20;
  const char* what = arguments[2];
  int descriptor = -1;
  int other_descriptor = -1;
  char* at = map(arguments[1], &descriptor);
  char* other = NULL;
  if (strcmp(what, "two-files") == 0) {
    (void)mkdir("other", 0755);
    other = map("other/file", &other_descriptor);
  }
  if (strcmp(what, "stored-before") == 0) at[5000] = 'Q';
  if (strcmp(what, "read-only") == 0 && mprotect(at, kBytes, PROT_READ) != 0) return 13;
  const pid_t child = fork();
  if (child == 0) return as_child(at, other, what);
  if (!ended_well(child)) return 14;
  if (at[0] != 'P' || (other != NULL && other[0] != 'P')) return 15;
  return strcmp(what, "read-only") == 0 || msync(at, kBytes, MS_SYNC) == 0 ? 0 : 16;
}
