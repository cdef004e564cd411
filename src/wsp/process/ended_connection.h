// Sockets in the place of connections that a failure of the power has ended.
#pragma once

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

class EndedConnections {
 public:
  explicit EndedConnections(const SavedProcess& program) : program_(program) {}

  // Reading fails once, with ECONNRESET or ECONNABORTED, and tells of the end then; that of a UNIX
  // socket tells of the end only.  It may be non-blocking.
  Result<Descriptor> make(const DescriptorFacts& facts);

 private:
  const SavedProcess& program_;
  int failed_with_ = 0;  // the loopback interface: it is not waited for again
};

// Whether that can be done here for all that the program has.
Status check_ended_connections(const SavedProcess& saved);
// Whether it could be done for a program that has connections, or may have by then; without waiting
// for the network.  Where that loses packets, only the other one finds out.
Status foresee_ended_connections(const SavedProcess& saved);

}  // namespace pawl::wsp
