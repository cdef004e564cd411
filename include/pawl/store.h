/* Pawl: naming what was stored.
 *
 * With the tracker PAWL_TRACKER_STORE no page faults and nothing is scanned: each store marks its
 * cache lines itself.  pawl-clang and pawl-clang++ compile programs so.  What was not compiled by
 * them, and stores into a mapping, says so with pawl_stored().  docs/snapshot.md.
 *
 * With the other trackers pawl_stored() is for what they cannot see: stores into pages that were
 * pinned before a commit, as registered buffers of io_uring are.  docs/kernel-stores.md. */
#ifndef PAWL_STORE_H
#define PAWL_STORE_H

#include <stddef.h>

#include "pawl/pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The calling thread stored, or is about to store, into [address, address + length): the next
 * commit of the range takes the cache lines that it touches (with the trackers scan and fault, the
 * pages).  Addresses outside of mappings are
 * ignored.  Takes no lock unless the thread's marks are full; never fails.  Call it after the
 * store: a commit between the mark and a store that follows it would miss the store.
 * This is also what compiled code calls, for addresses between 2^43 and 85 * 2^40. */
PAWL_PUBLIC void pawl_stored(const void* address, size_t length);

#ifdef __cplusplus
}
#endif
#endif
