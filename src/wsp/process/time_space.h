// The clocks that a restored program sees: CLOCK_MONOTONIC stood still while the power was off, as
// it does while a machine sleeps, and CLOCK_BOOTTIME did not.  Else a program's deadlines would be
// over or, on a machine that was started again, far away.  time_namespaces(7).
#pragma once

#include <string>

#include "medium/status.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// Whether the machine was not started anew since.
bool is_of_this_boot(const SystemFacts& saved);

// For the processes that the caller makes from now on.  Where it cannot be had here, the clocks are
// the machine's: ENOTSUP, if that was started again since, and its clocks do not go on where the
// program's stood still, as root may have them do; the text says how root restores what lies in the
// directory.
Status set_clocks_of_children(const SystemFacts& saved, const std::string& directory);
// The same in a child, of which nothing stays.
Status check_clocks(const SystemFacts& saved, const std::string& directory);
// Whether it could be had when the machine was started again.
Status foresee_clocks();

}  // namespace pawl::wsp
