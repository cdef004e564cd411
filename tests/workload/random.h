// Chance that a seed repeats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace pawl::test {

using Random = std::mt19937;

// 0 to bound - 1; 0 when there is nothing to choose.
inline std::uint64_t below(Random& random, std::uint64_t bound) {
  return bound == 0 ? 0 : random() % bound;
}

inline std::vector<std::byte> random_bytes(Random& random, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace pawl::test
