/* What only reads, and is called outside of sections: compiled as any C is. */
#include "string_table_layout.h"

uint64_t strings_hash(const char* key, size_t key_bytes) {
  uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
  for (size_t i = 0; i < key_bytes; ++i) hash = (hash ^ (unsigned char)key[i]) * 0x100000001b3u;
  return hash ^ hash >> 32;
}

uint64_t strings_keys(const struct strings* strings) { return strings->table->keys; }
uint64_t strings_expiring(const struct strings* strings) { return strings->table->expiring; }
uint64_t strings_buckets(const struct strings* strings) { return strings->table->buckets; }

struct entry* strings_first(struct strings* strings, uint64_t bucket) {
  return *bucket_at(strings->table, bucket);
}

struct entry* entry_next(const struct entry* entry) { return entry->next; }

struct entry** strings_place(struct strings* strings, uint64_t hash, const char* key,
                             size_t key_bytes) {
  return find_place(strings->table, hash, key, (uint32_t)key_bytes);
}

struct bytes entry_key(const struct entry* entry) {
  return (struct bytes){entry->bytes, entry->key_bytes};
}

struct bytes entry_value(const struct entry* entry) {
  return (struct bytes){entry->bytes + entry->key_bytes, entry->value_bytes};
}

int64_t entry_expires_ms(const struct entry* entry) { return entry->expires_ms; }
