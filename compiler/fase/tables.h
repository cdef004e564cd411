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

  // Constructors of the module that register all of the program's, and the variables that frames
  // hold, if the module has any.  With sections, also where none stores anything: so the program is
  // known to have them.
  void register_all(bool has_sections);

  // A string of the program's.
  llvm::Constant* text(llvm::StringRef text);

 private:
  // What stands in a frame of the module is the variable's contents: no section may change it.
  void keep(const GlobalValueRead& read);
  llvm::GlobalVariable* kept_table(llvm::GlobalVariable& variable, std::uint64_t bytes);

  llvm::Module& module_;
  RunTime& run_time_;
  llvm::MapVector<llvm::Function*, llvm::GlobalVariable*> tables_;
  llvm::MapVector<llvm::GlobalVariable*, std::uint64_t> kept_;  // and how many bytes it has
};

}  // namespace pawl::compiler::fase
