// What Pawl is to reach in this benchmark.
#pragma once

#include <vector>

#include "common/report.h"
#include "snapshot/rows.h"

namespace pawl::bench {

// Those that the rows can speak of.
std::vector<Target> judge(const SnapshotResults& results);

}  // namespace pawl::bench
