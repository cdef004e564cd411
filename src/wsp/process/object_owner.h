// To whom a socket or a pipe belongs: the kernel gives it to who makes it, and asks it, and who
// made it, for more than its mode (who shares a port, whose packets a rule stops, ident).
#pragma once

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

Status read_owner(int object, DescriptorFacts& into);

// As the program makes it, or the user whose it was; one of ping's that it may not make, with our
// rights, and as ours until give_owner().
Result<Descriptor> make_owned_socket(const SavedProcess& program, const DescriptorFacts& facts,
                                     int domain, int type, int protocol);
// And its mode, to one that was made so.  EPERM where we may not give it away.
Status give_owner(const SavedProcess& program, const DescriptorFacts& facts, int object);
// Whether both can be done.
Status check_owner(const SavedProcess& program, const DescriptorFacts& facts);
// Whether what is made with the rights that we have now can be given this owner, and this mode.
Status check_gift(const DescriptorFacts& facts);

}  // namespace pawl::wsp
