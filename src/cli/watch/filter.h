// Which system calls stop a watched program.  All others run at full speed.
#pragma once

#include <vector>

#include "tracing/filter.h"

namespace pawl::cli::watch {

// For tracing::install_filter().  Throws std::bad_alloc.
std::vector<sock_filter> make_filter();

}  // namespace pawl::cli::watch
