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
  bool at(const llvm::Instruction& instruction) const { return at_.contains(&instruction); }

 private:
  // True when something is new.
  bool flow(const FunctionPlan& plan);
  bool through(const llvm::BasicBlock& block, bool armed);
  bool is_armed_at_entry(const llvm::Function& function) const;

  const Sections& sections_;
  llvm::DenseSet<const llvm::Instruction*> cuts_;
  llvm::DenseSet<const llvm::Instruction*> at_;
  llvm::DenseMap<const llvm::BasicBlock*, bool> entries_;
  llvm::DenseSet<const llvm::Function*> called_armed_;
};

}  // namespace pawl::compiler::fase
