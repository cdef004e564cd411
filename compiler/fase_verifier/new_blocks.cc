#include "new_blocks.h"

#include "abi_calls.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/CFG.h"
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
  return block;
}

bool NewBlocks::is_new_to(const llvm::Value* block, const llvm::Value* address) {
  if (!llvm::isNoAliasCall(block) || !address->getType()->isPointerTy()) return false;
  const Block& of = block_of(*llvm::cast<llvm::CallBase>(block));
  if (of.addresses.contains(address)) return false;
  // There was no such block when the function was called.
  if (llvm::isa<llvm::Argument>(address)) return true;
  const auto* loaded = llvm::dyn_cast<llvm::LoadInst>(address);
  if (loaded == nullptr) return false;
  return llvm::none_of(of.told_by, [&](const llvm::Instruction* tells) {
    return llvm::isPotentiallyReachable(tells, loaded, nullptr, &dominators_, &loops_);
  });
}

bool NewBlocks::are_apart(const llvm::Value* one, const llvm::Value* other) {
  return is_new_to(one, other) || is_new_to(other, one);
}

}  // namespace pawl::compiler::fase_verifier
