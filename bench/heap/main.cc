// bench_heap: what the allocator changes in memory, which is what a commit has to log; what
// allocation and opening cost.  docs/heap.md says what the design does about it.
#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

#include "common/conduct.h"
#include "common/machine.h"
#include "common/report.h"
#include "common/temporary_directory.h"
#include "heap/dirt.h"
#include "heap/logged.h"
#include "heap/speed.h"

namespace {

using namespace pawl::bench;
using Json = nlohmann::ordered_json;

constexpr std::uint32_t kKeys = 1000;
constexpr std::uint32_t kValueBytes[] = {16, 100, 1024};

void bench(const std::string& parent, const std::string& json_path) {
  const TemporaryDirectory directory(parent, "heap");
  Json json;
  for (const auto& [name, value] : describe_machine(directory.path())) {
    fmt::print("{:<14} {}\n", name, value);
    json["machine"][name] = value;
  }
  fmt::print("\nMemory changed by one operation on a std::map of {} strings\n", kKeys);
  fmt::print("{:>8} {:<10} {:<20} {:>7} {:>7} {:>12}\n", "value", "operation", "allocator", "pages",
             "lines", "bookkeeping");
  for (const std::uint32_t value_bytes : kValueBytes) {
    for (const Dirt& row : measure_dirt(kKeys, value_bytes)) {
      fmt::print(
          "{:>8} {:<10} {:<20} {:>7.2f} {:>7.2f} {:>12}\n", value_bytes, row.operation,
          row.allocator, row.pages, row.lines,
          row.bookkeeping_lines < 0 ? "in blocks" : fmt::format("{:.2f}", row.bookkeeping_lines));
      json["dirt"].push_back({{"value_bytes", value_bytes},
                              {"operation", row.operation},
                              {"allocator", row.allocator},
                              {"pages", row.pages},
                              {"lines", row.lines},
                              {"bookkeeping_lines", row.bookkeeping_lines}});
    }
  }
  fmt::print("\nLogged by one durable operation on a pawl::map of {} strings\n", kKeys);
  fmt::print("{:>8} {:<10} {:>7} {:>14} {:>14}\n", "value", "operation", "pages", "bytes changed",
             "bytes logged");
  for (const std::uint32_t value_bytes : kValueBytes) {
    for (const Logged& row : measure_logged(directory.path(), kKeys, value_bytes)) {
      fmt::print("{:>8} {:<10} {:>7.2f} {:>14.0f} {:>14.0f}\n", value_bytes, row.operation,
                 row.pages, row.changed_bytes, row.logged_bytes);
      json["logged"].push_back({{"value_bytes", value_bytes},
                                {"operation", row.operation},
                                {"pages", row.pages},
                                {"changed_bytes", row.changed_bytes},
                                {"logged_bytes", row.logged_bytes}});
    }
  }
  fmt::print("\nOne free and one malloc of a random block among 10,000\n");
  for (const AllocationSpeed& row : measure_allocation(directory.path())) {
    fmt::print("{:>8} bytes {:<10} {:>8.0f} ns\n", row.block_bytes, row.allocator,
               row.malloc_and_free_ns);
    json["allocation"].push_back({{"block_bytes", row.block_bytes},
                                  {"allocator", row.allocator},
                                  {"malloc_and_free_ns", row.malloc_and_free_ns}});
  }
  fmt::print("\nOpening\n");
  for (const OpeningTime& row : measure_opening(directory.path())) {
    fmt::print("{:>8} MiB in use {:>10.0f} us\n", row.used_bytes >> 20, row.open_us);
    json["opening"].push_back({{"used_bytes", row.used_bytes}, {"open_us", row.open_us}});
  }
  write_file(json_path, json);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures what the persistent heap's allocator changes, and what it costs.");
  std::string directory = "build/bench";
  std::string json = "build/bench/heap.json";
  app.add_option("--dir", directory, "Where to put files")->capture_default_str();
  app.add_option("--json", json, "Where to write the rows")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return run_benchmark([&] { bench(directory, json); });
}
