// Reads before writes: loads that a later write of their block may overwrite are moved up, before
// the first write of the region.  Then one cut between what is read and what is written serves.
#pragma once

#include "llvm/IR/PassManager.h"
#include "sections.h"

namespace pawl::compiler::fase {

// Moves instructions within their blocks.
void hoist_reads(llvm::Function& function, const Sections& sections,
                 llvm::FunctionAnalysisManager& analyses);

}  // namespace pawl::compiler::fase
