// One mark for several stores of a block.
#pragma once

#include <vector>

#include "llvm/Analysis/ScalarEvolution.h"
#include "marks.h"
#include "store_sites.h"

namespace pawl::compiler {

// Marks every one of the sites, which are in the order of the instructions.  Stores of a block that
// lie near each other, with no barrier between them, get one mark, after the last of them.
void mark_sites(const std::vector<StoreSite>& sites, llvm::ScalarEvolution& evolution,
                std::vector<Mark>& marks);

}  // namespace pawl::compiler
