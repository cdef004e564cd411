/* A cache that speaks memcached's protocol, and does not forget: cache FILE [options]. */
#include <argp.h>
#include <arpa/inet.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "../process/process.h"
#include "server.h"

struct settings {
  const char* path;
  const char* address;
  unsigned long port;
  unsigned long threads;
  unsigned long megabytes;
  unsigned long buckets;
};

static unsigned long number(struct argp_state* state, const char* text, unsigned long max) {
  char* end = NULL;
  const unsigned long value = strtoul(text, &end, 10);
  if (end == text || *end != '\0' || value > max)
    argp_error(state, "%s is no number up to %lu", text, max);
  return value;
}

/* 127.0.0.0/8. */
static bool is_loopback(const char* address) {
  struct in_addr parsed;
  return inet_pton(AF_INET, address, &parsed) == 1 && ntohl(parsed.s_addr) >> 24 == 127;
}

static error_t parse(int key, char* argument, struct argp_state* state) {
  struct settings* settings = state->input;
  switch (key) {
    case 'l':
      if (!is_loopback(argument))
        argp_error(state,
                   "%s is no address of 127.0.0.0/8; without a password nobody else than this "
                   "machine may be served",
                   argument);
      settings->address = argument;
      return 0;
    case 'p':
      settings->port = number(state, argument, 65535);
      return 0;
    case 't':
      settings->threads = number(state, argument, WORKERS_MAX);
      return 0;
    case 'm':
      settings->megabytes = number(state, argument, 1 << 20);
      return 0;
    case 'b':
      settings->buckets = number(state, argument, 1 << 28);
      return 0;
    case ARGP_KEY_ARG:
      if (state->arg_num > 0) return ARGP_ERR_UNKNOWN;
      settings->path = argument;
      return 0;
    case ARGP_KEY_NO_ARGS:
      argp_usage(state);
      return EINVAL;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"listen", 'l', "ADDRESS", 0, "of this machine, 127.0.0.0/8, to listen at (127.0.0.1)", 0},
    {"port", 'p', "PORT", 0, "0: any that is free (11211)", 0},
    {"threads", 't', "COUNT", 0, "(2)", 0},
    {"memory", 'm', "MEGABYTES", 0,
     "of items, before the oldest make room (64, or what the file had)", 0},
    {"buckets", 'b', "COUNT", 0, "of a new file's hash table (65536)", 0},
    {0}};

int main(int argc, char** argv) {
  struct settings settings = {NULL, "127.0.0.1", 11211, 2, 0, 65536};
  const struct argp argp = {options,
                            parse,
                            "FILE",
                            "A cache that speaks memcached's text protocol and keeps its items in "
                            "FILE, whatever crashes.",
                            NULL,
                            NULL,
                            NULL};
  prepare_process();
  argp_parse(&argp, argc, argv, 0, NULL, &settings);
  if (settings.threads == 0) settings.threads = 1;
  /* Buffers are given back to the system as soon as they are freed: those between 64 KiB and a
   * value would lie among others that are not. */
  mallopt(M_MMAP_THRESHOLD, 64 << 10);
  mallopt(M_TRIM_THRESHOLD, 2 << 20);
  struct pawl_fase_options of_file;
  pawl_fase_options_init(&of_file);
#ifdef CACHE_UNPROTECTED
  of_file.unprotected = 1; /* to measure what protection costs */
#endif
  make_private_file(settings.path);
  pawl_fase* file = pawl_fase_open(settings.path, &of_file);
  if (file != NULL && !cache_is_known(file)) {
    fprintf(stderr, "cache: %s: another version of cache made its items; remove it\n",
            settings.path);
    return 1;
  }
  struct cache* cache =
      file == NULL ? NULL : cache_open(file, settings.megabytes << 20, settings.buckets);
  if (cache == NULL) {
    fprintf(stderr, "cache: %s: %s\n", settings.path, pawl_last_error());
    return 1;
  }
  const int outcome =
      serve(file, cache, settings.address, (unsigned)settings.port, (unsigned)settings.threads);
  if (pawl_fase_close(file) != 0) {
    fprintf(stderr, "cache: %s: %s\n", settings.path, pawl_last_error());
    return 1;
  }
  return outcome;
}
