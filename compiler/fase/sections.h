// Where failure-atomic sections are: which functions of a module may run inside one, and which of
// their instructions.
#pragma once

#include "held_locks.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

namespace pawl::compiler::fase {

enum class Inside {
  kNever,
  kPerhaps,    // whoever calls the function from elsewhere may do so inside of one
  kCertainly,  // it is, or may be on ways that the module itself has
};

class Sections {
 public:
  explicit Sections(llvm::Module& module);

  // When the function is called.
  Inside entry(const llvm::Function& function) const;
  // Just before the instruction, and just after it.
  Inside before(const llvm::Instruction& instruction) const;
  Inside after(const llvm::Instruction& instruction) const;

  // True when some of its instructions are, or perhaps.
  bool is_inside(const llvm::Function& function) const;

  // True when others than the module's own direct calls may call it, inside of a section.
  bool is_called_from_elsewhere(const llvm::Function& function) const;

  const HeldLocks& locks(const llvm::Function& function) const;

  // True of a call after which nothing is known of the regions that the callee began.
  bool may_cut(const llvm::CallBase& call) const;
  // True of a function of the C library that calls one of the program's, in which regions may
  // begin.
  bool may_cut_in_call_back(const llvm::CallBase& call) const;
  // True of what ends a region inside a section.
  bool ends_region(const llvm::Instruction& instruction) const;

 private:
  void find_entries(llvm::Module& module);
  void find_quiet(llvm::Module& module);
  bool is_quiet(llvm::Function& function) const;

  llvm::DenseMap<const llvm::Function*, HeldLocks> locks_;
  llvm::DenseMap<const llvm::Function*, Inside> entries_;
  llvm::DenseSet<const llvm::Function*> quiet_;  // no region begins in them
};

// True of functions that have instructions to look at.
bool is_defined(const llvm::Function& function);

}  // namespace pawl::compiler::fase
