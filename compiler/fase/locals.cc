#include "locals.h"

#include "accesses.h"
#include "callees.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "locks.h"

namespace pawl::compiler::fase {
namespace {

constexpr std::uint64_t kKeptBytesMax = 256;

// Calls that use a variable as their arguments say, and do not keep its address.
bool is_harmless_call(const llvm::CallBase& call, const llvm::Use& use) {
  if (call.isArgOperand(&use) && call.isByValArgument(call.getArgOperandNo(&use))) return true;
  switch (callee_of(call)) {
    case Callee::kNothing:
    case Callee::kReads:
    case Callee::kWrites:
      // What it returns may be the address again.
      return !call.getType()->isPointerTy() || call.use_empty();
    default:
      return false;
  }
}

// The variable that the pointer is computed from, through additions only, or null.
llvm::AllocaInst* variable_of(const llvm::Value* pointer) {
  while (const auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(pointer)) {
    pointer = address->getPointerOperand();
  }
  return const_cast<llvm::AllocaInst*>(llvm::dyn_cast<llvm::AllocaInst>(pointer));
}

bool are_uses_in_sight(const llvm::AllocaInst& variable) {
  llvm::SmallVector<const llvm::Value*, 8> to_visit = {&variable};
  while (!to_visit.empty()) {
    const llvm::Value* address = to_visit.pop_back_val();
    for (const llvm::Use& use : address->uses()) {
      const llvm::User* user = use.getUser();
      if (llvm::isa<llvm::LoadInst, llvm::ICmpInst>(user)) continue;
      if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(user)) {
        if (store->getPointerOperand() == address && store->getValueOperand() != address) continue;
        return false;
      }
      if (llvm::isa<llvm::GetElementPtrInst>(user) && user->getType()->isPointerTy()) {
        to_visit.push_back(user);
        continue;
      }
      const auto* call = llvm::dyn_cast<llvm::CallBase>(user);
      if (call == nullptr || !is_harmless_call(*call, use)) return false;
    }
  }
  return true;
}

std::uint64_t bytes_of(const llvm::AllocaInst& variable) {
  return variable.getAllocationSize(variable.getModule()->getDataLayout())->getFixedValue();
}

}  // namespace

bool is_kept_local(const llvm::AllocaInst& variable) {
  if (!variable.isStaticAlloca()) return false;
  const auto size = variable.getAllocationSize(variable.getModule()->getDataLayout());
  return size && !size->isScalable() && size->getFixedValue() <= kKeptBytesMax &&
         are_uses_in_sight(variable);
}

bool leads_to_kept_local(const llvm::Value* pointer) {
  const llvm::AllocaInst* variable = variable_of(pointer);
  return variable != nullptr && is_kept_local(*variable);
}

LiveLocals::LiveLocals(llvm::Function& function) {
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    auto* variable = llvm::dyn_cast<llvm::AllocaInst>(&instruction);
    if (variable != nullptr && is_kept_local(*variable)) kept_.insert(variable);
  }
  if (!kept_.empty()) flow(function);
}

void LiveLocals::step_forwards(const llvm::Instruction& instruction, Set& written) const {
  const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  const bool begins_or_ends = intrinsic != nullptr && intrinsic->isLifetimeStartOrEnd();
  if (begins_or_ends) {
    written.remove(variable_of(intrinsic->getArgOperand(1)));
    return;
  }
  // Found in an instruction that is not changed.
  const std::optional<Write> write = write_of(const_cast<llvm::Instruction&>(instruction));
  if (!write) return;
  llvm::AllocaInst* variable = variable_of(write->pointer);
  if (variable != nullptr && kept_.contains(variable)) written.insert(variable);
}

void LiveLocals::step_backwards(const llvm::Instruction& instruction, Set& read) const {
  // What comes behind is never resumed.
  if (ends_all_sections(instruction)) read.clear();
  const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (intrinsic != nullptr && intrinsic->isLifetimeStartOrEnd()) {
    read.remove(variable_of(intrinsic->getArgOperand(1)));
    return;
  }
  const std::optional<Write> write = write_of(const_cast<llvm::Instruction&>(instruction));
  if (write && write->bytes != 0) {
    llvm::AllocaInst* variable = llvm::dyn_cast<llvm::AllocaInst>(write->pointer);
    if (variable != nullptr && kept_.contains(variable) && write->bytes >= bytes_of(*variable)) {
      read.remove(variable);
    }
  }
  if (!instruction.mayReadFromMemory()) return;
  for (const llvm::Use& operand : instruction.operands()) {
    if (!operand->getType()->isPointerTy()) continue;
    llvm::AllocaInst* variable = variable_of(operand);
    const bool is_only_written = write && &operand == write->operand;
    if (variable != nullptr && kept_.contains(variable) && !is_only_written) read.insert(variable);
  }
}

// To fixed points: both sets only grow.
void LiveLocals::flow(llvm::Function& function) {
  const auto add = [](Set& to, const Set& from) {
    const std::size_t size = to.size();
    to.insert(from.begin(), from.end());
    return to.size() != size;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const llvm::BasicBlock* block : llvm::ReversePostOrderTraversal(&function)) {
      Set written = written_at_begin_[block];
      for (const llvm::Instruction& instruction : *block) step_forwards(instruction, written);
      for (const llvm::BasicBlock* successor : llvm::successors(block)) {
        changed |= add(written_at_begin_[successor], written);
      }
    }
    for (const llvm::BasicBlock* block : llvm::post_order(&function)) {
      Set read = read_at_end_[block];
      for (const llvm::Instruction& instruction : llvm::reverse(*block)) {
        step_backwards(instruction, read);
      }
      for (const llvm::BasicBlock* before : llvm::predecessors(block)) {
        changed |= add(read_at_end_[before], read);
      }
    }
  }
}

std::vector<llvm::AllocaInst*> LiveLocals::after(const llvm::Instruction& instruction) const {
  const llvm::BasicBlock* block = instruction.getParent();
  const auto at_begin = written_at_begin_.find(block);
  const auto at_end = read_at_end_.find(block);
  Set written = at_begin == written_at_begin_.end() ? Set() : at_begin->second;
  Set read = at_end == read_at_end_.end() ? Set() : at_end->second;
  for (const llvm::Instruction& before : *block) {
    step_forwards(before, written);
    if (&before == &instruction) break;
  }
  for (const llvm::Instruction& later : llvm::reverse(*block)) {
    if (&later == &instruction) break;
    step_backwards(later, read);
  }
  std::vector<llvm::AllocaInst*> found;
  for (llvm::AllocaInst* variable : kept_) {
    if (written.contains(variable) && read.contains(variable)) found.push_back(variable);
  }
  return found;
}

void copy_arguments(llvm::Function& function) {
  const llvm::DataLayout& layout = function.getParent()->getDataLayout();
  for (llvm::Argument& argument : function.args()) {
    if (!argument.hasByValAttr() || argument.use_empty()) continue;
    llvm::Type* type = argument.getParamByValType();
    llvm::IRBuilder<> builder(&function.getEntryBlock(),
                              function.getEntryBlock().getFirstInsertionPt());
    llvm::AllocaInst* copy = builder.CreateAlloca(type);
    copy->setAlignment(
        std::max(argument.getParamAlign().valueOrOne(), layout.getABITypeAlign(type)));
    argument.replaceAllUsesWith(copy);
    builder.CreateMemCpy(copy, copy->getAlign(), &argument, argument.getParamAlign(),
                         layout.getTypeAllocSize(type).getFixedValue());
  }
}

}  // namespace pawl::compiler::fase
