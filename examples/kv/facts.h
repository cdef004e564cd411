// What commands know of the server itself, and INFO tells; none of it is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kv {

struct ServerFacts {
  unsigned port = 0;
  int64_t started_ms = 0;
  std::string password;  // empty: none is needed
  size_t clients = 0;
  size_t buffer_bytes = 0;  // of all clients
  uint64_t commands = 0;
};

}  // namespace kv
