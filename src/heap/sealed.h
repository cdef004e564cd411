// Checksums of the heap's structures: whoever stores past the end of a block most often hits one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "medium/checksum.h"

namespace pawl {

// Of a structure with a field crc32c, as if that were zero, without changing it: it may be under a
// tracker.
template <class Structure>
std::uint32_t seal_of(const Structure& structure) {
  const auto* const start = reinterpret_cast<const char*>(&structure);
  constexpr std::size_t kField = offsetof(Structure, crc32c);
  constexpr std::uint32_t kZero = 0;
  std::uint32_t sum = checksum(start, kField);
  sum = checksum(&kZero, sizeof kZero, sum);
  return checksum(start + kField + sizeof kZero, sizeof structure - kField - sizeof kZero, sum);
}

template <class Structure>
void seal(Structure& structure) {
  structure.crc32c = seal_of(structure);
}

template <class Structure>
bool is_sealed(const Structure& structure) {
  return structure.crc32c == seal_of(structure);
}

}  // namespace pawl
