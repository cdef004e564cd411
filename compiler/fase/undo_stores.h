// The scheme `undo`: before each store in a section the run-time logs what it overwrites.
#pragma once

#include <vector>

#include "notes.h"
#include "run_time_calls.h"

namespace pawl::compiler::fase {

// Adds the calls before those of the writes that may be in sections.
void emit_undo(const std::vector<NotedWrites>& writes, RunTime& run_time);

}  // namespace pawl::compiler::fase
