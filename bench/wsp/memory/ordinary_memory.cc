// The plain program's: of the process.
#include <cstdio>
#include <cstdlib>

#include "memory/memory.h"

namespace pawl::bench::wsp {
namespace {

void* the_memory = nullptr;

}  // namespace

void* open_memory(const char*, std::size_t bytes) {
  the_memory = std::calloc(1, bytes);
  if (the_memory != nullptr) return the_memory;
  std::fprintf(stderr, "no memory\n");
  std::exit(EXIT_FAILURE);
}

void close_memory() { std::free(the_memory); }
void commit_memory() {}
MemoryCounts count_memory() { return {}; }

}  // namespace pawl::bench::wsp
