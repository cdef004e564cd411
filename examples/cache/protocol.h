/* Memcached's text protocol: get and gets (of many keys), set, add, replace, delete, incr, decr,
 * flush_all, stats, version, verbosity, quit. */
#ifndef PAWL_EXAMPLES_CACHE_PROTOCOL_H
#define PAWL_EXAMPLES_CACHE_PROTOCOL_H

#include "items.h"

/* The longest line: a get of many keys. */
#define LINE_BYTES_MAX 8192

struct output {
  char* bytes; /* of malloc */
  size_t count;
  size_t room;
};

/* One for each thread. */
struct worker {
  pawl_fase* file;
  struct cache* cache;
  struct item* inbox;
  char* value; /* of VALUE_BYTES_MAX bytes: where values are copied to on their way out */
};

enum verdict { GO_ON, CLOSE };

/* Answers the whole requests at the beginning of the input, and says how many bytes they had.
 * CLOSE: the client wants to go, or what it sends is no request; what is in output is for it still.
 */
enum verdict protocol_answer(struct worker* worker, const char* input, size_t bytes, size_t* taken,
                             struct output* output);

#endif
