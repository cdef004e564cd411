// Of which network namespace a socket is.
#pragma once

#include "medium/status.h"

namespace pawl::wsp {

// One of another network than ours would be made again in ours, where its owner may have far fewer
// rights than in his own: ENOTSUP.  Linux before 5.14 is asked with CAP_NET_ADMIN.
Status check_network(int socket);

}  // namespace pawl::wsp
