// Where a file has blocks, written or only reserved, as its file system tells (FIEMAP).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "medium/status.h"

namespace pawl {

struct Extent {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  bool is_shared = false;  // with another file: a write takes new blocks
};

// Calls `visit` for some extents that meet [offset, end), in order.  Returns how far it looked:
// behind `offset`, and `end` when there are no more.  EOPNOTSUPP: the file system cannot tell.
Result<std::uint64_t> visit_extents(int descriptor, const std::string& path, std::uint64_t offset,
                                    std::uint64_t end,
                                    const std::function<void(const Extent&)>& visit);

}  // namespace pawl
