// The operations, and the data they are about.  The same for every system.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pawl::bench {

enum class Operation : std::uint32_t { insert, replace, get, erase };
inline constexpr std::uint32_t kOperations = 4;
const char* name_of(Operation operation);

inline constexpr std::size_t kValueBytes = 1024;

// One way to use a store: `keys` of them, of which `timed` are inserted last, then replaced, read
// and deleted, each in a random order of its own.
struct Workload {
  std::uint64_t keys = 0;
  std::uint64_t timed = 0;
  std::uint32_t batch = 1;     // operations of one commit
  std::uint32_t think_us = 0;  // pause before each commit
  bool reads = false;
  std::uint64_t seed = 0;
};

std::string key_text(std::uint64_t key);

// Random bytes, another sequence for each version of each key.
void make_value(std::uint64_t key, std::uint32_t version, std::string& value);

// The keys in the order in which the operation takes them.
std::vector<std::uint32_t> order_of_keys(const Workload& workload, Operation operation);

}  // namespace pawl::bench
