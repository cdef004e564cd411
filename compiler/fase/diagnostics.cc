#include "diagnostics.h"

#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/LLVMContext.h"

namespace pawl::compiler::fase {
namespace {

constexpr char kPassName[] = "pawl";

// The nearest instruction before this one that has a line, or this one's own.
llvm::DebugLoc location_of(const llvm::Instruction& instruction) {
  for (const llvm::Instruction* at = &instruction; at != nullptr; at = at->getPrevNode()) {
    if (at->getDebugLoc() && at->getDebugLoc().getLine() != 0) return at->getDebugLoc();
  }
  for (const llvm::Instruction* at = &instruction; at != nullptr; at = at->getNextNode()) {
    if (at->getDebugLoc() && at->getDebugLoc().getLine() != 0) return at->getDebugLoc();
  }
  return {};
}

}  // namespace

void report_error(const llvm::Instruction& at, const llvm::Twine& text) {
  const llvm::Function& function = *at.getFunction();
  function.getContext().diagnose(
      llvm::DiagnosticInfoUnsupported(function, text, location_of(at), llvm::DS_Error));
}

void report_error(const llvm::Function& function, const llvm::Twine& text) {
  function.getContext().diagnose(llvm::DiagnosticInfoUnsupported(
      function, text, llvm::DiagnosticLocation(function.getSubprogram()), llvm::DS_Error));
}

void remark(const llvm::Instruction& at, const llvm::Twine& text) {
  llvm::OptimizationRemark said(kPassName, "FailureAtomicSection",
                                llvm::DiagnosticLocation(location_of(at)), at.getParent());
  said << text.str();
  at.getContext().diagnose(said);
}

std::string line_text(const llvm::Instruction& instruction) {
  const unsigned line = line_of(instruction);
  return line == 0 ? "an unknown line" : "line " + std::to_string(line);
}

unsigned line_of(const llvm::Instruction& instruction) {
  const llvm::DebugLoc location = location_of(instruction);
  return location ? location.getLine() : 0;
}

std::string source_name(const llvm::Function& function) {
  return llvm::demangle(function.getName());
}

}  // namespace pawl::compiler::fase
