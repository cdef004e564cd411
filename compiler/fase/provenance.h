// What kind of memory a pointer leads into.
#pragma once

#include "llvm/IR/Value.h"

namespace pawl::compiler::fase {

enum class Provenance {
  kVolatile,    // certainly: a local, global or thread-local variable
  kConstant,    // certainly never changes, and is where it was in each run of the program
  kPersistent,  // certainly: what the run-time's allocator returned
  kUnknown,
};

Provenance provenance(const llvm::Value* pointer);

// A variable of this call of the function: nothing of it is left in another.
bool is_local_variable(const llvm::Value* pointer);

}  // namespace pawl::compiler::fase
