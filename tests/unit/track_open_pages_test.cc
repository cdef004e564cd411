// The bitmap of open pages against a plain set.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "track/open_pages.h"

namespace pawl {
namespace {

TEST(OpenPagesTest, AgreesWithASet) {
  constexpr std::uint64_t kPages = 64 * 64 * 3 + 17;  // the summary has several words
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  OpenPages open;
  ASSERT_TRUE(open.allocate(kPages));
  std::set<std::uint64_t> model;
  for (int round = 0; round < 4000; ++round) {
    const std::uint64_t first = random() % kPages;
    const std::uint64_t length = random() % 8 == 0 ? random() % kPages : random() % 70 + 1;
    const std::uint64_t end = std::min(kPages, first + length);
    if (random() % 2 == 0) {
      if (length < 100) {
        open.open(first, end);
        for (std::uint64_t page = first; page < end; ++page) model.insert(page);
      }
    } else {
      open.close(first, end);
      model.erase(model.lower_bound(first), model.lower_bound(end));
    }
    const std::uint64_t from = random() % kPages;
    const std::uint64_t until = from + random() % (kPages - from + 1);
    std::vector<std::uint64_t> found;
    std::uint64_t begins = 0;
    PageRun run;
    for (std::uint64_t next = from; open.next_run(next, until, run); next = run.end()) {
      ASSERT_GT(run.count, 0U);
      for (std::uint64_t page = run.first; page < run.end(); ++page) found.push_back(page);
    }
    const std::vector<std::uint64_t> expected(model.lower_bound(from), model.lower_bound(until));
    ASSERT_EQ(found, expected) << "round " << round;
    for (const std::uint64_t page : expected)
      begins += page == 0 || !model.contains(page - 1) ? 1 : 0;
    ASSERT_EQ(open.count_runs(from, until), begins);
    ASSERT_EQ(open.contains(from), model.contains(from));
  }
  open.release();
}

}  // namespace
}  // namespace pawl
