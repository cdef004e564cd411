// Moves the memory of a program that was just executed into the memory file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "medium/status.h"
#include "wsp/process/annex.h"
#include "wsp/process/kept_memory.h"
#include "wsp/process/origins.h"

namespace pawl::wsp {

// `thread` is the program's only one and stands in PTRACE_EVENT_EXEC; on return it stands in a
// PTRACE_EVENT_STOP before its first instruction.  `descriptor` is the memory file in the program;
// `origins` is what of it came from files.
Status move_into_memory(pid_t thread, KeptMemory& memory, int descriptor, CallList& list,
                        std::vector<Origin>& origins);

// How large the stack is that a program begins with, by its limit.
std::uint64_t stack_bytes(pid_t thread);

}  // namespace pawl::wsp
