#include "wsp/process/ended_connection.h"

#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "wsp/process/object_owner.h"
#include "wsp/process/program_rights.h"

namespace pawl::wsp {

namespace {

// A handshake by the loopback is over when connect(2) is: what comes later was lost.
constexpr int kHandshakeMsMax = 50;
constexpr const char* kNoneCanBeMade =
    "a connection that was reset cannot be made; where the network has no loopback interface that "
    "carries packets, bring it up (ip link set lo up), or restore with CAP_NET_ADMIN";

Result<Descriptor> ended_local(const SavedProcess& program, const DescriptorFacts& facts) {
  const Result<ProgramRights> rights = ProgramRights::take(program, facts);
  if (!rights.ok()) return rights.status();
  int ends[2];
  if (::socketpair(AF_UNIX, facts.type | SOCK_CLOEXEC, 0, ends) != 0)
    return FailedCall{errno, "a connection that has ended cannot be made"};
  ::close(ends[1]);
  return Descriptor(ends[0]);
}

// Where it is not, what is sent to it is lost.
bool is_loopback_up(int socket) {
  ifreq loopback{};
  std::strncpy(loopback.ifr_name, "lo", sizeof(loopback.ifr_name) - 1);
  errno = ENETDOWN;
  return ::ioctl(socket, SIOCGIFFLAGS, &loopback) == 0 && (loopback.ifr_flags & IFF_UP) != 0;
}

bool becomes(int socket, short ready) {
  pollfd waits{socket, ready, 0};
  const int count = ::poll(&waits, 1, kHandshakeMsMax);
  if (count == 1 && waits.revents == ready) return true;
  if (count >= 0) errno = count == 0 ? ETIMEDOUT : ECONNREFUSED;
  return false;
}

// Of IPv6 where the connection was, and this boot has it.
int family_of(const DescriptorFacts& facts) {
  if (facts.domain != AF_INET6) return AF_INET;
  const Descriptor probe(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return probe.valid() ? AF_INET6 : AF_INET;
}

// A socket of IPv6 by the same address, mapped: the interface may have none of IPv6.
bool connect_stream(int socket, int family, const sockaddr_in& address) {
  if (family != AF_INET6)
    return ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  const int off = 0;
  sockaddr_in6 mapped{};
  mapped.sin6_family = AF_INET6;
  mapped.sin6_port = address.sin_port;
  mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
  std::memcpy(mapped.sin6_addr.s6_addr + 12, &address.sin_addr, sizeof(address.sin_addr));
  return ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0 &&
         ::connect(socket, reinterpret_cast<const sockaddr*>(&mapped), sizeof(mapped)) == 0;
}

// By its other end, which lies here.
bool reset_stream(int family, int socket) {
  constexpr int kType = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  const Descriptor listening(::socket(AF_INET, kType, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (!listening.valid() || !is_loopback_up(listening.get()) ||
      ::bind(listening.get(), generic, bytes) != 0 || ::listen(listening.get(), 1) != 0 ||
      ::getsockname(listening.get(), generic, &bytes) != 0)
    return false;
  if ((!connect_stream(socket, family, address) && errno != EINPROGRESS) ||
      !becomes(socket, POLLOUT) || !becomes(listening.get(), POLLIN))
    return false;
  const Descriptor other(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const linger at_once{1, 0};
  return other.valid() &&
         ::setsockopt(other.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) == 0;
}

// Without a network, but by a privilege.
bool abort_stream(int socket) {
  const int on = 1;
  const int off = 0;
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  if (::setsockopt(socket, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)) != 0 ||
      ::connect(socket, &nobody, sizeof(nobody)) != 0 ||
      ::setsockopt(socket, IPPROTO_TCP, TCP_REPAIR, &off, sizeof(off)) != 0)
    return false;
  ::shutdown(socket, SHUT_RDWR);  // does so, and says that there is no connection
  return true;
}

bool is_ended(const SavedDescriptor& descriptor) {
  return descriptor.facts.kind == static_cast<std::uint32_t>(DescriptorKind::reset) &&
         descriptor.facts.domain != AF_UNIX;
}

bool may_have_to_be_ended(const SavedDescriptor& descriptor) {
  return is_ended(descriptor) || descriptor.facts.protocol == IPPROTO_TCP ||
         descriptor.facts.protocol == IPPROTO_MPTCP;
}

}  // namespace

Result<Descriptor> EndedConnections::make(const DescriptorFacts& facts) {
  if (facts.domain == AF_UNIX) return ended_local(program_, facts);
  const int family = family_of(facts);
  if (failed_with_ == 0) {
    Result<Descriptor> made =
        make_owned_socket(program_, facts, family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (!made.ok() || reset_stream(family, made.value().get())) return made;
    failed_with_ = errno;
  }
  Result<Descriptor> made = make_owned_socket(program_, facts, family, SOCK_STREAM, 0);
  if (!made.ok() || abort_stream(made.value().get())) return made;
  return FailedCall{failed_with_, kNoneCanBeMade};
}

Status check_ended_connections(const SavedProcess& saved) {
  const auto& all = saved.descriptors;
  const auto found = std::find_if(all.begin(), all.end(), is_ended);
  return found == all.end() ? Status{} : EndedConnections(saved).make(found->facts).status();
}

Status foresee_ended_connections(const SavedProcess& saved) {
  const auto& all = saved.descriptors;
  if (std::none_of(all.begin(), all.end(), may_have_to_be_ended)) return {};
  const Descriptor any(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (any.valid() && is_loopback_up(any.get())) return {};
  const int error_number = errno;
  if (any.valid() && abort_stream(any.get())) return {};
  return FailedCall{error_number, kNoneCanBeMade};
}

}  // namespace pawl::wsp
