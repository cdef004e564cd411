// Samples gathered over many turns, and the rows that say what they came to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stores/worker.h"

namespace pawl::bench {

// The names that rows carry.
inline constexpr const char* kCase1k = "1k";
inline constexpr const char* kCase1kThink = "1k-think";
inline constexpr const char* kCase100k = "100k";
inline constexpr const char* kCaseBatch = "batch";

// Times, bytes and costs are those of one operation; a batch's are divided among its operations.
struct Row {
  std::string case_name;
  std::string system;
  Operation operation = Operation::insert;
  std::uint32_t batch = 1;
  std::uint64_t samples = 0;  // commits
  double median_us = 0;
  double p99_us = 0;
  double mean_us = 0;
  double settle_us = 0;  // after turns, until the background had nothing of the store's to do
  double processor_us = 0;
  double logged_bytes = 0;
  double written_bytes = 0;
  std::uint64_t checkpoints = 0;  // of all samples together
  double disk_bytes = 0;          // of the system's files, after all insertions
};

class Tally {
 public:
  void add(const TurnResult& turn, std::uint32_t batch);
  // Fills in what the samples say; the rest of the row is the caller's.
  void summarize(Row& row) const;

 private:
  std::vector<double> times_us_;  // of an operation
  TurnCosts costs_;
  double operations_ = 0;
};

using Rows = std::vector<Row>;

// Null when there is none.
const Row* find(const Rows& rows, const std::string& case_name, const std::string& system,
                Operation operation);

}  // namespace pawl::bench
