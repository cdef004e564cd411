// The marks that the pass adds, and the check before each.
#pragma once

#include <cstdint>
#include <vector>

#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Value.h"
#include "store_sites.h"

namespace pawl::compiler {

// "Here [pointer, pointer + length) has been stored to."
struct Mark {
  llvm::Instruction* before = nullptr;
  llvm::Value* pointer = nullptr;  // or a vector of them
  llvm::Value* length = nullptr;   // an integer; of each
  // Nothing may have been stored, and so the pointer may be poison.
  bool may_be_poison = false;
  llvm::InvokeInst* after = nullptr;  // instead of `before`: where this goes if it does not throw
};

// The mark of one site, before it or after it.
Mark mark_before(const StoreSite& site);
Mark mark_after(const StoreSite& site);

// Adds the marks.  Changes the control flow of the function, which analyses do not follow.
void emit_marks(std::vector<Mark> marks);

// True of a block that emit_marks() made: only what a mark needs is in it.
bool is_mark_block(const llvm::BasicBlock& block);

// The type of lengths: size_t.
llvm::Value* constant_length(llvm::LLVMContext& context, std::uint64_t bytes);

}  // namespace pawl::compiler
