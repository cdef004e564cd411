/* A chained hash table of numbers in one piece of memory, whose nodes are taken from, and given
 * back to, a list in that memory: no allocator takes part, so that what is measured is the same
 * code in each form of persistence (atomically.h).
 *
 * Of one thread. */
#ifndef PAWL_BENCH_WSP_HASH_TABLE_H
#define PAWL_BENCH_WSP_HASH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hash_table;

/* What a table takes that holds so many entries. */
size_t hash_table_bytes(uint64_t entries_max);
/* Makes an empty one in memory that is zero and aligned to 16 bytes; nothing of this is atomic. */
struct hash_table* hash_table_make(void* memory, uint64_t entries_max);

/* Puts the key's value, or another in its place.  False: the table is full. */
bool hash_table_insert(struct hash_table* table, uint64_t key, uint64_t value);
/* False: there is none. */
bool hash_table_remove(struct hash_table* table, uint64_t key);
/* The key's value; 0 when there is none. */
uint64_t hash_table_find(struct hash_table* table, uint64_t key);

uint64_t hash_table_entries(const struct hash_table* table);

#ifdef __cplusplus
}
#endif
#endif
