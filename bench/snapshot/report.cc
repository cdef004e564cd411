#include "snapshot/report.h"

#include <fmt/core.h>

namespace pawl::bench {
namespace {

using Json = nlohmann::ordered_json;

void print_rows(const std::vector<SnapshotRow>& rows) {
  const SnapshotRow* previous = nullptr;
  for (const SnapshotRow& row : rows) {
    const bool same_block = previous != nullptr && previous->workload == row.workload &&
                            previous->operation == row.operation &&
                            previous->profile == row.profile;
    if (!same_block) {
      fmt::print("\n{}, {}, {}\n", row.workload, row.operation, row.profile);
      fmt::print("  {:<16} {:>10} {:>10} {:>10} {:>10} {:>7} {:>7} {:>9} {:>8}\n", "system",
                 "median us", "p99 us", "mean us", "settle us", "lines", "fences", "logged B",
                 "samples");
    }
    fmt::print(
        "  {:<16} {:>10.4f} {:>10.4f} {:>10.4f} {:>10.4f} {:>7.2f} {:>7.2f} {:>9.1f} {:>8}\n",
        row.system, row.median_us, row.p99_us, row.mean_us, row.settle_us, row.lines, row.fences,
        row.logged_bytes, row.samples);
    previous = &row;
  }
}

void print_others(const SnapshotResults& results) {
  if (!results.instrumentation.empty()) {
    fmt::print("\ninstrumentation alone\n  {:<16} {:>10} {:>10} {:>10}\n", "program", "plain us",
               "marked us", "ratio");
    for (const InstrumentationRow& row : results.instrumentation)
      fmt::print("  {:<16} {:>10.1f} {:>10.1f} {:>10.3f}\n", row.program, row.plain_us,
                 row.marked_us, row.marked_us / row.plain_us);
  }
  if (!results.block.empty()) {
    fmt::print("\none line on a block file\n  {:<16} {:>10} {:>10} {:>10} {:>8}\n", "system", "MiB",
               "median us", "p99 us", "samples");
    for (const BlockRow& row : results.block)
      fmt::print("  {:<16} {:>10} {:>10.1f} {:>10.1f} {:>8}\n", row.system, row.mapping_bytes >> 20,
                 row.median_us, row.p99_us, row.samples);
  }
  if (!results.kyoto.empty()) {
    fmt::print("\nKyoto Cabinet\n  {:<16} {:>10} {:>10} {:>10} {:>8}\n", "system", "updates",
               "median us", "p99 us", "samples");
    for (const KyotoRow& row : results.kyoto)
      fmt::print("  {:<16} {:>10} {:>10.1f} {:>10.1f} {:>8}\n", row.system, row.updates,
                 row.median_us, row.p99_us, row.samples);
  }
}

Json to_json(const SnapshotRow& row) {
  return {{"workload", row.workload},   {"profile", row.profile},
          {"system", row.system},       {"operation", row.operation},
          {"writes", row.writes},       {"median_us", row.median_us},
          {"p99_us", row.p99_us},       {"mean_us", row.mean_us},
          {"settle_us", row.settle_us}, {"lines", row.lines},
          {"fences", row.fences},       {"logged_bytes", row.logged_bytes},
          {"samples", row.samples},     {"operations_of_sample", row.operations_of_sample}};
}

Json to_json(const InstrumentationRow& row) {
  return {{"program", row.program},
          {"plain_us", row.plain_us},
          {"marked_us", row.marked_us},
          {"ratio", row.marked_us / row.plain_us},
          {"samples", row.samples}};
}

Json to_json(const BlockRow& row) {
  return {{"system", row.system},
          {"mapping_bytes", row.mapping_bytes},
          {"median_us", row.median_us},
          {"p99_us", row.p99_us},
          {"samples", row.samples}};
}

Json to_json(const KyotoRow& row) {
  return {{"system", row.system},
          {"updates", row.updates},
          {"median_us", row.median_us},
          {"p99_us", row.p99_us},
          {"samples", row.samples}};
}

Json to_json(const Target& target) {
  return {{"target", target.what},
          {"at_most", target.limit},
          {"measured", target.measured},
          {"pass", target.pass()}};
}

Json to_json(const Profile& profile) {
  return {{"profile", profile.name},
          {"line_ns", profile.line_ns},
          {"fence_ns", profile.fence_ns},
          {"source", profile.source}};
}

Json to_json(const SnapshotKind& kind) {
  return {{"system", kind.name}, {"setting", kind.setting}};
}

template <class T>
Json list(const std::vector<T>& entries) {
  Json array = Json::array();
  for (const T& entry : entries) array.push_back(to_json(entry));
  return array;
}

}  // namespace

void print_report(const Facts& machine, const SnapshotPlan& plan, const SnapshotResults& results,
                  const std::vector<Target>& targets) {
  for (const auto& [name, value] : machine) fmt::print("{:<16} {}\n", name, value);
  fmt::print("\n");
  for (const SnapshotKind& kind : all_snapshot_kinds())
    fmt::print("{:<16} {}\n", kind.name, kind.setting);
  for (const Profile& profile : plan.profiles)
    fmt::print("{:<16} {} ns a line, {} ns a fence: {}\n", profile.name, profile.line_ns,
               profile.fence_ns, profile.source);
  print_rows(results.rows);
  print_others(results);
  if (!results.skipped.empty()) fmt::print("\nNot measured:\n");
  for (const auto& [what, why] : results.skipped) fmt::print("  {}: {}\n", what, why);
  print_targets(targets, "");
}

void write_json(const std::string& path, const Facts& machine, const SnapshotPlan& plan,
                const SnapshotResults& results, const std::vector<Target>& targets) {
  Json document;
  for (const auto& [name, value] : machine) document["machine"][name] = value;
  document["plan"] = {{"items", plan.items},
                      {"value_bytes", kPairValueBytes},
                      {"rounds", plan.rounds},
                      {"samples", plan.samples},
                      {"kyoto_records", plan.kyoto_records}};
  document["profiles"] = list(plan.profiles);
  document["systems"] = list(all_snapshot_kinds());
  document["skipped"] = results.skipped;
  document["rows"] = list(results.rows);
  document["instrumentation"] = list(results.instrumentation);
  document["block"] = list(results.block);
  document["kyoto"] = list(results.kyoto);
  document["targets"] = list(targets);
  write_file(path, document);
}

}  // namespace pawl::bench
