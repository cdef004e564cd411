// Finds the cache lines of a page that changed, so that a record carries lines and not pages.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "medium/cache_lines.h"

namespace pawl {

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

// for_lines() of those among `lines` that differ between `now` and `then`.
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
