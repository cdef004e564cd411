/* patched FILE [die]: a section that stores, calls through a pointer and stores again, and may die
 * on its way.  Says what the variable is that it has nothing to do with. */
#include <pawl/fase.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

enum { kTurns = 300000 };

struct data {
  pthread_mutex_t lock;
  long first, second, third;
};
typedef void act(struct data*);

long victim[sizeof(struct data) / sizeof(long)] = {7, 7, 7, 7, 7, 7, 7, 7};
void change_victim(struct data* data); /* of another object, without sections */
static volatile sig_atomic_t inside;

static void add(struct data* data) { data->second++; }
static act* volatile chosen = add; /* nobody sees through it */

static __attribute__((noinline)) void change(struct data* data, act* then, long turns) {
  pthread_mutex_lock(&data->lock);
  for (long i = 0; i < turns; i++) {
    inside = 1;
    data->first++;
    then(data);
  }
  data->third = data->first;
  pthread_mutex_unlock(&data->lock);
}

static void die(int number) {
  (void)number;
  if (inside) kill(getpid(), SIGKILL);
}

static struct data* make(pawl_fase* file) {
  pawl_fase_begin();
  struct data* made = pawl_fase_calloc(file, 1, sizeof *made);
  if (made != NULL) {
    pthread_mutex_init(&made->lock, NULL);
    pawl_fase_set_root(file, made);
  }
  pawl_fase_end();
  return made;
}

int main(int count, char** arguments) {
  if (count > 9) change_victim(NULL);
  pawl_fase* file = pawl_fase_open(arguments[1], NULL);
  struct data* data = file != NULL ? pawl_fase_root(file) : NULL;
  if (file != NULL && data == NULL) data = make(file);
  if (data != NULL && count > 2) {
    printf("%p\n", (void*)data);
    fflush(stdout);
    const struct itimerval soon = {{0, 2000}, {0, 2000}};
    signal(SIGALRM, die);
    setitimer(ITIMER_REAL, &soon, NULL);
    change(data, chosen, kTurns);
    return 1;
  }
  for (unsigned i = 0; i < sizeof victim / sizeof victim[0]; i++) {
    if (victim[i] != 7) return printf("the variable was changed\n"), 9;
  }
  if (data == NULL) return printf("refused: %s\n", pawl_last_error()), 3;
  printf("%ld %ld %ld\n", data->first, data->second, data->third);
  return pawl_fase_close(file) != 0;
}
