/* A directory in memory: entries by name in an AVL tree, in one piece of memory from which its
 * nodes are cut; none is given back.  Each insertion is failure-atomic, where the form has that
 * (atomically.h).
 *
 * Of one thread. */
#ifndef PAWL_BENCH_WSP_DIRECTORY_H
#define PAWL_BENCH_WSP_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DIRECTORY_NAME_WORDS 4   /* 32 bytes */
#define DIRECTORY_VALUE_WORDS 16 /* 128 bytes */

struct directory_entry {
  uint64_t name[DIRECTORY_NAME_WORDS]; /* in the order of these numbers */
  uint64_t value[DIRECTORY_VALUE_WORDS];
};

struct directory;

size_t directory_bytes(uint64_t entries_max);
/* An empty one, in memory that is zero and aligned to 16 bytes. */
struct directory* directory_make(void* memory, uint64_t entries_max);

/* False: the name is there already, or the directory is full; nothing has changed. */
bool directory_insert(struct directory* directory, const struct directory_entry* entry);

uint64_t directory_entries(const struct directory* directory);
/* Whether it is an AVL tree in the order of names.  Its height goes to *height. */
bool directory_is_sound(const struct directory* directory, uint64_t* height);

#ifdef __cplusplus
}
#endif
#endif
