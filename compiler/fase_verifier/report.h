// How the verifier says what it found: as errors of the compiler, with the line of the source.
#pragma once

#include <set>
#include <string>
#include <tuple>

#include "llvm/ADT/Twine.h"
#include "llvm/IR/Instruction.h"
#include "llvm/IR/Metadata.h"

namespace pawl::compiler::fase_verifier {

class Reports {
 public:
  // Compilation fails.  `rule` is the letter that docs/fase-verifier.md has for it.  Of a place,
  // which may have been compiled several times, it says so once.
  void error(const llvm::Instruction& at, char rule, const llvm::Twine& text);

 private:
  std::set<std::tuple<char, const llvm::MDNode*, unsigned, unsigned>> said_;
};

// Compilation goes on.
void warn(const llvm::Function& function, const llvm::Twine& text);

// "line 12 (store)": for what is not the place of the report.
std::string name_of(const llvm::Instruction& instruction);

}  // namespace pawl::compiler::fase_verifier
