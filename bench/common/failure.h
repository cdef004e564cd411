// How benchmarks say that something did not work.
#pragma once

#include <stdexcept>
#include <string>

namespace pawl::bench {

// What cannot be had on this machine; the text says why.
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws std::runtime_error("WHAT: strerror(errno)").
[[noreturn]] void fail_with_errno(const std::string& what);

}  // namespace pawl::bench
