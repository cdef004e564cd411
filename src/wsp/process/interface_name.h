// Network interfaces by their names: their numbers may be others in the next boot.
#pragma once

#include <net/if.h>
#include <sys/socket.h>

#include "medium/status.h"

namespace pawl::wsp {

// The interface's number; 0 where none has the name, or it is longer than a name may be.
unsigned number_of_interface(const char (&name)[IF_NAMESIZE]);

// An address of a link is one together with its interface, whose name is noted behind it.  Others
// stay as they are.
void note_interface(sockaddr_storage& address);
// Puts the number in that the interface has now.  ENODEV: none has the name any more.
Status find_interface(sockaddr_storage& address);

}  // namespace pawl::wsp
