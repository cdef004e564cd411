#include "locks.h"

#include <array>

#include "diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"

namespace pawl::compiler::fase {
namespace {

using Operation = LockOperation;
using Result = LockResult;

constexpr std::array kLockFunctions = {
    LockFunction{"pthread_mutex_init", Operation::kOther, "pawl_fase_mutex_init"},
    LockFunction{"pthread_mutex_destroy", Operation::kOther, "pawl_fase_mutex_destroy"},
    LockFunction{"pthread_mutex_lock", Operation::kAcquire, "pawl_fase_mutex_lock"},
    LockFunction{"pthread_mutex_trylock", Operation::kTryAcquire, "pawl_fase_mutex_trylock"},
    LockFunction{"pthread_mutex_timedlock", Operation::kTryAcquire, "pawl_fase_mutex_timedlock"},
    LockFunction{"pthread_mutex_unlock", Operation::kRelease, "pawl_fase_mutex_unlock"},
    LockFunction{"pthread_rwlock_init", Operation::kOther, "pawl_fase_rwlock_init"},
    LockFunction{"pthread_rwlock_destroy", Operation::kOther, "pawl_fase_rwlock_destroy"},
    LockFunction{"pthread_rwlock_rdlock", Operation::kAcquire, "pawl_fase_rwlock_rdlock"},
    LockFunction{"pthread_rwlock_tryrdlock", Operation::kTryAcquire, "pawl_fase_rwlock_tryrdlock"},
    LockFunction{"pthread_rwlock_wrlock", Operation::kAcquire, "pawl_fase_rwlock_wrlock"},
    LockFunction{"pthread_rwlock_trywrlock", Operation::kTryAcquire, "pawl_fase_rwlock_trywrlock"},
    LockFunction{"pthread_rwlock_unlock", Operation::kRelease, "pawl_fase_rwlock_unlock"},
    LockFunction{"pthread_spin_init", Operation::kOther, "pawl_fase_spin_init"},
    LockFunction{"pthread_spin_destroy", Operation::kOther, "pawl_fase_spin_destroy"},
    LockFunction{"pthread_spin_lock", Operation::kAcquire, "pawl_fase_spin_lock"},
    LockFunction{"pthread_spin_trylock", Operation::kTryAcquire, "pawl_fase_spin_trylock"},
    LockFunction{"pthread_spin_unlock", Operation::kRelease, "pawl_fase_spin_unlock"},
    LockFunction{"pthread_cond_init", Operation::kOther, "pawl_fase_cond_init"},
    LockFunction{"pthread_cond_destroy", Operation::kOther, "pawl_fase_cond_destroy"},
    LockFunction{"pthread_cond_wait", Operation::kWait, "pawl_fase_cond_wait"},
    LockFunction{"pthread_cond_timedwait", Operation::kWait, "pawl_fase_cond_timedwait"},
    LockFunction{"pthread_cond_clockwait", Operation::kWait, "pawl_fase_cond_clockwait"},
    LockFunction{"pthread_cond_signal", Operation::kOther, "pawl_fase_cond_signal"},
    LockFunction{"pthread_cond_broadcast", Operation::kOther, "pawl_fase_cond_broadcast"},
    LockFunction{"mtx_init", Operation::kOther, "pawl_fase_mutex_init", Result::kC11},
    LockFunction{"mtx_destroy", Operation::kOther, "pawl_fase_mutex_destroy", Result::kNone},
    LockFunction{"mtx_lock", Operation::kAcquire, "pawl_fase_mutex_lock", Result::kC11},
    LockFunction{"mtx_trylock", Operation::kTryAcquire, "pawl_fase_mutex_trylock", Result::kC11},
    LockFunction{"mtx_timedlock", Operation::kTryAcquire, "pawl_fase_mutex_timedlock",
                 Result::kC11},
    LockFunction{"mtx_unlock", Operation::kRelease, "pawl_fase_mutex_unlock", Result::kC11},
    LockFunction{"cnd_init", Operation::kOther, "pawl_fase_cond_init", Result::kC11},
    LockFunction{"cnd_destroy", Operation::kOther, "pawl_fase_cond_destroy", Result::kNone},
    LockFunction{"cnd_wait", Operation::kWait, "pawl_fase_cond_wait", Result::kC11},
    LockFunction{"cnd_timedwait", Operation::kWait, "pawl_fase_cond_timedwait", Result::kC11},
    LockFunction{"cnd_signal", Operation::kOther, "pawl_fase_cond_signal", Result::kC11},
    LockFunction{"cnd_broadcast", Operation::kOther, "pawl_fase_cond_broadcast", Result::kC11},
    LockFunction{"pawl_fase_begin", Operation::kAcquire, "pawl_fase_section_begin", Result::kNone},
    LockFunction{"pawl_fase_end", Operation::kRelease, "pawl_fase_section_end", Result::kNone},
};

// They take or wait for one of these locks in ways that the run-time does not know.
constexpr std::array kOtherLockFunctions = {
    llvm::StringLiteral{"pthread_mutex_clocklock"},
    llvm::StringLiteral{"pthread_mutex_consistent"},
    llvm::StringLiteral{"pthread_mutex_getprioceiling"},
    llvm::StringLiteral{"pthread_mutex_setprioceiling"},
    llvm::StringLiteral{"pthread_rwlock_timedrdlock"},
    llvm::StringLiteral{"pthread_rwlock_timedwrlock"},
    llvm::StringLiteral{"pthread_rwlock_clockrdlock"},
    llvm::StringLiteral{"pthread_rwlock_clockwrlock"},
    llvm::StringLiteral{"_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"},
    llvm::StringLiteral{"_ZSt25notify_all_at_thread_exitRSt18condition_variableSt11unique_lockISt5"
                        "mutexE"},
};

// thrd_success and its neighbours, and the numbers of errno that they stand for.
constexpr int kC11Busy = 1;
constexpr int kC11Error = 2;
constexpr int kC11NoMemory = 3;
constexpr int kC11TimedOut = 4;
constexpr int kErrnoNoMemory = 12;
constexpr int kErrnoBusy = 16;
constexpr int kErrnoTimedOut = 110;

llvm::StringRef plain_name(llvm::StringRef name) {
  name.consume_front("\01");
  name.consume_front("__gthrw_");
  return name;
}

const LockFunction* known_lock_function(const llvm::Function& function) {
  const llvm::StringRef name = plain_name(function.getName());
  for (const LockFunction& known : kLockFunctions) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

llvm::Value* c11_result(llvm::IRBuilder<>& builder, llvm::Value* error) {
  const auto choose = [&](int number, int result, llvm::Value* otherwise) {
    return builder.CreateSelect(builder.CreateICmpEQ(error, builder.getInt32(number)),
                                builder.getInt32(result), otherwise);
  };
  return choose(0, 0,
                choose(kErrnoBusy, kC11Busy,
                       choose(kErrnoTimedOut, kC11TimedOut,
                              choose(kErrnoNoMemory, kC11NoMemory, builder.getInt32(kC11Error)))));
}

// The arguments that the run-time's namesake takes, but for a release's region.
std::vector<llvm::Value*> arguments_of(llvm::CallBase& call, llvm::StringRef name) {
  std::vector<llvm::Value*> arguments(call.arg_begin(), call.arg_end());
  auto* no_attributes =
      llvm::ConstantPointerNull::get(llvm::PointerType::getUnqual(call.getContext()));
  if (name == "mtx_init") {
    const auto* type = llvm::dyn_cast<llvm::ConstantInt>(arguments.at(1));
    if (type == nullptr || (type->getZExtValue() & 1) != 0) {
      report_error(call,
                   "a recursive mutex: Pawl's failure-atomic sections have none; take "
                   "mtx_plain or mtx_timed");
    }
    arguments.at(1) = no_attributes;
  } else if (name == "cnd_init") {
    arguments.push_back(no_attributes);
  }
  return arguments;
}

}  // namespace

const LockFunction* lock_function(const llvm::Value& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr) return nullptr;
  const llvm::Function* callee = call->getCalledFunction();
  return callee == nullptr || !callee->isDeclaration() ? nullptr : known_lock_function(*callee);
}

std::optional<LockOperation> lock_operation(const llvm::Value& instruction) {
  const LockFunction* function = lock_function(instruction);
  return function == nullptr ? std::nullopt : std::optional(function->operation);
}

llvm::CallInst* replace_lock_call(llvm::CallBase& call, std::optional<RegionArguments> region) {
  const LockFunction& function = *lock_function(call);
  llvm::IRBuilder<> builder(&call);
  std::vector<llvm::Value*> arguments = arguments_of(call, function.name);
  if (function.operation == LockOperation::kRelease) {
    auto* null = llvm::ConstantPointerNull::get(builder.getPtrTy());
    if (region) {
      arguments.insert(arguments.end(), {region->function, region->region, region->live_ins});
    } else {
      arguments.insert(arguments.end(), {null, builder.getInt32(0), null});
    }
  }
  std::vector<llvm::Type*> types;
  types.reserve(arguments.size());
  for (llvm::Value* argument : arguments) types.push_back(argument->getType());
  const bool is_section = llvm::StringRef(function.replacement).starts_with("pawl_fase_section");
  llvm::Type* result = is_section ? builder.getVoidTy() : builder.getInt32Ty();
  llvm::FunctionCallee callee = call.getModule()->getOrInsertFunction(
      function.replacement, llvm::FunctionType::get(result, types, /*isVarArg=*/false));
  llvm::cast<llvm::Function>(callee.getCallee())->setDoesNotThrow();
  llvm::CallInst* replacement = builder.CreateCall(callee, arguments);
  replacement->setDoesNotThrow();
  if (!call.getType()->isVoidTy() && !call.use_empty()) {
    llvm::Value* outcome = replacement;
    if (function.result == LockResult::kC11) outcome = c11_result(builder, replacement);
    call.replaceAllUsesWith(outcome);
  }
  call.eraseFromParent();
  return replacement;
}

bool ends_all_sections(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
  if (callee == nullptr) return false;
  const bool is_release = llvm::any_of(kLockFunctions, [&](const LockFunction& function) {
    return function.operation == LockOperation::kRelease &&
           callee->getName() == function.replacement;
  });
  if (!is_release) return false;
  constexpr unsigned kFunctionFromEnd = 3;  // of the region's arguments, which come last
  return llvm::isa<llvm::ConstantPointerNull>(
      call->getArgOperand(call->arg_size() - kFunctionFromEnd));
}

void refuse_other_locks(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) continue;
    const llvm::StringRef name = plain_name(function.getName());
    const bool is_other = llvm::is_contained(kOtherLockFunctions, name);
    const bool is_known = known_lock_function(function) != nullptr;
    if (!is_other && !is_known) continue;
    for (const llvm::Use& use : function.uses()) {
      const auto* call = llvm::dyn_cast<llvm::CallBase>(use.getUser());
      const bool is_called = call != nullptr && call->isCallee(&use);
      const auto* at = llvm::dyn_cast<llvm::Instruction>(use.getUser());
      if (is_other && is_called) {
        report_error(*call, llvm::Twine(source_name(function)) +
                                " works on locks that are Pawl's with -fpawl=ido, and Pawl has no "
                                "such function: take a plain lock or wait, of POSIX or C11");
      } else if (is_known && !is_called && at != nullptr) {
        report_error(*at, llvm::Twine("the address of ") + name +
                              " is taken: Pawl sees what locks are taken and released only where "
                              "such functions are called by name");
      }
    }
  }
}

}  // namespace pawl::compiler::fase
