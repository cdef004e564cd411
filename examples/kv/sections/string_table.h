/* The data set: a hash table of strings under keys, in a file of pawl/fase.h.  Each call that
 * changes it is one failure-atomic section, or several where it says so: pawl_fase_begin() and
 * pawl_fase_end() stand around what changes, for there is no lock that would say it.
 *
 * One thread calls, so what is to be done is found out before the section begins, by
 * string_lookup.c, and the section holds the changes alone.  What it copies must lie in the file,
 * for a crash may have it copied again: so what a client sent is received into an inbox there
 * first.
 *
 * No section is long but by what the client asked for: the table grows by a bucket at a time
 * (linear hashing), and what strings_clear() takes away is freed afterwards, piece by piece. */
#ifndef PAWL_EXAMPLES_KV_SECTIONS_STRING_TABLE_H
#define PAWL_EXAMPLES_KV_SECTIONS_STRING_TABLE_H

#include <pawl/fase.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STRINGS_KEY_BYTES_MAX ((size_t)64 << 10)
#define STRINGS_VALUE_BYTES_MAX ((size_t)1 << 20)
/* What the inbox holds at a time: keys and values together, and how many of them. */
#define STRINGS_INBOX_BYTES ((size_t)2 << 20)
#define STRINGS_RECORDS_MAX 512
/* What a record takes of the inbox beside its key and value, at most. */
#define STRINGS_RECORD_BYTES ((size_t)32)

#define STRINGS_KEEP_EXPIRY ((int64_t)-1)

struct strings;
/* A key with its value.  Whatever changes the data set may end its life. */
struct entry;

struct bytes {
  const char* at;
  size_t count;
};

/* The data set of the file, or a new one.  NULL: there is no memory. */
struct strings* strings_open(pawl_fase* file);

uint64_t strings_keys(const struct strings* strings);
uint64_t strings_expiring(const struct strings* strings);

uint64_t strings_hash(const char* key, size_t key_bytes);
/* Where the entry with the key is named: it is NULL when there is none.  Holds until the next
 * change. */
struct entry** strings_place(struct strings* strings, uint64_t hash, const char* key,
                             size_t key_bytes);
struct bytes entry_key(const struct entry* entry);
struct bytes entry_value(const struct entry* entry);
/* By the wall clock, in ms since 1970; 0: never.  It is for the caller to look. */
int64_t entry_expires_ms(const struct entry* entry);

/* All entries, bucket by bucket.  NULL: there is none, or none behind that one. */
uint64_t strings_buckets(const struct strings* strings);
struct entry* strings_first(struct strings* strings, uint64_t bucket);
struct entry* entry_next(const struct entry* entry);

/* Makes this the key's value, which has its place there.  False: there is no memory, and nothing
 * has changed. */
bool strings_set(pawl_fase* file, struct strings* strings, struct entry** place, uint64_t hash,
                 const char* key, size_t key_bytes, const char* value, size_t value_bytes,
                 int64_t expires_ms);
/* Adds buckets, a section for each, until there is one for each key or so many were added: to be
 * called behind strings_set() for 1, behind strings_store() for as many as there were records. */
void strings_grow(pawl_fase* file, struct strings* strings, uint64_t buckets_at_most);

/* Receives a key and a value into the inbox, from so many of its bytes on: what was received
 * before, which is 0 for the first.  Returns how many bytes of it are taken now.  The caller keeps
 * to the bounds. */
size_t strings_receive(struct strings* strings, size_t before, uint64_t hash, const char* key,
                       size_t key_bytes, const char* value, size_t value_bytes, int64_t expires_ms);

/* Stores all that was received, as one section, what came last first; none of it expires.  False:
 * there is no memory, and nothing has changed. */
bool strings_store(pawl_fase* file, struct strings* strings, uint64_t records);
/* Appends the value that was received to the entry, which becomes not longer than a value may be.
 */
bool strings_append(pawl_fase* file, struct strings* strings, struct entry* entry);
/* Removes the keys that were received, as one section; how many were there. */
uint64_t strings_remove(pawl_fase* file, struct strings* strings, uint64_t records);
void strings_remove_entry(pawl_fase* file, struct strings* strings, struct entry* entry);
void strings_expire(struct strings* strings, struct entry* entry, int64_t expires_ms);

/* Takes everything away at once.  False: there is no memory. */
bool strings_clear(pawl_fase* file, struct strings* strings);
/* Frees a piece of what was cleared, in a section of its own.  False: nothing is left. */
bool strings_tidy(pawl_fase* file, struct strings* strings);

#ifdef __cplusplus
}
#endif
#endif
