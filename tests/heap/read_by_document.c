/* read_by_document FILE small|large: makes a heap with blocks of every kind, and says on standard
 * output what a reader must find in it:
 *
 *   block ADDRESS ASKED SEED    its byte i is SEED + i, modulo 256
 *   root NAME ADDRESS TAG       NAME is - for the root without one
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pawl/heap.h"

enum { BLOCKS_MAX = 4096 };

static pawl_heap* heap;
static unsigned char* blocks[BLOCKS_MAX];
static size_t asked[BLOCKS_MAX];
static size_t count;

static void require(int holds) {
  if (holds) return;
  fprintf(stderr, "read_by_document: %s\n", pawl_last_error());
  exit(1);
}

static void fill(size_t which) {
  for (size_t i = 0; i < asked[which]; ++i) blocks[which][i] = (unsigned char)(which + i);
}

static void take(size_t size, size_t alignment) {
  require(count < BLOCKS_MAX);
  blocks[count] = pawl_heap_aligned_alloc(heap, alignment, size);
  require(blocks[count] != NULL);
  asked[count] = size;
  fill(count++);
}

static void give(size_t which) {
  require(blocks[which] != NULL && pawl_heap_free(heap, blocks[which]) == 0);
  blocks[which] = NULL;
}

static void change(size_t which, size_t size) {
  blocks[which] = pawl_heap_realloc(heap, blocks[which], size);
  require(blocks[which] != NULL);
  asked[which] = size;
  fill(which);
}

static void make_small(void) {
  for (int i = 0; i < 6; ++i) take(1000, 16); /* a slab of four pages */
  take(10000, 16);                            /* a run */
  take((size_t)5 << 20, 16);                  /* two segments */
  give(2);
}

static void make_large(void) {
  /* Every class, and slabs that are full, have room, had none, and were given back. */
  for (int round = 0; round < 6; ++round)
    for (size_t size = 16; size <= 7680; size += 16) take(size, 16);
  for (int i = 0; i < 600; ++i) take(1, 16);
  for (size_t which = 2; which < count; ++which)
    if (which * 2654435761u >> 13 & 1) give(which);
  const size_t small = count;
  for (size_t size = 7681; size <= (size_t)2 << 20; size += size / 5) take(size, 16);
  for (size_t alignment = 16; alignment <= PAWL_HEAP_ALIGNMENT_MAX; alignment *= 2) {
    take(100, alignment);
    take(100000, alignment);
    take((size_t)3 << 20, alignment);
  }
  for (size_t which = small; which < count; which += 3) give(which);
  /* Longer and shorter in their place, and elsewhere. */
  for (size_t which = small + 1; which < count; which += 3)
    change(which, asked[which] / 2 + 10 * which);
  take((size_t)13 << 20, 16);
  take((size_t)20 << 20, 4096);
  /* Of what was a huge block: pages, and free segments whose headers were its bytes. */
  give(count - 2);
  take(300000, 16);
  for (int i = 0; i < 50; ++i) take(40, 16);
}

static void name(const char* text, size_t which, uint64_t tag) {
  require(pawl_heap_set_named_root(heap, text, blocks[which], tag) == 0);
  printf("root %s %#" PRIxPTR " %" PRIu64 "\n", text, (uintptr_t)blocks[which], tag);
}

int main(int argc, char** argv) {
  struct pawl_heap_options options;
  require(argc == 3 && pawl_heap_options_init(&options) == 0);
  options.size_bytes_max = (uint64_t)1 << 30;
  options.layout = "of a test";
  options.mapping.journal_size_bytes = 1 << 20;
  heap = pawl_heap_open(argv[1], &options);
  require(heap != NULL);
  if (strcmp(argv[2], "small") == 0) {
    make_small();
  } else {
    make_large();
  }
  require(pawl_heap_set_root(heap, blocks[1]) == 0);
  printf("root - %#" PRIxPTR " 0\n", (uintptr_t)blocks[1]);
  name("a", 1, 1);
  name("gone", 1, 2);
  name("abcdefghijklmnopqrstuvwxyz0123456789_47_bytes__", count - 1, UINT64_MAX);
  require(pawl_heap_set_named_root(heap, "gone", NULL, 0) == 0);
  puts("gone gone");
  for (size_t i = 0; i < count; ++i)
    if (blocks[i] != NULL)
      printf("block %#" PRIxPTR " %zu %zu\n", (uintptr_t)blocks[i], asked[i], i % 256);
  require(pawl_heap_sync(heap) == 0);
  require(pawl_heap_close(heap) == 0);
  return 0;
}
