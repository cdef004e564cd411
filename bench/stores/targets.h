// What Pawl is to reach in this benchmark.
#pragma once

#include <vector>

#include "common/report.h"
#include "stores/rows.h"
#include "stores/store.h"

namespace pawl::bench {

// Those that the rows of these systems can speak of, and beside them those with what was left to
// the background after turns added to the operations.
std::vector<Target> judge(const std::vector<StoreKind>& kinds, const Rows& rows);

}  // namespace pawl::bench
