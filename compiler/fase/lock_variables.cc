#include "lock_variables.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "locks.h"
#include "sections.h"

namespace pawl::compiler::fase {
namespace {

// Calls that are inlined for the guards of one function.  Those that remain are refused where they
// matter.
constexpr unsigned kInlinedMax = 4096;

const llvm::AllocaInst* variable_at(const llvm::Value& pointer) {
  return llvm::dyn_cast<llvm::AllocaInst>(pointer.stripInBoundsOffsets());
}

// Of a call that can be inlined, or null.
llvm::Function* callee_to_inline(const llvm::CallBase& call) {
  llvm::Function* callee = call.getCalledFunction();
  const bool can_be_inlined = callee != nullptr && is_defined(*callee) && !callee->isVarArg() &&
                              callee != call.getFunction();
  return can_be_inlined ? callee : nullptr;
}

using Variables = llvm::SmallSetVector<const llvm::AllocaInst*, 4>;

Variables find_guards(llvm::Function& function,
                      llvm::function_ref<bool(const llvm::Function&)> hands_locks_on) {
  Variables guards;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    const llvm::Function* callee = call == nullptr ? nullptr : callee_to_inline(*call);
    if (callee == nullptr || !hands_locks_on(*callee)) continue;
    for (const llvm::Value* argument : call->args()) {
      if (!argument->getType()->isPointerTy()) continue;
      if (const llvm::AllocaInst* variable = variable_at(*argument)) guards.insert(variable);
    }
  }
  return guards;
}

llvm::CallBase* find_user(llvm::Function& function, const Variables& guards) {
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call == nullptr || callee_to_inline(*call) == nullptr) continue;
    const bool uses_guard = llvm::any_of(call->args(), [&](const llvm::Value* argument) {
      return argument->getType()->isPointerTy() && guards.contains(variable_at(*argument));
    });
    if (uses_guard) return call;
  }
  return nullptr;
}

}  // namespace

void fold_null_tests_of_locks(llvm::Function& function) {
  using namespace llvm::PatternMatch;
  const llvm::DominatorTree dominators(function);
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    const std::optional<LockOperation> operation = lock_operation(instruction);
    if (!operation || *operation == LockOperation::kOther) continue;
    const auto& call = llvm::cast<llvm::CallBase>(instruction);
    if (call.arg_empty() || llvm::isa<llvm::Constant>(call.getArgOperand(0))) continue;
    llvm::Value* lock = call.getArgOperand(0);
    for (llvm::User* user : lock->users()) {
      llvm::ICmpInst::Predicate predicate = llvm::CmpInst::BAD_ICMP_PREDICATE;
      if (!match(user, m_ICmp(predicate, m_Specific(lock), m_Zero()))) continue;
      if (!llvm::ICmpInst::isEquality(predicate)) continue;
      auto* test = llvm::cast<llvm::Instruction>(user);
      if (!dominators.dominates(&call, test)) continue;
      test->replaceAllUsesWith(
          llvm::ConstantInt::getBool(test->getType(), predicate == llvm::CmpInst::ICMP_NE));
    }
  }
}

bool inline_users_of_guards(llvm::Function& function,
                            llvm::function_ref<bool(const llvm::Function&)> hands_locks_on) {
  const Variables guards = find_guards(function, hands_locks_on);
  if (guards.empty()) return false;
  for (unsigned count = 0; count < kInlinedMax; ++count) {
    llvm::CallBase* call = find_user(function, guards);
    llvm::InlineFunctionInfo info;
    if (call == nullptr || !llvm::InlineFunction(*call, info).isSuccess()) return count != 0;
  }
  return true;
}

}  // namespace pawl::compiler::fase
