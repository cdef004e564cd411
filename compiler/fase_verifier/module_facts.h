// What the verifier knows of a module: its functions' tables, and which of them sections reach.
#pragma once

#include <cstdint>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"
#include "walk.h"

namespace pawl::compiler::fase_verifier {

// A struct pawl_fase_function.
struct Table {
  struct Region {
    std::uint64_t live_in_bytes = 0;
    std::uint64_t kind = 0;  // enum pawl_fase_region_kind
  };
  llvm::Function* function = nullptr;
  llvm::Function* resume = nullptr;
  std::vector<Region> regions;
};

constexpr std::uint64_t kAtCut = 0;
constexpr std::uint64_t kAfterUnlock = 1;
constexpr std::uint64_t kAfterCall = 2;

class ModuleFacts {
 public:
  explicit ModuleFacts(llvm::Module& module);

  const Table* table(const llvm::Value* variable) const;
  const llvm::DenseMap<const llvm::Value*, Table>& tables() const { return tables_; }
  // The table that names the function as one to resume; or null.
  const Table* resumed_by(const llvm::Function& function) const;

  // The function may be called while a lock is held.
  bool may_enter_inside(const llvm::Function& function) const;
  // And when its section has a frame.
  bool may_enter_armed(const llvm::Function& function) const;
  // The section's first frame may have been logged, when this comes back.
  bool may_arm(const llvm::Instruction& instruction) const;
  // Control may be here, before the instruction, while a lock is held.
  bool may_be_inside(const llvm::Instruction& instruction) const;
  // No section of the module changes the variable, so that frames can hold what it holds.
  bool is_kept(const llvm::GlobalVariable& variable) const { return !changed_.contains(&variable); }
  // The run-time is told that they do, and refuses the sections of other modules that change it.
  bool is_told(const llvm::GlobalVariable& variable) const { return told_of_.contains(&variable); }
  // A call that is none of the run-time's: regions may have begun in what it calls.
  bool may_begin_region(const llvm::CallBase& call) const;
  // A call of it begins no region.
  bool is_quiet(const llvm::Function& function) const { return quiet_.contains(&function); }

  const BackEdges& back_edges(const llvm::Function& function) const;

 private:
  void find_tables();
  void find_quiet();
  void find_sections();
  void find_armed();
  bool may_be_armed(const llvm::Instruction& call) const;
  void find_told_of();
  void find_changed();
  bool search_inside(const llvm::Instruction& instruction, bool enters_inside) const;

  llvm::Module& module_;
  llvm::DenseMap<const llvm::Value*, Table> tables_;
  llvm::DenseMap<const llvm::Function*, const Table*> resumed_by_;
  llvm::DenseSet<const llvm::Function*> quiet_;
  llvm::DenseSet<const llvm::Function*> entered_inside_;
  llvm::DenseSet<const llvm::Function*> entered_armed_;
  llvm::DenseSet<const llvm::Function*> left_inside_;    // though it was not entered so
  llvm::DenseSet<const llvm::GlobalVariable*> told_of_;  // in the module's table of what is kept
  llvm::DenseSet<const llvm::GlobalVariable*> changed_;  // by sections
  mutable llvm::DenseMap<const llvm::Function*, BackEdges> back_edges_;
};

// The condition says of a lock that was tried for that it was not got, if it is `value`; or null.
const llvm::Instruction* not_acquired(const llvm::Value* condition, bool value);
// The same of a way over an edge.
const llvm::Instruction* not_acquired(const llvm::BasicBlock& from, const llvm::BasicBlock& to);

}  // namespace pawl::compiler::fase_verifier
