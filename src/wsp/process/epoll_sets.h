// What epoll(7) sets watch.
#pragma once

#include <set>
#include <string_view>

#include "medium/status.h"
#include "wsp/process/process.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// Of a program that stands still, from what /proc/PID/fdinfo says of the set.  ENOTSUP: a file is
// registered by a number that it has not any more.
Status capture_epoll(Process& process, std::string_view information, SavedDescriptor& saved);

// In the process that is about to become the program, when all else that it watches is there.  To
// `pipes`, the numbers of those that no other process has, something is written for a moment.
Status fill_epoll(const SavedDescriptor& saved, const std::set<int>& pipes);

// Whether the program's user may have as many registrations as it has in all sets together, as far
// as this process may have as many descriptors; in a process that ends behind that.
Status check_epoll_watches(const SavedProcess& saved);

}  // namespace pawl::wsp
