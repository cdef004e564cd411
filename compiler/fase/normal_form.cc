#include "normal_form.h"

#include <vector>

#include "callees.h"
#include "diagnostics.h"
#include "held_locks.h"
#include "library_copies.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/IR/ValueHandle.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/InstSimplifyPass.h"
#include "llvm/Transforms/Scalar/JumpThreading.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"
#include "lock_variables.h"
#include "locks.h"
#include "sections.h"

namespace pawl::compiler::fase {
namespace {

// Functions within functions that hand locks on.
constexpr unsigned kRoundsMax = 40;

// `is_busy ? false : true`, as what is not optimised has it.
void negate_plainly(llvm::Function& function) {
  using namespace llvm::PatternMatch;
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    llvm::Value* condition = nullptr;
    if (!match(&instruction, m_Select(m_Value(condition), m_ZeroInt(), m_One()))) continue;
    if (condition->getType() != instruction.getType()) continue;
    auto* negated = llvm::BinaryOperator::CreateNot(condition, "", instruction.getIterator());
    negated->setDebugLoc(instruction.getDebugLoc());
    instruction.replaceAllUsesWith(negated);
    instruction.eraseFromParent();
  }
}

// Asks once what is asked again where the answer is known, behind a loop as well.
void fold_known_conditions(llvm::Function& function) {
  llvm::DominatorTree dominators(function);
  for (const llvm::BasicBlock& block : function) {
    const auto* branch = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
    if (branch == nullptr || branch->isUnconditional()) continue;
    llvm::Value* condition = branch->getCondition();
    if (llvm::isa<llvm::Constant>(condition)) continue;
    for (const bool value : {true, false}) {
      const llvm::BasicBlockEdge way(&block, branch->getSuccessor(value ? 0 : 1));
      llvm::replaceDominatedUsesWith(
          condition, llvm::ConstantInt::getBool(condition->getType(), value), dominators, way);
    }
  }
}

void promote_variables(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  const auto run = [&](auto&& pass) {
    pass.run(function, analyses);
    analyses.invalidate(function, llvm::PreservedAnalyses::none());
  };
  run(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  run(llvm::EarlyCSEPass());
  run(llvm::SimplifyCFGPass());
  // Else branches stay whose conditions are constants, and do not look so.
  run(llvm::InstSimplifyPass());
  negate_plainly(function);
  // The ways on which a guard holds its lock are others from then on than those on which it does
  // not.
  run(llvm::JumpThreadingPass());
  fold_known_conditions(function);
  fold_null_tests_of_locks(function);
  run(llvm::InstSimplifyPass());
  run(llvm::SimplifyCFGPass());
}

bool hands_locks_on(const llvm::Function& function) {
  const HeldLocks locks(function);
  return locks.returns_with_lock() != nullptr || locks.releases_others();
}

bool can_be_called_from_elsewhere(const llvm::Function& function) {
  return !function.hasLocalLinkage() && !function.hasLinkOnceLinkage();
}

// Null, as soon as one of them is there no more.
std::vector<llvm::WeakVH> calls_of(llvm::Function& function) {
  std::vector<llvm::WeakVH> calls;
  for (llvm::User* user : function.users()) {
    auto* call = llvm::dyn_cast<llvm::CallBase>(user);
    const bool is_call = call != nullptr && call->getCalledFunction() == &function;
    if (is_call && call->getFunction() != &function) calls.emplace_back(call);
  }
  return calls;
}

// True when some call is there no more.
bool inline_into_callers(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  bool changed = false;
  for (const llvm::WeakVH& handle : calls_of(function)) {
    // What was inlined before may have shown that this one is never reached.
    auto* call = llvm::cast_or_null<llvm::CallBase>(handle);
    if (call == nullptr) continue;
    llvm::Function& caller = *call->getFunction();
    llvm::InlineFunctionInfo info;
    if (!llvm::InlineFunction(*call, info).isSuccess()) continue;
    promote_variables(caller, analyses);
    changed = true;
  }
  return changed;
}

// Such as libstdc++ asks whether there are threads.
void replace_constant_functions(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (!is_defined(function) || function.isInterposable()) continue;
    const auto* end = llvm::dyn_cast<llvm::ReturnInst>(&function.getEntryBlock().front());
    auto* constant =
        end == nullptr ? nullptr : llvm::dyn_cast_or_null<llvm::Constant>(end->getReturnValue());
    if (constant == nullptr) continue;
    for (const llvm::WeakVH& handle : calls_of(function)) {
      auto* call = llvm::cast<llvm::CallBase>(handle);
      call->replaceAllUsesWith(constant);
      if (llvm::isa<llvm::CallInst>(call)) call->eraseFromParent();
    }
  }
}

void inline_lock_functions(llvm::Module& module, llvm::FunctionAnalysisManager& analyses) {
  for (unsigned round = 0; round < kRoundsMax; ++round) {
    bool changed = false;
    std::vector<llvm::Function*> found;
    for (llvm::Function& function : module) {
      if (is_defined(function) && hands_locks_on(function)) found.push_back(&function);
    }
    const auto hand_on = [&](const llvm::Function& function) {
      return llvm::is_contained(found, &function);
    };
    for (llvm::Function& function : module) {
      if (!is_defined(function) || !inline_users_of_guards(function, hand_on)) continue;
      promote_variables(function, analyses);
      changed = true;
    }
    // What was inlined may have brought guards with it: whole, before one of their members is.
    if (changed) continue;
    for (llvm::Function* function : found) {
      if (function->isVarArg()) continue;
      changed |= inline_into_callers(*function, analyses);
      if (!can_be_called_from_elsewhere(*function) && function->use_empty()) {
        analyses.clear(*function, function->getName());
        function->eraseFromParent();
      }
    }
    if (!changed) break;
  }
}

void refuse_lock_functions(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (!is_defined(function)) continue;
    const HeldLocks locks(function);
    const llvm::Instruction* way_out = locks.returns_with_lock();
    const bool is_called = can_be_called_from_elsewhere(function) || !function.use_empty();
    if (way_out == nullptr || !is_called) continue;
    report_error(*way_out,
                 "returns with a lock that it has taken, so that its callers' sections "
                 "begin inside of it, where they do not see it: make it static inline, "
                 "or take the lock in the caller");
  }
}

// A call that cannot throw is no end of its block.
void make_plain_calls(llvm::Function& function) {
  for (llvm::BasicBlock& block : llvm::make_early_inc_range(function)) {
    auto* invoke = llvm::dyn_cast<llvm::InvokeInst>(block.getTerminator());
    if (invoke == nullptr) continue;
    const bool cannot_throw = invoke->doesNotThrow() || lock_function(*invoke) != nullptr ||
                              callee_of(*invoke) == Callee::kHeap || is_library_copy(*invoke);
    if (cannot_throw) {
      llvm::changeToCall(invoke);
    } else {
      // What follows its return stands in a block of its own.
      llvm::SplitEdge(&block, invoke->getNormalDest());
    }
  }
}

// Functions in which nothing throws: the optimiser says so of few that other modules have, too.
void mark_what_cannot_throw(llvm::Module& module) {
  llvm::DenseSet<const llvm::Function*> found;
  for (const llvm::Function& function : module) {
    if (is_defined(function) && !function.isInterposable()) found.insert(&function);
  }
  const auto may_throw = [&](const llvm::Instruction& instruction) {
    if (!instruction.mayThrow()) return false;
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
    return callee == nullptr || !found.contains(callee);
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const llvm::Function& function : module) {
      if (!found.contains(&function) || llvm::none_of(llvm::instructions(function), may_throw)) {
        continue;
      }
      found.erase(&function);
      changed = true;
    }
  }
  for (llvm::Function& function : module) {
    if (found.contains(&function)) function.setDoesNotThrow();
  }
}

// As the copy of an empty structure: nothing asks the rules about it.
void drop_what_copies_nothing(llvm::Function& function) {
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    const auto* memory = llvm::dyn_cast<llvm::AnyMemIntrinsic>(&instruction);
    const auto* bytes =
        memory == nullptr ? nullptr : llvm::dyn_cast<llvm::ConstantInt>(memory->getLength());
    if (bytes != nullptr && bytes->isZero()) instruction.eraseFromParent();
  }
}

void mark_heap_functions(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (!is_heap_function(function)) continue;
    function.setDoesNotThrow();
    if (returns_new_memory(function)) function.setReturnDoesNotAlias();
  }
}

}  // namespace

void bring_into_normal_form(llvm::Module& module, llvm::ModuleAnalysisManager& analyses) {
  auto& functions =
      analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
  mark_heap_functions(module);
  mark_what_cannot_throw(module);
  replace_constant_functions(module);
  for (llvm::Function& function : module) {
    if (!is_defined(function)) continue;
    make_plain_calls(function);
    replace_library_copies(function);
    functions.invalidate(function, llvm::PreservedAnalyses::none());
    // With -O1 the ways on which a guard holds its lock are not apart either.
    const bool has_locks = llvm::any_of(llvm::instructions(function), [](const auto& instruction) {
      return lock_function(instruction) != nullptr;
    });
    if (function.hasOptNone() || has_locks) promote_variables(function, functions);
  }
  inline_lock_functions(module, functions);
  refuse_lock_functions(module);
  for (llvm::Function& function : module) {
    if (is_defined(function)) {
      llvm::removeUnreachableBlocks(function);
      drop_what_copies_nothing(function);
    }
    functions.invalidate(function, llvm::PreservedAnalyses::none());
  }
}

}  // namespace pawl::compiler::fase
