#include "common/percentile.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace pawl::bench {

double percentile(std::vector<double>& values, double fraction) {
  if (values.empty()) return 0;
  const auto index = static_cast<std::ptrdiff_t>(fraction * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + index, values.end());
  return values[static_cast<std::size_t>(index)];
}

double mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace pawl::bench
