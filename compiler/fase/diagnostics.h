// What the compiler tells the user: errors and remarks, with the line that they are about.
#pragma once

#include "llvm/ADT/Twine.h"
#include "llvm/IR/Instruction.h"

namespace pawl::compiler::fase {

// Compilation fails.  The text says what is wrong and the way out.
void report_error(const llvm::Instruction& at, const llvm::Twine& text);
void report_error(const llvm::Function& function, const llvm::Twine& text);

// Told with -Rpass=pawl (-Rpawl of the wrapper).
void remark(const llvm::Instruction& at, const llvm::Twine& text);

// "line 12", or "an unknown line".
std::string line_text(const llvm::Instruction& instruction);
// 0 where it is not known.
unsigned line_of(const llvm::Instruction& instruction);

// The function's name as it stands in the source, as far as that can be told.
std::string source_name(const llvm::Function& function);

}  // namespace pawl::compiler::fase
