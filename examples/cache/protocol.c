#include "protocol.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define WORDS_MAX 8
/* Times up to so many seconds count from now; later ones are since 1970. */
#define RELATIVE_SECONDS_MAX (60 * 60 * 24 * 30)
#define OUTPUT_BYTES_FIRST 4096
#define NUMBER_BYTES_MAX 24
#define BAD_LINE "CLIENT_ERROR bad command line format"

struct word {
  const char* at;
  size_t bytes;
};

/* A line, and its first words; the others are keys of a get. */
struct words {
  const char* line;
  size_t bytes;
  struct word word[WORDS_MAX];
  unsigned count;
  struct word last;
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
    char* grown = output->has_failed ? NULL : realloc(output->bytes, room);
    if (grown == NULL) {
      output->has_failed = true;
      return;
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

/* The word at or behind a place of the line, and moves the place behind it; empty: there is none.
 */
static struct word next_word(const char* line, size_t bytes, size_t* at) {
  while (*at < bytes && line[*at] == ' ') *at += 1;
  const size_t start = *at;
  while (*at < bytes && line[*at] != ' ') *at += 1;
  return (struct word){line + start, *at - start};
}

static struct words split(const char* line, size_t bytes) {
  struct words words = {.line = line, .bytes = bytes, .count = 0};
  size_t at = 0;
  for (;;) {
    const struct word word = next_word(line, bytes, &at);
    if (word.bytes == 0) return words;
    if (words.count < WORDS_MAX) words.word[words.count++] = word;
    words.last = word;
  }
}

static bool is_text(struct word word, const char* text) {
  return word.bytes == strlen(text) && memcmp(word.at, text, word.bytes) == 0;
}

static bool is_word(const struct words* words, unsigned n, const char* text) {
  return n < words->count && is_text(words->word[n], text);
}

/* Text that ends, for functions of the C library; false when it is none or too long for a number.
 */
static bool copy_number(const struct words* words, unsigned n, char text[NUMBER_BYTES_MAX]) {
  if (n >= words->count || words->word[n].bytes >= NUMBER_BYTES_MAX) return false;
  memcpy(text, words->word[n].at, words->word[n].bytes);
  text[words->word[n].bytes] = '\0';
  return true;
}

/* Decimal, perhaps below zero; false when it is none of 64 bits. */
static bool read_number(const struct words* words, unsigned n, int64_t* number) {
  char text[NUMBER_BYTES_MAX];
  if (!copy_number(words, n, text)) return false;
  char* end = NULL;
  errno = 0;
  *number = strtoll(text, &end, 10);
  return end != text && *end == '\0' && errno == 0;
}

/* The same from 0 up to a maximum. */
static bool read_unsigned(const struct words* words, unsigned n, uint64_t max, uint64_t* number) {
  char text[NUMBER_BYTES_MAX];
  if (!copy_number(words, n, text) || strchr(text, '-') != NULL) return false;
  char* end = NULL;
  errno = 0;
  *number = strtoull(text, &end, 10);
  return end != text && *end == '\0' && errno == 0 && *number <= max;
}

static int64_t now_s(void) { return (int64_t)time(NULL); }

/* 0: never. */
static int64_t time_at(int64_t asked) {
  if (asked == 0) return 0;
  if (asked < 0) return 1;
  return asked <= RELATIVE_SECONDS_MAX ? now_s() + asked : asked;
}

static void put_item(struct worker* worker, const struct words* words, struct word key,
                     struct output* output) {
  size_t value_bytes = 0;
  uint32_t flags = 0;
  if (!cache_get(worker->cache, key.at, key.bytes, now_s(), worker->value, VALUE_BYTES_MAX,
                 &value_bytes, &flags)) {
    return;
  }
  char head[64];
  put_text(output, "VALUE ");
  put(output, key.at, key.bytes);
  /* gets is told of a version, too; there is no cas that would ask for it. */
  snprintf(head, sizeof head, " %" PRIu32 " %zu%s\r\n", flags, value_bytes,
           is_word(words, 0, "gets") ? " 0" : "");
  put_text(output, head);
  put(output, worker->value, value_bytes);
  put_text(output, "\r\n");
}

/* PAUSE: goes on where *get_at says. */
static enum verdict answer_get(struct worker* worker, const struct words* words, size_t* get_at,
                               struct output* output) {
  size_t at = *get_at;
  if (at == 0) {
    next_word(words->line, words->bytes, &at); /* the command */
    if (words->count < 2) {
      put_line(output, "ERROR");
      return GO_ON;
    }
  }
  for (;;) {
    *get_at = at;
    if (output->count >= OUTPUT_BYTES_PAUSE || output->has_failed) return PAUSE;
    const struct word key = next_word(words->line, words->bytes, &at);
    if (key.bytes == 0 || key.bytes > KEY_BYTES_MAX) {
      *get_at = 0;
      put_line(output, key.bytes == 0 ? "END" : BAD_LINE);
      return GO_ON;
    }
    put_item(worker, words, key, output);
  }
}

static const char* store(struct worker* worker, enum cache_mode mode,
                         const struct request* request) {
  const struct words* words = &request->words;
  uint64_t flags = 0;
  int64_t expires_s = 0;
  if (!read_unsigned(words, 2, UINT32_MAX, &flags) || !read_number(words, 3, &expires_s))
    return BAD_LINE;
  cache_receive(worker->inbox, words->word[1].at, words->word[1].bytes, request->value,
                request->value_bytes, (uint32_t)flags, time_at(expires_s));
  switch (cache_store(worker->file, worker->cache, mode, worker->inbox, now_s())) {
    case CACHE_STORED:
      return "STORED";
    case CACHE_NO_MEMORY:
      return "SERVER_ERROR out of memory storing object";
    case CACHE_TOO_LARGE:
      return "SERVER_ERROR object too large for cache";
    default:
      return "NOT_STORED";
  }
}

static void answer_number(struct worker* worker, const struct words* words, bool subtracts,
                          struct output* output) {
  uint64_t by = 0;
  uint64_t result = 0;
  if (!read_unsigned(words, 2, UINT64_MAX, &by)) {
    put_line(output, "CLIENT_ERROR invalid numeric delta argument");
    return;
  }
  char text[NUMBER_BYTES_MAX];
  switch (cache_add_number(worker->file, worker->cache, words->word[1].at, words->word[1].bytes,
                           now_s(), subtracts, by, &result)) {
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

static const char* flush(struct worker* worker, const struct words* words, bool is_silent) {
  int64_t delay_s = 0;
  const bool has_delay = words->count > (is_silent ? 2U : 1U);
  if (has_delay && !read_number(words, 1, &delay_s)) return "CLIENT_ERROR invalid exptime argument";
  if (delay_s > 0)
    cache_clear_at(worker->cache, time_at(delay_s), now_s());
  else
    cache_clear(worker->file, worker->cache);
  return "OK";
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

/* The word with the number of bytes of the value behind the line; 0: there is no value.  Also those
 * are here that get an error: what is stored must never be taken for a command. */
static unsigned value_word(const struct words* words) {
  if (is_storage(words) || is_word(words, 0, "append") || is_word(words, 0, "prepend") ||
      is_word(words, 0, "cas")) {
    return 4;
  }
  return is_word(words, 0, "ms") ? 2 : 0;
}

static bool is_text_ignoring_case(struct word word, const char* text) {
  return word.bytes == strlen(text) && strncasecmp(word.at, text, word.bytes) == 0;
}

/* What a browser sends that a page made send requests here. */
static bool is_of_browser(const struct words* words) {
  const struct word first = words->word[0];
  return words->count > 0 &&
         (is_text_ignoring_case(first, "post") || is_text_ignoring_case(first, "host:") ||
          (words->last.bytes > strlen("HTTP/") &&
           memcmp(words->last.at, "HTTP/", strlen("HTTP/")) == 0));
}

static void answer_line(struct worker* worker, const struct request* request, bool is_silent,
                        struct output* output) {
  const struct words* words = &request->words;
  const struct word key = words->word[1];
  const bool has_key = words->count > 1 && key.bytes <= KEY_BYTES_MAX;
  if (is_storage(words)) {
    const enum cache_mode mode = is_word(words, 0, "set")   ? CACHE_SET
                                 : is_word(words, 0, "add") ? CACHE_ADD
                                                            : CACHE_REPLACE;
    put_line(output, has_key ? store(worker, mode, request) : BAD_LINE);
  } else if (is_word(words, 0, "delete") && has_key) {
    const bool was_there = cache_delete(worker->file, worker->cache, key.at, key.bytes, now_s());
    put_line(output, was_there ? "DELETED" : "NOT_FOUND");
  } else if (is_word(words, 0, "incr") && has_key && words->count > 2) {
    answer_number(worker, words, false, output);
  } else if (is_word(words, 0, "decr") && has_key && words->count > 2) {
    answer_number(worker, words, true, output);
  } else if (is_word(words, 0, "flush_all")) {
    put_line(output, flush(worker, words, is_silent));
  } else if (is_word(words, 0, "stats")) {
    answer_stats(worker, output);
  } else if (is_word(words, 0, "version")) {
    put_line(output, "VERSION pawl");
  } else if (is_word(words, 0, "verbosity")) {
    put_line(output, "OK");
  } else {
    put_line(output, words->count > 1 && !has_key ? BAD_LINE : "ERROR");
  }
}

/* A get has keys only, and a key may be called noreply. */
static bool is_silent(const struct words* words) {
  const unsigned words_before = is_word(words, 0, "cas") ? 6
                                : value_word(words) > 0  ? value_word(words) + 1
                                : is_word(words, 0, "incr") || is_word(words, 0, "decr")        ? 3
                                : is_word(words, 0, "delete") || is_word(words, 0, "verbosity") ? 2
                                                                                                : 1;
  return words->count > words_before && is_text(words->last, "noreply");
}

static enum verdict answer(struct worker* worker, const struct request* request, size_t* get_at,
                           struct output* output) {
  const struct words* words = &request->words;
  if (is_word(words, 0, "quit") || is_of_browser(words)) return CLOSE;
  if (is_word(words, 0, "get") || is_word(words, 0, "gets"))
    return answer_get(worker, words, get_at, output);
  struct output unheard = {NULL, 0, 0, false};
  const bool silent = is_silent(words);
  answer_line(worker, request, silent, silent ? &unheard : output);
  free(unheard.bytes);
  return GO_ON;
}

/* The value behind the line, if all of it is there, and how many bytes it has with its end.  Not
 * NULL: no request can be found behind this one, and why. */
static const char* find_value(struct request* request, const char* behind_line, size_t left,
                              size_t* value_bytes) {
  *value_bytes = 0;
  const unsigned word = value_word(&request->words);
  if (word == 0) return NULL;
  if (request->words.count <= word) return "ERROR";
  uint64_t bytes = 0;
  if (!read_unsigned(&request->words, word, UINT64_MAX, &bytes)) return BAD_LINE;
  if (bytes > VALUE_BYTES_MAX) return "SERVER_ERROR object too large for cache";
  *value_bytes = (size_t)bytes + strlen("\r\n");
  if (left < *value_bytes) return NULL;
  request->value = behind_line;
  request->value_bytes = (size_t)bytes;
  return memcmp(behind_line + bytes, "\r\n", 2) == 0 ? NULL : "CLIENT_ERROR bad data chunk";
}

enum verdict protocol_answer(struct worker* worker, size_t* get_at, const char* input, size_t bytes,
                             size_t* taken, struct output* output) {
  *taken = 0;
  for (;;) {
    if (output->has_failed) return CLOSE;
    if (output->count >= OUTPUT_BYTES_PAUSE) return PAUSE;
    const char* line = input + *taken;
    const size_t left = bytes - *taken;
    const char* end = left == 0 ? NULL : memchr(line, '\n', left);
    if ((end == NULL ? left : (size_t)(end - line)) > LINE_BYTES_MAX) {
      put_line(output, "CLIENT_ERROR line too long");
      return CLOSE;
    }
    if (end == NULL) return GO_ON;
    const size_t line_bytes = (size_t)(end - line) + 1;
    const size_t end_bytes = line_bytes > 1 && end[-1] == '\r' ? 2 : 1;
    struct request request = {split(line, line_bytes - end_bytes), NULL, 0};
    size_t value_bytes = 0;
    const char* wrong = find_value(&request, line + line_bytes, left - line_bytes, &value_bytes);
    if (wrong != NULL) {
      put_line(output, wrong);
      return CLOSE;
    }
    if (left - line_bytes < value_bytes) return GO_ON;
    const enum verdict verdict = answer(worker, &request, get_at, output);
    if (verdict == PAUSE) return output->has_failed ? CLOSE : PAUSE;
    *taken += line_bytes + value_bytes;
    if (verdict == CLOSE) return CLOSE;
  }
}
