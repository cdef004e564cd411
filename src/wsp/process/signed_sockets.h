// The TCP sockets that only those reach who have a key (TCP_MD5SIG, TCP_AO_ADD_KEY).
#pragma once

#include <cstdint>
#include <map>

#include "medium/descriptor.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// not_known: the kernel names others that share its address, and not this one.
enum class SocketKeys { none, some, not_known };

// Of keys of TCP_MD5SIG only sock_diag(7) tells: with CAP_NET_ADMIN, and of sockets that listen.
// It is asked about one address, however many sockets the machine has.
class SignedSockets {
 public:
  // None, too, where the kernel does not tell.
  SocketKeys judge(int socket, const DescriptorFacts& facts);

 private:
  SocketKeys find(int socket, const DescriptorFacts& facts);

  Descriptor netlink_;
  std::map<std::uint32_t, bool> known_;  // by inode, whether it has keys
};

}  // namespace pawl::wsp
