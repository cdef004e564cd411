/* One of the structures, in one of the systems: what each worker program of the benchmark is linked
 * with.  Operations may be called by any thread, and are durable on return where the system says
 * so. */
#ifndef PAWL_BENCH_IDO_SUBJECT_H
#define PAWL_BENCH_IDO_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum subject_kind { SUBJECT_STACK, SUBJECT_QUEUE, SUBJECT_LIST, SUBJECT_MAP };

struct subject_counts {
  uint64_t fences;
  uint64_t lines; /* that were written back */
  uint64_t bytes; /* of logs */
};

struct subject;

/* Makes the structure in a new file; a map with so many buckets.  NULL after a text on standard
 * error. */
struct subject* subject_open(const char* path, enum subject_kind kind, uint64_t buckets);
void subject_close(struct subject* subject);

/* Push, or put; stack and queue take no notice of the key.  False: there is no memory. */
bool subject_insert(struct subject* subject, uint64_t key, uint64_t value);
/* Pop, or take; of list and map, removes the key.  False: there is nothing. */
bool subject_remove(struct subject* subject, uint64_t key);
/* Of list and map. */
bool subject_get(struct subject* subject, uint64_t key, uint64_t* value);

/* Since it was opened, of all threads that have ended or are the caller. */
struct subject_counts subject_count(struct subject* subject);

#ifdef __cplusplus
}
#endif
#endif
