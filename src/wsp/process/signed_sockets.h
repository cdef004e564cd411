// The TCP sockets that only those reach who have a key (TCP_MD5SIG, TCP_AO_ADD_KEY).
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "wsp/process/records.h"

namespace pawl::wsp {

// Of keys of TCP_MD5SIG only sock_diag(7) tells: with CAP_NET_ADMIN, and of sockets that listen. It
// is asked once for all of a family.
class SignedSockets {
 public:
  // False, too, where the kernel does not tell.
  bool contains(int socket, const DescriptorFacts& facts);

 private:
  std::map<int, std::set<std::uint32_t>> inodes_;  // by family
};

}  // namespace pawl::wsp
