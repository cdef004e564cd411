#include "list.h"

static struct list* bucket_of(struct map* map, uint64_t key) {
  /* Fibonacci hashing: neighbouring keys come apart. */
  const uint64_t spread = key * 0x9e3779b97f4a7c15u;
  return &map->buckets[(spread >> 32) % map->bucket_count];
}

struct map* map_make(pawl_fase* file, uint64_t bucket_count) {
  pawl_fase_begin();
  struct map* map = pawl_fase_malloc(file, sizeof *map);
  struct list* buckets = pawl_fase_malloc(file, bucket_count * sizeof *buckets);
  const bool is_made = map != NULL && buckets != NULL;
  if (is_made) {
    map->bucket_count = bucket_count;
    map->buckets = buckets;
    for (uint64_t i = 0; i < bucket_count; ++i) list_begin(&buckets[i]);
  } else {
    pawl_fase_free(file, buckets);
    pawl_fase_free(file, map);
  }
  pawl_fase_end();
  return is_made ? map : NULL;
}

bool map_put(pawl_fase* file, struct map* map, uint64_t key, uint64_t value) {
  return list_put(file, bucket_of(map, key), key, value);
}
bool map_get(struct map* map, uint64_t key, uint64_t* value) {
  return list_get(bucket_of(map, key), key, value);
}
bool map_remove(pawl_fase* file, struct map* map, uint64_t key) {
  return list_remove(file, bucket_of(map, key), key);
}
