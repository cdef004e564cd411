// Makes a program's descriptors again, in the process that is about to become the program.
#pragma once

#include <vector>

#include "medium/status.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// All that is open and not in `kept` is closed, except the standard streams that the program
// inherits.  `first_free` is above all numbers of the program; `kept` are at or above it.
Status rebuild_descriptors(const SavedProcess& saved, int first_free, const std::vector<int>& kept);

}  // namespace pawl::wsp
