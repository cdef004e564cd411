// A block of a persistent heap, which is synced where the program says so.
#include <pawl/heap.h>

#include <cstdio>
#include <cstdlib>

#include "memory/memory.h"

namespace pawl::bench::wsp {
namespace {

pawl_heap* the_heap = nullptr;

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, pawl_last_error());
  std::exit(EXIT_FAILURE);
}

}  // namespace

void* open_memory(const char* path, std::size_t bytes) {
  the_heap = pawl_heap_open(path, nullptr);
  if (the_heap == nullptr) give_up(path);
  void* const block = pawl_heap_calloc(the_heap, 1, bytes);
  if (block == nullptr || pawl_heap_set_root(the_heap, block) != 0 || pawl_heap_sync(the_heap) != 0)
    give_up(path);
  return block;
}

void close_memory() { pawl_heap_close(the_heap); }
void commit_memory() {
  if (pawl_heap_sync(the_heap) != 0) give_up("sync");
}
MemoryCounts count_memory() { return {}; }

}  // namespace pawl::bench::wsp
