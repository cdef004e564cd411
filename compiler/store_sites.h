// Where a function writes memory, and with what: the places that want a mark.
#pragma once

#include <cstdint>
#include <vector>

#include "llvm/IR/Function.h"
#include "llvm/IR/Instruction.h"
#include "llvm/IR/Value.h"

namespace pawl::compiler {

// One piece of memory that one instruction writes.
struct StoreSite {
  llvm::Instruction* instruction = nullptr;
  llvm::Value* pointer = nullptr;  // to its first byte; a vector of pointers for a scatter
  std::uint64_t bytes = 0;         // when the size is constant (of each, for a scatter)
  llvm::Value* length = nullptr;   // otherwise
  // Another thread may see the store, and commit, before a mark that follows it; so one precedes
  // it.
  bool both_sides = false;
  // It always writes all of it; not so, a masked store.
  bool whole = true;
};

// Everything that the function writes, in the order of its instructions; what cannot be marked is
// reported as a warning with its source line.  What provably lies in no mapping is not in it.
std::vector<StoreSite> find_store_sites(llvm::Function& function);

// True of what a mark must not be moved across: it may commit, let another thread see the store, or
// not return to here.
bool is_barrier(const llvm::Instruction& instruction);

}  // namespace pawl::compiler
