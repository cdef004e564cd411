// Kyoto Cabinet's own transactions beside Pawl under it, by the updates of a commit.  Each turn is
// a run of the program kyoto_updates, for Pawl under `pawl run`.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>

#include "common/conduct.h"
#include "common/percentile.h"
#include "common/temporary_directory.h"
#include "snapshot/cases.h"

namespace pawl::bench {
namespace {

constexpr std::uint32_t kSeedOfUpdates = 1;

struct KyotoKind {
  const char* system;
  const char* prefix;  // of the command: environment and `pawl run`; {} is where the command is
  const char* commit;
  bool in_memory;
};

constexpr KyotoKind kKinds[] = {
    {"kyoto", "", "transactions", false},
    {"kyoto-memory", "", "transactions", true},
    {"kyoto-pawl-scan", "PAWL_TRACKER=scan PAWL_MEDIUM=block '{}/pawl' run --atomic '*.kch' -- ",
     "synchronize", false},
    {"kyoto-pawl-scan-memory",
     "PAWL_TRACKER=scan PAWL_MEDIUM=memory '{}/pawl' run --atomic '*.kch' -- ", "synchronize",
     true},
};

std::vector<double> run(const std::string& command) {
  FILE* const output = ::popen(command.c_str(), "r");
  if (output == nullptr) throw std::runtime_error("cannot run " + command);
  std::vector<double> times_us;
  double time_us = 0;
  while (std::fscanf(output, "%lf", &time_us) == 1) times_us.push_back(time_us);
  if (::pclose(output) != 0) throw std::runtime_error("failed: " + command);
  return times_us;
}

}  // namespace

void measure_kyoto(const SnapshotPlan& plan, SnapshotResults& results) {
  const std::string own = module_directory();
  const std::string program = own + "kyoto_updates";
  if (::access(program.c_str(), X_OK) != 0) {
    results.skipped[kPartKyoto] = "Kyoto Cabinet was not there when this was built";
    return;
  }
  const TemporaryDirectory disk(plan.directory, "bench-snapshot");
  const TemporaryDirectory memory(plan.memory_directory, "bench-snapshot");
  const std::size_t kinds = std::size(kKinds);
  std::mt19937 random(kSeedOfUpdates);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < kinds; ++i) order.push_back(i);
  for (const std::uint32_t updates : plan.kyoto_updates) {
    std::vector<std::vector<double>> times_us(kinds);
    for (std::uint32_t round = 0; round < plan.kyoto_rounds; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t i : order) {
        stop_if_asked();
        const KyotoKind& kind = kKinds[i];
        progress(fmt::format("Kyoto Cabinet: {} updates, round {}", updates, round + 1));
        const std::string& directory = kind.in_memory ? memory.path() : disk.path();
        const std::string command = fmt::format(
            "{}'{}' '{}/{}.kch' {} {} {} {} {}",
            fmt::format(fmt::runtime(kind.prefix), own + "../bin"), program, directory, kind.system,
            plan.kyoto_records, updates, plan.kyoto_commits, round + 1, kind.commit);
        const std::vector<double> turn = run(command);
        times_us[i].insert(times_us[i].end(), turn.begin(), turn.end());
      }
    }
    for (std::size_t i = 0; i < kinds; ++i) {
      KyotoRow row;
      row.system = kKinds[i].system;
      row.updates = updates;
      row.samples = times_us[i].size();
      row.median_us = percentile(times_us[i], 0.5);
      row.p99_us = percentile(times_us[i], 0.99);
      results.kyoto.push_back(row);
    }
  }
  progress("");
}

}  // namespace pawl::bench
