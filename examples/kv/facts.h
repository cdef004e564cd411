// What INFO tells of the server itself; none of it is kept.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kv {

struct ServerFacts {
  unsigned port = 0;
  int64_t started_ms = 0;
  size_t clients = 0;
  uint64_t commands = 0;
};

}  // namespace kv
