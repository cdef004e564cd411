#include "structures.h"

struct stack* stack_make(pawl_fase* file) {
  pawl_fase_begin();
  struct stack* stack = pawl_fase_malloc(file, sizeof *stack);
  if (stack != NULL) {
    pthread_mutex_init(&stack->lock, NULL);
    stack->head = NULL;
  }
  pawl_fase_end();
  return stack;
}

bool stack_push(pawl_fase* file, struct stack* stack, uint64_t value) {
  pthread_mutex_lock(&stack->lock);
  struct stack_node* node = pawl_fase_malloc(file, sizeof *node);
  if (node != NULL) {
    node->value = value;
    node->next = stack->head;
    stack->head = node;
  }
  pthread_mutex_unlock(&stack->lock);
  return node != NULL;
}

bool stack_pop(pawl_fase* file, struct stack* stack, uint64_t* value) {
  pthread_mutex_lock(&stack->lock);
  struct stack_node* node = stack->head;
  if (node != NULL) {
    *value = node->value;
    stack->head = node->next;
    pawl_fase_free(file, node);
  }
  pthread_mutex_unlock(&stack->lock);
  return node != NULL;
}
