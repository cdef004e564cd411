// Standard streams of this process that are a terminal, at the restore of another user's program.
#pragma once

#include "medium/status.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// Whether the program has no user but that of this process.
bool is_of_our_user(const ProcessFacts& facts);

// Ours become such that nobody reads from the terminal by them: the input is at its end, into the
// others can only be written.  A program with a session of its own is under no control of jobs: it
// would read what is typed for others.
Status give_up_reading_of_terminal();

}  // namespace pawl::wsp
