#include "string_table.h"

#include <string.h>

#include "string_table_layout.h"

/* ------------------------------------------------------------------------------- the table */

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

size_t strings_receive(struct strings* strings, size_t before, uint64_t hash, const char* key,
                       size_t key_bytes, const char* value, size_t value_bytes,
                       int64_t expires_ms) {
  struct record* record = (struct record*)(strings->inbox + before);
  record->hash = hash;
  record->expires_ms = expires_ms;
  record->key_bytes = (uint32_t)key_bytes;
  record->value_bytes = (uint32_t)value_bytes;
  memcpy(record->bytes, key, key_bytes);
  memcpy(record->bytes + key_bytes, value, value_bytes);
  return (size_t)((const char*)behind(record) - strings->inbox);
}

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

static int64_t new_expiry(const struct entry* entry, int64_t expires_ms) {
  return expires_ms == STRINGS_KEEP_EXPIRY ? entry->expires_ms : expires_ms;
}

/* The value is copied over the one that is there.  What is the same is not stored: a section that
 * stores less has less to wait for. */
static void overwrite(struct table* table, struct entry* entry, const struct record* record) {
  const uint32_t value_bytes = record->value_bytes;
  const int64_t expires_ms = new_expiry(entry, record->expires_ms);
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

/* A value for which every entry has room needs no inbox: it is in three local variables, and so in
 * the log, when the section begins.  With nothing else to store they and where they go fit into one
 * line of it. */
static void overwrite_small(struct table* table, struct entry* entry, const char* value,
                            uint32_t value_bytes, int64_t expires_ms) {
  uint64_t words[ROOM_BYTES_MIN / sizeof(uint64_t)] = {0};
  if (value_bytes > 0) memcpy(words, value, value_bytes);
  const bool has_other_length = value_bytes != entry->value_bytes;
  const bool has_other_expiry = expires_ms != entry->expires_ms;
  char* to = entry->bytes + entry->key_bytes;
  if (!has_other_length && !has_other_expiry) {
    pawl_fase_begin();
    memcpy(to, words, sizeof words);
    pawl_fase_end();
    return;
  }
  const uint64_t expiring = table->expiring + change_of_expiring(entry->expires_ms, expires_ms);
  pawl_fase_begin();
  entry->value_bytes = value_bytes;
  entry->expires_ms = expires_ms;
  if (has_other_expiry) table->expiring = expiring;
  memcpy(to, words, sizeof words);
  pawl_fase_end();
}

static bool store_one(pawl_fase* file, struct table* table, struct entry** place,
                      const struct record* record) {
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

bool strings_set(pawl_fase* file, struct strings* strings, struct entry** place, uint64_t hash,
                 const char* key, size_t key_bytes, const char* value, size_t value_bytes,
                 int64_t expires_ms) {
  struct entry* old = *place;
  if (old != NULL && value_bytes <= ROOM_BYTES_MIN && fits(old, (uint32_t)value_bytes)) {
    overwrite_small(strings->table, old, value, (uint32_t)value_bytes, new_expiry(old, expires_ms));
    return true;
  }
  strings_receive(strings, 0, hash, key, key_bytes, value, value_bytes, expires_ms);
  return store_one(file, strings->table, place, (const struct record*)strings->inbox);
}

bool strings_store(pawl_fase* file, struct strings* strings, uint64_t records) {
  struct table* table = strings->table;
  const struct record* record = (const struct record*)strings->inbox;
  return store_all(file, table, record, records);
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
