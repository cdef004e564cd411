// What makes modules easier to look at, at any level of optimisation: variables in registers, locks
// taken and released in one function.
#pragma once

#include "llvm/IR/PassManager.h"

namespace pawl::compiler::fase {

// Functions that return with a lock taken, or release one of their callers', are put into their
// callers; it is an error when another module may call them.
void bring_into_normal_form(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);

}  // namespace pawl::compiler::fase
