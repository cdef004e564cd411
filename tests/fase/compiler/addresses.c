/* Addresses that are not just named: pointers that walk through arrays and lists, and those that
 * are kept as numbers, with a mark in them, rounded, relative, or linked by exclusive or.  Some
 * lead into the file or elsewhere, as the caller says.  And arithmetic between stores that calls
 * the C library. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "crash_run_time.h"

enum { kEntries = 8, kBuckets = 16, kPoolBytes = 1024, kPageBytes = 256 };

struct entry {
  long key, value;
};
struct bucket {
  unsigned key;
  long values[4];
  int is_used;
};
struct marked {
  uintptr_t next; /* and a mark, in the lowest bit */
  long value;
};
struct relative {
  ptrdiff_t next; /* from here on, or 0 */
  long value;
};
struct both_ways {
  uintptr_t link; /* of the two neighbours */
  long value;
};
struct tree {
  struct tree* child[2];
  long key;
  uintptr_t parent; /* and a colour, in the lowest two bits */
};

struct data {
  pthread_mutex_t lock;
  long last, sum, count;
  struct entry entries[kEntries];
  struct bucket buckets[kBuckets];
  struct marked marked;
  struct relative relative;
  struct both_ways *first, *end;
  struct tree* root;
  uint64_t handle;
  char *pool, *pool_end;
  char bytes[kPoolBytes];
};

#define SECTION __attribute__((noinline)) void

SECTION take_value(struct data* data, long key) {
  pthread_mutex_lock(&data->lock);
  for (struct entry* entry = data->entries; entry != data->entries + kEntries; ++entry) {
    if (entry->key != key) continue;
    data->last = entry->value;
    entry->value = data->sum;
    data->sum += data->last;
    break;
  }
  pthread_mutex_unlock(&data->lock);
}

SECTION add_to_all(struct data* data, struct entry* entries, long number) {
  pthread_mutex_lock(&data->lock);
  const struct entry* end = entries + kEntries;
  for (struct entry* entry = entries; entry != end; ++entry) {
    entry->value += number;
    data->sum += entry->value;
  }
  pthread_mutex_unlock(&data->lock);
}

/* What lies elsewhere is only stored to. */
SECTION fill_all(struct data* data, struct entry* entries, long number) {
  pthread_mutex_lock(&data->lock);
  for (struct entry* entry = entries; entry < entries + kEntries; ++entry) {
    entry->value = number * ++data->sum;
    if (data->sum % 11 == 0) break;
  }
  pthread_mutex_unlock(&data->lock);
}

/* Through one of two arrays, from behind. */
SECTION hand_down(struct data* data, struct entry* here, struct entry* there, long number) {
  pthread_mutex_lock(&data->lock);
  struct entry* entry = (number % 3 == 0 ? here : there) + kEntries;
  for (long i = 1; i < kEntries; ++i) {
    --entry;
    entry->value = entry[-1].value + number;
    if (entry->value % 7 == 0) break;
  }
  pthread_mutex_unlock(&data->lock);
}

SECTION put(struct data* data, unsigned key, long first, long second) {
  pthread_mutex_lock(&data->lock);
  for (unsigned i = key % kBuckets, tries = 0; tries < kBuckets; ++tries, i = (i + 1) % kBuckets) {
    struct bucket* bucket = &data->buckets[i];
    if (!bucket->is_used) {
      bucket->key = key;
      bucket->values[0] = first;
      bucket->values[1] = second;
      bucket->is_used = 1;
      ++data->count;
      break;
    }
    if (bucket->key == key) {
      bucket->values[0] = first;
      bucket->values[1] += second;
      break;
    }
  }
  pthread_mutex_unlock(&data->lock);
}

static struct marked* unmarked(uintptr_t link) { return (struct marked*)(link & ~(uintptr_t)1); }

SECTION add_marked(struct data* data, long number) {
  pthread_mutex_lock(&data->lock);
  struct marked* node = pawl_fase_malloc(NULL, sizeof *node);
  if (node != NULL) {
    node->value = number;
    node->next = data->marked.next;
    data->marked.next = (uintptr_t)node;
    struct marked* behind = unmarked(node->next);
    if (behind != NULL) ++behind->value;
  }
  pthread_mutex_unlock(&data->lock);
}

SECTION mark_all(struct data* data, long number) {
  pthread_mutex_lock(&data->lock);
  for (struct marked* node = unmarked(data->marked.next); node != NULL;
       node = unmarked(node->next)) {
    node->next ^= 1;
    data->sum += node->value;
    node->value += number;
  }
  pthread_mutex_unlock(&data->lock);
}

static struct relative* behind(struct relative* node) {
  return node->next == 0 ? NULL : (struct relative*)((char*)node + node->next);
}

SECTION add_relative(struct data* data, long number) {
  pthread_mutex_lock(&data->lock);
  struct relative* node = pawl_fase_malloc(NULL, sizeof *node);
  if (node != NULL) {
    struct relative* next = behind(&data->relative);
    node->value = number;
    node->next = next == NULL ? 0 : (char*)next - (char*)node;
    data->relative.next = (char*)node - (char*)&data->relative;
  }
  for (struct relative* at = behind(&data->relative); at != NULL; at = behind(at)) {
    data->last = at->value++;
  }
  pthread_mutex_unlock(&data->lock);
}

SECTION add_both_ways(struct data* data, long number) {
  pthread_mutex_lock(&data->lock);
  struct both_ways* node = pawl_fase_malloc(NULL, sizeof *node);
  if (node != NULL) {
    node->value = number;
    node->link = (uintptr_t)data->end;
    if (data->end != NULL) data->end->link ^= (uintptr_t)node;
    if (data->first == NULL) data->first = node;
    data->end = node;
  }
  uintptr_t before = 0;
  for (struct both_ways* at = data->first; at != NULL;) {
    at->value ^= data->sum++;
    const uintptr_t here = (uintptr_t)at;
    at = (struct both_ways*)(at->link ^ before);
    before = here;
  }
  pthread_mutex_unlock(&data->lock);
}

static struct tree* parent_of(const struct tree* node) {
  return (struct tree*)(node->parent & ~(uintptr_t)3);
}
static void set_parent(struct tree* node, struct tree* parent) {
  node->parent = (uintptr_t)parent | (node->parent & 3);
}

SECTION grow(struct data* data, long key) {
  pthread_mutex_lock(&data->lock);
  struct tree* node = pawl_fase_calloc(NULL, 1, sizeof *node);
  if (node != NULL) {
    struct tree** place = &data->root;
    while (*place != NULL) {
      set_parent(node, *place);
      place = &(*place)->child[key > (*place)->key];
    }
    node->key = key;
    node->parent |= (uintptr_t)(key & 1);
    *place = node;
  }
  pthread_mutex_unlock(&data->lock);
}

SECTION rotate(struct data* data, int side) {
  pthread_mutex_lock(&data->lock);
  struct tree* down = data->root;
  struct tree* up = down == NULL ? NULL : down->child[!side];
  if (up != NULL) {
    down->child[!side] = up->child[side];
    if (up->child[side] != NULL) set_parent(up->child[side], down);
    struct tree* parent = parent_of(down);
    set_parent(up, parent);
    if (parent == NULL) {
      data->root = up;
    } else {
      parent->child[parent->child[1] == down] = up;
    }
    up->child[side] = down;
    set_parent(down, up);
  }
  pthread_mutex_unlock(&data->lock);
}

SECTION cut_off(struct data* data, size_t bytes, char fill) {
  pthread_mutex_lock(&data->lock);
  if (data->pool == NULL) {
    data->pool = data->bytes;
    data->pool_end = data->bytes + kPoolBytes;
  }
  char* block = (char*)(((uintptr_t)data->pool + 15) & ~(uintptr_t)15);
  if (block + bytes <= data->pool_end) {
    data->pool = block + bytes;
    for (char* at = block; at != block + bytes; ++at) *at = fill;
  }
  pthread_mutex_unlock(&data->lock);
}

/* A count at the beginning of the page that something is in. */
SECTION count_in_page(struct data* data, char* place) {
  pthread_mutex_lock(&data->lock);
  long* page = (long*)((uintptr_t)place & ~(uintptr_t)(kPageBytes - 1));
  ++page[0];
  if ((page[1] += page[0]) > 20) page[0] = 0;
  long* same = __builtin_align_down((long*)place, kPageBytes);
  same[2] += page[1];
  pthread_mutex_unlock(&data->lock);
}

SECTION follow_handle(struct data* data, long number) {
  pthread_mutex_lock(&data->lock);
  struct marked* found = (struct marked*)(data->handle >> 16 << 4);
  if (found != NULL) found->value += number;
  found = unmarked(data->marked.next);
  data->handle = ((uint64_t)found >> 4 << 16) + (data->handle + 1) % 1000;
  pthread_mutex_unlock(&data->lock);
}

void operation(unsigned number) {
  struct data* data = (struct data*)ARENA;
  struct entry here[kEntries] = {{0}};
  static _Alignas(kPageBytes) char page[kPageBytes];
  switch (number % 16) {
    case 0:
      add_to_all(data, data->entries, number);
      break;
    case 1:
      take_value(data, 0);
      break;
    case 2:
      fill_all(data, number % 2 == 0 ? data->entries : here, number);
      break;
    case 3:
      hand_down(data, here, data->entries, number);
      break;
    case 4:
      put(data, number % 5, number, number + 1);
      break;
    case 5:
    case 6:
      add_marked(data, number);
      break;
    case 7:
      mark_all(data, number);
      break;
    case 8:
      add_relative(data, number);
      break;
    case 9:
      add_both_ways(data, number);
      break;
    case 10:
      grow(data, number * 7919 % 101);
      break;
    case 11:
      rotate(data, number % 2);
      break;
    case 12:
      cut_off(data, 5 + number % 20, (char)number);
      break;
    case 13:
      count_in_page(data, ARENA + kPageBytes * 40 + number);
      break;
    case 14:
      count_in_page(data, page + number % kPageBytes);
      break;
    case 15:
      follow_handle(data, number);
      break;
  }
}

int main(void) { return run_operations(100); }
