// What provably lies in no mapping.
#pragma once

#include "llvm/IR/Value.h"

namespace pawl::compiler {

// True when all that the pointer can be based on is on the stack, or a global or thread-local
// variable.  What malloc or operator new returned is not on this list: a program may bring its own,
// and give out memory of a mapping.
bool is_never_in_mapping(const llvm::Value* pointer);

}  // namespace pawl::compiler
