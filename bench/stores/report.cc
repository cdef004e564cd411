#include "stores/report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace pawl::bench {
namespace {

// What was left to the background after turns.
constexpr const char* kRest = "with settling";

using Json = nlohmann::ordered_json;

void print_rows(const Rows& rows) {
  const Row* previous = nullptr;
  for (const Row& row : rows) {
    const bool same_block = previous != nullptr && previous->case_name == row.case_name &&
                            previous->operation == row.operation && previous->batch == row.batch;
    const bool has_disk = row.operation == Operation::insert;
    if (!same_block) {
      fmt::print("\n{}: {}, {} a commit\n", row.case_name, name_of(row.operation), row.batch);
      fmt::print("  {:<16} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9} {:>8}{}\n", "system",
                 "median us", "p99 us", "mean us", "settle us", "cpu us", "logged B", "written B",
                 "samples", has_disk ? "   disk KiB" : "");
    }
    fmt::print(
        "  {:<16} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f} {:>9.0f} {:>9.0f} {:>8}{}\n",
        row.system, row.median_us, row.p99_us, row.mean_us, row.settle_us, row.processor_us,
        row.logged_bytes, row.written_bytes, row.samples,
        has_disk ? fmt::format(" {:>10.0f}", row.disk_bytes / 1024) : "");
    previous = &row;
  }
}

// A line for each case of a system that says what it logs: what no checkpoint has flushed yet, no
// turn has paid for.
void print_checkpoints(const Rows& rows) {
  fmt::print("\n");
  for (const Row& row : rows) {
    if (row.operation != Operation::insert || row.logged_bytes == 0) continue;
    std::uint64_t checkpoints = 0;
    for (const Row& other : rows) {
      if (other.case_name == row.case_name && other.system == row.system &&
          other.batch == row.batch)
        checkpoints += other.checkpoints;
    }
    fmt::print("{}, {} a commit: {} checkpoints of {} in its turns\n", row.case_name, row.batch,
               checkpoints, row.system);
  }
}

Json to_json(const StoreKind& kind) {
  return {{"system", kind.name}, {"library", kind.product}, {"setting", kind.setting}};
}

Json to_json(const Row& row) {
  return {{"case", row.case_name},
          {"system", row.system},
          {"operation", name_of(row.operation)},
          {"batch", row.batch},
          {"median_us", row.median_us},
          {"p99_us", row.p99_us},
          {"mean_us", row.mean_us},
          {"settle_us", row.settle_us},
          {"processor_us", row.processor_us},
          {"logged_bytes", row.logged_bytes},
          {"written_bytes", row.written_bytes},
          {"checkpoints", row.checkpoints},
          {"disk_bytes", row.disk_bytes},
          {"samples", row.samples}};
}

template <class T>
Json list(const std::vector<T>& entries) {
  Json array = Json::array();
  for (const T& entry : entries) array.push_back(to_json(entry));
  return array;
}

}  // namespace

void print_report(const Facts& machine, const Plan& plan, const Results& results,
                  const std::vector<Target>& targets) {
  for (const auto& [name, value] : machine) fmt::print("{:<16} {}\n", name, value);
  fmt::print("\n");
  for (const StoreKind& kind : plan.kinds)
    fmt::print("{:<16} {}: {}\n", kind.name, kind.product, kind.setting);
  print_rows(results.rows);
  print_checkpoints(results.rows);
  if (!results.skipped.empty()) fmt::print("\nNot measured:\n");
  for (const auto& [what, why] : results.skipped) fmt::print("  {}: {}\n", what, why);
  print_targets(targets, kRest);
}

void write_json(const std::string& path, const Facts& machine, const Plan& plan,
                const Results& results, const std::vector<Target>& targets) {
  Json document;
  for (const auto& [name, value] : machine) document["machine"][name] = value;
  document["plan"] = {{"small_keys", plan.small_keys},   {"large_keys", plan.large_keys},
                      {"large_timed", plan.large_timed}, {"batch_keys", plan.batch_keys},
                      {"think_us", plan.think_us},       {"value_bytes", kValueBytes}};
  document["systems"] = list(plan.kinds);
  document["skipped"] = results.skipped;
  document["rows"] = list(results.rows);
  document["targets"] = to_json(targets, kRest);
  write_file(path, document);
}

void measure_and_report(const Plan& plan, const std::vector<std::string>& cases, Results results,
                        const std::string& json) {
  Facts machine = describe_machine(plan.directory);
  machine.push_back({"load_before", fmt::format("{:.2f}", load_average())});
  for (const std::string& name : cases) measure_case(plan, name, results);
  const auto targets = judge(plan.kinds, results.rows);
  print_report(machine, plan, results, targets);
  write_json(json, machine, plan, results, targets);
}

}  // namespace pawl::bench
