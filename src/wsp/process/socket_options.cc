#include "wsp/process/socket_options.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "medium/descriptor.h"
#include "wsp/process/interface_name.h"

namespace pawl::wsp {

namespace {

enum class Weight {
  plain,         // set again where that is possible
  always,        // also where it is as in a new socket: its default, or another option, may change
  keeps_others,  // out of the socket, and from what it sends: set again, or the restore fails
};

enum class Value {
  bytes,
  buffer,             // the kernel answers twice what it was told, and what it has tuned
  interface,          // an interface's number, which may be another in the next boot
  network_interface,  // the same, in the order of the network
};

struct Option {
  int level;
  int name;
  const char* text;
  Weight weight = Weight::plain;
  Value value = Value::bytes;
};

// Which Debian 12 does not name.
constexpr int kSoPassPidfd = 76;
constexpr int kSoReceivePriority = 82;
constexpr int kSoPassRights = 83;
constexpr int kIpLocalPortRange = 51;
constexpr int kTcpRtoMaxMs = 44;
constexpr int kTcpRtoMinUs = 45;
constexpr int kTcpDelackMaxUs = 46;

constexpr std::uint32_t kSendBufferWasSet = 1;     // SO_BUF_LOCK
constexpr std::uint32_t kReceiveBufferWasSet = 2;  // SO_BUF_LOCK

// All that socket(7), ip(7), ipv6(7), tcp(7) and udp(7) let a program set and read back, but for
// what docs/wsp-run.md names as lost.
constexpr Option kOptions[] = {
    // It chooses a priority, too, which the program may have changed since.
    {IPPROTO_IP, IP_TOS, "IP_TOS"},
    {SOL_SOCKET, SO_PRIORITY, "SO_PRIORITY", Weight::always},
    {SOL_SOCKET, SO_DEBUG, "SO_DEBUG"},
    {SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR", Weight::always},
    {SOL_SOCKET, SO_REUSEPORT, "SO_REUSEPORT", Weight::always},
    {SOL_SOCKET, SO_DONTROUTE, "SO_DONTROUTE", Weight::keeps_others},
    {SOL_SOCKET, SO_BROADCAST, "SO_BROADCAST"},
    {SOL_SOCKET, SO_SNDBUF, "SO_SNDBUF", Weight::plain, Value::buffer},
    {SOL_SOCKET, SO_RCVBUF, "SO_RCVBUF", Weight::plain, Value::buffer},
    {SOL_SOCKET, SO_KEEPALIVE, "SO_KEEPALIVE"},
    {SOL_SOCKET, SO_OOBINLINE, "SO_OOBINLINE"},
    {SOL_SOCKET, SO_NO_CHECK, "SO_NO_CHECK"},
    {SOL_SOCKET, SO_LINGER, "SO_LINGER"},
    {SOL_SOCKET, SO_PASSCRED, "SO_PASSCRED"},
    {SOL_SOCKET, SO_RCVLOWAT, "SO_RCVLOWAT"},
    {SOL_SOCKET, SO_RCVTIMEO, "SO_RCVTIMEO"},
    {SOL_SOCKET, SO_SNDTIMEO, "SO_SNDTIMEO"},
    {SOL_SOCKET, SO_BINDTODEVICE, "SO_BINDTODEVICE", Weight::keeps_others},
    {SOL_SOCKET, SO_TIMESTAMP_OLD, "SO_TIMESTAMP"},
    {SOL_SOCKET, SO_TIMESTAMPNS_OLD, "SO_TIMESTAMPNS"},
    {SOL_SOCKET, SO_TIMESTAMPING_OLD, "SO_TIMESTAMPING"},
    {SOL_SOCKET, SO_TIMESTAMP_NEW, "SO_TIMESTAMP_NEW"},
    {SOL_SOCKET, SO_TIMESTAMPNS_NEW, "SO_TIMESTAMPNS_NEW"},
    {SOL_SOCKET, SO_TIMESTAMPING_NEW, "SO_TIMESTAMPING_NEW"},
    {SOL_SOCKET, SO_PASSSEC, "SO_PASSSEC"},
    {SOL_SOCKET, SO_MARK, "SO_MARK", Weight::keeps_others},
    {SOL_SOCKET, SO_RXQ_OVFL, "SO_RXQ_OVFL"},
    {SOL_SOCKET, SO_WIFI_STATUS, "SO_WIFI_STATUS"},
    {SOL_SOCKET, SO_PEEK_OFF, "SO_PEEK_OFF"},
    {SOL_SOCKET, SO_SELECT_ERR_QUEUE, "SO_SELECT_ERR_QUEUE"},
    {SOL_SOCKET, SO_BUSY_POLL, "SO_BUSY_POLL"},
    {SOL_SOCKET, SO_MAX_PACING_RATE, "SO_MAX_PACING_RATE"},
    {SOL_SOCKET, SO_ZEROCOPY, "SO_ZEROCOPY"},
    {SOL_SOCKET, SO_TXTIME, "SO_TXTIME"},
    {SOL_SOCKET, SO_PREFER_BUSY_POLL, "SO_PREFER_BUSY_POLL"},
    {SOL_SOCKET, SO_BUSY_POLL_BUDGET, "SO_BUSY_POLL_BUDGET"},
    {SOL_SOCKET, SO_TXREHASH, "SO_TXREHASH"},
    {SOL_SOCKET, SO_RCVMARK, "SO_RCVMARK"},
    {SOL_SOCKET, kSoPassPidfd, "SO_PASSPIDFD"},
    {SOL_SOCKET, kSoReceivePriority, "SO_RCVPRIORITY"},
    {SOL_SOCKET, kSoPassRights, "SO_PASSRIGHTS"},

    {IPPROTO_IP, IP_TTL, "IP_TTL", Weight::keeps_others},
    {IPPROTO_IP, IP_HDRINCL, "IP_HDRINCL"},
    {IPPROTO_IP, IP_RECVOPTS, "IP_RECVOPTS"},
    {IPPROTO_IP, IP_RETOPTS, "IP_RETOPTS"},
    {IPPROTO_IP, IP_PKTINFO, "IP_PKTINFO"},
    {IPPROTO_IP, IP_MTU_DISCOVER, "IP_MTU_DISCOVER"},
    {IPPROTO_IP, IP_RECVERR, "IP_RECVERR"},
    {IPPROTO_IP, IP_RECVTTL, "IP_RECVTTL"},
    {IPPROTO_IP, IP_RECVTOS, "IP_RECVTOS"},
    {IPPROTO_IP, IP_FREEBIND, "IP_FREEBIND", Weight::keeps_others},
    {IPPROTO_IP, IP_PASSSEC, "IP_PASSSEC"},
    {IPPROTO_IP, IP_TRANSPARENT, "IP_TRANSPARENT", Weight::keeps_others},
    {IPPROTO_IP, IP_RECVORIGDSTADDR, "IP_RECVORIGDSTADDR"},
    {IPPROTO_IP, IP_MINTTL, "IP_MINTTL", Weight::keeps_others},
    {IPPROTO_IP, IP_NODEFRAG, "IP_NODEFRAG"},
    {IPPROTO_IP, IP_CHECKSUM, "IP_CHECKSUM"},
    {IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, "IP_BIND_ADDRESS_NO_PORT"},
    {IPPROTO_IP, IP_RECVFRAGSIZE, "IP_RECVFRAGSIZE"},
    {IPPROTO_IP, IP_RECVERR_RFC4884, "IP_RECVERR_RFC4884"},
    {IPPROTO_IP, IP_MULTICAST_IF, "IP_MULTICAST_IF", Weight::keeps_others},
    {IPPROTO_IP, IP_MULTICAST_TTL, "IP_MULTICAST_TTL", Weight::keeps_others},
    {IPPROTO_IP, IP_MULTICAST_LOOP, "IP_MULTICAST_LOOP"},
    {IPPROTO_IP, IP_MULTICAST_ALL, "IP_MULTICAST_ALL", Weight::keeps_others},
    {IPPROTO_IP, IP_UNICAST_IF, "IP_UNICAST_IF", Weight::keeps_others, Value::network_interface},
    {IPPROTO_IP, kIpLocalPortRange, "IP_LOCAL_PORT_RANGE"},

    {IPPROTO_IPV6, IPV6_UNICAST_HOPS, "IPV6_UNICAST_HOPS", Weight::keeps_others},
    {IPPROTO_IPV6, IPV6_MULTICAST_IF, "IPV6_MULTICAST_IF", Weight::keeps_others, Value::interface},
    {IPPROTO_IPV6, IPV6_MULTICAST_HOPS, "IPV6_MULTICAST_HOPS", Weight::keeps_others},
    {IPPROTO_IPV6, IPV6_MULTICAST_LOOP, "IPV6_MULTICAST_LOOP"},
    {IPPROTO_IPV6, IPV6_MULTICAST_ALL, "IPV6_MULTICAST_ALL", Weight::keeps_others},
    {IPPROTO_IPV6, IPV6_MTU_DISCOVER, "IPV6_MTU_DISCOVER"},
    {IPPROTO_IPV6, IPV6_RECVERR, "IPV6_RECVERR"},
    {IPPROTO_IPV6, IPV6_V6ONLY, "IPV6_V6ONLY", Weight::always},
    {IPPROTO_IPV6, IPV6_RECVERR_RFC4884, "IPV6_RECVERR_RFC4884"},
    {IPPROTO_IPV6, IPV6_2292PKTINFO, "IPV6_2292PKTINFO"},
    {IPPROTO_IPV6, IPV6_2292HOPOPTS, "IPV6_2292HOPOPTS"},
    {IPPROTO_IPV6, IPV6_2292DSTOPTS, "IPV6_2292DSTOPTS"},
    {IPPROTO_IPV6, IPV6_2292RTHDR, "IPV6_2292RTHDR"},
    {IPPROTO_IPV6, IPV6_2292HOPLIMIT, "IPV6_2292HOPLIMIT"},
    {IPPROTO_IPV6, IPV6_RECVPKTINFO, "IPV6_RECVPKTINFO"},
    {IPPROTO_IPV6, IPV6_RECVHOPLIMIT, "IPV6_RECVHOPLIMIT"},
    {IPPROTO_IPV6, IPV6_RECVHOPOPTS, "IPV6_RECVHOPOPTS"},
    {IPPROTO_IPV6, IPV6_RECVRTHDR, "IPV6_RECVRTHDR"},
    {IPPROTO_IPV6, IPV6_RECVDSTOPTS, "IPV6_RECVDSTOPTS"},
    {IPPROTO_IPV6, IPV6_RECVPATHMTU, "IPV6_RECVPATHMTU"},
    {IPPROTO_IPV6, IPV6_DONTFRAG, "IPV6_DONTFRAG"},
    {IPPROTO_IPV6, IPV6_RECVTCLASS, "IPV6_RECVTCLASS"},
    {IPPROTO_IPV6, IPV6_TCLASS, "IPV6_TCLASS"},
    {IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, "IPV6_AUTOFLOWLABEL"},
    {IPPROTO_IPV6, IPV6_ADDR_PREFERENCES, "IPV6_ADDR_PREFERENCES"},
    {IPPROTO_IPV6, IPV6_MINHOPCOUNT, "IPV6_MINHOPCOUNT", Weight::keeps_others},
    {IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, "IPV6_RECVORIGDSTADDR"},
    {IPPROTO_IPV6, IPV6_TRANSPARENT, "IPV6_TRANSPARENT", Weight::keeps_others},
    {IPPROTO_IPV6, IPV6_UNICAST_IF, "IPV6_UNICAST_IF", Weight::keeps_others,
     Value::network_interface},
    {IPPROTO_IPV6, IPV6_RECVFRAGSIZE, "IPV6_RECVFRAGSIZE"},
    {IPPROTO_IPV6, IPV6_FREEBIND, "IPV6_FREEBIND", Weight::keeps_others},

    {IPPROTO_TCP, TCP_NODELAY, "TCP_NODELAY"},
    {IPPROTO_TCP, TCP_MAXSEG, "TCP_MAXSEG"},
    {IPPROTO_TCP, TCP_CORK, "TCP_CORK"},
    {IPPROTO_TCP, TCP_KEEPIDLE, "TCP_KEEPIDLE"},
    {IPPROTO_TCP, TCP_KEEPINTVL, "TCP_KEEPINTVL"},
    {IPPROTO_TCP, TCP_KEEPCNT, "TCP_KEEPCNT"},
    {IPPROTO_TCP, TCP_SYNCNT, "TCP_SYNCNT"},
    {IPPROTO_TCP, TCP_LINGER2, "TCP_LINGER2"},
    {IPPROTO_TCP, TCP_DEFER_ACCEPT, "TCP_DEFER_ACCEPT"},
    {IPPROTO_TCP, TCP_WINDOW_CLAMP, "TCP_WINDOW_CLAMP"},
    {IPPROTO_TCP, TCP_CONGESTION, "TCP_CONGESTION"},
    {IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, "TCP_THIN_LINEAR_TIMEOUTS"},
    {IPPROTO_TCP, TCP_USER_TIMEOUT, "TCP_USER_TIMEOUT"},
    {IPPROTO_TCP, TCP_FASTOPEN, "TCP_FASTOPEN"},
    {IPPROTO_TCP, TCP_NOTSENT_LOWAT, "TCP_NOTSENT_LOWAT"},
    {IPPROTO_TCP, TCP_SAVE_SYN, "TCP_SAVE_SYN"},
    {IPPROTO_TCP, TCP_FASTOPEN_CONNECT, "TCP_FASTOPEN_CONNECT"},
    {IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, "TCP_FASTOPEN_NO_COOKIE"},
    {IPPROTO_TCP, TCP_INQ, "TCP_INQ"},
    {IPPROTO_TCP, TCP_TX_DELAY, "TCP_TX_DELAY"},
    {IPPROTO_TCP, kTcpRtoMaxMs, "TCP_RTO_MAX_MS"},
    {IPPROTO_TCP, kTcpRtoMinUs, "TCP_RTO_MIN_US"},
    {IPPROTO_TCP, kTcpDelackMaxUs, "TCP_DELACK_MAX_US"},

    {IPPROTO_UDP, UDP_CORK, "UDP_CORK"},
    {IPPROTO_UDP, UDP_ENCAP, "UDP_ENCAP"},
    {IPPROTO_UDP, UDP_NO_CHECK6_TX, "UDP_NO_CHECK6_TX"},
    {IPPROTO_UDP, UDP_NO_CHECK6_RX, "UDP_NO_CHECK6_RX"},
    {IPPROTO_UDP, UDP_SEGMENT, "UDP_SEGMENT"},
    {IPPROTO_UDP, UDP_GRO, "UDP_GRO"},
};

bool concerns(const Option& option, const DescriptorFacts& facts) {
  switch (option.level) {
    case IPPROTO_IP:
      return facts.domain == AF_INET || facts.domain == AF_INET6;
    case IPPROTO_IPV6:
      return facts.domain == AF_INET6;
    case IPPROTO_TCP:
    case IPPROTO_UDP:
      return facts.domain != AF_UNIX &&
             (facts.protocol == option.level ||
              (facts.protocol == IPPROTO_MPTCP && option.level == IPPROTO_TCP));
    default:
      return true;
  }
}

const Option* find_option(const SocketOption& saved) {
  const auto* const found =
      std::find_if(std::begin(kOptions), std::end(kOptions), [&](const Option& option) {
        return option.level == saved.level && option.name == saved.name;
      });
  return found == std::end(kOptions) ? nullptr : found;
}

bool is_same(const SocketOption& one, const SocketOption& other) {
  return one.level == other.level && one.name == other.name && one.bytes == other.bytes &&
         std::memcmp(one.value, other.value, one.bytes) == 0;
}

// False where it has none, or not in this kernel.
bool read_option(int socket, const Option& option, SocketOption& into) {
  into = {option.level, option.name, 0, {}};
  socklen_t bytes = sizeof(into.value);
  if (::getsockopt(socket, option.level, option.name, into.value, &bytes) != 0 || bytes == 0)
    return false;
  into.bytes = bytes;
  return true;
}

std::uint32_t number_in(const SocketOption& option) {
  std::uint32_t number = 0;
  std::memcpy(&number, option.value, sizeof(number));
  return number;
}

void set_number(SocketOption& option, std::uint32_t number) {
  std::memcpy(option.value, &number, sizeof(number));
}

// Before Linux 5.14 nothing tells who has set a buffer: then it is other than a new one's.
bool was_set(int socket, const SocketOption& buffer, const std::vector<SocketOption>& fresh) {
  std::uint32_t locks = 0;
  socklen_t bytes = sizeof(locks);
  if (::getsockopt(socket, SOL_SOCKET, SO_BUF_LOCK, &locks, &bytes) == 0)
    return (locks & (buffer.name == SO_SNDBUF ? kSendBufferWasSet : kReceiveBufferWasSet)) != 0;
  return std::none_of(fresh.begin(), fresh.end(),
                      [&](const SocketOption& one) { return is_same(one, buffer); });
}

// The interface's name lies behind its number.
void add_interface_name(const Option& option, SocketOption& saved) {
  static_assert(sizeof(saved.value) == sizeof(std::uint32_t) + IF_NAMESIZE);
  const std::uint32_t number = number_in(saved);
  ::if_indextoname(option.value == Value::network_interface ? ntohl(number) : number,
                   saved.value + sizeof(number));
}

// False where no interface has the name any more.
bool find_interface_of(const Option& option, SocketOption& saved) {
  char name[IF_NAMESIZE];
  std::memcpy(name, saved.value + sizeof(std::uint32_t), sizeof(name));
  if (number_in(saved) == 0 || name[0] == 0) return true;
  const std::uint32_t number = number_of_interface(name);
  set_number(saved, option.value == Value::network_interface ? htonl(number) : number);
  return number != 0;
}

bool set_option(int socket, const SocketOption& option, int name) {
  return ::setsockopt(socket, option.level, name, option.value, option.bytes) == 0;
}

bool give_option(int socket, const Option& option, SocketOption saved) {
  if (option.value == Value::buffer) {
    // Beyond the system's bound with privileges alone, as the program may have had them.
    return set_option(socket, saved, saved.name == SO_SNDBUF ? SO_SNDBUFFORCE : SO_RCVBUFFORCE) ||
           set_option(socket, saved, saved.name);
  }
  if (option.value != Value::bytes && !find_interface_of(option, saved)) {
    errno = ENODEV;
    return false;
  }
  SocketOption present{};
  return (read_option(socket, option, present) && is_same(present, saved)) ||
         set_option(socket, saved, saved.name);
}

}  // namespace

const std::vector<SocketOption>& SocketOptionReader::of_a_new(const DescriptorFacts& facts) {
  const auto [found, is_first] =
      new_.try_emplace(std::tuple(facts.domain, facts.type, facts.protocol));
  if (!is_first) return found->second;
  const Descriptor socket(::socket(facts.domain, facts.type | SOCK_CLOEXEC, facts.protocol));
  SocketOption value{};
  for (const Option& option : kOptions) {
    if (socket.valid() && concerns(option, facts) && read_option(socket.get(), option, value))
      found->second.push_back(value);
  }
  return found->second;
}

void SocketOptionReader::read(int socket, SavedDescriptor& into) {
  const std::vector<SocketOption>& fresh = of_a_new(into.facts);
  SocketOption value{};
  for (const Option& option : kOptions) {
    if (!concerns(option, into.facts) || !read_option(socket, option, value)) continue;
    if (option.value == Value::buffer) {
      if (!was_set(socket, value, fresh)) continue;
      set_number(value, number_in(value) / 2);
    } else if (option.weight != Weight::always &&
               std::any_of(fresh.begin(), fresh.end(),
                           [&](const SocketOption& one) { return is_same(one, value); })) {
      continue;
    }
    if (option.value == Value::interface || option.value == Value::network_interface)
      add_interface_name(option, value);
    into.options.push_back(value);
  }
}

Status give_socket_options(const SavedDescriptor& descriptor, int socket) {
  for (const SocketOption& saved : descriptor.options) {
    const Option* const option = find_option(saved);
    if (option == nullptr || give_option(socket, *option, saved)) continue;
    if (option->weight == Weight::keeps_others) {
      return FailedCall{errno, fmt::format("its socket option {} cannot be set as it was, which "
                                           "may take CAP_NET_ADMIN or an interface",
                                           option->text)};
    }
  }
  return {};
}

}  // namespace pawl::wsp
