// bench_snapshot: structures whose every change is durable, by Pawl with stores that the compiler
// marks, beside libpmemobj, plain msync and no durability.  docs/benchmarks.md says how it
// measures.
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "common/conduct.h"
#include "common/machine.h"
#include "common/temporary_directory.h"
#include "snapshot/cases.h"
#include "snapshot/report.h"
#include "snapshot/targets.h"
#include "snapshot/workload.h"

namespace {

using namespace pawl::bench;

const std::vector<std::string> kParts = {kPartStructures, kPartInstrumentation, kPartBlock,
                                         kPartKyoto};

// What Pawl's emulation takes.
constexpr std::uint32_t kLatencyNsMin = 20;
constexpr std::uint32_t kLatencyNsMax = 2000;

struct Arguments {
  std::string json = "build/bench/snapshot.json";
  bool quick = false;
  std::vector<std::string> parts;
  std::vector<std::string> profiles;
  std::uint32_t line_ns = 0;
  std::uint32_t fence_ns = 0;
  SnapshotPlan plan;
};

bool wanted(const Arguments& arguments, const char* part) {
  const auto& parts = arguments.parts;
  return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end();
}

void choose_profiles(const Arguments& arguments, SnapshotPlan& plan) {
  const auto& names = arguments.profiles;
  if (!names.empty()) {
    std::erase_if(plan.profiles, [&](const Profile& profile) {
      return std::find(names.begin(), names.end(), profile.name) == names.end();
    });
  }
  if (arguments.line_ns > 0 || arguments.fence_ns > 0)
    plan.profiles = {{"custom", arguments.line_ns, arguments.fence_ns, "asked for"}};
}

void bench(Arguments& arguments) {
  SnapshotPlan& plan = arguments.plan;
  if (arguments.quick) {
    plan.rounds = 3;
    plan.samples = 10;
    plan.instrumentation_rounds = 5;
    plan.block_seconds = 2;
    plan.kyoto_rounds = 2;
    plan.kyoto_commits = 10;
  }
  choose_profiles(arguments, plan);
  const TemporaryDirectory directory(plan.directory, "bench-snapshot");
  plan.directory = directory.path();
  Facts machine = describe_machine(plan.directory);
  machine.push_back({"load_before", fmt::format("{:.2f}", load_average())});
  SnapshotResults results;
  if (wanted(arguments, kPartStructures)) measure_structures(plan, results);
  if (wanted(arguments, kPartInstrumentation)) measure_instrumentation(plan, results);
  if (wanted(arguments, kPartBlock)) measure_block(plan, results);
  if (wanted(arguments, kPartKyoto)) measure_kyoto(plan, results);
  const auto targets = judge(results);
  print_report(machine, plan, results, targets);
  write_json(arguments.json, machine, plan, results, targets);
}

// The names in a list of named things, each once.
template <class Things, class Name>
std::vector<std::string> names(const Things& things, const Name& name) {
  std::vector<std::string> found;
  for (const auto& thing : things) {
    if (std::find(found.begin(), found.end(), name(thing)) == found.end())
      found.emplace_back(name(thing));
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures structures whose every change is durable, in memory and on disk.");
  Arguments arguments;
  SnapshotPlan& plan = arguments.plan;
  plan.directory = "build/bench";
  plan.memory_directory = "/dev/shm";
  app.add_option("--dir", plan.directory, "Where to put files: the disk to measure")
      ->capture_default_str();
  app.add_option("--memory-dir", plan.memory_directory, "Where to put files that stand for memory")
      ->capture_default_str();
  app.add_option("--json", arguments.json, "Where to write the rows")->capture_default_str();
  app.add_flag("--quick", arguments.quick, "Fewer rounds");
  app.add_option("--only", arguments.parts, "Only this part; may be repeated")
      ->check(CLI::IsMember(kParts));
  const auto kind_names = names(all_snapshot_kinds(), [](const auto& kind) { return kind.name; });
  app.add_option("--system", plan.systems, "Structures: only this system; may be repeated")
      ->check(CLI::IsMember(kind_names));
  const auto profile_names =
      names(all_profiles(), [](const auto& profile) { return profile.name; });
  app.add_option("--profile", arguments.profiles, "Structures: only this medium; may be repeated")
      ->check(CLI::IsMember(profile_names));
  app.add_option("--line-ns", arguments.line_ns,
                 "Structures: a medium of this latency a line, in place of the others")
      ->check(CLI::Range(kLatencyNsMin, kLatencyNsMax));
  app.add_option("--fence-ns", arguments.fence_ns, "Structures: and of this a fence")
      ->check(CLI::Range(kLatencyNsMin, kLatencyNsMax));
  const auto workload_names = names(all_tasks(), [](const auto& task) { return task.workload; });
  app.add_option("--workload", plan.workloads, "Structures: only this one; may be repeated")
      ->check(CLI::IsMember(workload_names));
  app.add_option("--items", plan.items, "Nodes or pairs of each structure")->capture_default_str();
  app.add_option("--rounds", plan.rounds, "Turns of each system")->capture_default_str();
  app.add_option("--samples", plan.samples, "Samples of a turn")->capture_default_str();
  app.add_option("--instrumentation-rounds", plan.instrumentation_rounds, "Runs of each program")
      ->capture_default_str();
  app.add_option("--block-seconds", plan.block_seconds, "Time for commits on a block file")
      ->capture_default_str();
  app.add_option("--kyoto-rounds", plan.kyoto_rounds, "Turns of each of Kyoto Cabinet's systems")
      ->capture_default_str();
  app.add_option("--kyoto-commits", plan.kyoto_commits, "Commits of such a turn")
      ->capture_default_str();
  app.footer("Example:\n  ./dev bench snapshot --quick --only structures --workload ycsb-a");
  CLI11_PARSE(app, argc, argv);
  stop_on_signals();
  return run_benchmark([&] { bench(arguments); });
}
