// The calls that log frames: at cuts, around calls and at releases of locks.
#pragma once

#include "regions.h"
#include "run_time_calls.h"

namespace pawl::compiler::fase {

// Adds them, and says of each region where it begins now.  `table` is the function's
// struct pawl_fase_function.
void emit_frames(FunctionPlan& plan, RunTime& run_time, llvm::Constant* table);

}  // namespace pawl::compiler::fase
