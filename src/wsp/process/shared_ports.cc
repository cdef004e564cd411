#include "wsp/process/shared_ports.h"

#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "wsp/process/internet_address.h"
#include "wsp/process/internet_socket.h"

namespace pawl::wsp {

namespace {

bool has_option(const SavedDescriptor& saved, int level, int name) {
  return std::any_of(saved.options.begin(), saved.options.end(), [&](const SocketOption& option) {
    int value = 0;
    std::memcpy(&value, option.value, sizeof(value));
    return option.level == level && option.name == name && value != 0;
  });
}

bool may_reuse(const SavedDescriptor* saved) {
  return has_option(*saved, SOL_SOCKET, SO_REUSEADDR);
}

bool shares_port(const SavedDescriptor* saved) {
  return has_option(*saved, SOL_SOCKET, SO_REUSEPORT);
}

bool has_version_6_only(const SavedDescriptor& saved) {
  return saved.facts.domain == AF_INET6 && has_option(saved, IPPROTO_IPV6, IPV6_V6ONLY);
}

bool have_address_in_common(const SavedDescriptor& one, const SavedDescriptor& other) {
  // The kernel switches that on for each that has an address of version 6 alone.
  if (one.facts.domain != other.facts.domain &&
      (has_version_6_only(one) || has_version_6_only(other)))
    return false;
  const sockaddr_storage& its = one.facts.address;
  const sockaddr_storage& others = other.facts.address;
  return is_any(its) || is_any(others) ||
         is_same_host(reinterpret_cast<const sockaddr&>(its),
                      reinterpret_cast<const sockaddr&>(others));
}

// Of ping's the kernel asks for SO_REUSEADDR alone; a port is shared with one's own user.
bool can_be_bound_beside(const SavedDescriptor& one, const SavedDescriptor& other) {
  const bool is_stream = one.facts.type == SOCK_STREAM;
  if (!is_stream && may_reuse(&one) && may_reuse(&other)) return true;
  const bool is_pings = !is_stream && one.facts.protocol != IPPROTO_UDP;
  return !is_pings && (one.facts.user == other.facts.user || !have_address_in_common(one, other));
}

// The same of two that the kernel does not prefer one of, for the address of a datagram.
std::string what_it_hears(const SavedDescriptor& saved) {
  const DescriptorFacts& facts = saved.facts;
  const auto bytes_of = [](const sockaddr_storage& address, std::uint32_t count) {
    return std::string(reinterpret_cast<const char*>(&address), count);
  };
  std::string text = fmt::format("{} {} ", facts.domain, facts.protocol) +
                     bytes_of(facts.address, facts.address_bytes) +
                     bytes_of(facts.peer, facts.peer_bytes);
  for (const SocketOption& option : saved.options) {
    if (option.level == SOL_SOCKET && option.name == SO_BINDTODEVICE)
      text.append(option.value, option.bytes);
  }
  return text;
}

}  // namespace

SharedPorts::SharedPorts(const SavedProcess& saved) : program_(saved) {
  for (const SavedDescriptor& descriptor : saved.descriptors) {
    if (is_with_port(descriptor)) shared_[port_of(descriptor.facts)].push_back(&descriptor);
  }
  std::erase_if(shared_, [](const auto& one) { return shares_by_options(one.second); });
}

bool SharedPorts::is_with_port(const SavedDescriptor& saved) {
  const DescriptorFacts& facts = saved.facts;
  const auto kind = static_cast<DescriptorKind>(facts.kind);
  // A stream that does not listen shares its address with any other of the program's.
  const bool is_bound = kind == DescriptorKind::listening ||
                        (kind == DescriptorKind::bound && facts.type == SOCK_DGRAM);
  return is_bound && facts.same_as < 0 && (facts.domain == AF_INET || facts.domain == AF_INET6) &&
         port_in(facts.address) != 0;
}

SharedPorts::Port SharedPorts::port_of(const DescriptorFacts& facts) {
  const int protocol = facts.type == SOCK_STREAM       ? IPPROTO_TCP
                       : facts.protocol == IPPROTO_UDP ? IPPROTO_UDP
                                                       : IPPROTO_ICMP;
  return {protocol, port_in(facts.address)};
}

// As they are by now.
bool SharedPorts::shares_by_options(const std::vector<const SavedDescriptor*>& sockets) {
  return sockets.size() < 2 || std::all_of(sockets.begin(), sockets.end(), shares_port) ||
         (sockets.front()->facts.type == SOCK_DGRAM &&
          std::all_of(sockets.begin(), sockets.end(), may_reuse));
}

// To an address that several have, datagrams go to the one bound last, which nothing tells.
Status SharedPorts::check_order() const {
  std::map<std::string, const SavedDescriptor*> first;
  for (const SavedDescriptor& one : program_.descriptors) {
    if (!is_with_port(one) || one.facts.type != SOCK_DGRAM) continue;
    const auto [found, is_first] = first.emplace(what_it_hears(one), &one);
    if (is_first || (shares_port(found->second) && shares_port(&one))) continue;
    return Status::failure(
        ENOTSUP,
        fmt::format("descriptors {} and {} cannot be kept: they have one address, port {}, and "
                    "datagrams go to the one that was bound last, which the kernel does not tell; "
                    "let the program have one of them, or set SO_REUSEPORT for both",
                    found->second->facts.number, one.facts.number, port_in(one.facts.address)));
  }
  return {};
}

Status SharedPorts::check() const {
  PAWL_TRY(check_order());
  for (const auto& [port, sockets] : shared_) {
    for (auto one = sockets.begin(); one != sockets.end(); ++one) {
      const auto other = std::find_if(sockets.begin(), one, [&](const SavedDescriptor* before) {
        return !can_be_bound_beside(*before, **one);
      });
      if (other == one) continue;
      return Status::failure(
          ENOTSUP,
          fmt::format("descriptors {} and {} cannot be kept: they share port {}, which the "
                      "options that they have by now do not let them, so that they could "
                      "not be bound again; let the program keep SO_REUSEADDR switched on",
                      (*other)->facts.number, (*one)->facts.number, port.second));
    }
  }
  return {};
}

Status SharedPorts::check_free(const Port& port) const {
  for (const SavedDescriptor* const one : shared_.at(port)) {
    const Status bound = make_internet_socket(*one, program_, false).status();
    if (!bound.ok())
      return bound.with_text(fmt::format("of the sockets that share port {}, descriptor {}: {}",
                                         port.second, one->facts.number, bound.text()));
  }
  return {};
}

Result<Descriptor> SharedPorts::make(const SavedDescriptor& saved) {
  const Port port = port_of(saved.facts);
  if (!is_with_port(saved) || !shared_.contains(port))
    return make_internet_socket(saved, program_, false);
  std::vector<const SavedDescriptor*>& bound = bound_[port];
  if (bound.empty()) PAWL_TRY(check_free(port));
  const bool is_beside = std::any_of(bound.begin(), bound.end(), [&](const SavedDescriptor* one) {
    return have_address_in_common(*one, saved);
  });
  Result<Descriptor> made = make_internet_socket(saved, program_, is_beside);
  if (!made.ok()) return made;
  const int on = 1;
  ::setsockopt(made.value().get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
  bound.push_back(&saved);
  return made;
}

Status SharedPorts::try_all() {
  std::vector<Descriptor> held;
  for (const auto& [port, sockets] : shared_) {
    for (const SavedDescriptor* const one : sockets) {
      Result<Descriptor> made = make(*one);
      // More than this command may have open: it does not go further.
      if (made.status().error_number() == EMFILE) return {};
      if (!made.ok())
        return made.status().with_text(fmt::format("descriptor {} cannot be opened again: {}",
                                                   one->facts.number, made.status().text()));
      held.push_back(std::move(made.value()));
    }
  }
  return {};
}

}  // namespace pawl::wsp
