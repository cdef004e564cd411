/* killed FILE MICROSECONDS: threads change structures in the file's failure-atomic sections until
 * the process kills itself.  Before, it checks what the last run left: nothing may be half done.  0
 * microseconds: it only checks. */
#include <pawl/fase.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kAccounts = 8, kThreads = 3, kMoneyEach = 1000, kKeys = 64 };

struct node {
  long value;
  struct node* next;
  pthread_mutex_t lock;
};

struct account {
  pthread_mutex_t lock;
  long money;
  long transfers;
};

struct bank {
  struct account accounts[kAccounts];
  pthread_mutex_t stack_lock;
  struct node* top;
  long pushed;
  long popped;
  struct node list; /* sorted; each node has a lock, and its value twice as a checksum */
  long long inserted;
  long long removed;
};

static pawl_fase* fase;
static struct bank* bank;

static void transfer(unsigned from, unsigned to, long money) {
  struct account* first = &bank->accounts[from < to ? from : to];
  struct account* second = &bank->accounts[from < to ? to : from];
  pthread_mutex_lock(&first->lock);
  pthread_mutex_lock(&second->lock);
  if (bank->accounts[from].money >= money) {
    bank->accounts[from].money -= money;
    bank->accounts[to].money += money;
    bank->accounts[from].transfers++;
    bank->accounts[to].transfers++;
  }
  pthread_mutex_unlock(&first->lock);
  pthread_mutex_unlock(&second->lock);
}

static void push(long value) {
  pthread_mutex_lock(&bank->stack_lock);
  struct node* node = pawl_fase_malloc(fase, sizeof *node);
  if (node != NULL) {
    node->value = value;
    node->next = bank->top;
    bank->top = node;
    bank->pushed++;
  }
  pthread_mutex_unlock(&bank->stack_lock);
}

static void pop(void) {
  pthread_mutex_lock(&bank->stack_lock);
  struct node* node = bank->top;
  if (node != NULL) {
    bank->top = node->next;
    bank->popped++;
    pawl_fase_free(fase, node);
  }
  pthread_mutex_unlock(&bank->stack_lock);
}

/* Called with the lock of `before` held: a call of a function that cuts. */
static __attribute__((noinline)) int link_node(struct node* before, long value) {
  struct node* node = pawl_fase_malloc(fase, sizeof *node);
  if (node == NULL) return 0;
  node->value = value;
  pthread_mutex_init(&node->lock, NULL);
  node->next = before->next;
  before->next = node;
  return 1;
}

static int insert_or_remove(long value) {
  struct node* before = &bank->list;
  pthread_mutex_lock(&before->lock);
  struct node* node = before->next;
  while (node != NULL) {
    pthread_mutex_lock(&node->lock);
    if (node->value >= value) break;
    pthread_mutex_unlock(&before->lock);
    before = node;
    node = node->next;
  }
  int change = 0;
  if (node != NULL && node->value == value) {
    before->next = node->next;
    pthread_mutex_unlock(&node->lock);
    pawl_fase_free(fase, node);
    change = -1;
  } else {
    change = link_node(before, value);
    if (node != NULL) pthread_mutex_unlock(&node->lock);
  }
  pthread_mutex_unlock(&before->lock);
  return change;
}

static void* work(void* argument) {
  unsigned state = (unsigned)(size_t)argument * 7919u + (unsigned)getpid();
  for (;;) {
    state = state * 1103515245u + 12345u;
    const unsigned random = state >> 8;
    switch (random % 4) {
      case 0:
        transfer(random / 4 % kAccounts, (random / 4 + 1 + random / 64 % 7) % kAccounts,
                 random % 100);
        break;
      case 1:
        push(random);
        break;
      case 2:
        pop();
        break;
      case 3:
        insert_or_remove(random / 4 % kKeys);
        break;
    }
  }
  return NULL;
}

static void make_bank(void) {
  struct bank* made = pawl_fase_calloc(fase, 1, sizeof *made);
  if (made == NULL) abort();
  made->list.value = -1;
  for (int i = 0; i < kAccounts; ++i) made->accounts[i].money = kMoneyEach;
  if (pawl_fase_set_root(fase, made) != 0) abort();
}

static int check_bank(void) {
  long money = 0;
  long transfers = 0;
  for (int i = 0; i < kAccounts; ++i) {
    money += bank->accounts[i].money;
    transfers += bank->accounts[i].transfers;
  }
  long nodes = 0;
  for (struct node* node = bank->top; node != NULL; node = node->next) ++nodes;
  long last = -1;
  long keys = 0;
  int is_sorted = 1;
  for (struct node* node = bank->list.next; node != NULL; node = node->next) {
    is_sorted &= node->value > last && ++keys <= kKeys;
    last = node->value;
  }
  const int is_good = money == kAccounts * kMoneyEach && transfers % 2 == 0 &&
                      nodes == bank->pushed - bank->popped && is_sorted;
  printf("%s: money %ld, transfers %ld, pushed %ld, popped %ld, nodes %ld, keys %ld\n",
         is_good ? "good" : "BAD", money, transfers / 2, bank->pushed, bank->popped, nodes, keys);
  return is_good;
}

int main(int count, char** words) {
  if (count != 3) return 2;
  fase = pawl_fase_open(words[1], NULL);
  if (fase == NULL) {
    fprintf(stderr, "%s: %s\n", words[1], pawl_last_error());
    return 1;
  }
  if (pawl_fase_root(fase) == NULL) make_bank();
  bank = pawl_fase_root(fase);
  struct pawl_fase_statistics statistics;
  if (pawl_fase_stats(fase, &statistics) == 0 && statistics.sections_recovered != 0) {
    printf("%llu sections recovered; ", (unsigned long long)statistics.sections_recovered);
  }
  if (!check_bank()) return 1;
  fflush(stdout);
  const useconds_t microseconds = (useconds_t)atol(words[2]);
  if (microseconds == 0) return pawl_fase_close(fase) == 0 ? 0 : 1;
  for (size_t i = 1; i <= kThreads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, (void*)i) != 0) return 1;
  }
  usleep(microseconds);
  kill(getpid(), SIGKILL);
  return 1;
}
