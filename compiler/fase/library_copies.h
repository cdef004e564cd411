// The C library's functions that copy and fill memory become LLVM's own operations, whose length is
// computed before: that of strcpy() by strlen().  So all that follows knows one kind of them, each
// can be done again, and what a fortified form checks it checks as ever.
#pragma once

#include "llvm/IR/InstrTypes.h"

namespace pawl::compiler::fase {

bool is_library_copy(const llvm::CallBase& call);

// Calls only: make_plain_calls() has made those of invokes.
void replace_library_copies(llvm::Function& function);

}  // namespace pawl::compiler::fase
