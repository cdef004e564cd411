/* In the ways of PMDK's own examples: typed object ids (of 16 bytes), D_RO and D_RW to reach what
 * they name, and transactions that are told of each field before it changes.  The tree snapshots a
 * node as a whole when pairs in it move, as their b-tree does. */
#include "snapshot/modules/pmemobj_structures.h"

#include <string.h>

enum {
  kOrder = 8,
  kPairsMax = kOrder - 1,
  kPairsMin = kOrder / 2 - 1,
  kValueBytes = 100,
  kFirstCapacity = 4
};

POBJ_LAYOUT_BEGIN(snapshot);
POBJ_LAYOUT_ROOT(snapshot, struct root);
POBJ_LAYOUT_TOID(snapshot, struct list_node);
POBJ_LAYOUT_TOID(snapshot, struct tree_node);
POBJ_LAYOUT_TOID(snapshot, struct bucket);
POBJ_LAYOUT_TOID(snapshot, struct entry);
POBJ_LAYOUT_TOID(snapshot, struct value);
POBJ_LAYOUT_END(snapshot);

struct list_node {
  TOID(struct list_node) next;
  uint64_t value;
};

struct pair {
  uint64_t key;
  uint64_t value;
};

struct tree_node {
  int count;
  struct pair pairs[kPairsMax];
  TOID(struct tree_node) children[kOrder];
};

struct value {
  char bytes[kValueBytes];
};

struct entry {
  uint64_t key;
  TOID(struct value) value;
};

struct bucket {
  TOID(struct entry) entries;
  uint64_t count;
  uint64_t capacity;
};

struct root {
  TOID(struct list_node) head;
  TOID(struct list_node) tail;
  uint64_t list_count;
  TOID(struct tree_node) tree;
  TOID(struct bucket) buckets;
  uint64_t bucket_count;
};

static TOID(struct root) root_of(PMEMobjpool* pool) { return POBJ_ROOT(pool, struct root); }

/* A program looks its root up once. */
static TOID(struct root) root;
static TOID(struct list_node) walker;

int structures_make(PMEMobjpool* pool, uint64_t buckets) {
  int result = 0;
  root = root_of(pool);
  TX_BEGIN(pool) {
    TX_ADD(root);
    D_RW(root)->tree = TX_ZNEW(struct tree_node);
    D_RW(root)->buckets = TX_ZALLOC(struct bucket, buckets * sizeof(struct bucket));
    D_RW(root)->bucket_count = buckets;
  }
  TX_ONABORT { result = -1; }
  TX_END
  return result;
}

/* ------------------------------------------------------------------------------------------ list
 */

int list_append(PMEMobjpool* pool, uint64_t value) {
  int result = 0;
  TX_BEGIN(pool) {
    TOID(struct list_node) node = TX_NEW(struct list_node);
    D_RW(node)->next = TOID_NULL(struct list_node);
    D_RW(node)->value = value;
    if (TOID_IS_NULL(D_RO(root)->tail)) {
      TX_ADD_FIELD(root, head);
      D_RW(root)->head = node;
    } else {
      TX_ADD_FIELD(D_RO(root)->tail, next);
      D_RW(D_RW(root)->tail)->next = node;
    }
    TX_ADD_FIELD(root, tail);
    D_RW(root)->tail = node;
    TX_ADD_FIELD(root, list_count);
    D_RW(root)->list_count++;
  }
  TX_ONABORT { result = -1; }
  TX_END
  return result;
}

int list_remove_head(PMEMobjpool* pool, uint64_t* value) {
  int result = 0;
  TOID(struct list_node) node = D_RO(root)->head;
  if (TOID_IS_NULL(node)) return -1;
  if (TOID_EQUALS(walker, node)) walker = TOID_NULL(struct list_node);
  *value = D_RO(node)->value;
  TX_BEGIN(pool) {
    TX_ADD_FIELD(root, head);
    D_RW(root)->head = D_RO(node)->next;
    if (TOID_IS_NULL(D_RO(node)->next)) {
      TX_ADD_FIELD(root, tail);
      D_RW(root)->tail = TOID_NULL(struct list_node);
    }
    TX_ADD_FIELD(root, list_count);
    D_RW(root)->list_count--;
    TX_FREE(node);
  }
  TX_ONABORT { result = -1; }
  TX_END
  return result;
}

int list_step(PMEMobjpool* pool, uint64_t* value) {
  (void)pool;
  walker = TOID_IS_NULL(walker) || TOID_IS_NULL(D_RO(walker)->next) ? D_RO(root)->head
                                                                    : D_RO(walker)->next;
  if (TOID_IS_NULL(walker)) return -1;
  *value = D_RO(walker)->value;
  return 0;
}

/* ---------------------------------------------------------------------------------------- b-tree
 */

typedef TOID(struct tree_node) node_id;

static int place(node_id node, uint64_t key) {
  int at = 0;
  while (at < D_RO(node)->count && D_RO(node)->pairs[at].key < key) ++at;
  return at;
}

static int is_leaf(node_id node) { return TOID_IS_NULL(D_RO(node)->children[0]); }

static void split(node_id node, int at) {
  node_id lower = D_RO(node)->children[at];
  node_id upper = TX_ZNEW(struct tree_node);
  TX_ADD(node);
  TX_ADD_FIELD(lower, count);
  D_RW(upper)->count = kPairsMin;
  for (int i = 0; i < kPairsMin; ++i) D_RW(upper)->pairs[i] = D_RO(lower)->pairs[i + kPairsMin + 1];
  for (int i = 0; i <= kPairsMin; ++i)
    D_RW(upper)->children[i] = D_RO(lower)->children[i + kPairsMin + 1];
  for (int i = D_RO(node)->count; i > at; --i) {
    D_RW(node)->pairs[i] = D_RO(node)->pairs[i - 1];
    D_RW(node)->children[i + 1] = D_RO(node)->children[i];
  }
  D_RW(node)->pairs[at] = D_RO(lower)->pairs[kPairsMin];
  D_RW(node)->children[at + 1] = upper;
  D_RW(node)->count++;
  D_RW(lower)->count = kPairsMin;
}

static int insert_below(node_id node, uint64_t key, uint64_t value) {
  for (;;) {
    int at = place(node, key);
    if (at < D_RO(node)->count && D_RO(node)->pairs[at].key == key) return -1;
    if (is_leaf(node)) {
      TX_ADD(node);
      for (int i = D_RO(node)->count; i > at; --i) D_RW(node)->pairs[i] = D_RO(node)->pairs[i - 1];
      D_RW(node)->pairs[at].key = key;
      D_RW(node)->pairs[at].value = value;
      D_RW(node)->count++;
      return 0;
    }
    if (D_RO(D_RO(node)->children[at])->count == kPairsMax) {
      split(node, at);
      if (D_RO(node)->pairs[at].key < key) ++at;
    }
    node = D_RO(node)->children[at];
  }
}

int tree_insert(PMEMobjpool* pool, uint64_t key, uint64_t value) {
  volatile int result = 0;
  TX_BEGIN(pool) {
    if (D_RO(D_RO(root)->tree)->count == kPairsMax) {
      node_id above = TX_ZNEW(struct tree_node);
      D_RW(above)->children[0] = D_RO(root)->tree;
      TX_ADD_FIELD(root, tree);
      D_RW(root)->tree = above;
      split(above, 0);
    }
    result = insert_below(D_RO(root)->tree, key, value);
  }
  TX_ONABORT { result = -1; }
  TX_END
  return result;
}

int tree_lookup(PMEMobjpool* pool, uint64_t key, uint64_t* value) {
  (void)pool;
  for (node_id node = D_RO(root)->tree; !TOID_IS_NULL(node);) {
    const int at = place(node, key);
    if (at < D_RO(node)->count && D_RO(node)->pairs[at].key == key) {
      *value = D_RO(node)->pairs[at].value;
      return 0;
    }
    node = D_RO(node)->children[at];
  }
  return -1;
}

static uint64_t sum_below(node_id node) {
  uint64_t sum = 0;
  const int count = D_RO(node)->count;
  for (int i = 0; i < count; ++i) {
    if (!TOID_IS_NULL(D_RO(node)->children[i])) sum += sum_below(D_RO(node)->children[i]);
    sum += D_RO(node)->pairs[i].value;
  }
  if (!TOID_IS_NULL(D_RO(node)->children[count])) sum += sum_below(D_RO(node)->children[count]);
  return sum;
}

int tree_walk(PMEMobjpool* pool, uint64_t* sum) {
  (void)pool;
  *sum = sum_below(D_RO(root)->tree);
  return 0;
}

static void take_from_left(node_id node, int at) {
  node_id child = D_RO(node)->children[at];
  node_id left = D_RO(node)->children[at - 1];
  TX_ADD(child);
  TX_ADD_FIELD(left, count);
  TX_ADD_FIELD(node, pairs[at - 1]);
  for (int i = D_RO(child)->count; i > 0; --i) D_RW(child)->pairs[i] = D_RO(child)->pairs[i - 1];
  for (int i = D_RO(child)->count + 1; i > 0; --i)
    D_RW(child)->children[i] = D_RO(child)->children[i - 1];
  D_RW(child)->pairs[0] = D_RO(node)->pairs[at - 1];
  D_RW(child)->children[0] = D_RO(left)->children[D_RO(left)->count];
  D_RW(child)->count++;
  D_RW(node)->pairs[at - 1] = D_RO(left)->pairs[D_RO(left)->count - 1];
  D_RW(left)->count--;
}

static void take_from_right(node_id node, int at) {
  node_id child = D_RO(node)->children[at];
  node_id right = D_RO(node)->children[at + 1];
  TX_ADD(child);
  TX_ADD(right);
  TX_ADD_FIELD(node, pairs[at]);
  D_RW(child)->pairs[D_RO(child)->count] = D_RO(node)->pairs[at];
  D_RW(child)->children[D_RO(child)->count + 1] = D_RO(right)->children[0];
  D_RW(child)->count++;
  D_RW(node)->pairs[at] = D_RO(right)->pairs[0];
  for (int i = 1; i < D_RO(right)->count; ++i) D_RW(right)->pairs[i - 1] = D_RO(right)->pairs[i];
  for (int i = 1; i <= D_RO(right)->count; ++i)
    D_RW(right)->children[i - 1] = D_RO(right)->children[i];
  D_RW(right)->count--;
}

static void merge(node_id node, int at) {
  node_id left = D_RO(node)->children[at];
  node_id right = D_RO(node)->children[at + 1];
  TX_ADD(node);
  TX_ADD(left);
  const int base = D_RO(left)->count + 1;
  D_RW(left)->pairs[base - 1] = D_RO(node)->pairs[at];
  for (int i = 0; i < D_RO(right)->count; ++i) D_RW(left)->pairs[base + i] = D_RO(right)->pairs[i];
  for (int i = 0; i <= D_RO(right)->count; ++i)
    D_RW(left)->children[base + i] = D_RO(right)->children[i];
  D_RW(left)->count = base + D_RO(right)->count;
  for (int i = at + 1; i < D_RO(node)->count; ++i) {
    D_RW(node)->pairs[i - 1] = D_RO(node)->pairs[i];
    D_RW(node)->children[i] = D_RO(node)->children[i + 1];
  }
  D_RW(node)->count--;
  TX_FREE(right);
}

/* The child `at`, after it was given a pair if it had the least number. */
static node_id filled(node_id node, int at) {
  node_id child = D_RO(node)->children[at];
  if (D_RO(child)->count > kPairsMin) return child;
  if (at > 0 && D_RO(D_RO(node)->children[at - 1])->count > kPairsMin) {
    take_from_left(node, at);
    return child;
  }
  if (at < D_RO(node)->count && D_RO(D_RO(node)->children[at + 1])->count > kPairsMin) {
    take_from_right(node, at);
    return child;
  }
  const int left = at < D_RO(node)->count ? at : at - 1;
  merge(node, left);
  return D_RO(node)->children[left];
}

static int erase_below(node_id node, uint64_t key) {
  const int at = place(node, key);
  const int here = at < D_RO(node)->count && D_RO(node)->pairs[at].key == key;
  if (is_leaf(node)) {
    if (!here) return -1;
    TX_ADD(node);
    for (int i = at + 1; i < D_RO(node)->count; ++i)
      D_RW(node)->pairs[i - 1] = D_RO(node)->pairs[i];
    D_RW(node)->count--;
    return 0;
  }
  if (!here) return erase_below(filled(node, at), key);
  node_id left = D_RO(node)->children[at];
  node_id right = D_RO(node)->children[at + 1];
  if (D_RO(left)->count > kPairsMin) {
    node_id last = left;
    while (!is_leaf(last)) last = D_RO(last)->children[D_RO(last)->count];
    const struct pair pair = D_RO(last)->pairs[D_RO(last)->count - 1];
    TX_ADD_FIELD(node, pairs[at]);
    D_RW(node)->pairs[at] = pair;
    return erase_below(left, pair.key);
  }
  if (D_RO(right)->count > kPairsMin) {
    node_id first = right;
    while (!is_leaf(first)) first = D_RO(first)->children[0];
    const struct pair pair = D_RO(first)->pairs[0];
    TX_ADD_FIELD(node, pairs[at]);
    D_RW(node)->pairs[at] = pair;
    return erase_below(right, pair.key);
  }
  merge(node, at);
  return erase_below(left, key);
}

int tree_erase(PMEMobjpool* pool, uint64_t key) {
  volatile int result = 0;
  TX_BEGIN(pool) {
    node_id top = D_RO(root)->tree;
    result = erase_below(top, key);
    if (D_RO(top)->count == 0 && !is_leaf(top)) {
      TX_ADD_FIELD(root, tree);
      D_RW(root)->tree = D_RO(top)->children[0];
      TX_FREE(top);
    }
  }
  TX_ONABORT { result = -1; }
  TX_END
  return result;
}

/* ----------------------------------------------------------------------------------------- table
 */

static struct bucket* bucket_at(uint64_t index) { return D_RW(D_RW(root)->buckets) + index; }

static struct entry* find(const struct bucket* bucket, uint64_t key) {
  struct entry* entries = pmemobj_direct(bucket->entries.oid);
  for (uint64_t i = 0; i < bucket->count; ++i) {
    if (entries[i].key == key) return entries + i;
  }
  return NULL;
}

int table_insert(PMEMobjpool* pool, uint64_t index, uint64_t key, const char* bytes) {
  volatile int result = 0;
  struct bucket* const bucket = bucket_at(index);
  if (find(bucket, key) != NULL) return -1;
  TX_BEGIN(pool) {
    TX_ADD_DIRECT(bucket);
    if (bucket->count == bucket->capacity) {
      const uint64_t capacity = bucket->capacity == 0 ? kFirstCapacity : 2 * bucket->capacity;
      TOID(struct entry) entries = TX_ALLOC(struct entry, capacity * sizeof(struct entry));
      if (bucket->count > 0)
        memcpy(D_RW(entries), D_RO(bucket->entries), bucket->count * sizeof(struct entry));
      TOID(struct entry) old = bucket->entries;
      bucket->entries = entries;
      bucket->capacity = capacity;
      if (!TOID_IS_NULL(old)) TX_FREE(old);
    } else {
      TX_ADD_DIRECT(D_RW(bucket->entries) + bucket->count);
    }
    TOID(struct value) value = TX_NEW(struct value);
    memcpy(D_RW(value)->bytes, bytes, kValueBytes);
    struct entry* const entry = D_RW(bucket->entries) + bucket->count;
    entry->key = key;
    entry->value = value;
    bucket->count++;
  }
  TX_ONABORT { result = -1; }
  TX_END
  return result;
}

int table_update(PMEMobjpool* pool, uint64_t index, uint64_t key, const char* bytes) {
  volatile int result = 0;
  struct entry* const entry = find(bucket_at(index), key);
  if (entry == NULL) return -1;
  TX_BEGIN(pool) {
    TX_ADD(entry->value);
    memcpy(D_RW(entry->value)->bytes, bytes, kValueBytes);
  }
  TX_ONABORT { result = -1; }
  TX_END
  return result;
}

int table_read(PMEMobjpool* pool, uint64_t index, uint64_t key, char* bytes) {
  (void)pool;
  const struct entry* const entry = find(bucket_at(index), key);
  if (entry == NULL) return -1;
  memcpy(bytes, D_RO(entry->value)->bytes, kValueBytes);
  return 0;
}

uint32_t table_scan(PMEMobjpool* pool, uint64_t index, uint32_t pairs, char* bytes) {
  (void)pool;
  uint32_t done = 0;
  const uint64_t buckets = D_RO(root)->bucket_count;
  for (uint64_t looked = 0; looked < buckets; ++looked) {
    const struct bucket* const bucket = bucket_at(index);
    const struct entry* const entries = D_RO(bucket->entries);
    for (uint64_t i = 0; i < bucket->count; ++i) {
      if (done == pairs) return done;
      memcpy(bytes + (size_t)done * kValueBytes, D_RO(entries[i].value)->bytes, kValueBytes);
      ++done;
    }
    if (++index == buckets) index = 0;
  }
  return done;
}
