// Sockets of IPv4 and IPv6 that listen, or are bound, made anew.
#pragma once

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// With its options, its owner, and the address that it had, if any; it neither listens nor is
// connected yet, and a stream shares its address (SO_REUSEADDR) until it is told otherwise.
Result<Descriptor> make_internet_socket(const SavedDescriptor& saved);

// Whether that can be done for a stream: nobody else may have its address.
Status check_internet_socket(const SavedDescriptor& saved);

}  // namespace pawl::wsp
