#include "held_locks.h"

#include <algorithm>

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"
#include "locks.h"

namespace pawl::compiler::fase {
namespace {

unsigned changed_by(const llvm::Instruction& instruction, unsigned held) {
  const std::optional<LockOperation> operation = lock_operation(instruction);
  if (!operation) return held;
  switch (*operation) {
    case LockOperation::kAcquire:
    case LockOperation::kTryAcquire:
      return std::min(held + 1, HeldLocks::kMany);
    case LockOperation::kRelease:
      // Of any number, any number is left.
      return held == 0 || held == HeldLocks::kMany ? held : held - 1;
    case LockOperation::kWait:
    case LockOperation::kOther:
      return held;
  }
  return held;
}

// The acquisition of this block whose outcome the branch at its end tells, and whether it failed on
// the way to the successor.
bool fails_on_the_way(const llvm::BasicBlock& block, const llvm::BasicBlock& successor) {
  using namespace llvm::PatternMatch;
  const auto* branch = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
  if (branch == nullptr || !branch->isConditional()) return false;
  if (branch->getSuccessor(0) == branch->getSuccessor(1)) return false;
  llvm::ICmpInst::Predicate predicate = llvm::CmpInst::BAD_ICMP_PREDICATE;
  llvm::Value* outcome = nullptr;
  if (!match(branch->getCondition(), m_ICmp(predicate, m_Value(outcome), m_Zero()))) return false;
  const auto* call = llvm::dyn_cast<llvm::Instruction>(outcome);
  if (call == nullptr || call->getParent() != &block) return false;
  const std::optional<LockOperation> operation = lock_operation(*call);
  if (operation != LockOperation::kAcquire && operation != LockOperation::kTryAcquire) return false;
  if (predicate == llvm::CmpInst::ICMP_EQ) return branch->getSuccessor(1) == &successor;
  if (predicate == llvm::CmpInst::ICMP_NE) return branch->getSuccessor(0) == &successor;
  return false;
}

}  // namespace

HeldLocks::HeldLocks(const llvm::Function& function) {
  bool has_release = false;
  for (const llvm::BasicBlock& block : function) {
    for (const llvm::Instruction& instruction : block) {
      const std::optional<LockOperation> operation = lock_operation(instruction);
      takes_any_ |= operation == LockOperation::kAcquire || operation == LockOperation::kTryAcquire;
      has_release |= operation == LockOperation::kRelease;
    }
  }
  if (!takes_any_) {
    releases_others_ = has_release;
    return;
  }
  // The largest number on any way, to a fixed point: it only grows, and no further than kMany.
  llvm::DenseMap<const llvm::BasicBlock*, unsigned> at_entry;
  llvm::ReversePostOrderTraversal<const llvm::Function*> order(&function);
  for (bool changed = true; changed;) {
    changed = false;
    for (const llvm::BasicBlock* block : order) {
      const unsigned held = through(*block, at_entry.lookup(block));
      for (const llvm::BasicBlock* successor : llvm::successors(block)) {
        unsigned arriving = held;
        if (arriving != 0 && arriving != kMany && fails_on_the_way(*block, *successor)) --arriving;
        unsigned& known = at_entry[successor];
        if (arriving <= known) continue;
        known = arriving;
        changed = true;
      }
    }
  }
  for (const llvm::BasicBlock* block : order) {
    const llvm::Instruction* end = block->getTerminator();
    const unsigned held = before(*end);
    if (llvm::isa<llvm::ReturnInst>(end) && held != 0 && held != kMany) returns_with_lock_ = end;
    for (const llvm::Instruction& instruction : *block) {
      const bool releases = lock_operation(instruction) == LockOperation::kRelease;
      releases_others_ |= releases && before(instruction) == 0;
    }
  }
}

unsigned HeldLocks::through(const llvm::BasicBlock& block, unsigned held) {
  for (const llvm::Instruction& instruction : block) {
    if (held != 0) before_[&instruction] = held;
    held = changed_by(instruction, held);
  }
  return held;
}

unsigned HeldLocks::before(const llvm::Instruction& instruction) const {
  return before_.lookup(&instruction);
}

unsigned HeldLocks::after(const llvm::Instruction& instruction) const {
  return changed_by(instruction, before(instruction));
}

}  // namespace pawl::compiler::fase
