// What must not be done in a section: found when it is compiled, or, where that cannot be told,
// when it is executed.
#pragma once

#include <string>
#include <vector>

#include "armed.h"
#include "globals.h"
#include "llvm/IR/Module.h"
#include "regions.h"
#include "run_time_calls.h"
#include "sections.h"
#include "tables.h"

namespace pawl::compiler::fase {

enum class CheckKind {
  kLoad,           // of memory that may be volatile, where frames may have been logged
  kVolatileLoad,   // of memory that is
  kEntry,          // the function reads such memory, and may have been called by what is resumed
  kRefuse,         // what cannot be in a section, where there may be one
  kRefuseUnarmed,  // the same, which may log the section's first frame
  kExternal,       // a call of a function that may not have been compiled for sections
};

struct Check {
  CheckKind kind = CheckKind::kLoad;
  llvm::Instruction* before = nullptr;  // kEntry: the load, and all of the function is behind
  llvm::Value* pointer = nullptr;       // of loads
  std::string what;
};

class Checks {
 public:
  Checks(const Sections& sections, const std::vector<FunctionPlan>& plans,
         const KeptGlobals& globals);

  // All that can be told now.
  void report_errors() const;

  // What is left for the run-time, of a function that has not been changed yet.
  std::vector<Check> find(llvm::Function& function) const;

 private:
  void report(llvm::Instruction& instruction) const;
  bool is_gone_when_resumed(const llvm::Instruction& read, const llvm::Value* pointer) const;

  const Sections& sections_;
  const std::vector<FunctionPlan>& plans_;
  const KeptGlobals& globals_;
  Armed armed_;
};

void emit_checks(std::vector<Check> checks, RunTime& run_time, Tables& tables);

}  // namespace pawl::compiler::fase
