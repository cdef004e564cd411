// What a restore would do to its new process, or with the rights of another, tried.
#pragma once

#include <functional>

#include "medium/status.h"

namespace pawl::wsp {

// Does it in a child, which ends, and tells how that went, for a bounded time.  ECANCELED: others,
// whose rights it has, have stopped it.
Status try_in_child(const std::function<Status()>& work);

}  // namespace pawl::wsp
