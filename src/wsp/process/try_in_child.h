// What a restore would do to its new process, tried.
#pragma once

#include <functional>

#include "medium/status.h"

namespace pawl::wsp {

// Does it in a child, which ends, and tells how that went.  ECANCELED: the child was stopped.
Status try_in_child(const std::function<Status()>& work);

}  // namespace pawl::wsp
