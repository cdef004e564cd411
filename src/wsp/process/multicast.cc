#include "wsp/process/multicast.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>

#include "wsp/process/proc.h"

namespace pawl::wsp {

namespace {

bool is_member(int socket, int level, std::uint32_t interface, const sockaddr_storage& group) {
  group_filter asked{};
  asked.gf_interface = interface;
  asked.gf_group = group;
  socklen_t bytes = sizeof(asked);
  return ::getsockopt(socket, level, MCAST_MSFILTER, &asked, &bytes) == 0;
}

// The groups of all sockets: a line for each interface, and its groups indented below.
bool is_member_by_version_4(pid_t process, int socket) {
  std::istringstream lines(read_proc(process, "net/igmp"));
  unsigned interface = 0;
  for (std::string line; std::getline(lines, line);) {
    unsigned number = 0;
    if (!line.starts_with('\t')) {
      if (std::sscanf(line.c_str(), "%u", &number) == 1) interface = number;
      continue;
    }
    if (std::sscanf(line.c_str(), " %x", &number) != 1) continue;
    sockaddr_storage group{};
    auto* const address = reinterpret_cast<sockaddr_in*>(&group);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = number;
    if (is_member(socket, IPPROTO_IP, interface, group)) return true;
  }
  return false;
}

bool is_member_by_version_6(pid_t process, int socket) {
  std::istringstream lines(read_proc(process, "net/igmp6"));
  for (std::string line; std::getline(lines, line);) {
    unsigned interface = 0;
    char digits[2 * sizeof(in6_addr) + 1];
    if (std::sscanf(line.c_str(), "%u %*s %32s", &interface, digits) != 2) continue;
    sockaddr_storage group{};
    auto* const address = reinterpret_cast<sockaddr_in6*>(&group);
    address->sin6_family = AF_INET6;
    for (std::size_t i = 0; i < sizeof(in6_addr); ++i) {
      unsigned byte = 0;
      if (std::sscanf(digits + 2 * i, "%2x", &byte) != 1) break;
      address->sin6_addr.s6_addr[i] = static_cast<std::uint8_t>(byte);
    }
    if (is_member(socket, IPPROTO_IPV6, interface, group)) return true;
  }
  return false;
}

}  // namespace

bool is_member_of_a_group(pid_t process, int socket, int domain) {
  // A socket of IPv6 may join groups of both.
  return is_member_by_version_4(process, socket) ||
         (domain == AF_INET6 && is_member_by_version_6(process, socket));
}

}  // namespace pawl::wsp
