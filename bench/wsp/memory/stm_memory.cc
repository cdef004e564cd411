// The region of the transactions' run-time: stores are logged, and flushed when they are committed.
#include <cstdio>
#include <cstdlib>

#include "memory/memory.h"
#include "stm/region.h"
#include "stm/transaction.h"

namespace pawl::bench::wsp {
namespace {

stm::Region* the_region = nullptr;

}  // namespace

void* open_memory(const char* path, std::size_t bytes) {
  auto opened = stm::Region::open(path, bytes);
  if (!opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.status().text().c_str());
    std::exit(EXIT_FAILURE);
  }
  the_region = opened.value().release();
  stm::set_the_region(the_region);
  return the_region->data();
}

void close_memory() { delete the_region; }

void commit_memory() {}
MemoryCounts count_memory() {
  const stm::Counts& counts = stm::Transaction::current().counts();
  return {.fences = counts.fences, .lines_flushed = counts.lines_flushed};
}

}  // namespace pawl::bench::wsp
