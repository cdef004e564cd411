// Inline assembly: its memory operands are stores like any other; what else it may write is a
// warning.
#pragma once

#include <vector>

#include "llvm/IR/InstrTypes.h"
#include "store_sites.h"

namespace pawl::compiler {

void find_sites_of_assembly(llvm::CallBase& call, std::vector<StoreSite>& sites);

// Says with the instruction's source line that its stores are not tracked.
void warn_untracked(const llvm::Instruction& instruction, const llvm::Twine& what);

}  // namespace pawl::compiler
