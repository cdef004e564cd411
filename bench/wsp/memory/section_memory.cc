// A block in a file of failure-atomic sections; PAWL_FASE_FLUSH says when it is flushed.
#include <pawl/fase.h>

#include <cstdio>
#include <cstdlib>

#include "memory/memory.h"

namespace pawl::bench::wsp {
namespace {

pawl_fase* the_file = nullptr;

[[noreturn]] void give_up(const char* path) {
  std::fprintf(stderr, "%s: %s\n", path, pawl_last_error());
  std::exit(EXIT_FAILURE);
}

}  // namespace

void* open_memory(const char* path, std::size_t bytes) {
  the_file = pawl_fase_open(path, nullptr);
  if (the_file == nullptr) give_up(path);
  void* const block = pawl_fase_calloc(the_file, 1, bytes);
  if (block == nullptr || pawl_fase_set_root(the_file, block) != 0) give_up(path);
  return block;
}

void close_memory() { pawl_fase_close(the_file); }

void commit_memory() {}
MemoryCounts count_memory() {
  pawl_fase_statistics statistics;
  if (pawl_fase_stats(the_file, &statistics) != 0) give_up("statistics");
  return {.fences = statistics.fences, .lines_flushed = statistics.lines_flushed};
}

}  // namespace pawl::bench::wsp
