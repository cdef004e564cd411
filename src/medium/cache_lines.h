// The cache lines of a page, a bit for each: what marks tell of, and what records carry.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "medium/medium.h"

namespace pawl {

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::uint64_t kAllLines = ~std::uint64_t{0};
static_assert(kPageBytes / kLineBytes == 64);

// A bit for each line of a page, set for those that hold a byte of [offset, +length).
inline std::uint64_t line_bits(std::size_t offset, std::size_t length) {
  const std::size_t first = offset / kLineBytes;
  const std::size_t last = (offset + length - 1) / kLineBytes;
  return (kAllLines >> (63 - (last - first))) << first;
}

// Calls emit(offset, length) for each run of the lines that `lines` has a bit for, among the first
// `bytes` of a page, in order.  Stops at, and returns, the first failure of emit.
template <class Emit>
auto for_lines(std::uint64_t lines, std::size_t bytes, Emit emit)
    -> decltype(emit(std::size_t{}, std::size_t{})) {
  while (lines != 0) {
    const auto first = static_cast<unsigned>(std::countr_zero(lines));
    const auto count = static_cast<unsigned>(std::countr_one(lines >> first));
    const std::size_t start = first * kLineBytes;
    if (start >= bytes) break;
    const std::size_t end = std::min(start + count * kLineBytes, bytes);
    if (auto status = emit(start, end - start); !status.ok()) return status;
    lines = first + count == 64 ? 0 : lines >> (first + count) << (first + count);
  }
  return {};
}

}  // namespace pawl
