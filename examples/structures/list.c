#include "list.h"

void list_begin(struct list* list) {
  list->first.next = NULL;
  pthread_mutex_init(&list->first.lock, NULL);
}

struct list* list_make(pawl_fase* file) {
  pawl_fase_begin();
  struct list* list = pawl_fase_malloc(file, sizeof *list);
  if (list != NULL) list_begin(list);
  pawl_fase_end();
  return list;
}

/* The last node whose key is less.  It is locked, and so is the one behind it, if any. */
static struct list_node* find_before(struct list* list, uint64_t key) {
  struct list_node* before = &list->first;
  pthread_mutex_lock(&before->lock);
  for (;;) {
    struct list_node* next = before->next;
    if (next == NULL) return before;
    pthread_mutex_lock(&next->lock);
    if (next->key >= key) return before;
    pthread_mutex_unlock(&before->lock);
    before = next;
  }
}

bool list_put(pawl_fase* file, struct list* list, uint64_t key, uint64_t value) {
  struct list_node* before = find_before(list, key);
  struct list_node* next = before->next;
  bool is_put = true;
  if (next != NULL && next->key == key) {
    next->value = value;
  } else {
    struct list_node* node = pawl_fase_malloc(file, sizeof *node);
    is_put = node != NULL;
    if (is_put) {
      node->next = next;
      node->key = key;
      node->value = value;
      pthread_mutex_init(&node->lock, NULL);
      before->next = node;
    }
  }
  if (next != NULL) pthread_mutex_unlock(&next->lock);
  pthread_mutex_unlock(&before->lock);
  return is_put;
}

bool list_get(struct list* list, uint64_t key, uint64_t* value) {
  struct list_node* before = find_before(list, key);
  struct list_node* next = before->next;
  const bool is_there = next != NULL && next->key == key;
  if (is_there) *value = next->value;
  if (next != NULL) pthread_mutex_unlock(&next->lock);
  pthread_mutex_unlock(&before->lock);
  return is_there;
}

bool list_remove(pawl_fase* file, struct list* list, uint64_t key) {
  struct list_node* before = find_before(list, key);
  struct list_node* next = before->next;
  const bool is_there = next != NULL && next->key == key;
  if (is_there) before->next = next->next;
  if (next != NULL) pthread_mutex_unlock(&next->lock);
  /* Nobody else can come to it: who would is held up at the node before. */
  if (is_there) pawl_fase_free(file, next);
  pthread_mutex_unlock(&before->lock);
  return is_there;
}
