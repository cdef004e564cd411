/* The cache's data: items in a hash table that is cut into stripes, each with its lock.  It lies in
 * a file of pawl/fase.h; compiled with pawl-clang -fpawl=ido, each call below happens whole or not
 * at all.  Nothing but the locks says so.
 *
 * All functions but cache_open may be called by any thread. */
#ifndef PAWL_EXAMPLES_CACHE_ITEMS_H
#define PAWL_EXAMPLES_CACHE_ITEMS_H

#include <pawl/fase.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bounds.h"

/* A section may hold the locks of all of them. */
#define STRIPES PAWL_FASE_LOCKS_MAX
/* Of what follows, in the file; raised with each change to it. */
#define CACHE_FORMAT UINT64_C(0x5041574c43414303) /* "PAWLCAC", 3 */

struct item {
  struct item* next;  /* in its bucket */
  struct item* newer; /* in its stripe */
  struct item* older;
  uint64_t hash;
  uint64_t generation; /* of the cache, when it was stored */
  int64_t expires_s;   /* since 1970; 0: never */
  uint32_t flags;
  uint32_t key_bytes;
  uint64_t value_bytes;
  char bytes[]; /* the key, then the value */
};

struct stripe {
  pthread_mutex_t lock;
  uint64_t bytes; /* of its items */
  uint64_t items;
  struct item* oldest;
  struct item* newest;
  struct item** buckets;
};

/* Who has the lock of any stripe may read the generation and the time; to change them takes all. */
struct cache {
  uint64_t format;
  uint64_t generation;        /* of the items that count: those of an earlier one are cleared */
  int64_t clear_at_s;         /* when the next generation begins; 0: never */
  uint64_t bytes_max;         /* of all items */
  uint64_t buckets_of_stripe; /* a power of two */
  struct item* inboxes[WORKERS_MAX];
  struct stripe stripes[STRIPES];
};

/* False: another version of this program made its items. */
bool cache_is_known(pawl_fase* file);
/* The cache of the file, or a new one.  NULL: there is no memory, or pawl_last_error says what. */
struct cache* cache_open(pawl_fase* file, uint64_t bytes_max, uint64_t buckets);
/* Where worker 0 to WORKERS_MAX - 1 receives an item, of any size, before it is stored.  It lies in
 * the file: a section that copies from it can do so again after a crash.  NULL: there is no memory.
 */
struct item* cache_inbox(pawl_fase* file, struct cache* cache, unsigned worker);

/* Receives an item: the key has KEY_BYTES_MAX bytes at most, the value VALUE_BYTES_MAX. */
void cache_receive(struct item* inbox, const char* key, size_t key_bytes, const char* value,
                   size_t value_bytes, uint32_t flags, int64_t expires_s);

enum cache_mode { CACHE_SET, CACHE_ADD, CACHE_REPLACE };
enum cache_outcome {
  CACHE_STORED,
  CACHE_NOT_STORED,
  CACHE_NOT_FOUND,
  CACHE_NO_MEMORY,
  CACHE_TOO_LARGE,
  CACHE_BAD
};

/* Stores a copy of the item in an inbox. CACHE_TOO_LARGE: it takes more than a stripe's share. */
enum cache_outcome cache_store(pawl_fase* file, struct cache* cache, enum cache_mode mode,
                               const struct item* inbox, int64_t now_s);
/* Copies the value to `value`, of so many bytes at most, and says how many it has and its flags.
 * False: there is none. */
bool cache_get(struct cache* cache, const char* key, size_t key_bytes, int64_t now_s, char* value,
               size_t room, size_t* value_bytes, uint32_t* flags);
bool cache_delete(pawl_fase* file, struct cache* cache, const char* key, size_t key_bytes,
                  int64_t now_s);
/* Adds to a value of decimal digits, below zero not.  CACHE_BAD: it has others. */
enum cache_outcome cache_add_number(pawl_fase* file, struct cache* cache, const char* key,
                                    size_t key_bytes, int64_t now_s, bool subtracts, uint64_t by,
                                    uint64_t* result);
/* What is stored from now on stays, whenever a crash comes; and no time is set any more. */
void cache_clear(pawl_fase* file, struct cache* cache);
/* The same at a time since 1970, of which the last that was set counts. */
void cache_clear_at(struct cache* cache, int64_t at_s, int64_t now_s);
/* Gives back the memory of items that are cleared by now, and of the oldest that exceed the bound.
 * A section for each item: none is long. */
void cache_tidy(pawl_fase* file, struct cache* cache, int64_t now_s);

struct cache_counts {
  uint64_t items;
  uint64_t bytes;
};
struct cache_counts cache_count(struct cache* cache);

#endif
