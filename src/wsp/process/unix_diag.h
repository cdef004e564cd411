// What only sock_diag(7) says about UNIX sockets; nothing where the kernel has none
// (CONFIG_UNIX_DIAG).
#pragma once

#include <linux/unix_diag.h>

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace pawl::wsp {

struct UnixSocketFacts {
  std::optional<unix_diag_vfs> file;  // that it is bound to
  std::uint32_t backlog = 0;          // of one that listens: how many may wait for it
  std::uint8_t shut = 0;              // what shutdown(2) ended: kShutReceiving, kShutSending
};

// Of one socket, for which the kernel looks at all that there are, of any number.  Not the backlog.
std::optional<UnixSocketFacts> ask_about_socket(int socket);

// Those of this network namespace, all of which the kernel looks at in each question: it is asked
// about all at once.  Any user may make any number of them: where they are too many it is not
// asked.
class UnixSockets {
 public:
  // Nothing of one that is not there, or where they are too many.
  const UnixSocketFacts* find(std::uint64_t inode, bool listens);
  // Asks, if need be.
  bool are_too_many();

  using Known = std::unordered_map<std::uint32_t, UnixSocketFacts>;  // by the inode

 private:
  enum Kind { listening, unconnected, other, kinds };
  const UnixSocketFacts* find_among(Kind kind, std::uint32_t inode);

  std::optional<bool> are_too_many_;
  std::array<std::optional<Known>, kinds> known_;
};

}  // namespace pawl::wsp
