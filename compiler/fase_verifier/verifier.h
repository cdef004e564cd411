// Checks what the pass of failure-atomic sections made, by its outcome alone.
#pragma once

#include "llvm/IR/PassManager.h"

namespace pawl::compiler::fase_verifier {

// Runs last.  A function that breaks a rule is an error; one that is too large to look at
// (walk.h has the bound) a warning.  docs/fase-verifier.md has the rules.
class VerifierPass : public llvm::PassInfoMixin<VerifierPass> {
 public:
  static llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace pawl::compiler::fase_verifier
