// What is measured: the paper's sequence of operations, on small and large stores, saturated and
// with pauses, one operation a commit and many.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "stores/rows.h"
#include "stores/store.h"

namespace pawl::bench {

struct Plan {
  std::string directory;         // for stores, on the file system to be measured
  std::vector<StoreKind> kinds;  // to compare
  std::uint64_t small_keys = 1000;
  std::uint64_t large_keys = 100'000;
  std::uint64_t large_timed = 5000;  // operations of each kind on the large store
  std::uint64_t batch_keys = 10'000;
  std::uint64_t batch_commits_max = 200;  // of each kind
  std::vector<std::uint32_t> batches = {1, 10, 100, 1000};
  std::uint32_t think_us = 1000;
  // Each on fresh stores.
  std::uint32_t small_repetitions = 5;
  std::uint32_t think_repetitions = 1;
  std::uint32_t large_repetitions = 1;
  std::uint32_t batch_repetitions = 1;
};

struct Results {
  Rows rows;
  std::map<std::string, std::string> skipped;  // a system, and why
};

// Measures a case, one of the names in rows.h.  Throws std::runtime_error when a system fails or
// does not hold what it must, or when a signal came.
void measure_case(const Plan& plan, const std::string& case_name, Results& results);

}  // namespace pawl::bench
