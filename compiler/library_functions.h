// Functions of libc and libstdc++ that write through pointers: their run-time wrappers take their
// place.
#pragma once

#include "llvm/IR/Module.h"

namespace pawl::compiler {

// Replaces every use, of addresses too.  True when something was replaced.
bool replace_library_functions(llvm::Module& module);

}  // namespace pawl::compiler
