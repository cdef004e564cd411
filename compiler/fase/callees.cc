#include "callees.h"

#include "library_calls.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "locks.h"

namespace pawl::compiler::fase {
namespace {

Callee of_intrinsic(const llvm::IntrinsicInst& call) {
  if (llvm::isa<llvm::AnyMemIntrinsic>(call)) {
    return llvm::isa<llvm::AtomicMemIntrinsic>(call) ? Callee::kRefused : Callee::kWrites;
  }
  switch (call.getIntrinsicID()) {
    case llvm::Intrinsic::masked_store:
      return Callee::kWrites;
    case llvm::Intrinsic::masked_load:
      return Callee::kReads;
    case llvm::Intrinsic::prefetch:
    case llvm::Intrinsic::lifetime_start:
    case llvm::Intrinsic::lifetime_end:
    case llvm::Intrinsic::stacksave:
    case llvm::Intrinsic::stackrestore:
    case llvm::Intrinsic::threadlocal_address:
      return Callee::kNothing;
    case llvm::Intrinsic::trap:
    case llvm::Intrinsic::ubsantrap:
    case llvm::Intrinsic::debugtrap:
      return Callee::kEnds;
    case llvm::Intrinsic::readcyclecounter:
    case llvm::Intrinsic::readsteadycounter:
      return Callee::kUnrepeatable;
    default:
      break;
  }
  if (call.isAssumeLikeIntrinsic() || call.doesNotAccessMemory()) return Callee::kNothing;
  if (call.onlyReadsMemory()) return Callee::kReads;
  // Notes for the compiler, such as of what stays as it is.
  return call.onlyAccessesInaccessibleMemory() ? Callee::kNothing : Callee::kRefused;
}

// A barrier for the compiler alone, or assembly that only computes.
bool is_harmless(const llvm::CallBase& assembly) {
  const auto* text = llvm::cast<llvm::InlineAsm>(assembly.getCalledOperand());
  return llvm::StringRef(text->getAsmString()).trim().empty() || assembly.doesNotAccessMemory() ||
         !assembly.mayReadOrWriteMemory();
}

}  // namespace

bool ends_program(const llvm::Function& function) {
  return function.getName() == "__clang_call_terminate";
}

bool is_heap_function(const llvm::Function& function) {
  return llvm::StringSwitch<bool>(function.getName())
      .Cases("pawl_fase_malloc", "pawl_fase_calloc", "pawl_fase_free", "pawl_fase_root",
             "pawl_fase_usable_size", true)
      .Default(false);
}

bool returns_new_memory(const llvm::Function& function) {
  return function.getName() == "pawl_fase_malloc" || function.getName() == "pawl_fase_calloc";
}

bool returns_persistent_memory(const llvm::CallBase& call) {
  const llvm::Function* callee = call.getCalledFunction();
  return callee != nullptr &&
         (returns_new_memory(*callee) || callee->getName() == "pawl_fase_root");
}

bool reads_root(const llvm::Value& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
  return callee != nullptr && callee->getName() == "pawl_fase_root";
}

bool sets_root(const llvm::Value& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
  return callee != nullptr && callee->getName() == "pawl_fase_set_root";
}

Callee callee_of(const llvm::CallBase& call) {
  if (call.isInlineAsm()) return is_harmless(call) ? Callee::kNothing : Callee::kRefused;
  if (const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&call)) {
    return of_intrinsic(*intrinsic);
  }
  if (lock_function(call) != nullptr) return Callee::kLock;
  const llvm::Function* callee = call.getCalledFunction();
  if (callee == nullptr) return Callee::kIndirect;
  if (is_heap_function(*callee)) return Callee::kHeap;
  if (sets_root(call)) return Callee::kSetsRoot;
  if (ends_program(*callee)) return Callee::kEnds;
  if (!callee->isDeclarationForLinker()) return Callee::kDefined;
  if (const std::optional<Callee> known = library_callee(*callee)) return *known;
  // Declared so by whoever wrote it.
  if (callee->doesNotAccessMemory()) return Callee::kNothing;
  return Callee::kExternal;
}

llvm::StringRef refusal_of(const llvm::CallBase& call) {
  if (call.isInlineAsm()) return "inline assembly that uses memory";
  if (llvm::isa<llvm::AtomicMemIntrinsic>(call)) return "an atomic copy";
  if (llvm::isa<llvm::VAStartInst, llvm::VAEndInst, llvm::VACopyInst>(call)) {
    return "a variable number of arguments is gone when the section is resumed: pass an array";
  }
  if (llvm::isa<llvm::IntrinsicInst>(call)) return "an operation that Pawl does not know";
  return library_refusal(*call.getCalledFunction());
}

}  // namespace pawl::compiler::fase
