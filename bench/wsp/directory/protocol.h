// What the directory's client and server say to each other, over TCP on this machine: requests of
// one size, each answered by a byte, in order.
#pragma once

#include <cstdint>

#include "directory/directory.h"

namespace pawl::bench::wsp {

using Request = directory_entry;

// A name of zeros asks for this instead of an insertion.
struct Facts {
  std::uint64_t entries;
  std::uint64_t height;  // 0: the tree is damaged
  std::uint64_t cpu_ns;  // of the server, user and system, since it began to listen
};

enum class Answer : char { inserted = '+', refused = '-' };

}  // namespace pawl::bench::wsp
