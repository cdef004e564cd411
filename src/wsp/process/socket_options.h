// The options of sockets that listen, or are bound: what the kernel answers of them, and that they
// are so again.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "medium/status.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// Reads what is other than in a new socket of its kind, so that the rest is as the kernel sets it
// by the time of the restore (buffers that it tunes), and takes no privileges.
class SocketOptionReader {
 public:
  void read(int socket, SavedDescriptor& into);

 private:
  const std::vector<SocketOption>& of_a_new(const DescriptorFacts& facts);

  std::map<std::tuple<int, int, int>, std::vector<SocketOption>> new_;
};

// Before it is bound.  Fails where one cannot be set without which others than before would reach
// the socket, or what it sends.
Status give_socket_options(const SavedDescriptor& descriptor, int socket);

}  // namespace pawl::wsp
