// bench_retrofit: durable operations of unmodified key-value stores, as they are and under Pawl.
// docs/benchmarks.md says how it measures.  It runs under `pawl run`, which takes the files of the
// stores that are to be under it and leaves the others alone.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/conduct.h"
#include "common/temporary_directory.h"
#include "retrofit/kinds.h"
#include "stores/report.h"

namespace {

using namespace pawl::bench;

const std::vector<std::string> kCases = {kCase1k, kCase1kThink, kCase100k};

struct Arguments {
  std::string directory = "build/bench";
  std::string json = "build/bench/retrofit.json";
  bool quick = false;
  std::vector<std::string> only;
  std::vector<std::string> stores;
  std::uint64_t keys = 0;  // 0: as planned
};

Plan plan_of(const Arguments& arguments) {
  Plan plan;
  if (arguments.quick) {
    plan.small_repetitions = 1;
    plan.large_timed = 500;
  }
  if (arguments.keys > 0) {
    plan.small_keys = plan.large_keys = arguments.keys;
    plan.small_repetitions = 1;
  }
  for (const Retrofit& retrofit : retrofits()) {
    if (!arguments.stores.empty() && std::find(arguments.stores.begin(), arguments.stores.end(),
                                               retrofit.store) == arguments.stores.end())
      continue;
    plan.kinds.push_back(retrofit.synchronize(Under::pawl));
    plan.kinds.push_back(retrofit.synchronize(Under::nothing));
    if (retrofit.otherwise != nullptr) plan.kinds.push_back(retrofit.otherwise());
  }
  if (plan.kinds.empty()) throw std::runtime_error("no such store can be had here");
  plan.kinds.push_back(floor_kind());
  return plan;
}

void bench(const Arguments& arguments) {
  const TemporaryDirectory directory(arguments.directory, "bench-retrofit");
  Plan plan = plan_of(arguments);
  plan.directory = directory.path();
  measure_and_report(plan, arguments.only.empty() ? kCases : arguments.only, {}, arguments.json);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures key-value stores that know nothing of Pawl, without it and under it.");
  Arguments arguments;
  app.add_option("--dir", arguments.directory, "Where to put files: the disk to measure")
      ->capture_default_str();
  app.add_option("--json", arguments.json, "Where to write the rows")->capture_default_str();
  app.add_flag("--quick", arguments.quick, "Fewer operations");
  app.add_option("--only", arguments.only, "Only this case; may be repeated")
      ->check(CLI::IsMember(kCases));
  std::vector<std::string> known;
  for (const Retrofit& retrofit : retrofits()) known.emplace_back(retrofit.store);
  app.add_option("--store", arguments.stores, "Only this store; may be repeated")
      ->check(CLI::IsMember(known));
  app.add_option("--keys", arguments.keys, "So many keys in every case, and once each");
  app.footer("Example:\n  ./dev bench retrofit --quick --store kyoto");
  CLI11_PARSE(app, argc, argv);
  stop_on_signals();
  return run_benchmark([&] { bench(arguments); });
}
