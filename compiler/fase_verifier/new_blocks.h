// Blocks that a function has allocated: until it stores a block's address where others may find it,
// no address that comes from elsewhere leads there.  LLVM's analysis knows that, too, but takes
// frames for such a place, and the run-time for one who finds things.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/BasicBlock.h"
#include "llvm/IR/InstrTypes.h"

namespace pawl::compiler::fase_verifier {

class NewBlocks {
 public:
  // Of two objects (memory.h), in any turns of loops: one is a block that the other cannot be.
  bool are_apart(const llvm::Value* one, const llvm::Value* other);

 private:
  struct Block {
    llvm::DenseSet<const llvm::Value*> addresses;  // in it
    llvm::SmallVector<const llvm::Instruction*, 4> told_by;
    llvm::DenseSet<const llvm::BasicBlock*> behind;  // those that are entered after that
  };
  const Block& block_of(const llvm::CallBase& allocation);
  static bool is_told_before(const Block& block, const llvm::Instruction& instruction);
  bool is_new_to(const llvm::Value* block, const llvm::Value* address);

  llvm::DenseMap<const llvm::CallBase*, Block> blocks_;
};

}  // namespace pawl::compiler::fase_verifier
