#include "wsp/process/network.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>

#include "medium/descriptor.h"

namespace pawl::wsp {

namespace {

// 0: the kernel does not tell.
std::uint64_t cookie_of(int socket) {
  std::uint64_t cookie = 0;
  socklen_t bytes = sizeof(cookie);
  return ::getsockopt(socket, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &bytes) == 0 ? cookie : 0;
}

std::uint64_t our_cookie() {
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return cookie_of(socket.get());
}

bool is_of_our_network(int socket) {
  static const std::uint64_t ours = our_cookie();  // this process does not leave its network
  if (ours != 0) return cookie_of(socket) == ours;
  const Descriptor network(::ioctl(socket, SIOCGSKNS));
  struct stat its{};
  struct stat our{};
  return network.valid() && ::fstat(network.get(), &its) == 0 &&
         ::stat("/proc/self/ns/net", &our) == 0 && its.st_ino == our.st_ino &&
         its.st_dev == our.st_dev;
}

}  // namespace

Status check_network(int socket) {
  if (is_of_our_network(socket)) return {};
  return Status::failure(ENOTSUP,
                         "a socket of another network namespace than the supervisor's (or of a "
                         "kernel before Linux 5.14, which tells that with CAP_NET_ADMIN alone)");
}

}  // namespace pawl::wsp
