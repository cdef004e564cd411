// What instructions read and write of the memory that may be persistent.
#pragma once

#include <cstdint>
#include <optional>

#include "llvm/Analysis/MemoryLocation.h"
#include "llvm/IR/Instruction.h"
#include "provenance.h"

namespace pawl::compiler::fase {

// A piece of memory that one instruction writes; at most one does.
struct Write {
  llvm::Value* pointer = nullptr;
  // The operand that says where: the value that is written, or read, may be the same pointer.
  llvm::Use* operand = nullptr;
  std::uint64_t bytes = 0;        // where that is known
  llvm::Value* length = nullptr;  // else this says it
  Provenance provenance = Provenance::kUnknown;
};

// Nothing for an instruction that writes no memory, or none that the program has a pointer to.  Not
// of functions of the program: they see to that themselves.
std::optional<Write> write_of(llvm::Instruction& instruction);
llvm::MemoryLocation location_of(const llvm::Instruction& instruction, const Write& write);

// The memory that a load or a copy reads; nothing for others, which may read in other ways.
std::optional<llvm::MemoryLocation> location_read(const llvm::Instruction& instruction);

// A read of memory that may change, by this instruction itself or by a function that it calls and
// that is known to do no more than read.
bool may_read(const llvm::Instruction& instruction);

}  // namespace pawl::compiler::fase
