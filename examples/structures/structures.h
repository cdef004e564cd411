/* Four structures that threads share, as anyone would write them with locks.  Compiled with
 * pawl-clang -fpawl=ido and put into a file of pawl/fase.h, each operation happens whole or not at
 * all, whatever crashes.  Nothing here says so: a lock held says that data is not consistent.
 *
 * All functions may be called by any thread; those that make a structure, by one.  They return
 * false, and change nothing, when there is no memory. */
#ifndef PAWL_EXAMPLES_STRUCTURES_H
#define PAWL_EXAMPLES_STRUCTURES_H

#include <pawl/fase.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CACHE_LINE_BYTES 64

/* --- a stack with one lock (after Treiber's) ------------------------------------------------ */

struct stack_node {
  struct stack_node* next;
  uint64_t value;
};
struct stack {
  pthread_mutex_t lock;
  struct stack_node* head;
};

struct stack* stack_make(pawl_fase* file);
bool stack_push(pawl_fase* file, struct stack* stack, uint64_t value);
bool stack_pop(pawl_fase* file, struct stack* stack, uint64_t* value);

/* --- a queue with two locks (Michael and Scott, PODC 1996) ----------------------------------- */

struct queue_node {
  struct queue_node* next;
  uint64_t value;
};
/* The first node's value was taken already. */
struct queue {
  pthread_mutex_t head_lock;
  struct queue_node* head;
  char apart[CACHE_LINE_BYTES];
  pthread_mutex_t tail_lock;
  struct queue_node* tail;
};

struct queue* queue_make(pawl_fase* file);
bool queue_put(pawl_fase* file, struct queue* queue, uint64_t value);
bool queue_take(pawl_fase* file, struct queue* queue, uint64_t* value);

/* --- a sorted list whose nodes have a lock each, taken hand over hand ------------------------ */

struct list_node {
  struct list_node* next;
  uint64_t key;
  uint64_t value;
  pthread_mutex_t lock;
};
/* Key and value of the first node say nothing. */
struct list {
  struct list_node first;
};

struct list* list_make(pawl_fase* file);
/* Puts the key's value, or another in its place. */
bool list_put(pawl_fase* file, struct list* list, uint64_t key, uint64_t value);
bool list_get(struct list* list, uint64_t key, uint64_t* value);
bool list_remove(pawl_fase* file, struct list* list, uint64_t key);

/* --- a map of such lists --------------------------------------------------------------------- */

struct map {
  uint64_t bucket_count;
  struct list* buckets;
};

struct map* map_make(pawl_fase* file, uint64_t bucket_count);
bool map_put(pawl_fase* file, struct map* map, uint64_t key, uint64_t value);
bool map_get(struct map* map, uint64_t key, uint64_t* value);
bool map_remove(pawl_fase* file, struct map* map, uint64_t key);

#ifdef __cplusplus
}
#endif
#endif
