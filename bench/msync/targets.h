// What Pawl is to reach in this benchmark.
#pragma once

#include <vector>

#include "common/report.h"
#include "msync/cases.h"

namespace pawl::bench {

// Those that the rows can speak of, and beside them those with the stores counted in, where
// trackers have a price too.
std::vector<Target> judge(const Results& results);

}  // namespace pawl::bench
