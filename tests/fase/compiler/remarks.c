/* What -Rpass=pawl tells. */
#include <pthread.h>
#include <stddef.h>

#include "crash_run_time.h"

struct node {
  long value;
  struct node* next;
};
struct stack {
  pthread_mutex_t lock;
  struct node* top;
};

int main(void) { return 0; }

__attribute__((noinline)) static int push(struct stack* stack, long value) {
  pthread_mutex_lock(&stack->lock); /* expected-remark {{a failure-atomic section begins}} */
  struct node* node = pawl_fase_malloc(NULL, sizeof *node);
  if (node != NULL) {
    node->value = value; /* expected-remark {{a cut: line 22 writes (3 live-ins, 24 bytes)}} */
    node->next = stack->top;
    stack->top = node;
  }
  pthread_mutex_unlock(&stack->lock);
  return node != NULL;
}

__attribute__((noinline)) static int pop(struct stack* stack) {
  pthread_mutex_lock(&stack->lock); /* expected-remark {{a failure-atomic section begins}} */
  struct node* node = stack->top;
  if (node != NULL) {
    /* expected-remark@+1 {{a cut, if that is persistent: what line 32 has read}} */
    stack->top = node->next;
    pawl_fase_free(NULL, node);
  }
  pthread_mutex_unlock(&stack->lock);
  return node != NULL;
}

/* One cut before the loop serves all turns: they only write. */
__attribute__((noinline)) static void clear(struct stack* stack, long* numbers, int count) {
  pthread_mutex_lock(&stack->lock); /* expected-remark {{a failure-atomic section begins}} */
#pragma clang loop vectorize(disable) unroll(disable)
  for (int i = 0; i < count; ++i) { /* expected-remark {{if that is persistent: line 47 writes}} */
    numbers[i] = i;
  }
  pthread_mutex_unlock(&stack->lock);
}

/* A search needs none. */
__attribute__((noinline)) static int find(struct stack* stack, long value) {
  pthread_mutex_lock(&stack->lock); /* expected-remark {{a failure-atomic section begins}} */
  const struct node* node = stack->top;
  while (node != NULL && node->value != value) node = node->next;
  pthread_mutex_unlock(&stack->lock);
  return node != NULL;
}

int (*volatile kept)(struct stack*);
__attribute__((constructor)) static void use(void) {
  static struct stack* stack;
  stack = pawl_fase_root(NULL);
  if (kept == NULL && push(stack, 1)) clear(stack, &stack->top->value, find(stack, 1) + 2);
  pop(stack);
}
