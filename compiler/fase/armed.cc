#include "armed.h"

#include <algorithm>
#include <utility>

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Instructions.h"
#include "locks.h"

namespace pawl::compiler::fase {

Armed::Armed(const std::vector<FunctionPlan>& plans, const Sections& sections)
    : sections_(sections) {
  for (const FunctionPlan& plan : plans) {
    for (const Region& region : plan.regions) {
      if (region.kind == RegionKind::kAtCut) cuts_.insert(region.at);
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const FunctionPlan& plan : plans) changed |= flow(plan);
  }
}

Inside Armed::at_entry(const llvm::Function& function) const {
  if (sections_.entry(function) == Inside::kNever) return Inside::kNever;
  const Inside called = called_.lookup(&function);
  return sections_.is_called_from_elsewhere(function) ? std::max(called, Inside::kPerhaps) : called;
}

void Armed::raise(Inside& known, Inside armed) {
  if (armed <= known) return;
  known = armed;
  is_new_ = true;
}

bool Armed::flow(const FunctionPlan& plan) {
  llvm::Function& function = *plan.function;
  is_new_ = false;
  raise(entries_[&function.getEntryBlock()], at_entry(function));
  bool changed_any = false;
  for (bool changed = true; changed;) {
    for (const llvm::BasicBlock* block : llvm::ReversePostOrderTraversal(&function)) {
      const Inside armed = through(*block, entries_.lookup(block));
      for (const llvm::BasicBlock* successor : llvm::successors(block)) {
        raise(entries_[successor], armed);
      }
    }
    changed = std::exchange(is_new_, false);
    changed_any |= changed;
  }
  return changed_any;
}

Inside Armed::through(const llvm::BasicBlock& block, Inside armed) {
  for (const llvm::Instruction& instruction : block) {
    const Inside inside = sections_.before(instruction);
    if (inside == Inside::kNever) armed = Inside::kNever;
    // Of an own section that has ended nothing is left.
    if (inside == Inside::kPerhaps) armed = std::min(armed, Inside::kPerhaps);
    if (inside != Inside::kNever && cuts_.contains(&instruction)) armed = inside;
    raise(at_[&instruction], armed);
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call == nullptr || inside == Inside::kNever) continue;
    if (call->getCalledFunction() != nullptr) raise(called_[call->getCalledFunction()], armed);
    // A wait ends the section, and another begins.
    if (lock_operation(*call) == LockOperation::kWait) armed = Inside::kNever;
    if (sections_.may_cut(*call)) armed = std::max(armed, inside);
  }
  return armed;
}

}  // namespace pawl::compiler::fase
