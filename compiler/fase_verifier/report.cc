#include "report.h"

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"

namespace pawl::compiler::fase_verifier {
namespace {

// What the pass added may have no line of its own: then that of what comes before it.
llvm::DebugLoc line_of(const llvm::Instruction& instruction) {
  const llvm::Instruction* at = &instruction;
  while (at != nullptr && (!at->getDebugLoc() || at->getDebugLoc().getLine() == 0)) {
    at = at->getPrevNode();
  }
  return at == nullptr ? llvm::DebugLoc() : at->getDebugLoc();
}

}  // namespace

void Reports::error(const llvm::Instruction& at, char rule, const llvm::Twine& text) {
  const llvm::Function& function = *at.getFunction();
  const llvm::DebugLoc location = line_of(at);
  const bool has_place = location && location.getLine() != 0;
  if (has_place && !said_
                        .insert({rule, llvm::cast<llvm::DIScope>(location.getScope())->getFile(),
                                 location.getLine(), location.getCol()})
                        .second) {
    return;
  }
  const std::string whole =
      ("Pawl compiled a failure-atomic section wrong, and its verifier found it (rule " +
       llvm::Twine(rule) + "): " + text +
       "; this is a fault of the compiler, not of the program: please report it; meanwhile, "
       "another level of optimization may do, or -fpawl=undo for the whole program")
          .str();
  function.getContext().diagnose(
      llvm::DiagnosticInfoUnsupported(function, whole, location, llvm::DS_Error));
}

void warn(const llvm::Function& function, const llvm::Twine& text) {
  function.getContext().diagnose(llvm::DiagnosticInfoUnsupported(
      function, text, llvm::DiagnosticLocation(function.getSubprogram()), llvm::DS_Warning));
}

std::string name_of(const llvm::Instruction& instruction) {
  std::string text = instruction.getOpcodeName();
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call != nullptr && call->getCalledFunction() != nullptr) {
    text += " of " + call->getCalledFunction()->getName().str();
  }
  const llvm::DebugLoc location = line_of(instruction);
  return text + (location ? ", line " + std::to_string(location.getLine()) : "");
}

}  // namespace pawl::compiler::fase_verifier
