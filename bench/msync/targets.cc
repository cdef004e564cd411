#include "msync/targets.h"

#include <fmt/core.h>

#include <algorithm>

namespace pawl::bench {
namespace {

constexpr double kRecordFactorMax = 2;
constexpr std::uint64_t kRecordExtraBytes = 4096;

// What `auto` chooses: scan where the kernel has it.
std::string pawl_system(const Rows& rows) {
  const auto is_scan = [](const Row& row) { return row.system == "pawl-scan-async"; };
  return std::any_of(rows.begin(), rows.end(), is_scan) ? "pawl-scan-async" : "pawl-fault-async";
}

void compare(const Rows& rows, const std::string& rival, std::uint32_t pages,
             std::size_t bytes_per_page, double limit, std::vector<Target>& targets) {
  const std::string system = pawl_system(rows);
  const auto bytes = static_cast<std::uint32_t>(bytes_per_page);
  const Row* const pawl = find(rows, kCasePages, system, pages, bytes, kSaturated);
  const Row* const other = find(rows, kCasePages, rival, pages, bytes, kSaturated);
  if (pawl == nullptr || other == nullptr) return;
  targets.push_back({fmt::format("{} against {}, {} x {} bytes", system, rival, pages, bytes),
                     limit, pawl->median_us / other->median_us,
                     pawl->both_median_us / other->both_median_us});
}

void compare_large(const Results& results, const char* case_name, std::vector<Target>& targets) {
  const Row* const small = find(results.rows, case_name, "pawl-small", 1, kLineBytes, kSaturated);
  const Row* const large = find(results.rows, case_name, "pawl-large", 1, kLineBytes, kSaturated);
  if (small == nullptr || large == nullptr) return;
  targets.push_back({fmt::format("{}: a page in {} MiB against one in {} MiB", case_name,
                                 large->mapping_bytes >> 20, small->mapping_bytes >> 20),
                     1.3, large->median_us / small->median_us,
                     large->both_median_us / small->both_median_us});
}

// The shape whose records come nearest to what they may be.
void check_records(const Rows& rows, std::vector<Target>& targets) {
  double worst = 0;
  std::string shape;
  for (const Row& row : rows) {
    if (!row.system.starts_with("pawl-")) continue;
    const double changed = static_cast<double>(std::uint64_t{row.pages} * row.bytes_per_page);
    const double allowed = kRecordFactorMax * changed + kRecordExtraBytes;
    const double part = static_cast<double>(row.journal_bytes) / allowed;
    if (part <= worst) continue;
    worst = part;
    shape = fmt::format("{} bytes for {} x {}", row.journal_bytes, row.pages, row.bytes_per_page);
  }
  if (shape.empty()) return;
  targets.push_back({"record bytes against 2 x changed + 4096; worst: " + shape, 1.0, worst, 0});
}

}  // namespace

std::vector<Target> judge(const Results& results) {
  std::vector<Target> targets;
  const Rows& rows = results.rows;
  const std::size_t page = kPageBytes;
  compare(rows, "msync", 1, page, 0.8, targets);
  compare(rows, "msync", 16, page, 0.3, targets);
  compare(rows, "msync", 256, page, 0.1, targets);
  for (const std::uint32_t pages : {1u, 4u, 16u})
    compare(rows, "floor", pages, kLineBytes, 1.5, targets);
  compare_large(results, kCaseLargeSparse, targets);
  compare_large(results, kCaseLargeFull, targets);
  check_records(rows, targets);
  return targets;
}

}  // namespace pawl::bench
