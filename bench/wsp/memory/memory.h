// Where a form of persistence has its data.  Each worker program is linked with one of these.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pawl::bench::wsp {

// Zeroed, aligned to 16 bytes, until close_memory(); in a new file of that name, unless the form's
// memory has none.  Ends the program with a text when there is none.
void* open_memory(const char* path, std::size_t bytes);
void close_memory();
// Makes durable what was stored, where the form does not do that by itself.
void commit_memory();

// What was asked of the medium so far; zeros where nobody asks for anything.
struct MemoryCounts {
  std::uint64_t fences = 0;
  std::uint64_t lines_flushed = 0;
};
MemoryCounts count_memory();

}  // namespace pawl::bench::wsp
