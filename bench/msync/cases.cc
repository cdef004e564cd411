#include "msync/cases.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>

#include "common/conduct.h"

namespace pawl::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Workers = std::vector<std::unique_ptr<Worker>>;

constexpr std::uint32_t kTurnCommitsMin = 2;
constexpr int kRoundsMin = 2;
constexpr int kRoundsMax = 200;
constexpr std::uint32_t kSeedOfCases = 1;
// Left to everything else when a large mapping's size is chosen.
constexpr std::uint64_t kMemoryLeftBytes = std::uint64_t{3} << 30;
constexpr std::uint64_t kDiskLeftBytes = std::uint64_t{4} << 30;

void add_worker(Workers& workers, Results& results, const std::string& name,
                const MakeSystem& make) {
  stop_if_asked();
  progress("setting up " + name);
  auto worker = std::make_unique<Worker>(name, make);
  if (worker->unavailable().empty())
    workers.push_back(std::move(worker));
  else
    results.skipped[name] = worker->unavailable();
}

Turn turn_of(const Plan& plan, const Shape& shape) {
  return {shape, shape.think_us > 0 ? plan.turn_us / 2 * 3 : plan.turn_us, kTurnCommitsMin};
}

// Rounds until the time is up; in each, every system has one turn, in a new order, so that no
// system always follows the same one, and what drifts, drifts for all.
std::vector<Tally> take_rounds(const Workers& workers, const Turn& turn, double seconds,
                               const std::string& title) {
  std::vector<Tally> tallies(workers.size());
  std::vector<std::size_t> order(workers.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937 random(kSeedOfCases);
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (int round = 0; round < kRoundsMax && (Clock::now() < end || round < kRoundsMin); ++round) {
    progress(fmt::format("{}, round {}", title, round + 1));
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      stop_if_asked();
      tallies[i].add(workers[i]->take(turn));
    }
  }
  return tallies;
}

// The fastest of the floors is the floor.
void add_floor(Rows& rows, std::size_t first) {
  const Row* best = nullptr;
  for (std::size_t i = first; i < rows.size(); ++i) {
    const bool is_floor = rows[i].system.starts_with("floor-");
    if (is_floor && (best == nullptr || rows[i].median_us < best->median_us)) best = &rows[i];
  }
  if (best == nullptr) return;
  Row floor = *best;
  floor.system = "floor";
  rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(first), floor);
}

void measure_shape(const Plan& plan, const Workers& workers, Shape shape, Results& results) {
  const std::string load = shape.think_us > 0 ? kThink : kSaturated;
  const std::string title =
      fmt::format("{} pages of {} bytes, {}", shape.pages, shape.bytes_per_page, load);
  // The first commit of this shape by Pawl says how large its record is.
  shape.record_bytes = kPageBytes;
  for (const auto& worker : workers) {
    if (!worker->name().starts_with("pawl-")) continue;
    const System::Logged logged = worker->take({shape, 0, 1}).logged;
    shape.record_bytes = (logged.bytes / logged.commits + kPageBytes - 1) / kPageBytes * kPageBytes;
    break;
  }
  const auto tallies = take_rounds(workers, turn_of(plan, shape), plan.shape_seconds, title);
  const std::size_t first = results.rows.size();
  for (std::size_t i = 0; i < workers.size(); ++i) {
    Row row;
    row.case_name = kCasePages;
    row.system = workers[i]->name();
    row.mapping_bytes = plan.file_bytes;
    row.pages = shape.pages;
    row.bytes_per_page = shape.bytes_per_page;
    row.load = load;
    tallies[i].summarize(row);
    results.rows.push_back(row);
  }
  add_floor(results.rows, first);
}

std::uint64_t available_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    std::uint64_t kib = 0;
    if (word == "MemAvailable:" && file >> kib) return kib << 10;
  }
  return 0;
}

// Halved until its bytes fit on the disk and in the page cache.
std::uint64_t affordable_bytes(const Plan& plan) {
  const std::uint64_t disk = std::filesystem::space(plan.directory).available;
  const std::uint64_t memory = available_memory_bytes();
  std::uint64_t bytes = plan.large_bytes;
  while (bytes > plan.small_bytes &&
         (bytes + kDiskLeftBytes > disk || bytes + kMemoryLeftBytes > memory)) {
    bytes /= 2;
  }
  return bytes;
}

void measure_large_case(const Plan& plan, const char* case_name, Contents contents,
                        Results& results) {
  Workers workers;
  const std::vector<std::uint64_t> sizes = {plan.small_bytes, results.large_bytes};
  for (const std::uint64_t bytes : sizes) {
    add_worker(workers, results, fmt::format("{} of {} MiB", case_name, bytes >> 20), [&] {
      return make_pawl(plan.directory, {bytes, PAWL_TRACKER_AUTO, PAWL_APPLY_ASYNC, contents});
    });
  }
  if (workers.size() != sizes.size()) return;
  const auto tallies = take_rounds(workers, turn_of(plan, {}), plan.large_seconds, case_name);
  for (std::size_t i = 0; i < workers.size(); ++i) {
    Row row;
    row.case_name = case_name;
    row.system = sizes[i] == plan.small_bytes ? "pawl-small" : "pawl-large";
    row.mapping_bytes = sizes[i];
    row.pages = 1;
    row.bytes_per_page = kLineBytes;
    row.load = kSaturated;
    tallies[i].summarize(row);
    results.rows.push_back(row);
  }
}

}  // namespace

void measure_pages(const Plan& plan, Results& results) {
  Workers workers;
  const std::string& directory = plan.directory;
  const std::uint64_t bytes = plan.file_bytes;
  const auto add = [&](const std::string& name, const MakeSystem& make) {
    const auto& wanted = plan.systems;
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end())
      add_worker(workers, results, name, make);
  };
  add("floor-direct", [&] { return make_floor(directory, {.direct_io = true}); });
  add("floor-direct-awake",
      [&] { return make_floor(directory, {.direct_io = true, .awake = true}); });
  add("floor-buffered", [&] { return make_floor(directory, {}); });
  add("msync", [&] { return make_plain_msync(directory, bytes); });
  add("msync-data-journal", [&] { return make_data_journal_msync(directory, bytes); });
  for (const auto& [tracker, tracker_name] :
       {std::pair{PAWL_TRACKER_SCAN, "scan"}, {PAWL_TRACKER_FAULT, "fault"}}) {
    for (const auto& [apply, apply_name] :
         {std::pair{PAWL_APPLY_ASYNC, "async"}, {PAWL_APPLY_EAGER, "eager"}}) {
      const PawlSetup setup{bytes, tracker, apply, Contents::written};
      add(fmt::format("pawl-{}-{}", tracker_name, apply_name),
          [&] { return make_pawl(directory, setup); });
    }
  }
  add("pawl-scan-async-sleeping", [&] {
    return make_pawl(directory, {.bytes = bytes, .tracker = PAWL_TRACKER_SCAN, .sleeping = true});
  });
  if (workers.empty()) throw std::runtime_error("no such system can be had here");
  for (const std::string& load : plan.loads) {
    const std::uint32_t think_us = load == kThink ? plan.think_us : 0;
    for (const std::uint32_t bytes_per_page : plan.bytes_per_page) {
      for (const std::uint32_t pages : plan.pages) {
        measure_shape(plan, workers, {pages, bytes_per_page, think_us, 0}, results);
      }
    }
  }
  progress("");
}

void measure_large(const Plan& plan, Results& results) {
  results.large_bytes = affordable_bytes(plan);
  if (results.large_bytes <= plan.small_bytes) {
    results.skipped["large"] = "neither memory nor disk for a large mapping";
    return;
  }
  if (results.large_bytes < plan.large_bytes) {
    results.skipped[fmt::format("large mapping of {} MiB", plan.large_bytes >> 20)] =
        fmt::format("memory and disk have room for {} MiB", results.large_bytes >> 20);
  }
  measure_large_case(plan, kCaseLargeSparse, Contents::few_pages_used, results);
  measure_large_case(plan, kCaseLargeFull, Contents::written, results);
  progress("");
}

}  // namespace pawl::bench
