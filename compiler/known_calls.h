// Library functions whose stores are told by their arguments: the pass marks them where they are
// called, and needs no wrapper of them.
#pragma once

#include <vector>

#include "llvm/IR/InstrTypes.h"
#include "store_sites.h"

namespace pawl::compiler {

// True of a direct call of such a function (which the program does not define itself).
bool is_known_call(const llvm::CallBase& call);

// True of those that move bytes and do nothing else, which no mark needs to stop at.
bool is_known_copy(const llvm::CallBase& call);

void find_sites_of_known_call(llvm::CallBase& call, std::vector<StoreSite>& sites);

}  // namespace pawl::compiler
