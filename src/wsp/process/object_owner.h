// To whom a socket or a pipe belongs: the kernel gives it to who makes it, and asks it for more
// than its mode (who shares a port, whose packets a rule stops, ident).
#pragma once

#include "medium/status.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

Status read_owner(int object, DescriptorFacts& into);

// EPERM where we may not give it away.
Status give_owner(const DescriptorFacts& facts, int object);
// Whether that can be done, of an object that is not made yet.
Status check_owner(const DescriptorFacts& facts);

}  // namespace pawl::wsp
