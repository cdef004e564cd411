// How many locks a thread may hold at each point of a function, of those that the function takes.
//
// Ways on which different numbers are held are kept apart, with what is known on each of them of
// values that are zero or not: so `if (node != NULL) unlock(node)` releases on those ways on which
// `node` was locked.  This is the property simulation of Das, Lerner and Seigle (PLDI 2002).
#pragma once

#include <map>

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Function.h"

namespace pawl::compiler::fase {

class HeldLocks {
 public:
  // As many as are counted; more are that many.  Taken in a loop and never released there, there
  // may be any number, and what releases them cannot be told.
  static constexpr unsigned kMany = 33;

  explicit HeldLocks(const llvm::Function& function);

  // The most that may be held just before the instruction, and just after it; 0 where none is.
  unsigned before(const llvm::Instruction& instruction) const;
  unsigned after(const llvm::Instruction& instruction) const;
  // A way out on which one of its locks is held for certain, or as the result says; or null.
  const llvm::Instruction* returns_with_lock() const { return returns_with_lock_; }
  bool takes_any() const { return takes_any_; }
  // True when it may release a lock that it has not taken: one of a caller's.
  bool releases_others() const { return releases_others_; }

  // What is known on some ways: whether a value is zero.
  using Facts = std::map<const llvm::Value*, bool>;
  // By the number of locks held.
  using States = std::map<unsigned, Facts>;

 private:
  void flow(const llvm::Function& function);
  States through(const llvm::BasicBlock& block, const States& states);
  void note(const llvm::Instruction& instruction, const States& states);

  llvm::DenseMap<const llvm::Instruction*, unsigned> before_;
  llvm::DenseMap<const llvm::Instruction*, unsigned> after_;
  const llvm::Instruction* returns_with_lock_ = nullptr;
  bool takes_any_ = false;
  bool releases_others_ = false;
};

}  // namespace pawl::compiler::fase
