// What is told with -Rpass=pawl: sections and their regions.
#pragma once

#include "regions.h"
#include "sections.h"

namespace pawl::compiler::fase {

// Where sections begin.
void tell_sections(const llvm::Function& function, const Sections& sections);
// Once the regions' live-ins are known.
void tell_regions(const FunctionPlan& plan);

}  // namespace pawl::compiler::fase
