// The TCP sockets that only those reach who have a key (TCP_MD5SIG, TCP_AO_ADD_KEY).
#pragma once

#include <cstdint>
#include <map>

#include "medium/descriptor.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// not_known: more share its port than a save asks about.
enum class SocketKeys { none, some, not_known };

// Of keys of TCP_MD5SIG only sock_diag(7) tells: with CAP_NET_ADMIN, and of sockets that listen.
// It is asked about one address, however many sockets the machine has; about all of a port where it
// does not name each that shares the address so (their options were taken away since).
class SignedSockets {
 public:
  using Known = std::map<std::uint32_t, bool>;  // by inode, whether it has keys

  // None, too, where the kernel does not tell.
  SocketKeys judge(int socket, const DescriptorFacts& facts);

 private:
  SocketKeys find(int socket, const DescriptorFacts& facts);
  bool ask(int socket, const DescriptorFacts& facts, std::uint32_t inode);

  Descriptor netlink_;
  Known known_;
};

}  // namespace pawl::wsp
