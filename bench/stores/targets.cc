#include "stores/targets.h"

#include <fmt/core.h>

namespace pawl::bench {
namespace {

constexpr double kOfLevelDbMax = 0.8;
constexpr double kOfBestRivalMax = 0.9;
constexpr const char* kJudged[] = {"pawl", "pawl-store"};
constexpr const char* kLevelDb = "leveldb";

const Row* best_rival(const std::vector<StoreKind>& kinds, const Rows& rows,
                      const std::string& case_name, Operation operation) {
  const Row* best = nullptr;
  for (const StoreKind& kind : kinds) {
    if (kind.role != Role::rival) continue;
    const Row* const row = find(rows, case_name, kind.name, operation);
    if (row != nullptr && (best == nullptr || row->mean_us < best->mean_us)) best = row;
  }
  return best;
}

void compare(const Row& pawl, const Row* rival, double limit, const std::string& title,
             std::vector<Target>& targets) {
  if (rival == nullptr) return;
  targets.push_back(
      {fmt::format("{}, {}, {}: {}", pawl.system, pawl.case_name, name_of(pawl.operation), title),
       limit, pawl.mean_us / rival->mean_us,
       (pawl.mean_us + pawl.settle_us) / (rival->mean_us + rival->settle_us)});
}

}  // namespace

std::vector<Target> judge(const std::vector<StoreKind>& kinds, const Rows& rows) {
  std::vector<Target> targets;
  for (const char* const case_name : {kCase1k, kCase1kThink, kCase100k}) {
    for (const Operation operation : {Operation::insert, Operation::replace, Operation::erase}) {
      const Row* const best = best_rival(kinds, rows, case_name, operation);
      const std::string title =
          best == nullptr ? "" : fmt::format("mean against the best rival's ({})", best->system);
      for (const char* const judged : kJudged) {
        const Row* const pawl = find(rows, case_name, judged, operation);
        if (pawl == nullptr) continue;
        compare(*pawl, find(rows, case_name, kLevelDb, operation), kOfLevelDbMax,
                "mean against LevelDB's", targets);
        compare(*pawl, best, kOfBestRivalMax, title, targets);
      }
    }
  }
  return targets;
}

}  // namespace pawl::bench
