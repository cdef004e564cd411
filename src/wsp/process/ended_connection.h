// Sockets in the place of connections that a failure of the power has ended.
#pragma once

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// Reading fails once, with ECONNRESET or ECONNABORTED, and tells of the end then; that of a UNIX
// socket tells of the end only.
Result<Descriptor> make_ended_connection(const DescriptorFacts& facts);

// Whether that can be done here for all that the program has.
Status check_ended_connections(const SavedProcess& saved);

}  // namespace pawl::wsp
