// Lists, trees and tables, under every system, on every medium.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>

#include "common/conduct.h"
#include "common/percentile.h"
#include "common/temporary_directory.h"
#include "snapshot/cases.h"
#include "snapshot/workload.h"

namespace pawl::bench {
namespace {

using Workers = std::vector<std::unique_ptr<SnapshotWorker>>;

constexpr std::uint32_t kSeedOfStructures = 1;

struct SnapshotTally {
  std::vector<double> times_us;
  double operations = 0;
  double settle_us = 0;
  MediumUse use;

  void add(const SnapshotTurnResult& result) {
    times_us.insert(times_us.end(), result.times_us.begin(), result.times_us.end());
    operations += result.operations;
    settle_us += result.settle_us;
    use.lines += result.use.lines;
    use.fences += result.use.fences;
    use.logged_bytes += result.use.logged_bytes;
  }
};

bool wanted(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

// What no emulated medium changes is measured once, beside the first.
bool takes_part(const SnapshotPlan& plan, const SnapshotKind& kind, const Profile& profile) {
  const bool unaffected = kind.place != Place::memory && std::string_view(kind.name) != kNone;
  return wanted(plan.systems, kind.name) && (!unaffected || &profile == &plan.profiles.front());
}

Workers open_structures(const SnapshotPlan& plan, const Profile& profile, Form form,
                        const std::string& disk, const std::string& memory,
                        SnapshotResults& results) {
  Workers workers;
  for (const SnapshotKind& kind : all_snapshot_kinds()) {
    if (!takes_part(plan, kind, profile)) continue;
    stop_if_asked();
    progress(fmt::format("{}: filling {}", profile.name, kind.name));
    const std::string& directory = kind.place == Place::disk ? disk : memory;
    auto worker = std::make_unique<SnapshotWorker>(kind, profile, form, plan.items, directory);
    if (worker->unavailable().empty())
      workers.push_back(std::move(worker));
    else
      results.skipped[kind.name] = worker->unavailable();
  }
  return workers;
}

// In each round every system has one turn, in a new order, so that no system always follows the
// same one, and what drifts, drifts for all.
void measure_task(const SnapshotPlan& plan, const Profile& profile, const Workers& workers,
                  std::uint32_t task_index, SnapshotResults& results) {
  const Task& task = all_tasks()[task_index];
  std::vector<SnapshotTally> tallies(workers.size());
  std::vector<std::size_t> order(workers.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937 random(kSeedOfStructures);
  for (std::uint32_t round = 0; round < plan.rounds; ++round) {
    progress(fmt::format("{}: {}, {}, round {} of {}", profile.name, task.workload, task.operation,
                         round + 1, plan.rounds));
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      stop_if_asked();
      const std::uint32_t samples =
          workers[i]->kind().slow && task.writes ? plan.samples_slow : plan.samples;
      const std::uint32_t requests = workers[i]->kind().slow ? task.requests_slow : task.requests;
      tallies[i].add(workers[i]->take({task_index, samples, requests}));
    }
  }
  for (std::size_t i = 0; i < workers.size(); ++i) {
    SnapshotTally& tally = tallies[i];
    SnapshotRow row;
    row.workload = task.workload;
    row.profile = profile.name;
    row.system = workers[i]->kind().name;
    row.operation = task.operation;
    row.writes = task.writes;
    row.samples = tally.times_us.size();
    row.operations_of_sample = tally.operations / static_cast<double>(row.samples);
    row.median_us = percentile(tally.times_us, 0.5);
    row.p99_us = percentile(tally.times_us, 0.99);
    row.mean_us = mean(tally.times_us);
    row.settle_us = tally.settle_us / tally.operations;
    row.lines = static_cast<double>(tally.use.lines) / tally.operations;
    row.fences = static_cast<double>(tally.use.fences) / tally.operations;
    row.logged_bytes = static_cast<double>(tally.use.logged_bytes) / tally.operations;
    results.rows.push_back(row);
  }
}

bool any_wanted(const SnapshotPlan& plan, Form form) {
  return std::any_of(all_tasks().begin(), all_tasks().end(), [&](const Task& task) {
    return task.form == form && wanted(plan.workloads, task.workload);
  });
}

}  // namespace

void measure_structures(const SnapshotPlan& plan, SnapshotResults& results) {
  for (const Profile& profile : plan.profiles) {
    for (const Form form : {Form::list, Form::tree, Form::table}) {
      if (!any_wanted(plan, form)) continue;
      const TemporaryDirectory disk(plan.directory, "bench-snapshot");
      const TemporaryDirectory memory(plan.memory_directory, "bench-snapshot");
      const Workers workers =
          open_structures(plan, profile, form, disk.path(), memory.path(), results);
      for (std::uint32_t i = 0; i < all_tasks().size(); ++i) {
        const Task& task = all_tasks()[i];
        if (task.form == form && wanted(plan.workloads, task.workload))
          measure_task(plan, profile, workers, i, results);
      }
    }
  }
  progress("");
}

}  // namespace pawl::bench
