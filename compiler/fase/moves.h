// memmove() of bytes onto such as it reads itself: that cannot be repeated.  In sections it is done
// in pieces: each is read, logged as a live-in, and written.
#pragma once

#include "llvm/IR/PassManager.h"
#include "sections.h"

namespace pawl::compiler::fase {

// Changes the module before its sections are looked at for good.  True when it did.
bool split_moves(llvm::Module& module, const Sections& sections,
                 llvm::FunctionAnalysisManager& analyses);

}  // namespace pawl::compiler::fase
