// Stores that only a processor's own intrinsics make.
#pragma once

#include <vector>

#include "llvm/IR/IntrinsicInst.h"
#include "store_sites.h"

namespace pawl::compiler {

// What it writes, or, where that is not known, a warning.
void find_sites_of_target_intrinsic(llvm::IntrinsicInst& call, std::vector<StoreSite>& sites);

}  // namespace pawl::compiler
