// A pipe between a program that is about to be traced and its tracer.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "medium/descriptor.h"
#include "medium/status.h"

namespace pawl::tracing {

struct Pipe {
  Descriptor reading;
  Descriptor writing;
};

// Both ends are closed when a program is executed.
inline Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return FailedCall{errno, "cannot make a pipe"};
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace pawl::tracing
