// What durable operations on a container write to the journal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pawl::bench {

// On average, of one operation with its sync.
struct Logged {
  std::string operation;
  double pages = 0;          // that were dirty
  double changed_bytes = 0;  // of cache lines that changed
  double logged_bytes = 0;   // written to the journal: those, what frames them, and padding
};

// A pawl::map of `keys` random keys with values of `value_bytes` in a heap: insert all, replace
// all, delete all, each in a random order, each operation durable before the next.
std::vector<Logged> measure_logged(const std::string& directory, std::uint32_t keys,
                                   std::uint32_t value_bytes);

}  // namespace pawl::bench
