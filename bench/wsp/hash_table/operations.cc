#include "hash_table/operations.h"

#include <numeric>
#include <random>
#include <utility>

namespace pawl::bench::wsp {

Plan draw_plan(std::uint32_t entries, std::uint64_t operations, unsigned update_percent,
               std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&random](std::uint64_t end) {
    return static_cast<std::uint32_t>(
        std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random));
  };
  // The first `there` of them are in the table.
  std::vector<std::uint32_t> keys(2 * std::uint64_t{entries});
  std::iota(keys.begin(), keys.end(), 1u);
  for (std::size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[below(i)]);
  std::uint32_t there = entries;

  Plan plan;
  plan.inserted_first.assign(keys.begin(), keys.begin() + entries);
  plan.operations.reserve(operations);
  bool removes = true;
  for (std::uint64_t n = 0; n < operations; ++n) {
    if (below(100) >= update_percent) {
      plan.operations.push_back({OperationKind::find, keys[below(there)]});
      continue;
    }
    if (removes) {
      const std::uint32_t place = below(there);
      plan.operations.push_back({OperationKind::remove, keys[place]});
      std::swap(keys[place], keys[--there]);
    } else {
      const std::uint32_t place = there + below(keys.size() - there);
      plan.operations.push_back({OperationKind::insert, keys[place]});
      std::swap(keys[place], keys[there++]);
    }
    removes = !removes;
  }
  return plan;
}

}  // namespace pawl::bench::wsp
