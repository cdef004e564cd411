// Variables on the stack, which are not there any more when a section is resumed.  The contents of
// small ones go into the frame and come out of it, as live-ins do.
#pragma once

#include <map>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Instructions.h"

namespace pawl::compiler::fase {

// True of a variable whose accesses are all in sight, small enough for a frame.
bool is_kept_local(const llvm::AllocaInst& variable);

// True of a pointer into such a variable, and nowhere else.
bool leads_to_kept_local(const llvm::Value* pointer);

// Where kept variables have contents that are read later.
class LiveLocals {
 public:
  explicit LiveLocals(llvm::Function& function);

  // What is written before the end of the instruction, and read after it.
  std::vector<llvm::AllocaInst*> after(const llvm::Instruction& instruction) const;

 private:
  using Set = llvm::SmallSetVector<llvm::AllocaInst*, 8>;

  void step_forwards(const llvm::Instruction& instruction, Set& written) const;
  void step_backwards(const llvm::Instruction& instruction, Set& read) const;
  void flow(llvm::Function& function);

  Set kept_;
  std::map<const llvm::BasicBlock*, Set> written_at_begin_;
  std::map<const llvm::BasicBlock*, Set> read_at_end_;
};

// Arguments that are copies on the caller's stack become variables of the function.
void copy_arguments(llvm::Function& function);

}  // namespace pawl::compiler::fase
