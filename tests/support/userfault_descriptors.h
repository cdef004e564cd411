// The descriptors by which this process has stores recorded, closed as by a program that closes
// numbers that are not its own.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "medium/own_descriptors.h"

namespace pawl::test {

// Returns how many there were.
inline int close_userfault_descriptors() {
  int closed = 0;
  for (const int number : own_descriptors::between(0, ~0U)) {
    std::error_code error;
    const std::filesystem::path link = "/proc/self/fd/" + std::to_string(number);
    const std::string target = std::filesystem::read_symlink(link, error);
    if (target.find("userfaultfd") != std::string::npos && close(number) == 0) ++closed;
  }
  return closed;
}

}  // namespace pawl::test
