// How many locks a thread may hold at each point of a function, of those that the function takes.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Function.h"

namespace pawl::compiler::fase {

class HeldLocks {
 public:
  // As many as are counted; more are that many.  Taken in a loop and never released there, there
  // may be any number, and what releases them cannot be told.
  static constexpr unsigned kMany = 64;

  explicit HeldLocks(const llvm::Function& function);

  // The most that may be held just before the instruction; 0 where none is.
  unsigned before(const llvm::Instruction& instruction) const;
  unsigned after(const llvm::Instruction& instruction) const;
  // A way out of the function on which one of its locks may still be held, or null.
  const llvm::Instruction* returns_with_lock() const { return returns_with_lock_; }
  bool takes_any() const { return takes_any_; }
  // True when it may release a lock that it has not taken: one of a caller's.
  bool releases_others() const { return releases_others_; }

 private:
  unsigned through(const llvm::BasicBlock& block, unsigned held);

  llvm::DenseMap<const llvm::Instruction*, unsigned> before_;
  const llvm::Instruction* returns_with_lock_ = nullptr;
  bool takes_any_ = false;
  bool releases_others_ = false;
};

}  // namespace pawl::compiler::fase
