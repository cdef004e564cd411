/* Containers as C programs have them: circular lists, whose empty list leads to itself, those of
 * sys/queue.h, and a hash table in whose items the links lie, and which grows.  All is inlined into
 * the sections. */
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/queue.h>

#include "crash_run_time.h"

#define INLINE static inline __attribute__((always_inline))

struct list {
  struct list *next, *prev;
};

INLINE void list_init(struct list* list) {
  list->next = list;
  list->prev = list;
}
INLINE void list_add(struct list* entry, struct list* behind) {
  behind->next->prev = entry;
  entry->next = behind->next;
  entry->prev = behind;
  behind->next = entry;
}
INLINE void list_remove(struct list* entry) {
  entry->next->prev = entry->prev;
  entry->prev->next = entry->next;
  list_init(entry);
}
INLINE void list_splice(struct list* from, struct list* behind) {
  if (from->next == from) return;
  struct list* last = from->prev;
  from->next->prev = behind;
  last->next = behind->next;
  behind->next->prev = last;
  behind->next = from->next;
  list_init(from);
}

struct link { /* in a hash table */
  struct table* table;
  struct link *next, *prev; /* in the order of insertion */
  struct link *before, *behind;
  const void* key;
  unsigned hash;
};
struct bucket {
  struct link* first;
  unsigned count;
};
struct table {
  struct bucket* buckets;
  unsigned bucket_count, item_count;
  struct link* tail;
  ptrdiff_t offset; /* of links in items */
};

struct item {
  long key, value;
  struct list list;
  TAILQ_ENTRY(item) queue;
  LIST_ENTRY(item) chain;
  struct link link;
};

struct containers {
  pthread_mutex_t lock;
  struct list used, unused;
  TAILQ_HEAD(, item) queue;
  LIST_HEAD(, item) chain;
  struct item* items; /* of the hash table: the first */
  long sum;
};

static struct containers* containers(void) { return (struct containers*)ARENA; }

INLINE unsigned hash_of(const void* key, size_t bytes) {
  unsigned hash = 0xfeedbeefU;
  for (size_t i = 0; i < bytes; ++i) hash = hash * 33U + ((const unsigned char*)key)[i];
  return hash;
}

INLINE void add_to_bucket(struct bucket* bucket, struct link* link) {
  bucket->count++;
  link->before = NULL;
  link->behind = bucket->first;
  if (bucket->first != NULL) bucket->first->before = link;
  bucket->first = link;
}

enum { kBucketsAtFirst = 2, kItemsOfBucketMax = 3 };

INLINE void grow(struct table* table) {
  struct bucket* more = pawl_fase_malloc(NULL, 2U * table->bucket_count * sizeof *more);
  if (more == NULL) return;
  memset(more, 0, 2U * table->bucket_count * sizeof *more);
  for (unsigned i = 0; i < table->bucket_count; ++i) {
    struct link* link = table->buckets[i].first;
    while (link != NULL) {
      struct link* next = link->behind;
      add_to_bucket(&more[link->hash & (2U * table->bucket_count - 1U)], link);
      link = next;
    }
  }
  pawl_fase_free(NULL, table->buckets);
  table->bucket_count *= 2U;
  table->buckets = more;
}

INLINE struct table* new_table(struct link* first, struct item* item) {
  struct table* table = pawl_fase_malloc(NULL, sizeof *table);
  if (table == NULL) return NULL;
  memset(table, 0, sizeof *table);
  table->tail = first;
  table->bucket_count = kBucketsAtFirst;
  table->offset = (char*)first - (char*)item;
  table->buckets = pawl_fase_malloc(NULL, kBucketsAtFirst * sizeof *table->buckets);
  if (table->buckets == NULL) {
    pawl_fase_free(NULL, table);
    return NULL;
  }
  memset(table->buckets, 0, kBucketsAtFirst * sizeof *table->buckets);
  return table;
}

INLINE struct item* find(struct containers* c, long key) {
  if (c->items == NULL) return NULL;
  struct table* table = c->items->link.table;
  const unsigned hash = hash_of(&key, sizeof key);
  struct link* link = table->buckets[hash & (table->bucket_count - 1U)].first;
  while (link != NULL) {
    struct item* item = (struct item*)((char*)link - table->offset);
    if (link->hash == hash && memcmp(link->key, &key, sizeof key) == 0) return item;
    link = link->behind;
  }
  return NULL;
}

/* False without memory. */
INLINE int add(struct containers* c, struct item* item) {
  struct link* link = &item->link;
  link->hash = hash_of(&item->key, sizeof item->key);
  link->key = &item->key;
  link->next = link->prev = NULL;
  if (c->items == NULL) {
    link->table = new_table(link, item);
    if (link->table == NULL) return 0;
    c->items = item;
  } else {
    link->table = c->items->link.table;
    link->prev = link->table->tail;
    link->table->tail->next = link;
    link->table->tail = link;
  }
  struct table* table = link->table;
  struct bucket* bucket = &table->buckets[link->hash & (table->bucket_count - 1U)];
  table->item_count++;
  add_to_bucket(bucket, link);
  if (bucket->count > kItemsOfBucketMax) grow(table);
  return 1;
}

INLINE void take_out(struct containers* c, struct item* item) {
  struct link* link = &item->link;
  struct table* table = link->table;
  if (link->prev == NULL && link->next == NULL) {
    pawl_fase_free(NULL, table->buckets);
    pawl_fase_free(NULL, table);
    c->items = NULL;
    return;
  }
  if (table->tail == link) table->tail = link->prev;
  if (link->prev != NULL) {
    link->prev->next = link->next;
  } else {
    c->items = (struct item*)((char*)link->next - table->offset);
  }
  if (link->next != NULL) link->next->prev = link->prev;
  struct bucket* bucket = &table->buckets[link->hash & (table->bucket_count - 1U)];
  bucket->count--;
  if (bucket->first == link) bucket->first = link->behind;
  if (link->before != NULL) link->before->behind = link->behind;
  if (link->behind != NULL) link->behind->before = link->before;
  table->item_count--;
}

static struct item* new_item(long key) {
  struct item* item = pawl_fase_calloc(NULL, 1, sizeof *item);
  if (item == NULL) return NULL;
  item->key = key;
  list_init(&item->list);
  return item;
}

static void make(struct containers* c) {
  pthread_mutex_lock(&c->lock);
  list_init(&c->used);
  list_init(&c->unused);
  TAILQ_INIT(&c->queue);
  LIST_INIT(&c->chain);
  c->sum = 1;
  pthread_mutex_unlock(&c->lock);
}

/* Finds, or makes and adds. */
void set(struct containers* c, long key, long value) {
  pthread_mutex_lock(&c->lock);
  struct item* item = find(c, key);
  if (item == NULL) {
    item = new_item(key);
    if (item == NULL || !add(c, item)) {
      pthread_mutex_unlock(&c->lock);
      return;
    }
    list_add(&item->list, &c->used);
    TAILQ_INSERT_TAIL(&c->queue, item, queue);
    LIST_INSERT_HEAD(&c->chain, item, chain);
  }
  c->sum += value - item->value;
  item->value = value;
  pthread_mutex_unlock(&c->lock);
}

void drop(struct containers* c, long key) {
  pthread_mutex_lock(&c->lock);
  struct item* item = find(c, key);
  if (item != NULL) {
    take_out(c, item);
    list_remove(&item->list);
    list_add(&item->list, &c->unused);
    TAILQ_REMOVE(&c->queue, item, queue);
    LIST_REMOVE(item, chain);
    c->sum -= item->value;
  }
  pthread_mutex_unlock(&c->lock);
}

void turn_round(struct containers* c) {
  pthread_mutex_lock(&c->lock);
  struct item* first = TAILQ_FIRST(&c->queue);
  if (first != NULL) {
    TAILQ_REMOVE(&c->queue, first, queue);
    TAILQ_INSERT_TAIL(&c->queue, first, queue);
    list_remove(&first->list);
    list_add(&first->list, c->used.prev);
    LIST_REMOVE(first, chain);
    LIST_INSERT_HEAD(&c->chain, first, chain);
  }
  for (struct item* item = c->items; item != NULL;) {
    c->sum += item->key;
    struct link* next = item->link.next;
    item = next == NULL ? NULL : (struct item*)((char*)next - item->link.table->offset);
  }
  pthread_mutex_unlock(&c->lock);
}

/* What leads to itself leads elsewhere at once. */
void use_again(struct containers* c) {
  pthread_mutex_lock(&c->lock);
  struct list* entry = c->unused.next;
  entry->next->prev = entry->prev;
  entry->prev->next = entry->next;
  list_init(entry);
  if (entry->next != &c->unused) entry->next->prev = entry->next->next;
  list_splice(&c->used, &c->unused);
  list_splice(&c->unused, &c->used);
  struct list* last = c->used.prev;
  c->sum += (char*)last - (char*)c;
  pthread_mutex_unlock(&c->lock);
}

void operation(unsigned number) {
  struct containers* c = containers();
  const long key = (number * 7919) % 31;
  if (c->sum == 0) {
    make(c);
    return;
  }
  switch (number % 8) {
    case 3:
      drop(c, key % 8);
      break;
    case 5:
      turn_round(c);
      break;
    case 7:
      use_again(c);
      break;
    default:
      set(c, key, number);
      break;
  }
}

int main(void) { return run_operations(120); }
