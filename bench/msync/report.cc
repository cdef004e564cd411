#include "msync/report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace pawl::bench {
namespace {

// The price that trackers have at the stores.
constexpr const char* kRest = "with stores";

using Json = nlohmann::ordered_json;

void print_rows(const Rows& rows) {
  const Row* previous = nullptr;
  for (const Row& row : rows) {
    const bool same_block = previous != nullptr && previous->case_name == row.case_name &&
                            previous->load == row.load && previous->pages == row.pages &&
                            previous->bytes_per_page == row.bytes_per_page;
    if (!same_block) {
      fmt::print("\n{}: {} x {} bytes, {}\n", row.case_name, row.pages, row.bytes_per_page,
                 row.load);
      fmt::print("  {:<24} {:>8} {:>11} {:>11} {:>11} {:>11} {:>10} {:>8}\n", "system", "MiB",
                 "median us", "p99 us", "stores us", "both us", "journal B", "samples");
    }
    fmt::print("  {:<24} {:>8} {:>11.1f} {:>11.1f} {:>11.1f} {:>11.1f} {:>10} {:>8}\n", row.system,
               row.mapping_bytes >> 20, row.median_us, row.p99_us, row.store_median_us,
               row.both_median_us, row.journal_bytes, row.samples);
    previous = &row;
  }
}

Json to_json(const Row& row) {
  return {{"case", row.case_name},
          {"system", row.system},
          {"pages", row.pages},
          {"bytes_per_page", row.bytes_per_page},
          {"load", row.load},
          {"median_us", row.median_us},
          {"p99_us", row.p99_us},
          {"journal_bytes", row.journal_bytes},
          {"store_median_us", row.store_median_us},
          {"both_median_us", row.both_median_us},
          {"mapping_bytes", row.mapping_bytes},
          {"samples", row.samples}};
}

}  // namespace

void print_report(const Facts& machine, const Results& results,
                  const std::vector<Target>& targets) {
  for (const auto& [name, value] : machine) fmt::print("{:<20} {}\n", name, value);
  print_rows(results.rows);
  if (!results.skipped.empty()) fmt::print("\nNot measured:\n");
  for (const auto& [what, why] : results.skipped) fmt::print("  {}: {}\n", what, why);
  print_targets(targets, kRest);
}

void write_json(const std::string& path, const Facts& machine, const Results& results,
                const std::vector<Target>& targets) {
  Json document;
  for (const auto& [name, value] : machine) document["machine"][name] = value;
  document["skipped"] = results.skipped;
  document["rows"] = Json::array();
  for (const Row& row : results.rows) document["rows"].push_back(to_json(row));
  document["targets"] = to_json(targets, kRest);
  write_file(path, document);
}

}  // namespace pawl::bench
