#include "armed.h"

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

bool Armed::is_armed_at_entry(const llvm::Function& function) const {
  if (sections_.entry(function) == Inside::kNever) return false;
  return sections_.is_called_from_elsewhere(function) || called_armed_.contains(&function);
}

bool Armed::flow(const FunctionPlan& plan) {
  const std::size_t known = at_.size() + called_armed_.size();
  llvm::Function& function = *plan.function;
  entries_[&function.getEntryBlock()] |= is_armed_at_entry(function);
  for (bool changed = true; changed;) {
    changed = false;
    for (const llvm::BasicBlock* block : llvm::ReversePostOrderTraversal(&function)) {
      if (!through(*block, entries_.lookup(block))) continue;
      for (const llvm::BasicBlock* successor : llvm::successors(block)) {
        bool& entry = entries_[successor];
        changed |= !entry;
        entry = true;
      }
    }
  }
  return at_.size() + called_armed_.size() != known;
}

bool Armed::through(const llvm::BasicBlock& block, bool armed) {
  for (const llvm::Instruction& instruction : block) {
    const bool is_inside = sections_.before(instruction) != Inside::kNever;
    armed = is_inside && (armed || cuts_.contains(&instruction));
    if (armed) at_.insert(&instruction);
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call == nullptr || !is_inside) continue;
    if (armed && call->getCalledFunction() != nullptr) {
      called_armed_.insert(call->getCalledFunction());
    }
    // A wait ends the section, and another begins.
    if (lock_operation(*call) == LockOperation::kWait) armed = false;
    armed |= sections_.may_cut(*call);
  }
  return armed;
}

}  // namespace pawl::compiler::fase
