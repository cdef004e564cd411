// Finds the cache lines of a page that changed, so that a record carries lines and not pages.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "medium/medium.h"

namespace pawl {

inline constexpr std::size_t kLineBytes = 64;

// Without a branch in it, so that it becomes a few vector instructions.
inline bool whole_line_changed(const std::byte* now, const std::byte* then) {
  std::uint64_t difference = 0;
  for (std::size_t at = 0; at < kLineBytes; at += sizeof(std::uint64_t)) {
    std::uint64_t left = 0;
    std::uint64_t right = 0;
    std::memcpy(&left, now + at, sizeof left);
    std::memcpy(&right, then + at, sizeof right);
    difference |= left ^ right;
  }
  return difference != 0;
}

// A bit for each line of a page, set for those that hold a byte of [offset, +length).
inline std::uint64_t line_bits(std::size_t offset, std::size_t length) {
  static_assert(kPageBytes / kLineBytes == 64);
  const std::size_t first = offset / kLineBytes;
  const std::size_t last = (offset + length - 1) / kLineBytes;
  return (~std::uint64_t{0} >> (63 - (last - first))) << first;
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

// The same for those of the lines that differ between `now` and `then`.
template <class Emit>
auto for_changed_lines(const std::byte* now, const std::byte* then, std::size_t bytes,
                       std::uint64_t lines, Emit emit)
    -> decltype(emit(std::size_t{}, std::size_t{})) {
  const auto line_changed = [&](std::size_t at) {
    if (at + kLineBytes <= bytes) return whole_line_changed(now + at, then + at);
    return std::memcmp(now + at, then + at, bytes - at) != 0;
  };
  std::uint64_t changed = 0;
  for (; lines != 0; lines &= lines - 1) {
    const auto line = static_cast<unsigned>(std::countr_zero(lines));
    if (line * kLineBytes >= bytes) break;
    if (line_changed(line * kLineBytes)) changed |= std::uint64_t{1} << line;
  }
  return for_lines(changed, bytes, emit);
}

}  // namespace pawl
