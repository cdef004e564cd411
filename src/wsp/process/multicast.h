// Whether a socket has joined a multicast group, which the kernel tells only of a group that is
// named.
#pragma once

#include <sys/types.h>

namespace pawl::wsp {

// not_known: others have joined more groups than are asked about.
enum class Membership { none, member, not_known };

// Of a socket of AF_INET or AF_INET6, which `process` has.  How many groups there are costs nothing
// but for one that has memory of its own besides its queues.
Membership membership_of(pid_t process, int socket, int domain);

}  // namespace pawl::wsp
