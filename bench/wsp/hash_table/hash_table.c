#include "hash_table/hash_table.h"

#include "atomically.h"

struct node {
  struct node* next;
  uint64_t key;
  uint64_t value;
};
struct hash_table {
  uint64_t bucket_count; /* a power of two */
  uint64_t entries;
  struct node* free;
  struct node* buckets[];
};

static uint64_t bucket_count_of(uint64_t entries_max) {
  uint64_t count = 1;
  while (count < entries_max) count *= 2;
  return count;
}

size_t hash_table_bytes(uint64_t entries_max) {
  return sizeof(struct hash_table) + bucket_count_of(entries_max) * sizeof(struct node*) +
         entries_max * sizeof(struct node);
}

struct hash_table* hash_table_make(void* memory, uint64_t entries_max) {
  struct hash_table* const table = memory;
  table->bucket_count = bucket_count_of(entries_max);
  table->entries = 0;
  struct node* const nodes = (struct node*)(void*)(table->buckets + table->bucket_count);
  for (uint64_t i = 0; i < entries_max; ++i) {
    nodes[i].next = table->free;
    table->free = &nodes[i];
  }
  return table;
}

/* The pointer to the key's node, or the one at the end of its list. */
static inline struct node** find(struct hash_table* table, uint64_t key) {
  /* Fibonacci hashing: neighbouring keys come apart. */
  const uint64_t spread = key * 0x9e3779b97f4a7c15u;
  struct node** at = &table->buckets[(spread >> 32) & (table->bucket_count - 1)];
  while (*at != NULL && (*at)->key != key) at = &(*at)->next;
  return at;
}

static inline bool insert(struct hash_table* table, uint64_t key, uint64_t value) {
  struct node** const at = find(table, key);
  if (*at != NULL) {
    (*at)->value = value;
    return true;
  }
  struct node* const node = table->free;
  if (node == NULL) return false;
  table->free = node->next;
  node->next = NULL;
  node->key = key;
  node->value = value;
  *at = node;
  ++table->entries;
  return true;
}

static inline bool take_out(struct hash_table* table, uint64_t key) {
  struct node** const at = find(table, key);
  struct node* const node = *at;
  if (node == NULL) return false;
  *at = node->next;
  node->next = table->free;
  table->free = node;
  --table->entries;
  return true;
}

static inline uint64_t value_of(struct hash_table* table, uint64_t key) {
  const struct node* const node = *find(table, key);
  return node == NULL ? 0 : node->value;
}

bool hash_table_insert(struct hash_table* table, uint64_t key, uint64_t value) {
  bool done = false;
  ATOMICALLY(done = insert(table, key, value));
  return done;
}

bool hash_table_remove(struct hash_table* table, uint64_t key) {
  bool done = false;
  ATOMICALLY(done = take_out(table, key));
  return done;
}

uint64_t hash_table_find(struct hash_table* table, uint64_t key) {
  uint64_t value = 0;
  ATOMICALLY(value = value_of(table, key));
  return value;
}

uint64_t hash_table_entries(const struct hash_table* table) { return table->entries; }
