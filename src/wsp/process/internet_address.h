// Addresses of IPv4 and IPv6, as sockets have them.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

namespace pawl::wsp {

// 0 where it has none.
std::uint16_t port_in(const sockaddr_storage& address);
// That of all of the machine's.
bool is_any(const sockaddr_storage& address);
// One of version 4 is the same as a socket of version 6 has it; of a link, also by its interface.
bool is_same_host(const sockaddr& one, const sockaddr& other);

}  // namespace pawl::wsp
