// Stores near each other share a mark.
#pragma once

#include <vector>

#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Function.h"
#include "marks.h"
#include "store_sites.h"

namespace pawl::compiler {

// Marks for the sites, which are in the order of their instructions: each behind its store, or
// behind the last of several that share one.
void mark_sites(llvm::Function& function, const std::vector<StoreSite>& sites,
                llvm::ScalarEvolution& evolution, std::vector<Mark>& marks);

}  // namespace pawl::compiler
