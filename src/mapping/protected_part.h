#pragma once

#include <cstddef>

namespace pawl {

// A part of a window that the program protected otherwise than the whole; in bytes from its start.
struct ProtectedPart {
  std::size_t from;
  std::size_t to;  // exclusive
  int protection;
};

}  // namespace pawl
