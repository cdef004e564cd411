// The marks that the pass adds, and the check before each.
#pragma once

#include <cstdint>
#include <vector>

#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Value.h"
#include "store_sites.h"

namespace pawl::compiler {

// "Here [pointer + offset, pointer + offset + length) has been stored to."
struct Mark {
  llvm::Instruction* before = nullptr;
  llvm::Value* pointer = nullptr;  // or a vector of them
  llvm::Value* length = nullptr;   // an integer; of each
  // Nothing may have been stored, and so the pointer may be poison.
  bool may_be_poison = false;
  std::int64_t offset = 0;
  // Instead of `before`: on the ways from this, which ends a block, to the successor of this
  // number.
  llvm::Instruction* leaving = nullptr;
  unsigned successor = 0;
};

// A pointer as an object's start, as far as that is known to the compiler, and a distance from it.
struct Place {
  llvm::Value* object = nullptr;
  std::int64_t offset = 0;
};
Place place_of(llvm::Value* pointer, const llvm::DataLayout& layout);

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
