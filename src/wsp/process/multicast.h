// Whether a socket has joined a multicast group, which the kernel tells only of a group that is
// named.
#pragma once

#include <sys/types.h>

namespace pawl::wsp {

// Of a socket of AF_INET or AF_INET6, which `process` has.
bool is_member_of_a_group(pid_t process, int socket, int domain);

}  // namespace pawl::wsp
