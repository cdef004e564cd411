/* The structures as programs on libpmemobj have them: locks of the library in the pool, and a
 * transaction for what an operation changes, while it holds them.  Where a structure has one lock
 * the transaction takes it; in the list, which is searched hand over hand, locks are taken as in
 * examples/structures, and only the change is a transaction. */
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>

#include "ido/pmemobj_medium.h"
#include "ido/subject.h"

#define POOL_BYTES ((size_t)4 << 30)
#define CACHE_LINE_BYTES 64

struct node {
  PMEMoid next;
  uint64_t value;
};

struct list_node {
  PMEMoid next;
  uint64_t key;
  uint64_t value;
  PMEMmutex lock;
};

struct root {
  PMEMmutex lock; /* of the stack, and of the queue's head */
  PMEMoid head;
  char apart[CACHE_LINE_BYTES];
  PMEMmutex tail_lock;
  PMEMoid tail;
  PMEMoid lists; /* of struct list_node: the first node of each bucket */
};

struct subject {
  PMEMobjpool* pool;
  struct root* root;
  enum subject_kind kind;
  uint64_t buckets;
};

enum { NODE_TYPE = 1, LIST_NODE_TYPE };

static struct node* node_at(PMEMoid oid) { return pmemobj_direct(oid); }
static struct list_node* list_node_at(PMEMoid oid) { return pmemobj_direct(oid); }

/* In a transaction. */
static PMEMoid new_node(uint64_t value, PMEMoid next) {
  const PMEMoid oid = pmemobj_tx_xalloc(sizeof(struct node), NODE_TYPE, POBJ_XALLOC_NO_ABORT);
  if (!OID_IS_NULL(oid)) {
    node_at(oid)->value = value;
    node_at(oid)->next = next;
  }
  return oid;
}

static void set(PMEMoid* at, PMEMoid to) {
  pmemobj_tx_add_range_direct(at, sizeof *at);
  *at = to;
}

static bool push(struct subject* subject, uint64_t value) {
  struct root* root = subject->root;
  volatile bool is_done = false;
  TX_BEGIN_PARAM(subject->pool, TX_PARAM_MUTEX, &root->lock, TX_PARAM_NONE) {
    const PMEMoid node = new_node(value, root->head);
    if (!OID_IS_NULL(node)) {
      set(&root->head, node);
      is_done = true;
    }
  }
  TX_END
  return is_done;
}

static bool pop(struct subject* subject) {
  struct root* root = subject->root;
  volatile bool is_done = false;
  TX_BEGIN_PARAM(subject->pool, TX_PARAM_MUTEX, &root->lock, TX_PARAM_NONE) {
    const PMEMoid node = root->head;
    if (!OID_IS_NULL(node)) {
      set(&root->head, node_at(node)->next);
      pmemobj_tx_free(node);
      is_done = true;
    }
  }
  TX_END
  return is_done;
}

static bool put(struct subject* subject, uint64_t value) {
  struct root* root = subject->root;
  volatile bool is_done = false;
  TX_BEGIN_PARAM(subject->pool, TX_PARAM_MUTEX, &root->tail_lock, TX_PARAM_NONE) {
    const PMEMoid node = new_node(value, OID_NULL);
    if (!OID_IS_NULL(node)) {
      set(&node_at(root->tail)->next, node);
      set(&root->tail, node);
      is_done = true;
    }
  }
  TX_END
  return is_done;
}

static bool take(struct subject* subject) {
  struct root* root = subject->root;
  volatile bool is_done = false;
  TX_BEGIN_PARAM(subject->pool, TX_PARAM_MUTEX, &root->lock, TX_PARAM_NONE) {
    const PMEMoid taken = root->head;
    const PMEMoid next = node_at(taken)->next;
    if (!OID_IS_NULL(next)) {
      set(&root->head, next);
      pmemobj_tx_free(taken);
      is_done = true;
    }
  }
  TX_END
  return is_done;
}

/* The last node whose key is less.  It is locked, and so is the one behind it, if any. */
static struct list_node* find_before(struct subject* subject, uint64_t key) {
  const uint64_t spread = key * 0x9e3779b97f4a7c15u;
  struct list_node* before = list_node_at(subject->root->lists) + (spread >> 32) % subject->buckets;
  pmemobj_mutex_lock(subject->pool, &before->lock);
  for (;;) {
    if (OID_IS_NULL(before->next)) return before;
    struct list_node* next = list_node_at(before->next);
    pmemobj_mutex_lock(subject->pool, &next->lock);
    if (next->key >= key) return before;
    pmemobj_mutex_unlock(subject->pool, &before->lock);
    before = next;
  }
}

static void leave(struct subject* subject, struct list_node* before, struct list_node* next) {
  if (next != NULL) pmemobj_mutex_unlock(subject->pool, &next->lock);
  pmemobj_mutex_unlock(subject->pool, &before->lock);
}

static bool list_put(struct subject* subject, uint64_t key, uint64_t value) {
  struct list_node* before = find_before(subject, key);
  struct list_node* next = list_node_at(before->next);
  volatile bool is_done = false;
  TX_BEGIN(subject->pool) {
    if (next != NULL && next->key == key) {
      pmemobj_tx_add_range_direct(&next->value, sizeof next->value);
      next->value = value;
      is_done = true;
    } else {
      const PMEMoid oid = pmemobj_tx_xalloc(sizeof(struct list_node), LIST_NODE_TYPE,
                                            POBJ_XALLOC_ZERO | POBJ_XALLOC_NO_ABORT);
      if (!OID_IS_NULL(oid)) {
        struct list_node* node = list_node_at(oid);
        node->next = before->next;
        node->key = key;
        node->value = value;
        set(&before->next, oid);
        is_done = true;
      }
    }
  }
  TX_END
  leave(subject, before, next);
  return is_done;
}

static bool list_get(struct subject* subject, uint64_t key, uint64_t* value) {
  struct list_node* before = find_before(subject, key);
  struct list_node* next = list_node_at(before->next);
  const bool is_there = next != NULL && next->key == key;
  if (is_there) *value = next->value;
  leave(subject, before, next);
  return is_there;
}

static bool list_remove(struct subject* subject, uint64_t key) {
  struct list_node* before = find_before(subject, key);
  const PMEMoid oid = before->next;
  struct list_node* next = list_node_at(oid);
  const bool is_there = next != NULL && next->key == key;
  if (next != NULL) pmemobj_mutex_unlock(subject->pool, &next->lock);
  if (is_there) {
    TX_BEGIN(subject->pool) {
      set(&before->next, next->next);
      pmemobj_tx_free(oid);
    }
    TX_END
  }
  pmemobj_mutex_unlock(subject->pool, &before->lock);
  return is_there;
}

static void make_root(struct subject* subject) {
  struct root* root = subject->root;
  TX_BEGIN(subject->pool) {
    const PMEMoid node = new_node(0, OID_NULL);
    if (subject->kind == SUBJECT_QUEUE) {
      set(&root->head, node);
      set(&root->tail, node);
    }
    set(&root->lists,
        pmemobj_tx_zalloc(subject->buckets * sizeof(struct list_node), LIST_NODE_TYPE));
  }
  TX_END
}

struct subject* subject_open(const char* path, enum subject_kind kind, uint64_t buckets) {
  struct subject* subject = calloc(1, sizeof *subject);
  subject->kind = kind;
  subject->buckets = kind == SUBJECT_MAP ? buckets : 1;
  subject->pool = pmemobj_create(path, "ido", POOL_BYTES, 0600);
  if (subject->pool == NULL) {
    fprintf(stderr, "%s: %s\n", path, pmemobj_errormsg());
    free(subject);
    return NULL;
  }
  subject->root = pmemobj_direct(pmemobj_root(subject->pool, sizeof(struct root)));
  make_root(subject);
  pmemobj_medium_begin();
  return subject;
}

void subject_close(struct subject* subject) {
  pmemobj_close(subject->pool);
  free(subject);
}

bool subject_insert(struct subject* subject, uint64_t key, uint64_t value) {
  switch (subject->kind) {
    case SUBJECT_STACK:
      return push(subject, value);
    case SUBJECT_QUEUE:
      return put(subject, value);
    default:
      return list_put(subject, key, value);
  }
}

bool subject_remove(struct subject* subject, uint64_t key) {
  switch (subject->kind) {
    case SUBJECT_STACK:
      return pop(subject);
    case SUBJECT_QUEUE:
      return take(subject);
    default:
      return list_remove(subject, key);
  }
}

bool subject_get(struct subject* subject, uint64_t key, uint64_t* value) {
  return list_get(subject, key, value);
}
