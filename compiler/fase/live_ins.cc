#include "live_ins.h"

#include <functional>

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/MathExtras.h"
#include "locks.h"
#include "run_time_calls.h"

namespace pawl::compiler::fase {
namespace {

// Of a variable of the thread: another address in each thread.
bool is_of_thread(const llvm::Value& address) {
  const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&address);
  return intrinsic != nullptr &&
         intrinsic->getIntrinsicID() == llvm::Intrinsic::threadlocal_address;
}

bool is_of_stack_or_thread(const llvm::GetElementPtrInst& address) {
  const llvm::Value* pointer = &address;
  while (const auto* sum = llvm::dyn_cast<llvm::GetElementPtrInst>(pointer)) {
    pointer = sum->getPointerOperand();
  }
  return llvm::isa<llvm::AllocaInst>(pointer) || is_of_thread(*pointer);
}

// Cheap, without effect, and the same whenever it is computed from the same operands.
bool can_be_computed_again(const llvm::Instruction& instruction) {
  if (const auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction)) {
    return address->hasAllConstantIndices() || is_of_stack_or_thread(*address);
  }
  return is_of_thread(instruction) ||
         llvm::isa<llvm::BitCastInst, llvm::ZExtInst, llvm::SExtInst, llvm::TruncInst,
                   llvm::PtrToIntInst, llvm::IntToPtrInst>(instruction);
}

}  // namespace

std::uint64_t slot_bytes(llvm::Type* type, const llvm::DataLayout& layout) {
  return llvm::alignTo(layout.getTypeStoreSize(type).getKnownMinValue(), kSlotBytes);
}

std::uint64_t content_bytes(const llvm::AllocaInst& variable, const llvm::DataLayout& layout) {
  return variable.getAllocationSize(layout)->getFixedValue();
}

std::uint64_t LiveIns::bytes(const llvm::DataLayout& layout) const {
  std::uint64_t sum = 0;
  for (const llvm::Value* value : stored) sum += slot_bytes(value->getType(), layout);
  for (const llvm::AllocaInst* variable : locals) {
    sum += llvm::alignTo(content_bytes(*variable, layout), kSlotBytes);
  }
  for (const GlobalValueRead& read : globals) sum += slot_bytes(read.second, layout);
  return sum;
}

Liveness::Liveness(llvm::Function& function, const KeptGlobals& kept)
    : locals_(function), globals_(function, kept) {
  const auto add = [&](llvm::Value& value) {
    // Variables of the stack are others in each call.
    if (value.getType()->isVoidTy() || llvm::isa<llvm::AllocaInst>(value)) return;
    numbers_[&value] = static_cast<unsigned>(values_.size());
    values_.push_back(&value);
  };
  for (llvm::Argument& argument : function.args()) add(argument);
  for (llvm::BasicBlock* block : llvm::ReversePostOrderTraversal(&function)) {
    for (llvm::Instruction& instruction : *block) add(instruction);
  }
  const auto size = static_cast<unsigned>(values_.size());
  for (const llvm::BasicBlock& block : function) at_begin_[&block].resize(size);
  for (bool changed = true; changed;) {
    changed = false;
    for (const llvm::BasicBlock* block : llvm::post_order(&function)) {
      llvm::BitVector live = at_end(*block);
      for (const llvm::Instruction& instruction : llvm::reverse(*block)) {
        step_backwards(live, instruction);
      }
      llvm::BitVector& known = at_begin_[block];
      if (live == known) continue;
      known = std::move(live);
      changed = true;
    }
  }
}

std::optional<unsigned> Liveness::number(const llvm::Value* value) const {
  const auto found = numbers_.find(value);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

void Liveness::step_backwards(llvm::BitVector& live, const llvm::Instruction& instruction) const {
  // What comes behind is never resumed.
  if (ends_all_sections(instruction)) live.reset();
  if (const std::optional<unsigned> own = number(&instruction)) live.reset(*own);
  if (!llvm::isa<llvm::PHINode>(instruction)) use(live, instruction);
}

void Liveness::use(llvm::BitVector& live, const llvm::Instruction& instruction) const {
  for (const llvm::Value* operand : instruction.operands()) {
    if (const std::optional<unsigned> known = number(operand)) live.set(*known);
  }
}

llvm::BitVector Liveness::at_end(const llvm::BasicBlock& block) const {
  llvm::BitVector live(static_cast<unsigned>(values_.size()));
  for (const llvm::BasicBlock* successor : llvm::successors(&block)) {
    live |= at_begin_.find(successor)->second;
    for (const llvm::PHINode& phi : successor->phis()) {
      const llvm::Value* coming = phi.getIncomingValueForBlock(&block);
      if (const std::optional<unsigned> known = number(coming)) live.set(*known);
    }
  }
  return live;
}

LiveIns Liveness::after(const llvm::Instruction& instruction, const llvm::Value& other) const {
  const llvm::BasicBlock& block = *instruction.getParent();
  llvm::BitVector live = at_end(block);
  for (const llvm::Instruction& later : llvm::reverse(block)) {
    if (&later == &instruction) {
      if (const std::optional<unsigned> own = number(&later)) live.reset(*own);
      break;
    }
    step_backwards(live, later);
  }
  if (const std::optional<unsigned> known = number(&other)) live.reset(*known);
  LiveIns found = collect(std::move(live));
  found.locals = locals_.after(instruction);
  found.globals = globals_.after(instruction);
  return found;
}

LiveIns Liveness::collect(llvm::BitVector live) const {
  LiveIns found;
  // An address on the stack, or of the thread, is another one when it is resumed: what it is
  // computed from is needed. That has lower numbers, and as it dominates the address it is what it
  // was.
  for (auto value = static_cast<unsigned>(values_.size()); value-- > 0;) {
    const auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(values_[value]);
    if (live.test(value) && address != nullptr && is_of_stack_or_thread(*address))
      use(live, *address);
  }
  llvm::SmallPtrSet<const llvm::Value*, 16> have;
  // Values are numbered in an order in which what is computed follows what it is computed from.
  const std::function<bool(const llvm::Value*)> is_there = [&](const llvm::Value* operand) {
    if (llvm::isa<llvm::Constant, llvm::AllocaInst>(operand) || have.contains(operand)) return true;
    const auto* instruction = llvm::dyn_cast<llvm::Instruction>(operand);
    if (instruction == nullptr || !can_be_computed_again(*instruction)) return false;
    return llvm::all_of(instruction->operands(),
                        [&](const llvm::Use& use) { return is_there(use.get()); });
  };
  const std::function<void(llvm::Instruction*)> compute = [&](llvm::Instruction* instruction) {
    for (llvm::Value* operand : instruction->operands()) {
      if (llvm::isa<llvm::Constant, llvm::AllocaInst>(operand) || have.contains(operand)) continue;
      compute(llvm::cast<llvm::Instruction>(operand));
    }
    have.insert(instruction);
    found.computed.push_back(instruction);
  };
  for (const unsigned value : live.set_bits()) {
    auto* instruction = llvm::dyn_cast<llvm::Instruction>(values_[value]);
    if (instruction != nullptr && can_be_computed_again(*instruction) && is_there(instruction)) {
      compute(instruction);
      continue;
    }
    have.insert(values_[value]);
    found.stored.push_back(values_[value]);
  }
  return found;
}

}  // namespace pawl::compiler::fase
