#include "stores/cases.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>

#include "common/conduct.h"

namespace pawl::bench {
namespace {

using Workers = std::vector<std::unique_ptr<Worker>>;

// Operations of a turn.  Reads are short, and the caches are cold when a turn begins.
constexpr std::uint32_t kTurnChanges = 50;
constexpr std::uint32_t kTurnReads = 500;

constexpr Operation kSequence[] = {Operation::insert, Operation::replace, Operation::get,
                                   Operation::erase};

struct SystemTally {
  std::map<Operation, Tally> operations;
  std::uint64_t disk_bytes = 0;  // of all repetitions together
};
using Tallies = std::map<std::string, SystemTally>;

constexpr std::uint64_t kStatBlockBytes = 512;  // of st_blocks

std::string directory_of(const std::string& directory, const std::string& system) {
  return directory + "/" + system;
}

// What files take, which may be less than their sizes: they may have holes.
std::uint64_t disk_bytes(const std::string& directory) {
  std::uint64_t bytes = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(directory)) {
    struct stat status{};
    // A file that the system has just removed takes nothing.
    if (::lstat(file.path().c_str(), &status) == 0 && S_ISREG(status.st_mode))
      bytes += static_cast<std::uint64_t>(status.st_blocks) * kStatBlockBytes;
  }
  return bytes;
}

std::uint64_t commits_of_turn(Operation operation, std::uint32_t batch) {
  const std::uint32_t operations = operation == Operation::get ? kTurnReads : kTurnChanges;
  return std::max(1u, operations / batch);
}

// In each round every system has one turn, in a new order, so that no system always follows the
// same one, and what drifts, drifts for all.
void take_rounds(const Workers& workers, const Workload& workload, Operation operation,
                 const std::string& title, Tallies& tallies) {
  std::vector<std::size_t> order(workers.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937_64 random(workload.seed);
  std::uint64_t done = 0;
  while (done < workload.timed) {
    progress(fmt::format("{}, {}: {} of {}", title, name_of(operation), done, workload.timed));
    std::shuffle(order.begin(), order.end(), random);
    const std::uint64_t commits = commits_of_turn(operation, workload.batch);
    for (const std::size_t i : order) {
      stop_if_asked();
      const TurnResult turn = workers[i]->take(operation, commits);
      tallies[workers[i]->name()].operations[operation].add(turn, workload.batch);
    }
    done += commits * workload.batch;
  }
}

Workers open_stores(const Plan& plan, const Workload& workload, const std::string& directory,
                    const std::string& title, Results& results) {
  Workers workers;
  for (const StoreKind& kind : plan.kinds) {
    stop_if_asked();
    progress(fmt::format("{}, filling {}", title, kind.name));
    const std::string own = directory_of(directory, kind.name);
    std::filesystem::create_directories(own);
    auto worker = std::make_unique<Worker>(kind, own, workload);
    if (worker->unavailable().empty())
      workers.push_back(std::move(worker));
    else
      results.skipped[kind.name] = worker->unavailable();
  }
  return workers;
}

void repeat_once(const Plan& plan, const Workload& workload, const std::string& title,
                 Results& results, Tallies& tallies) {
  const std::string directory = plan.directory + "/stores";
  {
    const Workers workers = open_stores(plan, workload, directory, title, results);
    for (const Operation operation : kSequence) {
      if (operation == Operation::get && !workload.reads) continue;
      take_rounds(workers, workload, operation, title, tallies);
      if (operation == Operation::insert) {
        for (const auto& worker : workers)
          tallies[worker->name()].disk_bytes += disk_bytes(directory_of(directory, worker->name()));
      }
      progress(fmt::format("{}, checking after {}", title, name_of(operation)));
      for (const auto& worker : workers) worker->check();
    }
    progress(fmt::format("{}, checking after opening again", title));
    for (const auto& worker : workers) worker->check_reopened();
  }
  std::filesystem::remove_all(directory);
}

void measure(const Plan& plan, const std::string& case_name, Workload workload,
             std::uint32_t repetitions, Results& results) {
  Tallies tallies;
  for (std::uint32_t i = 0; i < repetitions; ++i) {
    workload.seed = i + 1;
    const std::string title = fmt::format("{} keys, {} a commit, {} of {}", workload.keys,
                                          workload.batch, i + 1, repetitions);
    repeat_once(plan, workload, title, results, tallies);
  }
  progress("");
  for (const Operation operation : kSequence) {
    for (const StoreKind& kind : plan.kinds) {
      const SystemTally& tally = tallies[kind.name];
      const auto found = tally.operations.find(operation);
      if (found == tally.operations.end()) continue;
      Row row;
      row.case_name = case_name;
      row.system = kind.name;
      row.operation = operation;
      row.batch = workload.batch;
      found->second.summarize(row);
      row.disk_bytes = static_cast<double>(tally.disk_bytes) / repetitions;
      results.rows.push_back(row);
    }
  }
}

}  // namespace

void measure_case(const Plan& plan, const std::string& case_name, Results& results) {
  Workload workload;
  if (case_name == kCase1k) {
    workload.keys = workload.timed = plan.small_keys;
    workload.reads = true;
    measure(plan, case_name, workload, plan.small_repetitions, results);
  } else if (case_name == kCase1kThink) {
    workload.keys = workload.timed = plan.small_keys;
    workload.think_us = plan.think_us;
    measure(plan, case_name, workload, plan.think_repetitions, results);
  } else if (case_name == kCase100k) {
    workload.keys = plan.large_keys;
    workload.timed = std::min(plan.large_timed, plan.large_keys);
    workload.reads = true;
    measure(plan, case_name, workload, plan.large_repetitions, results);
  } else {
    for (const std::uint32_t batch : plan.batches) {
      workload.batch = batch;
      workload.keys = plan.batch_keys;
      // Whole batches only.
      const std::uint64_t commits = std::min(plan.batch_commits_max, plan.batch_keys / batch);
      workload.timed = commits * batch;
      if (commits > 0) measure(plan, case_name, workload, plan.batch_repetitions, results);
    }
  }
}

}  // namespace pawl::bench
