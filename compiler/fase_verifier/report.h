// How the verifier says what it found: as errors of the compiler, with the line of the source.
#pragma once

#include <string>

#include "llvm/ADT/Twine.h"
#include "llvm/IR/Instruction.h"

namespace pawl::compiler::fase_verifier {

// Compilation fails.  `rule` is the letter that docs/fase-verifier.md has for it.
void report(const llvm::Instruction& at, char rule, const llvm::Twine& text);
// Compilation goes on.
void warn(const llvm::Function& function, const llvm::Twine& text);

// "line 12 (store)": for what is not the place of the report.
std::string name_of(const llvm::Instruction& instruction);

}  // namespace pawl::compiler::fase_verifier
