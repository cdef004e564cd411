// bench_msync: what a commit by Pawl costs, beside plain msync and beside what the disk allows.
// docs/benchmarks.md says how it measures.
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "common/conduct.h"
#include "common/machine.h"
#include "common/temporary_directory.h"
#include "msync/cases.h"
#include "msync/report.h"
#include "msync/targets.h"

namespace {

using namespace pawl::bench;

constexpr std::uint32_t kPagesMax = 2048;

struct Arguments {
  std::string directory = "build/bench";
  std::string json = "build/bench/msync.json";
  bool quick = false;
  std::string only;
  std::vector<std::string> systems;
  std::vector<std::uint32_t> pages;
  std::vector<std::uint32_t> bytes_per_page;
  std::vector<std::string> loads;
  double seconds = 0;  // for each shape; 0: as planned
};

Plan plan_of(const Arguments& arguments) {
  Plan plan;
  if (arguments.quick) {
    plan.pages = {1, 16, 256};
    plan.shape_seconds = 1.5;
    plan.large_seconds = 1.5;
    plan.turn_us = 40'000;
    plan.large_bytes = std::uint64_t{1} << 30;
  }
  plan.systems = arguments.systems;
  if (!arguments.pages.empty()) plan.pages = arguments.pages;
  if (!arguments.bytes_per_page.empty()) plan.bytes_per_page = arguments.bytes_per_page;
  if (!arguments.loads.empty()) plan.loads = arguments.loads;
  if (arguments.seconds > 0) plan.shape_seconds = plan.large_seconds = arguments.seconds;
  return plan;
}

void bench(const Arguments& arguments) {
  const TemporaryDirectory directory(arguments.directory, "bench-msync");
  Plan plan = plan_of(arguments);
  plan.directory = directory.path();
  Facts machine = describe_machine(plan.directory);
  machine.push_back({"load_before", fmt::format("{:.2f}", load_average())});
  Results results;
  if (arguments.only != "large") measure_pages(plan, results);
  if (arguments.only != "pages") measure_large(plan, results);
  const auto targets = judge(results);
  print_report(machine, results, targets);
  write_json(arguments.json, machine, results, targets);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures what making stores durable costs: plain msync, Pawl, and the floor.");
  Arguments arguments;
  app.add_option("--dir", arguments.directory, "Where to put files: the disk to measure")
      ->capture_default_str();
  app.add_option("--json", arguments.json, "Where to write the rows")->capture_default_str();
  app.add_flag("--quick", arguments.quick, "Fewer sizes, less time: a minute at most");
  app.add_option("--only", arguments.only, "One part")->check(CLI::IsMember({"pages", "large"}));
  app.add_option("--system", arguments.systems, "Only this system of the sweep; may be repeated");
  app.add_option("--pages", arguments.pages, "Only so many dirty pages; may be repeated")
      ->check(CLI::Range(1u, kPagesMax));
  app.add_option("--bytes", arguments.bytes_per_page, "Only so many changed bytes a page")
      ->check(CLI::IsMember({kLineBytes, kPageBytes}));
  app.add_option("--load", arguments.loads, "Only this load")
      ->check(CLI::IsMember({kSaturated, kThink}));
  app.add_option("--seconds", arguments.seconds, "Time for each row of the sweep, all systems");
  app.footer("Example:\n  ./dev bench msync --quick --dir /srv/data");
  CLI11_PARSE(app, argc, argv);
  stop_on_signals();
  return run_benchmark([&] { bench(arguments); });
}
