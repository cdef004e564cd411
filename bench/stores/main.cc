// bench_stores: durable operations of key-value stores, and of std::map on Pawl's heap.
// docs/benchmarks.md says how it measures.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/conduct.h"
#include "common/temporary_directory.h"
#include "stores/cases.h"
#include "stores/kinds.h"
#include "stores/report.h"

namespace {

using namespace pawl::bench;

const std::vector<std::string> kCases = {kCase1k, kCase1kThink, kCase100k, kCaseBatch};

struct Arguments {
  std::string directory = "build/bench";
  std::string json = "build/bench/stores.json";
  bool quick = false;
  std::vector<std::string> only;
  std::vector<std::string> systems;
  // 0: as planned.
  std::uint32_t repetitions = 0;
  std::uint64_t keys = 0;
  std::uint64_t operations = 0;
  std::uint32_t think_us = 0;
};

Plan plan_of(const Arguments& arguments) {
  Plan plan;
  if (arguments.quick) {
    plan.small_repetitions = 1;
    plan.large_timed = 500;
    plan.batch_commits_max = 20;
  }
  if (arguments.repetitions > 0) {
    plan.small_repetitions = plan.think_repetitions = arguments.repetitions;
    plan.large_repetitions = plan.batch_repetitions = arguments.repetitions;
  }
  if (arguments.keys > 0) plan.small_keys = plan.large_keys = plan.batch_keys = arguments.keys;
  if (arguments.operations > 0) plan.large_timed = arguments.operations;
  if (arguments.think_us > 0) plan.think_us = arguments.think_us;
  return plan;
}

std::vector<std::string> known_systems() {
  std::vector<std::string> names = missing_kinds();
  for (const StoreKind& kind : compared_kinds()) names.push_back(kind.name);
  names.push_back(volatile_kind().name);
  return names;
}

// Those asked for, or all.
void choose_systems(const std::vector<std::string>& wanted, Plan& plan, Results& results) {
  for (const std::string& name : missing_kinds())
    results.skipped[name] = "its library was not there when this was built";
  plan.kinds = compared_kinds();
  if (wanted.empty()) return;
  plan.kinds.push_back(volatile_kind());
  std::erase_if(plan.kinds, [&](const StoreKind& kind) {
    return std::find(wanted.begin(), wanted.end(), kind.name) == wanted.end();
  });
  if (plan.kinds.empty()) throw std::runtime_error("no such system can be had here");
}

void bench(const Arguments& arguments) {
  const TemporaryDirectory directory(arguments.directory, "bench-stores");
  Plan plan = plan_of(arguments);
  Results results;
  choose_systems(arguments.systems, plan, results);
  plan.directory = directory.path();
  measure_and_report(plan, arguments.only.empty() ? kCases : arguments.only, std::move(results),
                     arguments.json);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures durable operations of key-value stores, and of std::map on Pawl's heap.");
  Arguments arguments;
  app.add_option("--dir", arguments.directory, "Where to put files: the disk to measure")
      ->capture_default_str();
  app.add_option("--json", arguments.json, "Where to write the rows")->capture_default_str();
  app.add_flag("--quick", arguments.quick, "Fewer operations");
  app.add_option("--only", arguments.only, "Only this case; may be repeated")
      ->check(CLI::IsMember(kCases));
  app.add_option("--system", arguments.systems, "Only this system; may be repeated")
      ->check(CLI::IsMember(known_systems()));
  app.add_option("--repetitions", arguments.repetitions, "Fresh stores for each case");
  app.add_option("--keys", arguments.keys, "So many keys in every case");
  app.add_option("--operations", arguments.operations,
                 "So many timed operations of each kind in the case 100k");
  app.add_option("--think-us", arguments.think_us, "The pause in the case 1k-think");
  app.footer("Example:\n  ./dev bench stores --quick --dir /srv/data");
  CLI11_PARSE(app, argc, argv);
  stop_on_signals();
  return run_benchmark([&] { bench(arguments); });
}
