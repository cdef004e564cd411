/* The structures of the paper's measurements: a stack, a queue with two locks, a sorted list with a
 * lock for each node. */
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "crash_run_time.h"

struct node {
  long value;
  struct node* next;
  pthread_mutex_t lock;
};

struct structures {
  pthread_mutex_t stack_lock;
  struct node* top;
  pthread_mutex_t head_lock;
  struct node* head;
  pthread_mutex_t tail_lock;
  struct node* tail;
  struct node list; /* a head, below all values */
  long seen[2];
};

static struct node* new_node(long value) {
  struct node* node = pawl_fase_malloc(NULL, sizeof *node);
  if (node == NULL) return NULL;
  node->value = value;
  node->next = NULL;
  pthread_mutex_init(&node->lock, NULL);
  return node;
}

int push(struct structures* s, long value) {
  pthread_mutex_lock(&s->stack_lock);
  struct node* node = pawl_fase_malloc(NULL, sizeof *node);
  if (node == NULL) {
    pthread_mutex_unlock(&s->stack_lock);
    return -1;
  }
  node->value = value;
  node->next = s->top;
  s->top = node;
  pthread_mutex_unlock(&s->stack_lock);
  return 0;
}

int pop(struct structures* s, long* value) {
  pthread_mutex_lock(&s->stack_lock);
  struct node* node = s->top;
  if (node == NULL) {
    pthread_mutex_unlock(&s->stack_lock);
    return 0;
  }
  *value = node->value;
  s->top = node->next;
  pawl_fase_free(NULL, node);
  pthread_mutex_unlock(&s->stack_lock);
  return 1;
}

int enqueue(struct structures* s, long value) {
  pthread_mutex_lock(&s->tail_lock);
  struct node* node = new_node(value);
  if (node == NULL) {
    pthread_mutex_unlock(&s->tail_lock);
    return -1;
  }
  s->tail->next = node;
  s->tail = node;
  pthread_mutex_unlock(&s->tail_lock);
  return 0;
}

int dequeue(struct structures* s, long* value) {
  pthread_mutex_lock(&s->head_lock);
  struct node* first = s->head;
  struct node* next = first->next;
  if (next == NULL) {
    pthread_mutex_unlock(&s->head_lock);
    return 0;
  }
  *value = next->value;
  s->head = next;
  pawl_fase_free(NULL, first);
  pthread_mutex_unlock(&s->head_lock);
  return 1;
}

int insert(struct structures* s, long value) {
  struct node* before = &s->list;
  pthread_mutex_lock(&before->lock);
  struct node* node = before->next;
  while (node != NULL) {
    pthread_mutex_lock(&node->lock);
    if (node->value >= value) break;
    pthread_mutex_unlock(&before->lock);
    before = node;
    node = node->next;
  }
  int inserted = 0;
  if (node == NULL || node->value != value) {
    struct node* added = new_node(value);
    if (added != NULL) {
      added->next = node;
      before->next = added;
      inserted = 1;
    }
  }
  if (node != NULL) pthread_mutex_unlock(&node->lock);
  pthread_mutex_unlock(&before->lock);
  return inserted;
}

int remove_value(struct structures* s, long value) {
  struct node* before = &s->list;
  pthread_mutex_lock(&before->lock);
  struct node* node = before->next;
  while (node != NULL) {
    pthread_mutex_lock(&node->lock);
    if (node->value >= value) break;
    pthread_mutex_unlock(&before->lock);
    before = node;
    node = node->next;
  }
  int removed = 0;
  if (node != NULL) {
    if (node->value == value) {
      before->next = node->next;
      removed = 1;
    }
    pthread_mutex_unlock(&node->lock);
    if (removed) pawl_fase_free(NULL, node);
  }
  pthread_mutex_unlock(&before->lock);
  return removed;
}

int contains(struct structures* s, long value) {
  struct node* before = &s->list;
  pthread_mutex_lock(&before->lock);
  struct node* node = before->next;
  while (node != NULL) {
    pthread_mutex_lock(&node->lock);
    pthread_mutex_unlock(&before->lock);
    if (node->value >= value) break;
    before = node;
    node = node->next;
  }
  const int found = node != NULL && node->value == value;
  pthread_mutex_unlock(node != NULL ? &node->lock : &before->lock);
  return found;
}

/* What was found goes where the caller says, into the file or elsewhere. */
__attribute__((noinline)) int look(struct structures* s, long* top, long* count) {
  pthread_mutex_lock(&s->stack_lock);
  const int is_there = s->top != NULL;
  if (is_there) {
    *top = s->top->value;
    long nodes = 0;
    for (const struct node* node = s->top; node != NULL; node = node->next) ++nodes;
    *count = nodes;
  }
  pthread_mutex_unlock(&s->stack_lock);
  return is_there;
}

/* The same, one after the other, whose places may be one. */
__attribute__((noinline)) void collect(struct structures* s, long* values, int most) {
  pthread_mutex_lock(&s->stack_lock);
  const struct node* node = s->top;
  for (int i = 0; i < most && node != NULL; ++i, node = node->next) values[i] = node->value;
  pthread_mutex_unlock(&s->stack_lock);
}

static struct structures* structures(void) { return (struct structures*)ARENA; }

/* Where nothing persistent is stored, none is logged. */
static void look_without_cuts(struct structures* s, unsigned number) {
  long values[4];
  const unsigned before = cuts_so_far();
  if (number % 2 == 0) {
    look(s, &values[0], &values[1]);
  } else {
    collect(s, values, 4);
  }
  if (cuts_so_far() != before) abort();
}

void operation(unsigned number) {
  struct structures* s = structures();
  long value = 0;
  const long key = (number * 7919) % 23;
  if (s->head == NULL) {
    pthread_mutex_lock(&s->head_lock);
    s->list.value = -1;
    s->head = s->tail = new_node(0);
    pthread_mutex_unlock(&s->head_lock);
    return;
  }
  switch (number % 13) {
    case 0:
    case 1:
      push(s, number);
      break;
    case 2:
      pop(s, &value);
      break;
    case 3:
    case 4:
      enqueue(s, number);
      break;
    case 5:
      dequeue(s, &value);
      break;
    case 6:
      insert(s, key);
      break;
    case 7:
      contains(s, key);
      break;
    case 8:
      if (number % 2 == 0) {
        remove_value(s, key);
      } else {
        insert(s, key);
      }
      break;
    case 9:
      look(s, &s->seen[0], &s->seen[1]);
      break;
    case 10:
      look(s, &value, &s->seen[number % 2]);
      break;
    case 11:
      look_without_cuts(s, number);
      break;
    case 12:
      collect(s, s->seen, 2);
      break;
  }
}

int main(void) { return run_operations(200); }
