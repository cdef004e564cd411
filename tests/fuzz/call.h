// One call of a fuzzed program, in a few bytes.
#pragma once

#include <cstddef>

namespace pawl::fuzz {

inline constexpr std::size_t kCallBytes = 8;

// The bytes of one call: its kind, and numbers.
struct Call {
  unsigned kind;
  unsigned a;  // 8 bits
  unsigned b;  // 16 bits
  unsigned c;  // 32 bits
};

}  // namespace pawl::fuzz
