// Computed gotos (`goto *place`): labels' addresses are those of one function, and the code that
// resumes it is another one.
#pragma once

#include "llvm/IR/Function.h"

namespace pawl::compiler::fase {

// Labels become numbers, in all that holds them, and the gotos switches over these.
void number_labels(llvm::Function& function);

}  // namespace pawl::compiler::fase
