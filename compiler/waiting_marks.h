// Marks that wait from block to block for others of the same object.
//
// A mark may come any time between its store and the next barrier (see is_barrier()).  Where a
// block ends without one, its marks may go on into those that follow it, and become one with what
// these store into the same objects.  On no way through the function are there more checks than
// before: a mark that came on one way to a block, and not on all, goes no further.
#pragma once

#include <cstdint>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/Function.h"
#include "marks.h"
#include "store_sites.h"

namespace pawl::compiler {

// Of one object, [first, end) from its start, has been stored to.
struct WaitingMark {
  llvm::Value* object = nullptr;
  std::int64_t first = 0;
  std::int64_t end = 0;
  llvm::Instruction* last = nullptr;  // the last of the stores; null: in a block before

  // Takes what lies near enough to share a mark, of the same object.
  bool take(const WaitingMark& other);
};

class WaitingMarks {
 public:
  // `sites` are in the order of their instructions.
  WaitingMarks(llvm::Function& function, const std::vector<StoreSite>& sites);

  // The blocks that are ever executed, each behind those that lead to it but for loops.
  const std::vector<llvm::BasicBlock*>& blocks() const { return blocks_; }

  // What waits at the block's beginning.  All that it follows have been left.
  std::vector<WaitingMark> enter(llvm::BasicBlock& block);
  // What waits at its end.
  void leave(llvm::BasicBlock& block, std::vector<WaitingMark> waiting);
  // When all blocks have been left: the marks that did not go on.
  void take_marks(std::vector<Mark>& marks) const;

  // The mark in the block where it is: behind its last store, or at the beginning.
  static Mark settle(const WaitingMark& waiting, llvm::BasicBlock& block);

 private:
  using Objects = llvm::SmallPtrSet<llvm::Value*, 8>;

  bool can_enter(const llvm::BasicBlock& block) const;
  bool is_ahead(const llvm::BasicBlock& block, const llvm::BasicBlock& of) const;
  void find_wanted(const std::vector<StoreSite>& sites);

  std::vector<llvm::BasicBlock*> blocks_;
  llvm::DenseMap<const llvm::BasicBlock*, std::size_t> order_;
  // Objects that are stored to from the block's beginning on, before any barrier.
  llvm::DenseMap<const llvm::BasicBlock*, Objects> wanted_;
  llvm::DenseMap<const llvm::BasicBlock*, Objects> entered_;
  llvm::DenseMap<const llvm::BasicBlock*, std::vector<WaitingMark>> left_;
};

}  // namespace pawl::compiler
