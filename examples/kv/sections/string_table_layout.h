/* What lies in the file, and how an entry is found in it. */
#ifndef PAWL_EXAMPLES_KV_SECTIONS_STRING_TABLE_LAYOUT_H
#define PAWL_EXAMPLES_KV_SECTIONS_STRING_TABLE_LAYOUT_H

#include <string.h>

#include "string_table.h"

/* 4 KiB each; of all together there are 2^27 buckets, and behind that the chains grow longer. */
#define BUCKETS_OF_SEGMENT 512
#define SEGMENTS_OF_PAGE 512
#define PAGES_OF_TABLE 512
#define BUCKETS_OF_PAGE ((uint64_t)BUCKETS_OF_SEGMENT * SEGMENTS_OF_PAGE)
#define BUCKETS_MAX (BUCKETS_OF_PAGE * PAGES_OF_TABLE)

/* A value has room for so many bytes at least: a counter then stays where it is. */
#define ROOM_BYTES_MIN 24

struct entry {
  struct entry* next; /* in its bucket */
  uint64_t hash;
  int64_t expires_ms;
  uint32_t key_bytes;
  uint32_t value_bytes;
  uint32_t room_bytes; /* for the value */
  char bytes[];        /* the key, then the value */
};

struct segment {
  struct entry* buckets[BUCKETS_OF_SEGMENT];
};

struct page {
  struct segment* segments[SEGMENTS_OF_PAGE];
};

struct table {
  struct table* next; /* of those that were cleared */
  uint64_t buckets;   /* in use: those with lower numbers */
  uint64_t keys;
  uint64_t expiring; /* of them */
  struct page* pages[PAGES_OF_TABLE];
};

struct record {
  uint64_t hash;
  int64_t expires_ms;
  uint32_t key_bytes;
  uint32_t value_bytes;
  char bytes[]; /* the key, then the value */
};

struct strings {
  struct table* table;
  struct table* cleared;
  char* inbox;
};

static inline struct entry** bucket_at(struct table* table, uint64_t number) {
  struct page* page = table->pages[number / BUCKETS_OF_PAGE];
  struct segment* segment = page->segments[number / BUCKETS_OF_SEGMENT % SEGMENTS_OF_PAGE];
  return &segment->buckets[number % BUCKETS_OF_SEGMENT];
}

/* The largest power of two that is not above the number. */
static inline uint64_t power_of_two_within(uint64_t number) {
  return (uint64_t)1 << (63 - __builtin_clzll(number));
}

/* Buckets below the last power of two that were not split yet are shared with those that are to
 * come of them. */
static inline struct entry** bucket_of(struct table* table, uint64_t hash) {
  const uint64_t below = power_of_two_within(table->buckets);
  const uint64_t number = hash & (2 * below - 1);
  return bucket_at(table, number < table->buckets ? number : hash & (below - 1));
}

/* Where the entry with the key is named, or would be. */
static inline struct entry** find_place(struct table* table, uint64_t hash, const char* key,
                                        uint32_t key_bytes) {
  struct entry** place = bucket_of(table, hash);
  while (*place != NULL && ((*place)->hash != hash || (*place)->key_bytes != key_bytes ||
                            memcmp((*place)->bytes, key, key_bytes) != 0)) {
    place = &(*place)->next;
  }
  return place;
}

#endif
