/* killed_large FILE BYTES: a section fills more memory than a page has, of the file and of the
 * program (so many bytes), until the process kills itself in its middle, or stores behind its
 * memory.  Before, it checks what the last run left.
 * killed_large FILE: it only checks, and that a section was finished. */
#include <pawl/fase.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kLarge = 100000, kFills = 100 };

struct data {
  pthread_mutex_t lock;
  long begun;
  long ended;
  char bytes[kLarge];
};

/* Stores that rely on an alignment stand in the section, too. */
static _Alignas(64) char own[kLarge];
char* handed_out = own;

static void fill(struct data* data, char* to, size_t bytes) {
  to = __builtin_assume_aligned(to, 64);
  pthread_mutex_lock(&data->lock);
  const long turn = data->begun + 1;
  data->begun = turn;
  memset(to, (int)turn, bytes);
  for (int i = 0; i < kFills; ++i) {
    memset(to, (int)turn, kLarge);
    memset(to + 64, i, 64);
    memset(data->bytes, (int)turn + i + 1 - kFills, kLarge);
  }
  data->ended = turn;
  pthread_mutex_unlock(&data->lock);
}

static void* watch(void* argument) {
  const volatile struct data* data = argument;
  while (data->begun == data->ended) continue;
  kill(getpid(), SIGKILL);
  return NULL;
}

int main(int count, char** words) {
  pawl_fase* fase = pawl_fase_open(words[1], NULL);
  if (fase == NULL) {
    fprintf(stderr, "%s: %s\n", words[1], pawl_last_error());
    return 1;
  }
  struct data* data = pawl_fase_root(fase);
  if (data == NULL) {
    data = pawl_fase_calloc(fase, 1, sizeof *data);
    if (data == NULL || pawl_fase_set_root(fase, data) != 0) return 1;
  }
  int is_good = data->begun == data->ended;
  for (int i = 0; i < kLarge; ++i) is_good &= data->bytes[i] == (char)data->ended;
  if (!is_good) {
    fprintf(stderr, "begun %ld, ended %ld\n", data->begun, data->ended);
    return 1;
  }
  if (count == 2) {
    struct pawl_fase_statistics statistics;
    if (pawl_fase_stats(fase, &statistics) != 0) return 1;
    return statistics.sections_recovered != 1 || pawl_fase_close(fase) != 0;
  }
  pthread_t thread;
  if (pthread_create(&thread, NULL, watch, data) != 0) return 1;
  for (;;) fill(data, handed_out, strtoul(words[2], NULL, 10));
}
