#include "protocol.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WORDS_MAX 1024
/* Times up to so many seconds count from now; later ones are since 1970. */
#define RELATIVE_SECONDS_MAX (60 * 60 * 24 * 30)
#define OUTPUT_BYTES_FIRST 4096

struct words {
  const char* at[WORDS_MAX];
  size_t bytes[WORDS_MAX];
  unsigned count;
};

struct request {
  struct words words;
  const char* value; /* behind the line; NULL when it is not there yet */
  size_t value_bytes;
};

static void put(struct output* output, const char* bytes, size_t count) {
  if (output->room - output->count < count) {
    size_t room = output->room == 0 ? OUTPUT_BYTES_FIRST : output->room;
    while (room - output->count < count) room *= 2;
    char* grown = realloc(output->bytes, room);
    if (grown == NULL) {
      fprintf(stderr, "cache: no memory for an answer\n");
      exit(1);
    }
    output->bytes = grown;
    output->room = room;
  }
  memcpy(output->bytes + output->count, bytes, count);
  output->count += count;
}

static void put_text(struct output* output, const char* text) { put(output, text, strlen(text)); }

static void put_line(struct output* output, const char* text) {
  put_text(output, text);
  put_text(output, "\r\n");
}

static struct words split(const char* line, size_t bytes) {
  struct words words = {.count = 0};
  size_t at = 0;
  while (at < bytes && words.count < WORDS_MAX) {
    while (at < bytes && line[at] == ' ') ++at;
    const size_t start = at;
    while (at < bytes && line[at] != ' ') ++at;
    if (at == start) break;
    words.at[words.count] = line + start;
    words.bytes[words.count] = at - start;
    words.count += 1;
  }
  return words;
}

static bool is_word(const struct words* words, unsigned n, const char* text) {
  return n < words->count && words->bytes[n] == strlen(text) &&
         memcmp(words->at[n], text, words->bytes[n]) == 0;
}

/* Decimal, perhaps below zero; false when it is none. */
static bool read_number(const struct words* words, unsigned n, int64_t* number) {
  char text[32];
  if (n >= words->count || words->bytes[n] >= sizeof text) return false;
  memcpy(text, words->at[n], words->bytes[n]);
  text[words->bytes[n]] = '\0';
  char* end = NULL;
  *number = strtoll(text, &end, 10);
  return end != text && *end == '\0';
}

static int64_t now_s(void) { return (int64_t)time(NULL); }

static int64_t expires_at(int64_t asked) {
  if (asked == 0) return 0;
  if (asked < 0) return 1;
  return asked <= RELATIVE_SECONDS_MAX ? now_s() + asked : asked;
}

static void answer_get(struct worker* worker, const struct words* words, struct output* output) {
  for (unsigned n = 1; n < words->count; ++n) {
    size_t value_bytes = 0;
    uint32_t flags = 0;
    if (words->bytes[n] > KEY_BYTES_MAX ||
        !cache_get(worker->cache, words->at[n], words->bytes[n], now_s(), worker->value,
                   VALUE_BYTES_MAX, &value_bytes, &flags)) {
      continue;
    }
    char head[64];
    put_text(output, "VALUE ");
    put(output, words->at[n], words->bytes[n]);
    /* gets is told of a version, too; there is no cas that would ask for it. */
    snprintf(head, sizeof head, " %" PRIu32 " %zu%s\r\n", flags, value_bytes,
             is_word(words, 0, "gets") ? " 0" : "");
    put_text(output, head);
    put(output, worker->value, value_bytes);
    put_text(output, "\r\n");
  }
  put_line(output, "END");
}

static const char* store(struct worker* worker, enum cache_mode mode,
                         const struct request* request) {
  const struct words* words = &request->words;
  int64_t flags = 0;
  int64_t expires_s = 0;
  if (!read_number(words, 2, &flags) || !read_number(words, 3, &expires_s))
    return "CLIENT_ERROR bad command line format";
  cache_receive(worker->inbox, words->at[1], words->bytes[1], request->value, request->value_bytes,
                (uint32_t)flags, expires_at(expires_s));
  switch (cache_store(worker->file, worker->cache, mode, worker->inbox, now_s())) {
    case CACHE_STORED:
      return "STORED";
    case CACHE_NO_MEMORY:
      return "SERVER_ERROR out of memory storing object";
    default:
      return "NOT_STORED";
  }
}

static void answer_number(struct worker* worker, const struct words* words, bool subtracts,
                          struct output* output) {
  int64_t by = 0;
  uint64_t result = 0;
  if (!read_number(words, 2, &by) || by < 0) {
    put_line(output, "CLIENT_ERROR invalid numeric delta argument");
    return;
  }
  char text[32];
  switch (cache_add_number(worker->file, worker->cache, words->at[1], words->bytes[1], now_s(),
                           subtracts, (uint64_t)by, &result)) {
    case CACHE_STORED:
      snprintf(text, sizeof text, "%" PRIu64, result);
      put_line(output, text);
      break;
    case CACHE_NOT_FOUND:
      put_line(output, "NOT_FOUND");
      break;
    case CACHE_NO_MEMORY:
      put_line(output, "SERVER_ERROR out of memory in incr/decr");
      break;
    default:
      put_line(output, "CLIENT_ERROR cannot increment or decrement non-numeric value");
      break;
  }
}

static void answer_stats(struct worker* worker, struct output* output) {
  const struct cache_counts counts = cache_count(worker->cache);
  char text[160];
  snprintf(text, sizeof text,
           "STAT curr_items %" PRIu64 "\r\nSTAT bytes %" PRIu64 "\r\nSTAT limit_maxbytes %" PRIu64
           "\r\nEND",
           counts.items, counts.bytes, worker->cache->bytes_max);
  put_line(output, text);
}

static bool is_storage(const struct words* words) {
  return is_word(words, 0, "set") || is_word(words, 0, "add") || is_word(words, 0, "replace");
}

static bool has_key(const struct words* words) {
  return words->count > 1 && words->bytes[1] <= KEY_BYTES_MAX;
}

static enum verdict answer(struct worker* worker, const struct request* request,
                           struct output* output) {
  const struct words* words = &request->words;
  const bool is_silent = words->count > 0 && is_word(words, words->count - 1, "noreply");
  struct output unheard = {NULL, 0, 0};
  struct output* to = is_silent ? &unheard : output;
  if (is_word(words, 0, "get") || is_word(words, 0, "gets")) {
    answer_get(worker, words, to);
  } else if (is_storage(words) && has_key(words)) {
    const enum cache_mode mode = is_word(words, 0, "set")   ? CACHE_SET
                                 : is_word(words, 0, "add") ? CACHE_ADD
                                                            : CACHE_REPLACE;
    put_line(to, store(worker, mode, request));
  } else if (is_word(words, 0, "delete") && has_key(words)) {
    const bool was_there =
        cache_delete(worker->file, worker->cache, words->at[1], words->bytes[1], now_s());
    put_line(to, was_there ? "DELETED" : "NOT_FOUND");
  } else if (is_word(words, 0, "incr") && has_key(words)) {
    answer_number(worker, words, false, to);
  } else if (is_word(words, 0, "decr") && has_key(words)) {
    answer_number(worker, words, true, to);
  } else if (is_word(words, 0, "flush_all")) {
    cache_clear(worker->file, worker->cache);
    put_line(to, "OK");
  } else if (is_word(words, 0, "stats")) {
    answer_stats(worker, to);
  } else if (is_word(words, 0, "version")) {
    put_line(to, "VERSION pawl");
  } else if (is_word(words, 0, "verbosity")) {
    put_line(to, "OK");
  } else if (is_word(words, 0, "quit")) {
    return CLOSE;
  } else {
    put_line(to, "ERROR");
  }
  free(unheard.bytes);
  return GO_ON;
}

enum verdict protocol_answer(struct worker* worker, const char* input, size_t bytes, size_t* taken,
                             struct output* output) {
  *taken = 0;
  for (;;) {
    const char* line = input + *taken;
    const size_t left = bytes - *taken;
    const char* end = memchr(line, '\n', left);
    if (end == NULL) {
      if (left <= LINE_BYTES_MAX) return GO_ON;
      put_line(output, "CLIENT_ERROR line too long");
      return CLOSE;
    }
    size_t line_bytes = (size_t)(end - line);
    size_t request_bytes = line_bytes + 1;
    if (line_bytes > 0 && line[line_bytes - 1] == '\r') --line_bytes;
    struct request request = {split(line, line_bytes), NULL, 0};
    if (is_storage(&request.words)) {
      int64_t value_bytes = 0;
      if (!read_number(&request.words, 4, &value_bytes) || value_bytes < 0 ||
          value_bytes > (int64_t)VALUE_BYTES_MAX) {
        put_line(output, "SERVER_ERROR object too large for cache");
        return CLOSE;
      }
      request.value = line + request_bytes;
      request.value_bytes = (size_t)value_bytes;
      if (left - request_bytes < request.value_bytes + 2) return GO_ON;
      if (memcmp(request.value + request.value_bytes, "\r\n", 2) != 0) {
        put_line(output, "CLIENT_ERROR bad data chunk");
        return CLOSE;
      }
      request_bytes += request.value_bytes + 2;
    }
    *taken += request_bytes;
    if (answer(worker, &request, output) == CLOSE) return CLOSE;
  }
}
