// Searches over all ways through a function, backward from an instruction or forward.
#pragma once

#include <cstdint>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/BasicBlock.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"

namespace pawl::compiler::fase_verifier {

// Instructions that all searches in a function may look at together.  What is larger is not
// verified, and a warning says so.
constexpr std::uint64_t kStepsMax = 100'000'000;

class Budget {
 public:
  bool take() { return left_ != 0 && --left_ != 0; }
  bool is_spent() const { return left_ == 0; }

 private:
  std::uint64_t left_ = kStepsMax;
};

// What is known of the way so far.  A block is looked at once for each.
struct WayState {
  // It went over an edge back: values of a loop may be those of another turn.
  bool has_looped = false;
  // Whatever the search remembers.
  unsigned mark = 0;
  // A lock that the way did not get.
  const llvm::Instruction* failed = nullptr;
  // What the search is about, by the name that it has on this way; null: by none.
  const llvm::Value* object = nullptr;

  // Backward over the try to get that lock: it was none, and before it nothing is known.
  bool passes_failed(const llvm::Instruction& lock) {
    if (failed != &lock) return false;
    failed = nullptr;
    return true;
  }
  bool operator==(const WayState&) const = default;
};

using BackEdges = llvm::DenseSet<std::pair<const llvm::BasicBlock*, const llvm::BasicBlock*>>;

// A visitor has
//   bool at(const llvm::Instruction&, WayState&)                           true to go on
//   bool over(const llvm::BasicBlock& from, const llvm::BasicBlock& to, WayState&)   the same
//   void end(const llvm::BasicBlock&, const WayState&)      nothing comes before, or behind
template <typename Visitor>
class Walk {
 public:
  Walk(Budget& budget, const BackEdges& back_edges, Visitor& visitor)
      : budget_(budget), back_edges_(back_edges), visitor_(visitor) {}

  // From just before the instruction.
  void backward(const llvm::Instruction& from, WayState state = {}) {
    look_backward(*from.getParent(), from.getPrevNode(), state);
    while (!open_.empty() && !budget_.is_spent()) {
      const auto [block, way] = open_.pop_back_val();
      look_backward(*block, &block->back(), way);
    }
  }

  // From just behind the instruction.
  void forward(const llvm::Instruction& from, WayState state = {}) {
    look_forward(*from.getParent(), from.getNextNode(), state);
    while (!open_.empty() && !budget_.is_spent()) {
      const auto [block, way] = open_.pop_back_val();
      look_forward(*block, &block->front(), way);
    }
  }

 private:
  void look_backward(const llvm::BasicBlock& block, const llvm::Instruction* at, WayState state) {
    for (; at != nullptr; at = at->getPrevNode()) {
      if (!budget_.take() || !visitor_.at(*at, state)) return;
    }
    if (llvm::pred_empty(&block)) visitor_.end(block, state);
    for (const llvm::BasicBlock* before : llvm::predecessors(&block)) {
      enter(*before, block, *before, state);
    }
  }

  void look_forward(const llvm::BasicBlock& block, const llvm::Instruction* at, WayState state) {
    for (; at != nullptr; at = at->getNextNode()) {
      if (!budget_.take() || !visitor_.at(*at, state)) return;
    }
    if (llvm::succ_empty(&block)) visitor_.end(block, state);
    for (const llvm::BasicBlock* behind : llvm::successors(&block)) {
      enter(block, *behind, *behind, state);
    }
  }

  // Without optimisation branches stay that never go one way.
  static bool is_dead(const llvm::BasicBlock& from, const llvm::BasicBlock& to) {
    const auto* branch = llvm::dyn_cast<llvm::BranchInst>(from.getTerminator());
    if (branch == nullptr || branch->isUnconditional()) return false;
    const auto* condition = llvm::dyn_cast<llvm::ConstantInt>(branch->getCondition());
    return condition != nullptr && branch->getSuccessor(condition->isZero() ? 1 : 0) != &to;
  }

  void enter(const llvm::BasicBlock& from, const llvm::BasicBlock& to, const llvm::BasicBlock& next,
             WayState state) {
    if (is_dead(from, to)) return;
    if (back_edges_.contains({&from, &to})) state.has_looped = true;
    if (!visitor_.over(from, to, state)) return;
    auto& known = known_[&next];
    if (llvm::is_contained(known, state)) return;
    known.push_back(state);
    open_.push_back({&next, state});
  }

  Budget& budget_;
  const BackEdges& back_edges_;
  Visitor& visitor_;
  llvm::SmallVector<std::pair<const llvm::BasicBlock*, WayState>, 16> open_;
  llvm::DenseMap<const llvm::BasicBlock*, llvm::SmallVector<WayState, 2>> known_;
};

}  // namespace pawl::compiler::fase_verifier
