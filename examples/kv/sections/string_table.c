#include "string_table.h"

#include <string.h>

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

static uint64_t hash_of(const char* key, size_t key_bytes) {
  uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
  for (size_t i = 0; i < key_bytes; ++i) hash = (hash ^ (unsigned char)key[i]) * 0x100000001b3u;
  return hash ^ hash >> 32;
}

/* ------------------------------------------------------------------------------- the table */

static struct entry** bucket_at(struct table* table, uint64_t number) {
  struct page* page = table->pages[number / BUCKETS_OF_PAGE];
  struct segment* segment = page->segments[number / BUCKETS_OF_SEGMENT % SEGMENTS_OF_PAGE];
  return &segment->buckets[number % BUCKETS_OF_SEGMENT];
}

/* The largest power of two that is not above the number. */
static uint64_t power_of_two_within(uint64_t number) {
  return (uint64_t)1 << (63 - __builtin_clzll(number));
}

/* Buckets below the last power of two that were not split yet are shared with those that are to
 * come of them. */
static struct entry** bucket_of(struct table* table, uint64_t hash) {
  const uint64_t below = power_of_two_within(table->buckets);
  const uint64_t number = hash & (2 * below - 1);
  return bucket_at(table, number < table->buckets ? number : hash & (below - 1));
}

/* Where the entry with the key is named, or would be. */
static struct entry** find_place(struct table* table, uint64_t hash, const char* key,
                                 uint32_t key_bytes) {
  struct entry** place = bucket_of(table, hash);
  while (*place != NULL && ((*place)->hash != hash || (*place)->key_bytes != key_bytes ||
                            memcmp((*place)->bytes, key, key_bytes) != 0)) {
    place = &(*place)->next;
  }
  return place;
}

static struct entry** place_of(struct table* table, const struct entry* entry) {
  struct entry** place = bucket_of(table, entry->hash);
  while (*place != entry) place = &(*place)->next;
  return place;
}

/* In a section. */
static struct table* make_table(pawl_fase* file) {
  struct table* table = pawl_fase_calloc(file, 1, sizeof *table);
  struct page* page = pawl_fase_calloc(file, 1, sizeof *page);
  struct segment* segment = pawl_fase_calloc(file, 1, sizeof *segment);
  if (table != NULL && page != NULL && segment != NULL) {
    page->segments[0] = segment;
    table->pages[0] = page;
    table->buckets = BUCKETS_OF_SEGMENT;
    return table;
  }
  if (table != NULL) pawl_fase_free(file, table);
  if (page != NULL) pawl_fase_free(file, page);
  if (segment != NULL) pawl_fase_free(file, segment);
  return NULL;
}

/* In a section: memory for the bucket behind the last one.  False: there is none. */
static bool extend(pawl_fase* file, struct table* table) {
  const uint64_t number = table->buckets;
  if (number % BUCKETS_OF_SEGMENT != 0) return true;
  struct page* page = table->pages[number / BUCKETS_OF_PAGE];
  struct segment* segment = pawl_fase_calloc(file, 1, sizeof *segment);
  if (segment == NULL) return false;
  if (page == NULL) {
    page = pawl_fase_calloc(file, 1, sizeof *page);
    if (page == NULL) {
      pawl_fase_free(file, segment);
      return false;
    }
    table->pages[number / BUCKETS_OF_PAGE] = page;
  }
  page->segments[number / BUCKETS_OF_SEGMENT % SEGMENTS_OF_PAGE] = segment;
  return true;
}

/* Adds a bucket, and moves to it what belongs there of the one that had it so far.  Without memory
 * the table stays as it is: it is slower then, and no less right. */
static void split(pawl_fase* file, struct table* table) {
  const uint64_t number = table->buckets;
  const uint64_t below = power_of_two_within(number);
  pawl_fase_begin();
  if (extend(file, table)) {
    struct entry** from = bucket_at(table, number - below);
    struct entry** to = bucket_at(table, number);
    struct entry* entry = *from;
    while (entry != NULL) {
      struct entry* next = entry->next;
      if ((entry->hash & (2 * below - 1)) == number) {
        *from = next;
        entry->next = *to;
        *to = entry;
      } else {
        from = &entry->next;
      }
      entry = next;
    }
    table->buckets = number + 1;
  }
  pawl_fase_end();
}

void strings_grow(pawl_fase* file, struct strings* strings, uint64_t buckets_at_most) {
  struct table* table = strings->table;
  for (uint64_t n = 0; n < buckets_at_most; ++n) {
    if (table->keys <= table->buckets || table->buckets == BUCKETS_MAX) return;
    split(file, table);
  }
}

/* ------------------------------------------------------------------------------- the inbox */

static const struct record* behind(const struct record* record) {
  const size_t bytes = sizeof *record + record->key_bytes + record->value_bytes;
  return (const struct record*)((const char*)record + (bytes + 7) / 8 * 8);
}

size_t strings_receive(struct strings* strings, size_t before, const char* key, size_t key_bytes,
                       const char* value, size_t value_bytes, int64_t expires_ms) {
  struct record* record = (struct record*)(strings->inbox + before);
  record->hash = hash_of(key, key_bytes);
  record->expires_ms = expires_ms;
  record->key_bytes = (uint32_t)key_bytes;
  record->value_bytes = (uint32_t)value_bytes;
  memcpy(record->bytes, key, key_bytes);
  memcpy(record->bytes + key_bytes, value, value_bytes);
  return (size_t)((const char*)behind(record) - strings->inbox);
}

/* --------------------------------------------------------------------------------- reading */

uint64_t strings_keys(const struct strings* strings) { return strings->table->keys; }
uint64_t strings_expiring(const struct strings* strings) { return strings->table->expiring; }
uint64_t strings_buckets(const struct strings* strings) { return strings->table->buckets; }

struct entry* strings_first(struct strings* strings, uint64_t bucket) {
  return *bucket_at(strings->table, bucket);
}

struct entry* entry_next(const struct entry* entry) { return entry->next; }

struct entry* strings_find(struct strings* strings, const char* key, size_t key_bytes) {
  return *find_place(strings->table, hash_of(key, key_bytes), key, (uint32_t)key_bytes);
}

struct bytes entry_key(const struct entry* entry) {
  return (struct bytes){entry->bytes, entry->key_bytes};
}

struct bytes entry_value(const struct entry* entry) {
  return (struct bytes){entry->bytes + entry->key_bytes, entry->value_bytes};
}

int64_t entry_expires_ms(const struct entry* entry) { return entry->expires_ms; }

/* -------------------------------------------------------------------------------- changing */

struct strings* strings_open(pawl_fase* file) {
  struct strings* strings = pawl_fase_root(file);
  if (strings != NULL) return strings;
  pawl_fase_begin();
  strings = pawl_fase_calloc(file, 1, sizeof *strings);
  char* inbox = pawl_fase_malloc(file, STRINGS_INBOX_BYTES);
  struct table* table = make_table(file);
  const bool is_made = strings != NULL && inbox != NULL && table != NULL;
  if (is_made) {
    strings->table = table;
    strings->inbox = inbox;
    pawl_fase_set_root(file, strings);
  }
  pawl_fase_end();
  return is_made ? strings : NULL;
}

static uint32_t room_of(const struct record* record) {
  return record->value_bytes < ROOM_BYTES_MIN ? ROOM_BYTES_MIN : record->value_bytes;
}

/* In a section. */
static struct entry* allocate_entry(pawl_fase* file, const struct record* record) {
  return pawl_fase_malloc(file, sizeof(struct entry) + record->key_bytes + room_of(record));
}

/* In a section.  What is copied is copied last, here and below: to read, and then to store
 * where the compiler cannot tell that it is elsewhere, would end a region. */
static void fill(struct entry* entry, const struct record* record, struct entry* next,
                 int64_t expires_ms) {
  entry->next = next;
  entry->hash = record->hash;
  entry->expires_ms = expires_ms;
  entry->key_bytes = record->key_bytes;
  entry->value_bytes = record->value_bytes;
  entry->room_bytes = room_of(record);
  memcpy(entry->bytes, record->bytes, (size_t)record->key_bytes + record->value_bytes);
}

/* A value that became much smaller gives its memory back. */
static bool fits(const struct entry* entry, uint32_t value_bytes) {
  return value_bytes <= entry->room_bytes &&
         (entry->room_bytes <= ROOM_BYTES_MIN || entry->room_bytes / 4 <= value_bytes);
}

/* Expiring keys more, or less, when one of them gets another expiry. */
static uint64_t change_of_expiring(int64_t from_ms, int64_t to_ms) {
  return (uint64_t)(to_ms != 0) - (uint64_t)(from_ms != 0);
}

/* Copied over the value that is there.  What is the same is not stored: a section that stores less
 * has less to wait for. */
static void overwrite(struct table* table, struct entry* entry, const struct record* record) {
  const uint32_t value_bytes = record->value_bytes;
  const int64_t expires_ms =
      record->expires_ms == STRINGS_KEEP_EXPIRY ? entry->expires_ms : record->expires_ms;
  const bool has_other_length = value_bytes != entry->value_bytes;
  const bool has_other_expiry = expires_ms != entry->expires_ms;
  const uint64_t expiring = table->expiring + change_of_expiring(entry->expires_ms, expires_ms);
  char* to = entry->bytes + entry->key_bytes;
  const char* from = record->bytes + record->key_bytes;
  pawl_fase_begin();
  if (has_other_length) entry->value_bytes = value_bytes;
  if (has_other_expiry) {
    entry->expires_ms = expires_ms;
    table->expiring = expiring;
  }
  memcpy(to, from, value_bytes);
  pawl_fase_end();
}

static bool store_one(pawl_fase* file, struct table* table, const struct record* record) {
  struct entry** place = find_place(table, record->hash, record->bytes, record->key_bytes);
  struct entry* old = *place;
  if (old != NULL && fits(old, record->value_bytes)) {
    overwrite(table, old, record);
    return true;
  }
  const int64_t old_expires_ms = old == NULL ? 0 : old->expires_ms;
  const int64_t expires_ms =
      record->expires_ms == STRINGS_KEEP_EXPIRY ? old_expires_ms : record->expires_ms;
  const bool has_other_expiry = expires_ms != old_expires_ms;
  const uint64_t expiring = table->expiring + change_of_expiring(old_expires_ms, expires_ms);
  const uint64_t keys = table->keys + (old == NULL);
  struct entry* next = old == NULL ? NULL : old->next;
  pawl_fase_begin();
  struct entry* entry = allocate_entry(file, record);
  if (entry != NULL) {
    *place = entry;
    if (old == NULL) table->keys = keys;
    if (has_other_expiry) table->expiring = expiring;
    fill(entry, record, next, expires_ms);
    if (old != NULL) pawl_fase_free(file, old);
  }
  pawl_fase_end();
  return entry != NULL;
}

/* In a section: new entries for all records, each naming the one of the record before it.  NULL:
 * there is no memory. */
static struct entry* new_entries(pawl_fase* file, const struct record* record, uint64_t records) {
  struct entry* first = NULL;
  for (uint64_t n = 0; n < records; ++n, record = behind(record)) {
    struct entry* entry = allocate_entry(file, record);
    if (entry == NULL) {
      while (first != NULL) {
        struct entry* next = first->next;
        pawl_fase_free(file, first);
        first = next;
      }
      return NULL;
    }
    fill(entry, record, first, 0);
    first = entry;
  }
  return first;
}

/* What may fail comes first: a section that has begun to change what others see goes on to its end.
 */
static bool store_all(pawl_fase* file, struct table* table, const struct record* record,
                      uint64_t records) {
  pawl_fase_begin();
  struct entry* entry = new_entries(file, record, records);
  const bool is_stored = entry != NULL;
  while (entry != NULL) {
    struct entry* next = entry->next;
    struct entry** place = find_place(table, entry->hash, entry->bytes, entry->key_bytes);
    struct entry* old = *place;
    entry->next = old == NULL ? NULL : old->next;
    *place = entry;
    if (old == NULL) {
      table->keys += 1;
    } else {
      if (old->expires_ms != 0) table->expiring -= 1;
      pawl_fase_free(file, old);
    }
    entry = next;
  }
  pawl_fase_end();
  return is_stored;
}

bool strings_store(pawl_fase* file, struct strings* strings, uint64_t records) {
  struct table* table = strings->table;
  const struct record* record = (const struct record*)strings->inbox;
  return records == 1 ? store_one(file, table, record) : store_all(file, table, record, records);
}

bool strings_append(pawl_fase* file, struct strings* strings, struct entry* entry) {
  const struct record* record = (const struct record*)strings->inbox;
  const char* more = record->bytes + record->key_bytes;
  const uint32_t more_bytes = record->value_bytes;
  const uint32_t old_bytes = entry->value_bytes;
  const uint32_t new_bytes = old_bytes + more_bytes;
  if (new_bytes <= entry->room_bytes) {
    char* to = entry->bytes + entry->key_bytes + old_bytes;
    pawl_fase_begin();
    entry->value_bytes = new_bytes;
    memcpy(to, more, more_bytes);
    pawl_fase_end();
    return true;
  }
  const uint32_t room_bytes =
      2 * new_bytes < STRINGS_VALUE_BYTES_MAX ? 2 * new_bytes : (uint32_t)STRINGS_VALUE_BYTES_MAX;
  struct entry** place = place_of(strings->table, entry);
  const uint32_t key_bytes = entry->key_bytes;
  const size_t size = sizeof *entry + key_bytes + room_bytes;
  pawl_fase_begin();
  struct entry* longer = pawl_fase_malloc(file, size);
  if (longer != NULL) {
    *place = longer;
    memcpy(longer, entry, sizeof *entry);
    memcpy(longer->bytes, entry->bytes, (size_t)key_bytes + old_bytes);
    memcpy(longer->bytes + key_bytes + old_bytes, more, more_bytes);
    longer->value_bytes = new_bytes;
    longer->room_bytes = room_bytes;
    pawl_fase_free(file, entry);
  }
  pawl_fase_end();
  return longer != NULL;
}

/* In a section. */
static void take_out(pawl_fase* file, struct table* table, struct entry** place) {
  struct entry* entry = *place;
  *place = entry->next;
  table->keys -= 1;
  if (entry->expires_ms != 0) table->expiring -= 1;
  pawl_fase_free(file, entry);
}

uint64_t strings_remove(pawl_fase* file, struct strings* strings, uint64_t records) {
  struct table* table = strings->table;
  const struct record* record = (const struct record*)strings->inbox;
  const uint64_t keys = table->keys;
  pawl_fase_begin();
  for (uint64_t n = 0; n < records; ++n, record = behind(record)) {
    struct entry** place = find_place(table, record->hash, record->bytes, record->key_bytes);
    if (*place != NULL) take_out(file, table, place);
  }
  pawl_fase_end();
  return keys - table->keys;
}

void strings_remove_entry(pawl_fase* file, struct strings* strings, struct entry* entry) {
  struct table* table = strings->table;
  struct entry** place = place_of(table, entry);
  pawl_fase_begin();
  take_out(file, table, place);
  pawl_fase_end();
}

void strings_expire(struct strings* strings, struct entry* entry, int64_t expires_ms) {
  struct table* table = strings->table;
  const uint64_t expiring = table->expiring + change_of_expiring(entry->expires_ms, expires_ms);
  pawl_fase_begin();
  entry->expires_ms = expires_ms;
  table->expiring = expiring;
  pawl_fase_end();
}

bool strings_clear(pawl_fase* file, struct strings* strings) {
  struct table* old = strings->table;
  struct table* cleared = strings->cleared;
  pawl_fase_begin();
  struct table* table = make_table(file);
  if (table != NULL) {
    old->next = cleared;
    strings->cleared = old;
    strings->table = table;
  }
  pawl_fase_end();
  return table != NULL;
}

/* In a section: the table's last bucket has nothing in it, and is given back. */
static void shorten(pawl_fase* file, struct table* table) {
  const uint64_t number = table->buckets - 1;
  struct page* page = table->pages[number / BUCKETS_OF_PAGE];
  table->buckets = number;
  if (number % BUCKETS_OF_SEGMENT == 0)
    pawl_fase_free(file, page->segments[number / BUCKETS_OF_SEGMENT % SEGMENTS_OF_PAGE]);
  if (number % BUCKETS_OF_PAGE == 0) pawl_fase_free(file, page);
}

bool strings_tidy(pawl_fase* file, struct strings* strings) {
  struct table* table = strings->cleared;
  if (table == NULL) return false;
  struct entry** bucket = table->buckets == 0 ? NULL : bucket_at(table, table->buckets - 1);
  struct entry* entry = bucket == NULL ? NULL : *bucket;
  pawl_fase_begin();
  if (entry != NULL) {
    *bucket = entry->next;
    pawl_fase_free(file, entry);
  } else if (bucket != NULL) {
    shorten(file, table);
  } else {
    strings->cleared = table->next;
    pawl_fase_free(file, table);
  }
  pawl_fase_end();
  return true;
}
