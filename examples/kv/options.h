// The command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "connections.h"

namespace kv {

constexpr const char* kUsage =
    "--heap FILE [--port N] [--bind ADDRESS] [--unixsocket PATH] [--requirepass-file FILE] "
    "[--size-max BYTES[K|M|G|T]]";

struct Options {
  Settings settings;
  std::string heap_file;
  uint64_t size_bytes_max = 0;  // 0: was not given
};

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws UsageError.
Options parse_options(int count, char** arguments);

// Says on standard output that so many keys are served, and where.
void announce(const Options& options, size_t keys);

// Large buffers are given back to the system as soon as they are freed: without this the C library
// keeps more, the larger they were.
void give_back_freed_memory();

}  // namespace kv
