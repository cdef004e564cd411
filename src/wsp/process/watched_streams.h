// Standard streams that a program watches by epoll(7).  It watched a terminal or a pipe; who
// restores it may have a file in its place, which the kernel lets nobody watch.
#pragma once

#include "medium/status.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// Whether this process's own standard streams will do.
Status check_watched_streams(const SavedProcess& saved);

// Where the program watches its standard input, and ours is a file that is at its end (/dev/null),
// ours becomes another that is at its end, and can be watched.
Status make_input_watchable(const SavedProcess& saved);

}  // namespace pawl::wsp
