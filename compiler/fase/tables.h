// What the program tells the run-time about its functions.
#pragma once

#include "llvm/ADT/MapVector.h"
#include "llvm/IR/GlobalVariable.h"
#include "regions.h"
#include "run_time_calls.h"

namespace pawl::compiler::fase {

class Tables {
 public:
  Tables(llvm::Module& module, RunTime& run_time) : module_(module), run_time_(run_time) {}

  // The struct pawl_fase_function of the function, which has no contents yet.
  llvm::GlobalVariable* table(llvm::Function& function);

  // Fills the function's in; `resume` is null where it has no regions.
  void fill(const FunctionPlan& plan, llvm::Function* resume);

  // A constructor of the module that registers them all, if there are any.
  void register_all();

  // A string of the program's.
  llvm::Constant* text(llvm::StringRef text);

 private:
  llvm::Module& module_;
  RunTime& run_time_;
  llvm::MapVector<llvm::Function*, llvm::GlobalVariable*> tables_;
};

}  // namespace pawl::compiler::fase
