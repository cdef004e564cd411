// What Pawl is to reach in this benchmark.
#pragma once

#include <vector>

#include "common/report.h"
#include "stores/rows.h"

namespace pawl::bench {

// Those that the rows can speak of, and beside them those with what was left to the
// background after turns added to the operations.
std::vector<Target> judge(const Rows& rows);

}  // namespace pawl::bench
