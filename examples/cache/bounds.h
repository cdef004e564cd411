/* Every bound of the cache, named once.  README.md has a table of what happens at each. */
#ifndef PAWL_EXAMPLES_CACHE_BOUNDS_H
#define PAWL_EXAMPLES_CACHE_BOUNDS_H

#include <stddef.h>
#include <stdint.h>

#define KEY_BYTES_MAX 250
#define VALUE_BYTES_MAX ((size_t)1 << 20)
/* Of all items, before the oldest make room, of a new file for which nothing else is asked. */
#define ITEMS_BYTES_MAX_DEFAULT ((uint64_t)64 << 20)
/* The longest line: a get of many keys. */
#define LINE_BYTES_MAX 8192

/* Answers that a client has not read: from here on its requests wait.  So there are this, a value
 * and a line at most. */
#define OUTPUT_BYTES_PAUSE ((size_t)1 << 20)
/* The buffers of all clients, shared out to the threads.  The connection of the thread's client
 * with the largest ones is closed when they would take more. */
#define ALL_BUFFERS_BYTES_MAX ((size_t)256 << 20)
/* A thread's part of them at least: a client that is alone loses no connection. */
#define THREAD_BUFFERS_BYTES_MIN ((size_t)8 << 20)
/* A client's larger empty buffer is given back. */
#define IDLE_BUFFER_BYTES ((size_t)16 << 10)

#define WORKERS_MAX 64
#define CLIENTS_MAX 4096
#define BACKLOG 1024
#define READ_BYTES 65536 /* taken from a socket at a time */
#define TICK_MS 100      /* how often it looks what has become due */

#endif
