// Functions of the C and C++ libraries: what they do, as far as failure-atomic sections care.
#pragma once

#include <optional>

#include "callees.h"
#include "llvm/IR/Function.h"

namespace pawl::compiler::fase {

// kReads, kWrites, kUnrepeatable, kEnds, kThrows or kRefused; nothing for what is no library's
// function.
std::optional<Callee> library_callee(const llvm::Function& function);

// What a refused one does: "malloc(), which ...".
llvm::StringRef library_refusal(const llvm::Function& function);

// What a function of kWrites writes: as many bytes as an argument says, or a string.
struct LibraryWrite {
  unsigned pointer;
  int length = -1;  // the argument that says how many; or a string is there afterwards
};
std::optional<LibraryWrite> library_write(const llvm::Function& function);

}  // namespace pawl::compiler::fase
