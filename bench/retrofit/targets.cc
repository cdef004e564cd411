#include "stores/targets.h"

#include <fmt/core.h>

#include "retrofit/kinds.h"

namespace pawl::bench {
namespace {

// Of the store's own protection: twice the throughput.  Of plain synchronising, which protects
// nothing: not slower.
constexpr double kOfOwnProtectionMax = 0.5;
constexpr double kOfSynchronizeMax = 1.0;
// The rest is shown, and not judged: these have protections that cost them next to nothing.
constexpr const char* kJudged = "kyoto";

}  // namespace

std::vector<Target> judge(const std::vector<StoreKind>& /*kinds*/, const Rows& rows) {
  std::vector<Target> targets;
  for (const Retrofit& retrofit : retrofits()) {
    if (std::string(retrofit.store) != kJudged) continue;
    const StoreKind plain = retrofit.synchronize(Under::nothing);
    const StoreKind own = retrofit.otherwise();
    const StoreKind under_pawl = retrofit.synchronize(Under::pawl);
    for (const char* const case_name : {kCase1k, kCase1kThink, kCase100k}) {
      for (const Operation operation : {Operation::insert, Operation::replace, Operation::erase}) {
        const Row* const judged = find(rows, case_name, under_pawl.name, operation);
        const auto compare = [&](const StoreKind& other, double limit) {
          const Row* const row = find(rows, case_name, other.name, operation);
          if (judged == nullptr || row == nullptr) return;
          targets.push_back(
              {fmt::format("{}, {}, {}: mean against {}'s", judged->system, case_name,
                           name_of(operation), other.name),
               limit, judged->mean_us / row->mean_us,
               (judged->mean_us + judged->settle_us) / (row->mean_us + row->settle_us)});
        };
        compare(own, kOfOwnProtectionMax);
        compare(plain, kOfSynchronizeMax);
      }
    }
  }
  return targets;
}

}  // namespace pawl::bench
