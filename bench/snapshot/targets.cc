#include "snapshot/targets.h"

#include <fmt/core.h>

namespace pawl::bench {
namespace {

constexpr double kWriteOfPmemobjMax = 0.5;
constexpr double kReadOfPmemobjMax = 0.333;
constexpr double kReadOfNoneMax = 1.05;
constexpr double kYcsbAOfNoneMax = 1.5;
constexpr double kInstrumentationMax = 1.1;
constexpr double kBlockOfFloorMax = 1.15;

void compare(const SnapshotResults& results, const SnapshotRow& pawl, const char* rival,
             double limit, std::vector<Target>& targets) {
  const SnapshotRow* const other =
      find(results.rows, pawl.workload, pawl.operation, pawl.profile, rival);
  if (other == nullptr) return;
  targets.push_back(
      {fmt::format("{}, {}, {}: against {}", pawl.workload, pawl.operation, pawl.profile, rival),
       limit, pawl.median_us / other->median_us, 0});
}

}  // namespace

std::vector<Target> judge(const SnapshotResults& results) {
  std::vector<Target> targets;
  for (const SnapshotRow& row : results.rows) {
    if (row.system != kPawlStore) continue;
    compare(results, row, kPmemobj, row.writes ? kWriteOfPmemobjMax : kReadOfPmemobjMax, targets);
    if (!row.writes) compare(results, row, kNone, kReadOfNoneMax, targets);
    if (row.workload == "ycsb-a") compare(results, row, kNone, kYcsbAOfNoneMax, targets);
  }
  for (const InstrumentationRow& row : results.instrumentation) {
    targets.push_back({fmt::format("instrumentation alone, {}: against none", row.program),
                       kInstrumentationMax, row.marked_us / row.plain_us, 0});
  }
  for (const BlockRow& row : results.block) {
    const BlockRow* const floor = find(results.block, "floor", 0);
    if (floor == nullptr || row.mapping_bytes == 0) continue;
    targets.push_back({fmt::format("one line on a block file, mapping of {} MiB: against the floor",
                                   row.mapping_bytes >> 20),
                       kBlockOfFloorMax, row.median_us / floor->median_us, 0});
  }
  return targets;
}

}  // namespace pawl::bench
