/* Memcached's text protocol: get and gets (of many keys), set, add, replace, delete, incr, decr,
 * flush_all, stats, version, verbosity, quit. */
#ifndef PAWL_EXAMPLES_CACHE_PROTOCOL_H
#define PAWL_EXAMPLES_CACHE_PROTOCOL_H

#include "items.h"

struct output {
  char* bytes; /* of malloc */
  size_t count;
  size_t room;
  bool has_failed; /* there was no memory */
};

/* One for each thread. */
struct worker {
  pawl_fase* file;
  struct cache* cache;
  struct item* inbox;
  char* value; /* of VALUE_BYTES_MAX bytes: where values are copied to on their way out */
};

enum verdict { GO_ON, PAUSE, CLOSE };

/* Answers the whole requests at the beginning of the input, and says how many bytes they had.
 * PAUSE: there are OUTPUT_BYTES_PAUSE bytes of answers; call again, with what is left of the input,
 * when they are gone.  CLOSE: the client wants to go, or what it sends is no request; what is in
 * output is for it still.
 *
 * get_at is the client's: how much of a get was answered before a pause; 0 to begin with. */
enum verdict protocol_answer(struct worker* worker, size_t* get_at, const char* input, size_t bytes,
                             size_t* taken, struct output* output);

#endif
