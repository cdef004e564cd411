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

// Functions of the C library that read what their arguments lead to, and nothing else, whatever the
// program's declarations say.
bool is_reader(llvm::StringRef name) {
  return llvm::StringSwitch<bool>(name)
      .Cases("memcmp", "bcmp", "memchr", "memrchr", "rawmemchr", "memmem", true)
      .Cases("strlen", "strnlen", "strcmp", "strncmp", "strcasecmp", "strncasecmp", true)
      .Cases("strchr", "strrchr", "strchrnul", "strstr", "strspn", "strcspn", "strpbrk", true)
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
  if (is_reader(name_of_callee(call))) return Foreign::kReadsArguments;
  if (call.doesNotReturn()) return Foreign::kEnds;
  if (call.onlyReadsMemory() && call.onlyAccessesArgMemory()) return Foreign::kReadsArguments;
  if (call.onlyReadsMemory()) return Foreign::kReads;
  return Foreign::kUnknown;
}

}  // namespace pawl::compiler::fase_verifier
