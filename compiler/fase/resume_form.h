// The resume form of a function: the same code, entered at the beginning of any of its regions.
#pragma once

#include "regions.h"

namespace pawl::compiler::fase {

// `void NAME.resume(region, live_ins, call_result, result)`, see src/fase/abi.h.  The function has
// its frames, notes and checks already; so has the resume form.
llvm::Function* make_resume_form(const FunctionPlan& plan, const KeptGlobals& globals);

}  // namespace pawl::compiler::fase
