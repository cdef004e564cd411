// How much memory an operation on a container changes, by the allocator beneath it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pawl::bench {

// On average, of one operation.
struct Dirt {
  std::string operation;
  std::string allocator;
  double pages = 0;              // that changed
  double lines = 0;              // of 64 bytes, that changed
  double bookkeeping_lines = 0;  // of those, the allocator's own; -1 where it has none apart
};

// A std::map of `keys` random keys with values of `value_bytes`: insert all, replace all, delete
// all, each in a random order, on Pawl's allocator and on the standard library's pool of free
// lists.
std::vector<Dirt> measure_dirt(std::uint32_t keys, std::uint32_t value_bytes);

}  // namespace pawl::bench
