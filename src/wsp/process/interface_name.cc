#include "wsp/process/interface_name.h"

#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace pawl::wsp {

namespace {

struct NamedAddress {
  sockaddr_in6 address;
  char interface[IF_NAMESIZE];
};
static_assert(sizeof(NamedAddress) <= sizeof(sockaddr_storage));

bool is_of_a_link(const NamedAddress& named) {
  return named.address.sin6_family == AF_INET6 && named.address.sin6_scope_id != 0;
}

}  // namespace

unsigned number_of_interface(const char (&name)[IF_NAMESIZE]) {
  return ::strnlen(name, IF_NAMESIZE) < IF_NAMESIZE ? ::if_nametoindex(name) : 0;
}

void note_interface(sockaddr_storage& address) {
  NamedAddress named{};
  std::memcpy(&named, &address, sizeof(named));
  if (!is_of_a_link(named)) return;
  ::if_indextoname(named.address.sin6_scope_id, named.interface);
  std::memcpy(&address, &named, sizeof(named));
}

Status find_interface(sockaddr_storage& address) {
  NamedAddress named{};
  std::memcpy(&named, &address, sizeof(named));
  if (!is_of_a_link(named) || named.interface[0] == 0) return {};
  named.address.sin6_scope_id = number_of_interface(named.interface);
  if (named.address.sin6_scope_id == 0) {
    const std::string name(named.interface, ::strnlen(named.interface, IF_NAMESIZE));
    return Status::failure(
        ENODEV, "its address is one of the network interface " + name + ", which is not there");
  }
  std::memcpy(&address, &named, sizeof(named));
  return {};
}

}  // namespace pawl::wsp
