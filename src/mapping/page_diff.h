// Finds the cache lines of a page that changed, so that a record carries lines and not pages.
#pragma once

#include <cstddef>

namespace pawl {

inline constexpr std::size_t kLineBytes = 64;

// Calls emit(offset, length) for each run of changed lines among the first `bytes` of a page, in
// order.  Stops at, and returns, the first failure of emit.
template <class Emit>
auto for_changed_lines(const std::byte* now, const std::byte* then, std::size_t bytes, Emit emit)
    -> decltype(emit(std::size_t{}, std::size_t{})) {
  std::size_t offset = 0;
  const auto line_changed = [&](std::size_t at) {
    const std::size_t count = at + kLineBytes <= bytes ? kLineBytes : bytes - at;
    return __builtin_memcmp(now + at, then + at, count) != 0;
  };
  while (offset < bytes) {
    if (!line_changed(offset)) {
      offset += kLineBytes;
      continue;
    }
    const std::size_t start = offset;
    do offset += kLineBytes;
    while (offset < bytes && line_changed(offset));
    const std::size_t end = offset < bytes ? offset : bytes;
    if (auto status = emit(start, end - start); !status.ok()) return status;
  }
  return {};
}

}  // namespace pawl
