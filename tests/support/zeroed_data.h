// Makes a file's data zeros, and keeps its space: to give back the space of a large file and to
// take it again for each of many states takes longer than all else that a test does.
#pragma once

#include <sys/types.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstddef>

namespace pawl::test {

// False, with errno, when it cannot be written.
inline bool zero_data(int file) {
  static constexpr std::array<std::byte, 64 * 1024> kZeros{};
  // What only has space is a hole here.
  for (off_t at = 0; (at = ::lseek(file, at, SEEK_DATA)) >= 0;) {
    const off_t hole = ::lseek(file, at, SEEK_HOLE);
    while (at < hole) {
      const auto count = std::min(static_cast<std::size_t>(hole - at), kZeros.size());
      const ssize_t written = ::pwrite(file, kZeros.data(), count, at);
      if (written <= 0) return false;
      at += written;
    }
  }
  return true;
}

}  // namespace pawl::test
