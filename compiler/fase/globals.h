// Global variables that sections read: a pointer to the data, a setting.  They are volatile; so
// what they hold goes into the frame, and a resumed section reads them from there.
#pragma once

#include <map>
#include <vector>

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Instructions.h"
#include "sections.h"

namespace pawl::compiler::fase {

// A scalar in a global variable.
using GlobalValueRead = std::pair<llvm::Constant*, llvm::Type*>;

class KeptGlobals {
 public:
  // Those that no section of the module changes: in recovery what it stored would be lost.
  KeptGlobals(llvm::Module& module, const Sections& sections);

  // What the instruction reads of such a variable.
  std::optional<GlobalValueRead> read_of(const llvm::Instruction& instruction) const;

 private:
  llvm::DenseSet<const llvm::GlobalVariable*> changed_;
};

// Where kept variables are read later.
class LiveGlobals {
 public:
  LiveGlobals(const llvm::Function& function, const KeptGlobals& kept);

  std::vector<GlobalValueRead> after(const llvm::Instruction& instruction) const;

 private:
  using Set = llvm::SmallSetVector<GlobalValueRead, 4>;

  void step_backwards(const llvm::Instruction& instruction, Set& read) const;

  const KeptGlobals& kept_;
  std::map<const llvm::BasicBlock*, Set> read_at_end_;
};

}  // namespace pawl::compiler::fase
