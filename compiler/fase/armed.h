// Where a section may have logged a frame: from then on volatile memory must not be read.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "regions.h"
#include "sections.h"

namespace pawl::compiler::fase {

class Armed {
 public:
  Armed(const std::vector<FunctionPlan>& plans, const Sections& sections);

  // When the instruction is executed, behind the cut that precedes it if one does.
  // kPerhaps: by a section that the function was called in, from elsewhere.  kCertainly: on some
  // way that the module itself has, be it one with a cut that is only made if what is written is
  // persistent.
  Inside at(const llvm::Instruction& instruction) const { return at_.lookup(&instruction); }

  // When the function is called.
  Inside at_entry(const llvm::Function& function) const;

 private:
  // True when something is new.
  bool flow(const FunctionPlan& plan);
  Inside through(const llvm::BasicBlock& block, Inside armed);
  void raise(Inside& known, Inside armed);

  const Sections& sections_;
  llvm::DenseSet<const llvm::Instruction*> cuts_;
  llvm::DenseMap<const llvm::Instruction*, Inside> at_;
  llvm::DenseMap<const llvm::BasicBlock*, Inside> entries_;
  llvm::DenseMap<const llvm::Function*, Inside> called_;
  bool is_new_ = false;
};

}  // namespace pawl::compiler::fase
