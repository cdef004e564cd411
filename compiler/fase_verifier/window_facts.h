// What a branch says of an address: that it is in the window of persistent memory, or is not.
#pragma once

#include <optional>

#include "llvm/IR/BasicBlock.h"

namespace pawl::compiler::fase_verifier {

// Of the object that the address is in.  An object is in the window whole, or not at all.  Nothing
// when going from the one block to the other says nothing of it.
std::optional<bool> in_window(const llvm::BasicBlock& from, const llvm::BasicBlock& to,
                              const llvm::Value* pointer);

// Going from the one block to the other leaves out a cut that is made if something is in the
// window.
bool is_past_asked_cut(const llvm::BasicBlock& from, const llvm::BasicBlock& to);

}  // namespace pawl::compiler::fase_verifier
