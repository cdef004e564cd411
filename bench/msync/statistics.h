// Samples gathered over many turns, and the rows that say what they came to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "msync/worker.h"

namespace pawl::bench {

// The names that rows carry.
inline constexpr const char* kCasePages = "pages";
inline constexpr const char* kCaseLargeSparse = "large-sparse";
inline constexpr const char* kCaseLargeFull = "large-full";
inline constexpr const char* kSaturated = "saturated";
inline constexpr const char* kThink = "think";

struct Row {
  std::string case_name;
  std::string system;
  std::uint64_t mapping_bytes = 0;
  std::uint32_t pages = 0;
  std::uint32_t bytes_per_page = 0;
  std::string load;
  std::size_t samples = 0;
  double median_us = 0;  // of the call that makes the stores durable
  double p99_us = 0;
  double store_median_us = 0;       // of the stores before it
  double both_median_us = 0;        // of the two together
  std::uint64_t journal_bytes = 0;  // of one commit, on average
};

class Tally {
 public:
  void add(const TurnResult& turn);
  bool empty() const { return samples_.empty(); }
  // Fills in what the samples say; the rest of the row is the caller's.
  void summarize(Row& row) const;

 private:
  std::vector<Sample> samples_;
  System::Logged logged_;
};

using Rows = std::vector<Row>;

// Null when there is none.
const Row* find(const Rows& rows, const std::string& case_name, const std::string& system,
                std::uint32_t pages, std::uint32_t bytes_per_page, const std::string& load);

}  // namespace pawl::bench
