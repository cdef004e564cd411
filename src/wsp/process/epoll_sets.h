// What epoll(7) sets of a program that stands still watch.
#pragma once

#include <string_view>

#include "medium/status.h"
#include "wsp/process/process.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// From what /proc/PID/fdinfo says of the set.  ENOTSUP: a file is registered by a number that it
// has not any more.
Status capture_epoll(Process& process, std::string_view information, SavedDescriptor& saved);

}  // namespace pawl::wsp
