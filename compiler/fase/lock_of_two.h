// std::lock of two: what std::scoped_lock of two mutexes takes them with.
#pragma once

#include "llvm/IR/PassManager.h"

namespace pawl::compiler::fase {

// The C++ standard library keeps both in an array, and which of them it holds in an index, where
// nobody sees it.  This pass gives the function another body, before anything else looks at it: it
// takes one, tries the other, and else begins with that.
class LockOfTwoPass : public llvm::PassInfoMixin<LockOfTwoPass> {
 public:
  static llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager&);
  static bool isRequired() { return true; }
};

}  // namespace pawl::compiler::fase
