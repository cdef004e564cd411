// One mark for all that a loop stores, where it stores to one contiguous range.
#pragma once

#include <vector>

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Dominators.h"
#include "marks.h"
#include "store_sites.h"

namespace pawl::compiler {

class LoopRanges {
 public:
  LoopRanges(llvm::LoopInfo& loops, llvm::DominatorTree& dominators,
             llvm::ScalarEvolution& evolution, llvm::AssumptionCache& assumptions)
      : loops_(loops), dominators_(dominators), evolution_(evolution), assumptions_(assumptions) {}

  // Takes from `sites` those that a mark at the exits of their loop covers, and adds these marks.
  // May bring loops into their canonical form; the analyses stay true.
  void take(std::vector<StoreSite>& sites, std::vector<Mark>& marks);

  // To be called when the marks are emitted: what only they use moves to where they are made.
  void sink_into_marks();

 private:
  void take_of_loop(llvm::Loop& loop, std::vector<StoreSite>& sites, std::vector<Mark>& marks);

  llvm::LoopInfo& loops_;
  llvm::DominatorTree& dominators_;
  llvm::ScalarEvolution& evolution_;
  llvm::AssumptionCache& assumptions_;
  std::vector<llvm::Instruction*> computed_;  // for marks
};

}  // namespace pawl::compiler
