// Which system calls stop a watched program.  All others run at full speed.
#pragma once

#include "medium/status.h"

namespace pawl::cli::watch {

// In the process that is to be watched, before it executes the program: installs a seccomp filter
// that hands the calls that may matter to the tracer.  It is inherited, and ends with the
// processes. Sets "no new privileges" only where the kernel demands it.  Async-signal-safe: answers
// an errno.
int install_filter();

}  // namespace pawl::cli::watch
