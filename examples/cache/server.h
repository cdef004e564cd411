/* The network side: threads that each have an event loop of their own (libuv), and share one port.
 */
#ifndef PAWL_EXAMPLES_CACHE_SERVER_H
#define PAWL_EXAMPLES_CACHE_SERVER_H

#include "items.h"

/* Serves until SIGTERM or SIGINT; then returns 0.  1 after a text on standard error.  Prints the
 * port on standard output once it listens: port 0 is any that is free. */
int serve(pawl_fase* file, struct cache* cache, const char* address, unsigned port,
          unsigned threads);

#endif
