#include "new_blocks.h"

#include "abi_calls.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "memory.h"

namespace pawl::compiler::fase_verifier {
namespace {

// A variable in which live-ins are gathered: nobody but the run-time reads it.
bool is_of_frames(const llvm::Value& variable) {
  return llvm::all_of(variable.users(), [&](const llvm::User* user) {
    if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(user)) {
      return store->getValueOperand() != &variable;
    }
    if (const auto* move = llvm::dyn_cast<llvm::AnyMemTransferInst>(user)) {
      return move->getRawSource() != &variable;
    }
    if (llvm::isa<llvm::GetElementPtrInst>(user)) return is_of_frames(*user);
    const auto* call = llvm::dyn_cast<llvm::CallBase>(user);
    return call != nullptr && frame_of(*call).has_value();
  });
}

// Asked whether it is in the window, and nothing else.
bool is_compared(const llvm::Value& number) {
  return llvm::all_of(number.users(), [](const llvm::User* user) {
    if (llvm::isa<llvm::ICmpInst>(user)) return true;
    return llvm::isa<llvm::BinaryOperator>(user) &&
           llvm::all_of(user->users(),
                        [](const llvm::User* of) { return llvm::isa<llvm::ICmpInst>(of); });
  });
}

enum class Use { kHarmless, kLeadsThereToo, kTells };

Use use_of(const llvm::Value& address, const llvm::Instruction& user) {
  if (llvm::isa<llvm::GetElementPtrInst, llvm::PHINode, llvm::SelectInst>(user)) {
    return Use::kLeadsThereToo;
  }
  if (llvm::isa<llvm::LoadInst, llvm::ICmpInst, llvm::MemIntrinsic>(user)) return Use::kHarmless;
  if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&user)) {
    if (store->getValueOperand() != &address) return Use::kHarmless;
    const auto* variable = llvm::dyn_cast<llvm::AllocaInst>(object_of(store->getPointerOperand()));
    return variable != nullptr && is_of_frames(*variable) ? Use::kHarmless : Use::kTells;
  }
  if (llvm::isa<llvm::PtrToIntInst>(user) && is_compared(user)) return Use::kHarmless;
  switch (abi_call(user)) {
    case AbiCall::kNone:
    case AbiCall::kSetRoot:
      return Use::kTells;
    case AbiCall::kVolatileTarget:
      return Use::kLeadsThereToo;
    default:
      return Use::kHarmless;
  }
}

}  // namespace

const NewBlocks::Block& NewBlocks::block_of(const llvm::CallBase& allocation) {
  const auto [found, is_new] = blocks_.try_emplace(&allocation);
  Block& block = found->second;
  if (!is_new) return block;
  llvm::SmallVector<const llvm::Value*, 16> addresses{&allocation};
  while (!addresses.empty()) {
    const llvm::Value* address = addresses.pop_back_val();
    if (!block.addresses.insert(address).second) continue;
    for (const llvm::User* user : address->users()) {
      const auto& instruction = *llvm::cast<llvm::Instruction>(user);
      const Use use = use_of(*address, instruction);
      if (use == Use::kLeadsThereToo) addresses.push_back(&instruction);
      if (use == Use::kTells) block.told_by.push_back(&instruction);
    }
  }
  // LLVM's own search gives up in large functions.
  llvm::SmallVector<const llvm::BasicBlock*, 16> to_leave;
  for (const llvm::Instruction* tells : block.told_by) to_leave.push_back(tells->getParent());
  while (!to_leave.empty()) {
    for (const llvm::BasicBlock* next : llvm::successors(to_leave.pop_back_val())) {
      if (block.behind.insert(next).second) to_leave.push_back(next);
    }
  }
  return block;
}

bool NewBlocks::is_told_before(const Block& block, const llvm::Instruction& instruction) {
  return block.behind.contains(instruction.getParent()) ||
         llvm::any_of(block.told_by, [&](const llvm::Instruction* tells) {
           return tells->getParent() == instruction.getParent() && tells->comesBefore(&instruction);
         });
}

bool NewBlocks::is_new_to(const llvm::Value* block, const llvm::Value* address) {
  if (!llvm::isNoAliasCall(block) || !address->getType()->isPointerTy()) return false;
  const Block& of = block_of(*llvm::cast<llvm::CallBase>(block));
  // All that the address may be, as that of a node that goes on along a list.
  llvm::SmallVector<const llvm::Value*, 8> values{address};
  for (unsigned i = 0; i < values.size(); ++i) {
    const llvm::Value* value = values[i];
    // A number may by chance be the address of what is allocated later.
    if (!value->getType()->isPointerTy()) return false;
    if (i == kChoicesMax || of.addresses.contains(value)) return false;
    if (llvm::isa<llvm::PHINode, llvm::SelectInst>(value)) {
      for (const llvm::Value* one : llvm::cast<llvm::User>(value)->operands()) {
        const llvm::Value* object = one->getType()->isPointerTy() ? object_of(one) : nullptr;
        if (object != nullptr && !llvm::is_contained(values, object)) values.push_back(object);
      }
      continue;
    }
    // There was no such block when the function was called; another allocation gave another one.
    if (llvm::isa<llvm::Argument, llvm::ConstantPointerNull>(value)) continue;
    if (llvm::isNoAliasCall(value)) continue;
    const auto* loaded = llvm::dyn_cast<llvm::LoadInst>(value);
    if (loaded == nullptr || is_told_before(of, *loaded)) return false;
  }
  return true;
}

bool NewBlocks::are_apart(const llvm::Value* one, const llvm::Value* other) {
  return is_new_to(one, other) || is_new_to(other, one);
}

}  // namespace pawl::compiler::fase_verifier
