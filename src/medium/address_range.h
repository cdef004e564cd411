// Calls on memory name ranges as they like: part of a window, more than one, or one and its
// neighbours.  Such a range is cut where windows begin and end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "medium/medium.h"

namespace pawl {

struct AddressRange {
  std::uintptr_t low = 0;
  std::uintptr_t high = 0;  // exclusive; low == high for none
  bool empty() const { return low >= high; }
  bool contains(const AddressRange& other) const { return low <= other.low && other.high <= high; }
  AddressRange intersect(const AddressRange& other) const {
    const AddressRange common{std::max(low, other.low), std::min(high, other.high)};
    return common.empty() ? AddressRange{} : common;
  }
  std::size_t bytes() const { return high - low; }
  char* start() const {
    return reinterpret_cast<char*>(low);  // NOLINT(performance-no-int-to-ptr): it is an address
  }
};

// [address, +length), to whole pages; saturates instead of wrapping.
inline AddressRange range_of(const void* address, std::size_t length) {
  const auto start = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t low = round_down(start, kPageBytes);
  const std::uintptr_t last_page = round_down(~std::uintptr_t{0}, kPageBytes);
  if (length >= last_page - start) return {low, last_page};
  return {low, round_up(start + length, kPageBytes)};
}

// The pieces, whose `range`s are parts of `range` and do not overlap, in order of address, and
// between them empty ones for what lies there: no gap is left.
template <class Piece>
std::vector<Piece> with_gaps(const AddressRange& range, std::vector<Piece> windows) {
  std::sort(windows.begin(), windows.end(),
            [](const Piece& a, const Piece& b) { return a.range.low < b.range.low; });
  std::vector<Piece> pieces;
  const auto add_gap = [&pieces](std::uintptr_t low, std::uintptr_t high) {
    if (low >= high) return;
    pieces.emplace_back();
    pieces.back().range = {low, high};
  };
  std::uintptr_t at = range.low;
  for (Piece& window : windows) {
    add_gap(at, window.range.low);
    at = window.range.high;
    pieces.push_back(std::move(window));
  }
  add_gap(at, range.high);
  return pieces;
}

}  // namespace pawl
