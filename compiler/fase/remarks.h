// What is told with -Rpass=pawl: sections and their regions.
#pragma once

#include "regions.h"
#include "sections.h"

namespace pawl::compiler::fase {

void tell_regions(const FunctionPlan& plan, const Sections& sections);

}  // namespace pawl::compiler::fase
