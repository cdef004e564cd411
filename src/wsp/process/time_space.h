// The clocks that a restored program sees: CLOCK_MONOTONIC stood still while the power was off, as
// it does while a machine sleeps, and CLOCK_BOOTTIME did not.  Else a program's deadlines would be
// over or, on a machine that was started again, far away.  time_namespaces(7).
#pragma once

#include "medium/status.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// For the processes that the caller makes from now on.  ENOTSUP: it cannot be had here, and the
// machine was started again since; without that, the clocks are the machine's.
// Whether the machine was not started anew since.
bool is_of_this_boot(const SystemFacts& saved);

Status set_clocks_of_children(const SystemFacts& saved);

}  // namespace pawl::wsp
