/* The list, the b-tree and the table of pairs, as programs on libpmemobj have them. */
#ifndef PAWL_BENCH_PMEMOBJ_STRUCTURES_H
#define PAWL_BENCH_PMEMOBJ_STRUCTURES_H

#include <libpmemobj.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions return 0, or -1 when a transaction was aborted or the request cannot be served. */

/* Makes empty structures in a new pool; a table of `buckets` buckets. */
int structures_make(PMEMobjpool* pool, uint64_t buckets);

int list_append(PMEMobjpool* pool, uint64_t value);
int list_remove_head(PMEMobjpool* pool, uint64_t* value);
int list_step(PMEMobjpool* pool, uint64_t* value);

int tree_insert(PMEMobjpool* pool, uint64_t key, uint64_t value);
int tree_lookup(PMEMobjpool* pool, uint64_t key, uint64_t* value);
int tree_walk(PMEMobjpool* pool, uint64_t* sum);
int tree_erase(PMEMobjpool* pool, uint64_t key);

/* `bucket` is where the key belongs; values have kPairValueBytes bytes. */
int table_insert(PMEMobjpool* pool, uint64_t bucket, uint64_t key, const char* bytes);
int table_update(PMEMobjpool* pool, uint64_t bucket, uint64_t key, const char* bytes);
int table_read(PMEMobjpool* pool, uint64_t bucket, uint64_t key, char* bytes);
uint32_t table_scan(PMEMobjpool* pool, uint64_t bucket, uint32_t pairs, char* bytes);

#ifdef __cplusplus
}
#endif
#endif
