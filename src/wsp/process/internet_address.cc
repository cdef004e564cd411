#include "wsp/process/internet_address.h"

#include <cstring>
#include <utility>

namespace pawl::wsp {

namespace {

// As a socket of version 6 has it; its interface behind it.
std::pair<in6_addr, std::uint32_t> host_of(const sockaddr& address) {
  in6_addr host{};
  if (address.sa_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
    return {six.sin6_addr, six.sin6_scope_id};
  }
  host.s6_addr[10] = host.s6_addr[11] = 0xff;
  std::memcpy(host.s6_addr + 12, &reinterpret_cast<const sockaddr_in&>(address).sin_addr,
              sizeof(in_addr));
  return {host, 0};
}

}  // namespace

std::uint16_t port_in(const sockaddr_storage& address) {
  // At the same place in both versions.
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

bool is_any(const sockaddr_storage& address) {
  if (address.ss_family != AF_INET6)
    return reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr == htonl(INADDR_ANY);
  return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr) != 0;
}

bool is_same_host(const sockaddr& one, const sockaddr& other) {
  const auto [host, interface] = host_of(one);
  const auto [other_host, other_interface] = host_of(other);
  return std::memcmp(&host, &other_host, sizeof(host)) == 0 && interface == other_interface;
}

}  // namespace pawl::wsp
