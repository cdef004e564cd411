#include "wsp/process/ended_connection.h"

#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace pawl::wsp {

namespace {

constexpr timeval kConnectTimeMax{1, 0};

Descriptor ended_local(int type) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) return {};
  ::close(ends[1]);
  return Descriptor(ends[0]);
}

// Where it is not, what is sent to it is lost, and connect(2) waits for minutes.
bool is_loopback_up(int socket) {
  ifreq loopback{};
  std::strncpy(loopback.ifr_name, "lo", sizeof(loopback.ifr_name) - 1);
  errno = ENETDOWN;
  return ::ioctl(socket, SIOCGIFFLAGS, &loopback) == 0 && (loopback.ifr_flags & IFF_UP) != 0;
}

bool set_send_time(int socket, timeval time) {
  return ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)) == 0;
}

// By its other end, which lies here.
Descriptor reset_stream() {
  const Descriptor listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (!listening.valid() || !is_loopback_up(listening.get()) ||
      ::bind(listening.get(), generic, bytes) != 0 || ::listen(listening.get(), 1) != 0 ||
      ::getsockname(listening.get(), generic, &bytes) != 0)
    return {};
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // Rules for packets may lose them, too.
  if (!socket.valid() || !set_send_time(socket.get(), kConnectTimeMax) ||
      ::connect(socket.get(), generic, bytes) != 0 || !set_send_time(socket.get(), {}))
    return {};
  const Descriptor other(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const linger at_once{1, 0};
  if (!other.valid() ||
      ::setsockopt(other.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) != 0)
    return {};
  return socket;
}

// Without a network, but by a privilege.
Descriptor aborted_stream() {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  const int off = 0;
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  if (!socket.valid() ||
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)) != 0 ||
      ::connect(socket.get(), &nobody, sizeof(nobody)) != 0 ||
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_REPAIR, &off, sizeof(off)) != 0)
    return {};
  ::shutdown(socket.get(), SHUT_RDWR);  // does so, and says that there is no connection
  return socket;
}

bool is_ended(const SavedDescriptor& descriptor) {
  return descriptor.facts.kind == static_cast<std::uint32_t>(DescriptorKind::reset);
}

}  // namespace

Result<Descriptor> make_ended_connection(const DescriptorFacts& facts) {
  Descriptor made = facts.domain == AF_UNIX ? ended_local(facts.type) : reset_stream();
  const int error_number = errno;
  if (!made.valid() && facts.domain != AF_UNIX) made = aborted_stream();
  if (made.valid()) return made;
  return FailedCall{error_number,
                    "a connection that was reset cannot be made; where the network has no loopback "
                    "interface, bring it up (ip link set lo up), or restore with CAP_NET_ADMIN"};
}

Status check_ended_connections(const SavedProcess& saved) {
  const auto& all = saved.descriptors;
  const auto found = std::find_if(all.begin(), all.end(), [](const SavedDescriptor& one) {
    return is_ended(one) && one.facts.domain != AF_UNIX;
  });
  return found == all.end() ? Status{} : make_ended_connection(found->facts).status();
}

}  // namespace pawl::wsp
