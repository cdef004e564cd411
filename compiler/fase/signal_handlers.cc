#include "signal_handlers.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Intrinsics.h"

namespace pawl::compiler::fase {
namespace {

// By what sigaction(2) takes, and by what programs cast to it: void f(int), void f(int, siginfo_t*,
// void*) and void f(void).
bool has_form_of_handler(const llvm::Function& function) {
  const llvm::FunctionType& type = *function.getFunctionType();
  if (!type.getReturnType()->isVoidTy() || type.isVarArg()) return false;
  constexpr unsigned kIntBits = 32;
  constexpr unsigned kWithInformation = 3;
  const llvm::ArrayRef<llvm::Type*> parameters = type.params();
  if (parameters.empty()) return true;
  if (!parameters.front()->isIntegerTy(kIntBits)) return false;
  return parameters.size() == 1 || (parameters.size() == kWithInformation &&
                                    parameters[1]->isPointerTy() && parameters[2]->isPointerTy());
}

void mark(llvm::Function& function, RunTime& run_time) {
  llvm::IRBuilder<> builder(&*function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
  llvm::Value* returns_to =
      builder.CreateIntrinsic(llvm::Intrinsic::returnaddress, {}, {builder.getInt32(0)});
  llvm::Value* interrupted = builder.CreateCall(run_time.handler_begin(), {returns_to});
  for (llvm::BasicBlock& block : function) {
    auto* end = llvm::dyn_cast<llvm::ReturnInst>(block.getTerminator());
    if (end == nullptr) continue;
    llvm::Instruction* last_call = block.getTerminatingMustTailCall();
    builder.SetInsertPoint(last_call != nullptr ? last_call : end);
    builder.CreateCall(run_time.handler_end(), {interrupted});
  }
}

}  // namespace

std::vector<llvm::Function*> find_signal_handlers(llvm::Module& module, const Sections& sections) {
  std::vector<llvm::Function*> found;
  for (llvm::Function& function : module) {
    const bool may_be_handler = is_defined(function) && has_form_of_handler(function) &&
                                sections.is_called_from_elsewhere(function);
    if (may_be_handler) found.push_back(&function);
  }
  return found;
}

void mark_signal_handlers(llvm::ArrayRef<llvm::Function*> handlers, RunTime& run_time) {
  for (llvm::Function* function : handlers) mark(*function, run_time);
}

}  // namespace pawl::compiler::fase
