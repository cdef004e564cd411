// A commit of one line with the tracker store on a block file, however large the mapping is, beside
// the floor of bench_msync.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>

#include "common/conduct.h"
#include "common/temporary_directory.h"
#include "msync/statistics.h"
#include "msync/worker.h"
#include "snapshot/cases.h"

namespace pawl::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kSeed = 1;
constexpr std::uint32_t kTurnUs = 60'000;
constexpr int kRoundsMin = 2;

struct Entry {
  std::string system;
  std::uint64_t mapping_bytes = 0;  // 0: a floor
  std::unique_ptr<Worker> worker;
  Tally tally;
};

void add(std::vector<Entry>& entries, SnapshotResults& results, const std::string& system,
         std::uint64_t mapping_bytes, const MakeSystem& make) {
  stop_if_asked();
  progress("block: setting up " + system);
  auto worker = std::make_unique<Worker>(system, make);
  if (worker->unavailable().empty())
    entries.push_back({system, mapping_bytes, std::move(worker), {}});
  else
    results.skipped["block: " + system] = worker->unavailable();
}

}  // namespace

void measure_block(const SnapshotPlan& plan, SnapshotResults& results) {
  const TemporaryDirectory own(plan.directory, "bench-snapshot");
  const std::string& directory = own.path();
  std::vector<Entry> entries;
  add(entries, results, "floor-direct", 0,
      [&] { return make_floor(directory, {.direct_io = true}); });
  add(entries, results, "floor-direct-awake", 0,
      [&] { return make_floor(directory, {.direct_io = true, .awake = true}); });
  add(entries, results, "floor-buffered", 0, [&] { return make_floor(directory, {}); });
  for (const std::uint64_t bytes : plan.block_bytes) {
    const PawlSetup setup{
        .bytes = bytes, .tracker = PAWL_TRACKER_STORE, .contents = Contents::few_pages_used};
    add(entries, results, "pawl-store", bytes, [&] { return make_pawl(directory, setup); });
  }
  std::vector<std::size_t> order(entries.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937 random(kSeed);
  const Turn turn{{1, kLineBytes, 0, kPageBytes}, kTurnUs, 2};
  const auto end = Clock::now() + std::chrono::duration<double>(plan.block_seconds);
  for (int round = 0; Clock::now() < end || round < kRoundsMin; ++round) {
    progress(fmt::format("block: round {}", round + 1));
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      stop_if_asked();
      entries[i].tally.add(entries[i].worker->take(turn));
    }
  }
  BlockRow floor;
  for (const Entry& entry : entries) {
    Row row;
    entry.tally.summarize(row);
    const BlockRow block{entry.system, entry.mapping_bytes, row.samples, row.median_us, row.p99_us};
    results.block.push_back(block);
    const bool is_floor = entry.mapping_bytes == 0;
    // The fastest of the floors is the floor.
    if (is_floor && (floor.samples == 0 || block.median_us < floor.median_us)) floor = block;
  }
  if (floor.samples > 0) {
    floor.system = "floor";
    results.block.insert(results.block.begin(), floor);
  }
  progress("");
}

}  // namespace pawl::bench
