#include "abi_calls.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IntrinsicInst.h"

namespace pawl::compiler::fase_verifier {
namespace {

llvm::StringRef name_of_callee(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
  return callee == nullptr ? llvm::StringRef() : callee->getName();
}

// Of a function of the C library, or of another module.
llvm::StringRef name_of_elsewhere(const llvm::CallBase& call) {
  const llvm::Function* callee = call.getCalledFunction();
  const bool is_elsewhere = callee != nullptr && callee->isDeclarationForLinker();
  return is_elsewhere ? callee->getName() : llvm::StringRef();
}

// Functions of the C library that read what their arguments lead to, and nothing else, whatever the
// program's declarations say.
bool is_reader(const llvm::CallBase& call) {
  return llvm::StringSwitch<bool>(name_of_elsewhere(call))
      .Cases("memcmp", "bcmp", "memchr", "memrchr", "rawmemchr", "memmem", true)
      .Cases("strlen", "strnlen", "strcmp", "strncmp", "strcasecmp", "strncasecmp", true)
      .Cases("strchr", "strrchr", "strchrnul", "strstr", "strspn", "strcspn", "strpbrk", true)
      .Default(false);
}

// Those that compute, and write errno at most, which no section reads.
bool is_arithmetic(const llvm::CallBase& call) {
  const bool has_numbers_only =
      !call.getType()->isVoidTy() && llvm::none_of(call.args(), [](const llvm::Use& argument) {
        return argument->getType()->isPtrOrPtrVectorTy();
      });
  if (!has_numbers_only) return false;
  return llvm::StringSwitch<bool>(name_of_elsewhere(call))
      .Cases("abs", "labs", "llabs", "ffs", "ffsl", "ffsll", "div", "ldiv", true)
      .Cases("sqrt", "sqrtf", "floor", "ceil", "round", "trunc", "fabs", "fmod", true)
      .Cases("pow", "exp", "exp2", "log", "log2", "log10", true)
      .Cases("sin", "cos", "tan", "atan", "atan2", true)
      .Cases("__mulsc3", "__muldc3", "__mulxc3", "__multc3", true)
      .Cases("__divsc3", "__divdc3", "__divxc3", "__divtc3", true)
      .Default(false);
}

}  // namespace

AbiCall abi_call(const llvm::Instruction& instruction) {
  llvm::StringRef name = name_of_callee(instruction);
  if (!name.consume_front("pawl_fase_")) return AbiCall::kNone;
  const bool is_release = name.ends_with("_unlock") || name == "section_end";
  if (is_release) {
    const std::optional<Frame> frame = frame_of(instruction);
    return llvm::isa<llvm::ConstantPointerNull>(frame->function) ? AbiCall::kReleaseLast
                                                                 : AbiCall::kRelease;
  }
  return llvm::StringSwitch<AbiCall>(name)
      .Case("cut", AbiCall::kCut)
      .Cases("call", "call_indirect", AbiCall::kCallFrame)
      .Case("return", AbiCall::kReturn)
      .Case("stored", AbiCall::kStored)
      .Case("volatile_target", AbiCall::kVolatileTarget)
      .Case("volatile_load", AbiCall::kVolatileLoad)
      .Case("refuse", AbiCall::kRefuse)
      .Case("refuse_unarmed", AbiCall::kRefuseUnarmed)
      .Cases("mutex_lock", "rwlock_rdlock", "rwlock_wrlock", "spin_lock", "section_begin",
             AbiCall::kAcquire)
      .Cases("mutex_trylock", "mutex_timedlock", "rwlock_tryrdlock", "rwlock_trywrlock",
             "spin_trylock", AbiCall::kTryAcquire)
      .Cases("cond_wait", "cond_timedwait", "cond_clockwait", AbiCall::kWait)
      .Case("root", AbiCall::kRoot)
      .Case("set_root", AbiCall::kSetRoot)
      .Cases("malloc", "calloc", "free", "usable_size", "register", AbiCall::kQuiet)
      .Cases("handler_begin", "handler_end", AbiCall::kQuiet)
      .Cases("mutex_init", "mutex_destroy", "rwlock_init", "rwlock_destroy", "spin_init",
             "spin_destroy", AbiCall::kQuiet)
      .Cases("cond_init", "cond_destroy", "cond_signal", "cond_broadcast", AbiCall::kQuiet)
      .Default(AbiCall::kNone);
}

AbiCall refusal_of(const llvm::Instruction& instruction) {
  const llvm::Instruction* before = instruction.getPrevNonDebugInstruction();
  return before == nullptr ? AbiCall::kNone : abi_call(*before);
}

std::optional<Frame> frame_of(const llvm::Instruction& instruction) {
  llvm::StringRef name = name_of_callee(instruction);
  if (!name.consume_front("pawl_fase_")) return std::nullopt;
  const bool has_lock = name.ends_with("_unlock");
  const bool is_frame = has_lock || name == "section_end" || name == "cut" || name == "call" ||
                        name == "call_indirect";
  if (!is_frame) return std::nullopt;
  const auto& call = llvm::cast<llvm::CallBase>(instruction);
  const unsigned first = has_lock ? 1 : 0;
  return Frame{&call, call.getArgOperand(first), call.getArgOperand(first + 1),
               call.getArgOperand(first + 2)};
}

Foreign foreign(const llvm::CallBase& call) {
  if (call.doesNotAccessMemory()) return Foreign::kNothing;
  if (const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&call)) {
    return intrinsic->isAssumeLikeIntrinsic() ? Foreign::kNothing : Foreign::kAccesses;
  }
  if (is_arithmetic(call)) return Foreign::kNothing;
  if (is_reader(call)) return Foreign::kReadsArguments;
  if (call.doesNotReturn()) return Foreign::kEnds;
  if (call.onlyReadsMemory() && call.onlyAccessesArgMemory()) return Foreign::kReadsArguments;
  if (call.onlyReadsMemory()) return Foreign::kReads;
  return Foreign::kUnknown;
}

const llvm::Value* length_read(const llvm::CallBase& call) {
  constexpr unsigned kLength = 2;
  const bool has_length = llvm::StringSwitch<bool>(name_of_elsewhere(call))
                              .Cases("memcmp", "bcmp", "memchr", "memrchr", true)
                              .Default(false);
  return has_length && call.arg_size() > kLength ? call.getArgOperand(kLength) : nullptr;
}

}  // namespace pawl::compiler::fase_verifier
