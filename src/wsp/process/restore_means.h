// What it takes to make a program's process besides rights: room under the limits, and tracing.
#pragma once

#include "medium/status.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// As much as this process may have, until the program has its own limits: its memory, threads and
// signals are made before.
void raise_limits(const SavedProcess& saved);

// Whether a restore by this process could make them, and trace it: tried in a child.
Status check_means(const SavedProcess& saved);

}  // namespace pawl::wsp
