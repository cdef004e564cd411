#include "items.h"

#include <string.h>

static uint64_t hash_of(const char* key, size_t key_bytes) {
  uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
  for (size_t i = 0; i < key_bytes; ++i) hash = (hash ^ (unsigned char)key[i]) * 0x100000001b3u;
  return hash ^ hash >> 32;
}

static struct stripe* stripe_of(struct cache* cache, uint64_t hash) {
  return &cache->stripes[hash % STRIPES];
}

static size_t size_of(const struct item* item) {
  return sizeof *item + item->key_bytes + item->value_bytes;
}

/* Where the item with the key is named, or would be. */
static struct item** find(struct cache* cache, struct stripe* stripe, uint64_t hash,
                          const char* key, size_t key_bytes) {
  struct item** place = &stripe->buckets[hash / STRIPES & (cache->buckets_of_stripe - 1)];
  while (*place != NULL && ((*place)->hash != hash || (*place)->key_bytes != key_bytes ||
                            memcmp((*place)->bytes, key, key_bytes) != 0)) {
    place = &(*place)->next;
  }
  return place;
}

static bool is_clear_due(const struct cache* cache, int64_t now_s) {
  return cache->clear_at_s != 0 && cache->clear_at_s <= now_s;
}

static void lock_all(struct cache* cache) {
  for (unsigned i = 0; i < STRIPES; ++i) pthread_mutex_lock(&cache->stripes[i].lock);
}

static void unlock_all(struct cache* cache) {
  for (unsigned i = STRIPES; i > 0; --i) pthread_mutex_unlock(&cache->stripes[i - 1].lock);
}

/* Begins the next generation, where it is due.  Rare, and long: no part of each operation. */
static __attribute__((noinline)) void clear_if_due(struct cache* cache, int64_t now_s) {
  lock_all(cache);
  if (is_clear_due(cache, now_s)) {
    cache->generation += 1;
    cache->clear_at_s = 0;
  }
  unlock_all(cache);
}

/* Before anything is stored behind the time to clear: so what is there by then is from before. */
static void lock_when_cleared(struct cache* cache, struct stripe* stripe, int64_t now_s) {
  pthread_mutex_lock(&stripe->lock);
  while (is_clear_due(cache, now_s)) {
    pthread_mutex_unlock(&stripe->lock);
    clear_if_due(cache, now_s);
    pthread_mutex_lock(&stripe->lock);
  }
}

static bool is_current(const struct cache* cache, const struct item* item, int64_t now_s) {
  return item != NULL && item->generation == cache->generation &&
         (item->expires_s == 0 || item->expires_s > now_s);
}

static void take_out(pawl_fase* file, struct stripe* stripe, struct item** place) {
  struct item* item = *place;
  *place = item->next;
  *(item->newer == NULL ? &stripe->newest : &item->newer->older) = item->older;
  *(item->older == NULL ? &stripe->oldest : &item->older->newer) = item->newer;
  stripe->bytes -= size_of(item);
  stripe->items -= 1;
  pawl_fase_free(file, item);
}

static void take_out_oldest(pawl_fase* file, struct cache* cache, struct stripe* stripe) {
  struct item* oldest = stripe->oldest;
  take_out(file, stripe, find(cache, stripe, oldest->hash, oldest->bytes, oldest->key_bytes));
}

static void put_in(const struct cache* cache, struct stripe* stripe, struct item** place,
                   struct item* item) {
  item->generation = cache->generation;
  item->next = *place;
  item->newer = NULL;
  item->older = stripe->newest;
  *place = item;
  *(stripe->newest == NULL ? &stripe->oldest : &stripe->newest->newer) = item;
  stripe->newest = item;
  stripe->bytes += size_of(item);
  stripe->items += 1;
}

bool cache_is_known(pawl_fase* file) {
  const struct cache* cache = pawl_fase_root(file);
  return cache == NULL || cache->format == CACHE_FORMAT;
}

struct cache* cache_open(pawl_fase* file, uint64_t bytes_max, uint64_t buckets) {
  struct cache* cache = pawl_fase_root(file);
  if (cache != NULL) {
    pawl_fase_begin();
    if (bytes_max != 0) cache->bytes_max = bytes_max;
    pawl_fase_end();
    return cache;
  }
  uint64_t buckets_of_stripe = 1;
  while (buckets_of_stripe * STRIPES < buckets) buckets_of_stripe *= 2;
  pawl_fase_begin();
  cache = pawl_fase_calloc(file, 1, sizeof *cache);
  bool is_made = cache != NULL;
  for (unsigned i = 0; is_made && i < STRIPES; ++i) {
    cache->stripes[i].buckets = pawl_fase_calloc(file, buckets_of_stripe, sizeof(struct item*));
    is_made = cache->stripes[i].buckets != NULL;
  }
  if (is_made) {
    cache->format = CACHE_FORMAT;
    cache->bytes_max = bytes_max != 0 ? bytes_max : ITEMS_BYTES_MAX_DEFAULT;
    cache->buckets_of_stripe = buckets_of_stripe;
    pawl_fase_set_root(file, cache);
  }
  pawl_fase_end();
  return is_made ? cache : NULL;
}

struct item* cache_inbox(pawl_fase* file, struct cache* cache, unsigned worker) {
  pawl_fase_begin();
  struct item* inbox = cache->inboxes[worker];
  if (inbox == NULL) {
    inbox = pawl_fase_malloc(file, sizeof *inbox + KEY_BYTES_MAX + VALUE_BYTES_MAX);
    if (inbox != NULL) cache->inboxes[worker] = inbox;
  }
  pawl_fase_end();
  return inbox;
}

void cache_receive(struct item* inbox, const char* key, size_t key_bytes, const char* value,
                   size_t value_bytes, uint32_t flags, int64_t expires_s) {
  inbox->hash = hash_of(key, key_bytes);
  inbox->flags = flags;
  inbox->expires_s = expires_s;
  inbox->key_bytes = (uint32_t)key_bytes;
  inbox->value_bytes = value_bytes;
  memcpy(inbox->bytes, key, key_bytes);
  memcpy(inbox->bytes + key_bytes, value, value_bytes);
}

enum cache_outcome cache_store(pawl_fase* file, struct cache* cache, enum cache_mode mode,
                               const struct item* from, int64_t now_s) {
  struct stripe* stripe = stripe_of(cache, from->hash);
  lock_when_cleared(cache, stripe, now_s);
  struct item** place = find(cache, stripe, from->hash, from->bytes, from->key_bytes);
  const bool is_there = is_current(cache, *place, now_s);
  enum cache_outcome outcome = CACHE_NOT_STORED;
  if (mode == CACHE_SET || is_there == (mode == CACHE_REPLACE)) {
    const uint64_t share_bytes = cache->bytes_max / STRIPES;
    struct item* item = NULL;
    if (size_of(from) > share_bytes) {
      outcome = CACHE_TOO_LARGE;
    } else {
      item = pawl_fase_malloc(file, size_of(from));
      outcome = item == NULL ? CACHE_NO_MEMORY : CACHE_STORED;
    }
    if (item != NULL) {
      memcpy(item, from, size_of(from));
      if (*place != NULL) take_out(file, stripe, place);
      put_in(cache, stripe, place, item);
      while (stripe->bytes > share_bytes) take_out_oldest(file, cache, stripe);
    }
  }
  pthread_mutex_unlock(&stripe->lock);
  return outcome;
}

bool cache_get(struct cache* cache, const char* key, size_t key_bytes, int64_t now_s, char* value,
               size_t room, size_t* value_bytes, uint32_t* flags) {
  const uint64_t hash = hash_of(key, key_bytes);
  struct stripe* stripe = stripe_of(cache, hash);
  lock_when_cleared(cache, stripe, now_s);
  const struct item* item = *find(cache, stripe, hash, key, key_bytes);
  const bool is_there = is_current(cache, item, now_s) && item->value_bytes <= room;
  if (is_there) {
    memcpy(value, item->bytes + item->key_bytes, item->value_bytes);
    *value_bytes = item->value_bytes;
    *flags = item->flags;
  }
  pthread_mutex_unlock(&stripe->lock);
  return is_there;
}

bool cache_delete(pawl_fase* file, struct cache* cache, const char* key, size_t key_bytes,
                  int64_t now_s) {
  const uint64_t hash = hash_of(key, key_bytes);
  struct stripe* stripe = stripe_of(cache, hash);
  lock_when_cleared(cache, stripe, now_s);
  struct item** place = find(cache, stripe, hash, key, key_bytes);
  const bool is_there = is_current(cache, *place, now_s);
  if (*place != NULL) take_out(file, stripe, place);
  pthread_mutex_unlock(&stripe->lock);
  return is_there;
}

/* False when they are no number of 64 bits. */
static bool read_digits(const char* bytes, uint64_t count, uint64_t* number) {
  *number = 0;
  if (count == 0) return false;
  for (uint64_t i = 0; i < count; ++i) {
    if (bytes[i] < '0' || bytes[i] > '9') return false;
    const uint64_t digit = (uint64_t)(bytes[i] - '0');
    if (*number > (UINT64_MAX - digit) / 10) return false;
    *number = *number * 10 + digit;
  }
  return true;
}

static unsigned digits_of(uint64_t number) {
  unsigned digits = 1;
  for (; number >= 10; number /= 10) ++digits;
  return digits;
}

enum cache_outcome cache_add_number(pawl_fase* file, struct cache* cache, const char* key,
                                    size_t key_bytes, int64_t now_s, bool subtracts, uint64_t by,
                                    uint64_t* result) {
  const uint64_t hash = hash_of(key, key_bytes);
  struct stripe* stripe = stripe_of(cache, hash);
  enum cache_outcome outcome = CACHE_NOT_FOUND;
  lock_when_cleared(cache, stripe, now_s);
  struct item** place = find(cache, stripe, hash, key, key_bytes);
  struct item* old = *place;
  uint64_t number = 0;
  if (is_current(cache, old, now_s)) {
    outcome = read_digits(old->bytes + old->key_bytes, old->value_bytes, &number) ? CACHE_STORED
                                                                                  : CACHE_BAD;
  }
  if (outcome == CACHE_STORED) {
    number = subtracts ? (number < by ? 0 : number - by) : number + by;
    *result = number;
    const unsigned digits = digits_of(number);
    struct item* item = pawl_fase_malloc(file, sizeof *item + old->key_bytes + digits);
    if (item == NULL) outcome = CACHE_NO_MEMORY;
    if (item != NULL) {
      item->hash = hash;
      item->expires_s = old->expires_s;
      item->flags = old->flags;
      item->key_bytes = old->key_bytes;
      item->value_bytes = digits;
      memcpy(item->bytes, old->bytes, old->key_bytes);
      for (unsigned i = digits; i > 0; --i, number /= 10)
        item->bytes[item->key_bytes + i - 1] = (char)('0' + number % 10);
      take_out(file, stripe, place);
      put_in(cache, stripe, place, item);
    }
  }
  pthread_mutex_unlock(&stripe->lock);
  return outcome;
}

void cache_clear(pawl_fase* file, struct cache* cache) {
  lock_all(cache);
  cache->generation += 1;
  cache->clear_at_s = 0;
  unlock_all(cache);
  cache_tidy(file, cache, 0);
}

void cache_clear_at(struct cache* cache, int64_t at_s, int64_t now_s) {
  lock_all(cache);
  if (is_clear_due(cache, now_s)) cache->generation += 1;
  cache->clear_at_s = at_s;
  unlock_all(cache);
}

void cache_tidy(pawl_fase* file, struct cache* cache, int64_t now_s) {
  for (unsigned i = 0; i < STRIPES; ++i) {
    struct stripe* stripe = &cache->stripes[i];
    for (bool is_tidy = false; !is_tidy;) {
      lock_when_cleared(cache, stripe, now_s);
      /* Behind the oldest item there is none of an earlier generation. */
      is_tidy = stripe->oldest == NULL || (stripe->oldest->generation == cache->generation &&
                                           stripe->bytes <= cache->bytes_max / STRIPES);
      if (!is_tidy) take_out_oldest(file, cache, stripe);
      pthread_mutex_unlock(&stripe->lock);
    }
  }
}

struct cache_counts cache_count(struct cache* cache) {
  struct cache_counts counts = {0, 0};
  for (unsigned i = 0; i < STRIPES; ++i) {
    struct stripe* stripe = &cache->stripes[i];
    pthread_mutex_lock(&stripe->lock);
    counts.items += stripe->items;
    counts.bytes += stripe->bytes;
    pthread_mutex_unlock(&stripe->lock);
  }
  return counts;
}
