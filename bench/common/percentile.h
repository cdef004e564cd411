#pragma once

#include <vector>

namespace pawl::bench {

// The value that this fraction of the values does not exceed; 0 when there are none.  Reorders
// them.
double percentile(std::vector<double>& values, double fraction);

// 0 when there are none.
double mean(const std::vector<double>& values);

}  // namespace pawl::bench
