#include "wsp/process/internet_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "wsp/process/interface_name.h"
#include "wsp/process/object_owner.h"
#include "wsp/process/socket_options.h"

namespace pawl::wsp {

namespace {

bool has_address(const DescriptorFacts& facts) {
  const auto* const address = reinterpret_cast<const sockaddr_in*>(&facts.address);
  return facts.address_bytes != 0 && address->sin_port != 0;
}

void make_wildcard(sockaddr_storage& address) {
  if (address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&address)->sin6_addr = in6addr_any;
  } else {
    reinterpret_cast<sockaddr_in*>(&address)->sin_addr.s_addr = htonl(INADDR_ANY);
  }
}

Status bind_again(const DescriptorFacts& facts, int socket) {
  if (!has_address(facts)) return {};
  sockaddr_storage address = facts.address;
  PAWL_TRY(find_interface(address));
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(socket, generic, facts.address_bytes) == 0) return {};
  // The kernel chose it by the way to the peer, or the program did, which nothing tells.
  if (errno == EADDRNOTAVAIL && facts.peer_bytes != 0) {
    make_wildcard(address);
    if (::bind(socket, generic, facts.address_bytes) == 0) return {};
  }
  const bool may_be_of_a_connection = errno == EADDRINUSE && facts.type == SOCK_STREAM;
  return FailedCall{
      errno, may_be_of_a_connection
                 ? "its address cannot be had; another program has it (also one that listened "
                   "there first and handed it on: stop that, or its .socket unit), or, for a "
                   "minute, a connection that has ended (try again then)"
                 : "its address cannot be had"};
}

}  // namespace

Result<Descriptor> make_internet_socket(const SavedDescriptor& saved) {
  const DescriptorFacts& facts = saved.facts;
  const int non_blocking = static_cast<int>(facts.flags & O_NONBLOCK);
  Descriptor made(::socket(facts.domain, facts.type | non_blocking | SOCK_CLOEXEC, facts.protocol));
  if (!made.valid()) return FailedCall{errno, "a socket"};
  PAWL_TRY(give_socket_options(saved, made.get()));
  // Before it is bound: a port is shared with sockets of the same user.
  PAWL_TRY(give_owner(facts, made.get()));
  // What was left of the program's connections must not keep the address from it.  Of datagrams
  // nothing is left, and whoever else binds the address would get them.
  const int on = 1;
  if (facts.type == SOCK_STREAM)
    ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  PAWL_TRY(bind_again(facts, made.get()));
  return made;
}

Status check_internet_socket(const SavedDescriptor& saved) {
  const bool is_internet = saved.facts.domain == AF_INET || saved.facts.domain == AF_INET6;
  if (!is_internet || saved.facts.type != SOCK_STREAM) return {};
  return make_internet_socket(saved).status();
}

}  // namespace pawl::wsp
