// What rehearsals say of a save.
#include "wsp/budget/save_budget.h"

#include <cerrno>
#include <filesystem>

#include <gtest/gtest.h>

#include "support/temporary_directory.h"

namespace pawl::wsp {
namespace {

SaveTiming timing(double stop_us, double state_us) {
  return {{{"stop", stop_us}, {"device state", state_us}}};
}

TEST(SaveBudget, HoldsForNothingThatWasNeverRehearsed) {
  EXPECT_FALSE(Rehearsals().judge(1e9).holds);
}

TEST(SaveBudget, TakesThePercentileAndNotTheLongest) {
  Rehearsals rehearsals;
  for (int i = 0; i < 1999; ++i) rehearsals.add(timing(100, 900));
  rehearsals.add(timing(50'000, 1'000));
  const BudgetFindings found = rehearsals.judge(1'000);
  EXPECT_TRUE(found.holds);
  EXPECT_DOUBLE_EQ(found.median_us, 1'000);
  EXPECT_DOUBLE_EQ(found.percentile_999_us, 1'000);
  EXPECT_DOUBLE_EQ(found.longest_us, 51'000);
  EXPECT_FALSE(rehearsals.judge(999).holds);
}

TEST(SaveBudget, TakesTheLongestOfFew) {
  Rehearsals rehearsals;
  for (int i = 0; i < 900; ++i) rehearsals.add(timing(100, 900));
  rehearsals.add(timing(50'000, 1'000));
  const BudgetFindings found = rehearsals.judge(2'000);
  EXPECT_FALSE(found.holds);
  EXPECT_DOUBLE_EQ(found.percentile_999_us, 51'000);
  EXPECT_EQ(found.dominating_step, "stop");
  EXPECT_NEAR(found.dominating_share, 50'000.0 / 51'000.0, 1e-9);
}

TEST(SaveBudget, ForgetsTheOldest) {
  Rehearsals rehearsals;
  rehearsals.add(timing(1e6, 1e6));
  for (std::size_t i = 0; i < kRehearsalsMax; ++i) rehearsals.add(timing(1, 1));
  EXPECT_EQ(rehearsals.size(), kRehearsalsMax);
  EXPECT_DOUBLE_EQ(rehearsals.judge(10).longest_us, 2);
}

TEST(SaveBudget, IsReadAsItWasWritten) {
  const test::TemporaryDirectory directory;
  Rehearsals written;
  for (int i = 1; i <= 10; ++i) written.add(timing(i, 10 * i));
  const auto own = OwnDirectory::open(directory.path(), false);
  ASSERT_TRUE(own.ok()) << own.status().text();
  ASSERT_TRUE(written.write(own.value()).ok());
  const auto read = Rehearsals::read(own.value());
  ASSERT_TRUE(read.ok()) << read.status().text();
  const BudgetFindings found = read.value().judge(110);
  EXPECT_EQ(found.rehearsals, 10U);
  EXPECT_DOUBLE_EQ(found.longest_us, 110);
  EXPECT_DOUBLE_EQ(found.median_us, 55);
  EXPECT_EQ(found.dominating_step, "device state");
  EXPECT_TRUE(found.holds);
}

TEST(SaveBudget, IsEmptyWithoutAFileAndRefusedInADamagedOne) {
  const test::TemporaryDirectory directory;
  const auto own = OwnDirectory::open(directory.path(), false);
  ASSERT_TRUE(own.ok()) << own.status().text();
  const auto none = Rehearsals::read(own.value());
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none.value().size(), 0U);
  for (const char* damaged :
       {"", "{}", "[]", R"({"rehearsals": [[]]})", R"({"rehearsals": [[{"step": 1}]]})",
        R"({"rehearsals": [[{"step": "stop", "took_us": -1}]]})"}) {
    test::write_file(directory / "rehearsals.json", damaged);
    const auto read = Rehearsals::read(own.value());
    ASSERT_FALSE(read.ok()) << damaged;
    EXPECT_EQ(read.status().error_number(), EINVAL) << damaged;
  }
}

TEST(SaveBudget, SaysWhereItCannotBeWritten) {
  const test::TemporaryDirectory directory;
  const auto own = OwnDirectory::open(directory.path(), false);
  ASSERT_TRUE(own.ok()) << own.status().text();
  std::filesystem::create_directory(directory / "rehearsals.json");
  Rehearsals rehearsals;
  rehearsals.add(timing(1, 1));
  EXPECT_FALSE(rehearsals.write(own.value()).ok());
}

}  // namespace
}  // namespace pawl::wsp
