// Makes a program's descriptors again, in the process that is about to become the program.
#pragma once

#include <array>
#include <vector>

#include "medium/status.h"
#include "wsp/process/bounded_child.h"
#include "wsp/process/records.h"
#include "wsp/process/spare_numbers.h"

namespace pawl::wsp {

// The standard streams of this process, wherever they are by now; -1 for one that is missing.
using StandardStreams = std::array<int, 3>;

// Gives an open file the number, whatever had that, and no other.
bool move_descriptor(int from, int to, bool closes_on_exec);
void close_all_but(const std::vector<int>& kept);

// Whether its pipes can be made as large as they were, for whom they are, as far as this process
// may have as many open.
Status check_pipes(const SavedProcess& saved);

// All that is open and not in `kept` is closed.  `kept` and `standard` have numbers that the
// program has not; `spare` has more of them.  `at` is told which name is being opened.
Status rebuild_descriptors(const SavedProcess& saved, SpareNumbers spare,
                           const StandardStreams& standard, const std::vector<int>& kept,
                           const SharedBytes& at);

}  // namespace pawl::wsp
