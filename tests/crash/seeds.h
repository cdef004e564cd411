// Which seeds a test runs: all it has by default, or those that the environment names.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "workload/random.h"

namespace pawl::test {

inline unsigned environment_number(const char* name, unsigned otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise
                          : static_cast<unsigned>(std::max(1L, std::strtol(value, nullptr, 10)));
}

// Runs `trial` with each seed until one fails.  Background threads take part: what a seed repeats
// is the program's calls and their bytes, and a failure may need a few runs to come again.
template <class Trial>
void run_seeds(unsigned count_by_default, Trial trial) {
  const unsigned first = environment_number("PAWL_CRASH_SEED", 1);
  const unsigned count = environment_number("PAWL_CRASH_COUNT", count_by_default);
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  const std::string test = std::string(info->test_suite_name()) + "." + info->name();
  for (unsigned seed = first; seed - first < count && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed) + "; to run it again: PAWL_CRASH_SEED=" +
                 std::to_string(seed) + " PAWL_CRASH_COUNT=1 " +
                 testing::internal::GetArgvs().front() + " --gtest_filter=" + test);
    trial(seed);
  }
}

}  // namespace pawl::test
