// What allocation costs beside the C library's, and what opening costs by the heap's size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pawl::bench {

// Median time of a malloc and a free of a random one among many blocks.
struct AllocationSpeed {
  std::string allocator;
  std::uint32_t block_bytes = 0;
  double malloc_and_free_ns = 0;
};
std::vector<AllocationSpeed> measure_allocation(const std::string& directory);

// Median time of pawl_heap_open of a heap with so many bytes in use.
struct OpeningTime {
  std::uint64_t used_bytes = 0;
  double open_us = 0;
};
std::vector<OpeningTime> measure_opening(const std::string& directory);

}  // namespace pawl::bench
