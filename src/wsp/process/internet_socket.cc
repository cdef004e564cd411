#include "wsp/process/internet_socket.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "wsp/process/interface_name.h"
#include "wsp/process/internet_address.h"
#include "wsp/process/object_owner.h"
#include "wsp/process/socket_options.h"

namespace pawl::wsp {

namespace {

// One with an address may have no port yet (IP_BIND_ADDRESS_NO_PORT).
bool has_address(const DescriptorFacts& facts) {
  return facts.address_bytes != 0 && (port_in(facts.address) != 0 || !is_any(facts.address));
}

// Where it had no port none is chosen, whatever became of that option since.
bool bind_to(int socket, const sockaddr_storage& address, socklen_t bytes) {
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  if (port_in(address) != 0) return ::bind(socket, generic, bytes) == 0;
  const int on = 1;
  int before = 0;
  socklen_t before_bytes = sizeof(before);
  if (::getsockopt(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &before, &before_bytes) != 0 ||
      ::setsockopt(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) != 0)
    return false;
  const bool is_bound = ::bind(socket, generic, bytes) == 0;
  const int error_number = errno;
  ::setsockopt(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &before, sizeof(before));
  errno = error_number;
  return is_bound;
}

bool is_internet_stream(const DescriptorFacts& facts) {
  return (facts.domain == AF_INET || facts.domain == AF_INET6) && facts.type == SOCK_STREAM;
}

// Whether the machine has it, be it that it cannot be used yet.
bool is_of_this_machine(const sockaddr& address) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return true;
  bool is_found = false;
  for (const ifaddrs* one = all; one != nullptr && !is_found; one = one->ifa_next) {
    if (one->ifa_addr == nullptr ||
        (one->ifa_addr->sa_family != AF_INET && one->ifa_addr->sa_family != AF_INET6))
      continue;
    is_found = is_same_host(address, *one->ifa_addr);
  }
  ::freeifaddrs(all);
  return is_found;
}

// The address from which its peer is reached, with the port that it had.
Result<sockaddr_storage> source_of(const SavedDescriptor& saved, const SavedProcess& program) {
  const DescriptorFacts& facts = saved.facts;
  const Result<Descriptor> made =
      make_owned_socket(program, facts, facts.domain, facts.type, facts.protocol);
  if (!made.ok()) return made.status();
  const Descriptor& probe = made.value();
  PAWL_TRY(give_socket_options(saved, probe.get()));
  sockaddr_storage peer = facts.peer;
  PAWL_TRY(find_interface(peer));
  sockaddr_storage source{};
  socklen_t bytes = sizeof(source);
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&peer), facts.peer_bytes) != 0 ||
      ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&source), &bytes) != 0)
    return FailedCall{errno, "its address is not there any more, and its peer cannot be reached"};
  // At the same place in both versions.
  reinterpret_cast<sockaddr_in&>(source).sin_port =
      reinterpret_cast<const sockaddr_in&>(facts.address).sin_port;
  return source;
}

Status bind_again(const SavedDescriptor& saved, const SavedProcess& program, int socket) {
  const DescriptorFacts& facts = saved.facts;
  if (!has_address(facts)) return {};
  sockaddr_storage address = facts.address;
  PAWL_TRY(find_interface(address));
  const auto& generic = reinterpret_cast<const sockaddr&>(address);
  if (bind_to(socket, address, facts.address_bytes)) return {};
  if (errno == EADDRNOTAVAIL && is_of_this_machine(generic)) {
    return Status::failure(EADDRNOTAVAIL,
                           "its address is there, but cannot be used yet (IPv6 looks for "
                           "duplicates, or its interface is down); try again");
  }
  // The kernel chose it by the way to the peer, or the program did, which nothing tells.
  if (errno == EADDRNOTAVAIL && facts.peer_bytes != 0) {
    const Result<sockaddr_storage> source = source_of(saved, program);
    if (!source.ok()) return source.status();
    address = source.value();
    if (bind_to(socket, address, facts.address_bytes)) return {};
  }
  const int error_number = errno;
  return FailedCall{error_number, with_advice("its address cannot be had", error_number, facts)};
}

// With SO_REUSEADDR, which has a stream share its address until give_reuse().
Result<Descriptor> make_unbound(const SavedDescriptor& saved, const SavedProcess& program) {
  const DescriptorFacts& facts = saved.facts;
  const int non_blocking = static_cast<int>(facts.flags & O_NONBLOCK);
  Result<Descriptor> made =
      make_owned_socket(program, facts, facts.domain, facts.type | non_blocking, facts.protocol);
  if (!made.ok()) return made;
  const int socket = made.value().get();
  PAWL_TRY(give_socket_options(saved, socket));
  // Before it is bound: a port is shared with sockets of the same user.
  PAWL_TRY(give_owner(program, facts, socket));
  // What was left of the program's connections must not keep the address from it.  Of datagrams
  // nothing is left, and whoever else binds the address would get them.
  const int on = 1;
  if (facts.type == SOCK_STREAM) ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  return made;
}

}  // namespace

std::string with_advice(const std::string& what, int error_number, const DescriptorFacts& facts) {
  if (error_number != EADDRINUSE || (facts.domain != AF_UNIX && facts.type != SOCK_STREAM))
    return what;
  const char* const connection =
      facts.domain == AF_UNIX ? ""
                              : ", or, for a minute, a connection that has ended (try again then)";
  return what +
         "; another program has it (also one that listened there first and handed it on: stop "
         "that, or its .socket unit)" +
         connection;
}

Result<Descriptor> make_internet_socket(const SavedDescriptor& saved, const SavedProcess& program,
                                        bool shares_port) {
  Result<Descriptor> made = make_unbound(saved, program);
  if (!made.ok()) return made;
  const int on = 1;
  if (shares_port) ::setsockopt(made.value().get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
  PAWL_TRY(bind_again(saved, program, made.value().get()));
  return made;
}

Status connect_to_peer(const DescriptorFacts& facts, int socket) {
  sockaddr_storage peer = facts.peer;
  PAWL_TRY(find_interface(peer));
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&peer), facts.peer_bytes) == 0) return {};
  const bool has_no_way = errno == ENETUNREACH || errno == EHOSTUNREACH || errno == ENETDOWN;
  return FailedCall{errno, has_no_way
                               ? "a socket cannot be connected: there is no way to its peer by "
                                 "now; have the network up first, and try again"
                               : "a socket cannot be connected"};
}

Status check_bound_socket(const SavedDescriptor& saved, const SavedProcess& program) {
  if (is_internet_stream(saved.facts)) return make_internet_socket(saved, program, false).status();
  const Result<Descriptor> made = make_unbound(saved, program);
  if (!made.ok() || saved.facts.domain == AF_UNIX || saved.facts.peer_bytes == 0)
    return made.status();
  // By any port: what others send to its own is not for this one.
  SavedDescriptor with_any_port = saved;
  reinterpret_cast<sockaddr_in&>(with_any_port.facts.address).sin_port = 0;
  PAWL_TRY(bind_again(with_any_port, program, made.value().get()));
  return connect_to_peer(saved.facts, made.value().get());
}

Status check_unshared_address(const SavedDescriptor& saved, const SavedProcess& program) {
  if (!is_internet_stream(saved.facts)) return {};
  const Result<Descriptor> made = make_unbound(saved, program);
  if (!made.ok()) return made.status();
  const int off = 0;
  ::setsockopt(made.value().get(), SOL_SOCKET, SO_REUSEPORT, &off, sizeof(off));
  Status bound = bind_again(saved, program, made.value().get());
  if (bound.error_number() != EADDRINUSE) return bound;
  return Status::failure(EADDRINUSE,
                         "another program shares its address (SO_REUSEPORT), and would get some of "
                         "its connections, which the restore itself does not refuse; stop that, or "
                         "its .socket unit");
}

}  // namespace pawl::wsp
