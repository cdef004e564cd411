/* Who takes from the queue may look at the node that another thread is just putting behind it: the
 * locks are two.  It sees the link or it does not; a load or store of it is one instruction, and
 * volatile says so to the compiler. */
#include "structures.h"

static struct queue_node* make_node(pawl_fase* file, uint64_t value) {
  struct queue_node* node = pawl_fase_malloc(file, sizeof *node);
  if (node != NULL) {
    node->next = NULL;
    node->value = value;
  }
  return node;
}

struct queue* queue_make(pawl_fase* file) {
  pawl_fase_begin();
  struct queue* queue = pawl_fase_malloc(file, sizeof *queue);
  struct queue_node* node = make_node(file, 0);
  const bool is_made = queue != NULL && node != NULL;
  if (is_made) {
    pthread_mutex_init(&queue->head_lock, NULL);
    pthread_mutex_init(&queue->tail_lock, NULL);
    queue->head = node;
    queue->tail = node;
  } else {
    pawl_fase_free(file, node);
    pawl_fase_free(file, queue);
  }
  pawl_fase_end();
  return is_made ? queue : NULL;
}

bool queue_put(pawl_fase* file, struct queue* queue, uint64_t value) {
  pthread_mutex_lock(&queue->tail_lock);
  struct queue_node* node = make_node(file, value);
  if (node != NULL) {
    *(struct queue_node* volatile*)&queue->tail->next = node;
    queue->tail = node;
  }
  pthread_mutex_unlock(&queue->tail_lock);
  return node != NULL;
}

bool queue_take(pawl_fase* file, struct queue* queue, uint64_t* value) {
  pthread_mutex_lock(&queue->head_lock);
  struct queue_node* taken = queue->head;
  struct queue_node* next = *(struct queue_node* volatile*)&taken->next;
  if (next != NULL) {
    *value = next->value;
    queue->head = next;
    pawl_fase_free(file, taken);
  }
  pthread_mutex_unlock(&queue->head_lock);
  return next != NULL;
}
