// What is known of the pointers that lead to locks, and of the variables that hold such pointers:
// guards, as those of the C++ standard library.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/Function.h"

namespace pawl::compiler::fase {

// A pointer through which a lock was taken or released is not null from there on: what asks for
// that is a constant. std::unique_lock asks before it releases.
void fold_null_tests_of_locks(llvm::Function& function);

// Inlines into the function all that it calls with the address of such a variable: what the
// variable holds says which locks are held.  A variable is one of them when a function that hands
// locks on takes its address.  True when it inlined anything.
bool inline_users_of_guards(llvm::Function& function,
                            llvm::function_ref<bool(const llvm::Function&)> hands_locks_on);

}  // namespace pawl::compiler::fase
