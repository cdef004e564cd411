// The calls that log frames: at cuts, around calls and at releases of locks.
#pragma once

#include "regions.h"
#include "run_time_calls.h"

namespace pawl::compiler::fase {

// Adds the calls, and says of each region where it begins now; without its live-ins.  `table` is
// the function's struct pawl_fase_function.
void place_frames(FunctionPlan& plan, RunTime& run_time, llvm::Constant* table);

// Finds the live-ins, and has them stored.  By then the function has all else that is added to it,
// which may need values, too.
void fill_frames(FunctionPlan& plan, const KeptGlobals& globals);

}  // namespace pawl::compiler::fase
