// What a call calls, as far as failure-atomic sections care.
#pragma once

#include "llvm/IR/InstrTypes.h"

namespace pawl::compiler::fase {

enum class Callee {
  kNothing,       // that matters: an intrinsic for the compiler only, arithmetic
  kLock,          // see locks.h
  kHeap,          // the run-time's allocator: may be repeated
  kSetsRoot,      // pawl_fase_set_root(): a store that only pawl_fase_root() reads
  kReads,         // only reads memory that its arguments lead to
  kWrites,        // what its arguments say, see accesses.h
  kUnrepeatable,  // reads something that is another thing the next time, such as a clock
  kEnds,          // does not return, and ends the program on the spot
  kThrows,        // throws an exception, and does nothing else
  kRefused,       // cannot be done again, or not be taken back
  kDefined,       // a function of this module
  kExternal,      // a function of another module
  kIndirect,
};

Callee callee_of(const llvm::CallBase& call);

// Why a call of kRefused is: "does input or output".
llvm::StringRef refusal_of(const llvm::CallBase& call);

// True of pawl_fase_malloc() and its like, but also of the roots: in the window, or null.
bool returns_persistent_memory(const llvm::CallBase& call);
// And of those of them whose memory nobody else has.
bool returns_new_memory(const llvm::Function& function);
// True of what the compiler itself adds to end the program at an exception that nobody catches.
bool ends_program(const llvm::Function& function);
bool is_heap_function(const llvm::Function& function);
bool reads_root(const llvm::Value& instruction);
bool sets_root(const llvm::Value& instruction);

}  // namespace pawl::compiler::fase
