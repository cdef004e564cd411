// The durability on-fail: what is acknowledged before it is flushed is never more than a battery
// leaves time for.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

#include "journal/flush_budget.h"
#include "mapping/power.h"
#include "mapping/statistics.h"
#include "support/open_mapping.h"
#include "support/temporary_directory.h"
#include "support/watched_medium.h"

namespace pawl {
namespace {

using journal::FlushBudget;
using std::chrono::milliseconds;
using test::Act;
using test::Event;
using test::Opened;
using test::Watch;
using test::Which;

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;

TEST(FlushBudget, IsWhatHalfOfTheTimeIsEnoughFor) {
  FlushBudget budget(milliseconds(100), 4 * kMebibyte);
  EXPECT_EQ(budget.bytes_max(), 0u);
  budget.note(kMebibyte, milliseconds(10));
  EXPECT_EQ(budget.bytes_max(), 0u);  // nobody knows how long a small one takes
  budget.note(kPageBytes, milliseconds(5));
  // 50 ms, less two flushes of 5 ms, at 1 MiB in 10 ms.
  EXPECT_NEAR(static_cast<double>(budget.bytes_max()), 4.0 * kMebibyte, kPageBytes);
}

TEST(FlushBudget, TheWorstOfTheLastFlushesCounts) {
  FlushBudget budget(milliseconds(1000), 4 * kMebibyte);
  budget.note(kPageBytes, milliseconds(1));
  budget.note(kMebibyte, milliseconds(10));
  const std::uint64_t fast = budget.bytes_max();
  budget.note(kMebibyte, milliseconds(40));
  const std::uint64_t slow = budget.bytes_max();
  EXPECT_LT(slow, fast / 3);
  budget.note(kMebibyte, milliseconds(10));
  EXPECT_EQ(budget.bytes_max(), slow);
  for (int i = 0; i < 100; ++i) budget.note(kMebibyte, milliseconds(10));
  EXPECT_EQ(budget.bytes_max(), fast);
}

TEST(FlushBudget, ADiskThatIsTooSlowLeavesNothing) {
  FlushBudget budget(milliseconds(20), 4 * kMebibyte);
  budget.note(kMebibyte, milliseconds(10));
  budget.note(kPageBytes, milliseconds(6));
  EXPECT_EQ(budget.bytes_max(), 0u);
}

TEST(FlushBudget, AllOfTheProcessShareTheTime) {
  FlushBudget budget(milliseconds(1000), 4 * kMebibyte);
  budget.note(kPageBytes, milliseconds(1));
  budget.note(kMebibyte, milliseconds(10));
  const std::uint64_t alone = budget.bytes_max();
  {
    const FlushBudget other(milliseconds(100), 4 * kMebibyte);
    EXPECT_EQ(budget.bytes_max(), alone / 2);
  }
  EXPECT_EQ(budget.bytes_max(), alone);
}

// The journal's flushes wait until they may go on.
class Gate {
 public:
  Status pass(const Event& event) {
    if (event.which != Which::journal || event.act != Act::flush) return {};
    ++waiting_;
    while (is_closed_.load()) std::this_thread::sleep_for(milliseconds(1));
    --waiting_;
    return failure_;
  }
  void close() { is_closed_.store(true); }
  void open() { is_closed_.store(false); }
  void fail(Status failure) {
    failure_ = std::move(failure);
    open();
  }
  bool holds_one() const { return waiting_.load() > 0; }

 private:
  std::atomic<bool> is_closed_{false};
  std::atomic<int> waiting_{0};
  Status failure_;
};

class OnFail : public ::testing::Test {
 protected:
  OnFail() {
    test::write_file(directory_ / "file", std::string(16 * kPageBytes, '.'));
    watch_->judge_with([this](const Event& event) { return gate_.pass(event); });
    options_.durability = DurabilityChoice::on_fail;
    options_.hold_up_ms = 60'000;
  }
  ~OnFail() override {
    gate_.open();
    the_power_is_failing.store(false);
  }

  static void store(const Opened& mapping, char value) {
    std::memset(mapping.bytes(), value, kPageBytes);
  }
  static MappingStatistics statistics_of(const Opened& mapping) {
    MappingStatistics statistics;
    mapping->statistics(statistics);
    return statistics;
  }
  char first_byte() {
    const Opened again(directory_ / "file", test::options_for(ApplyChoice::async));
    return again.bytes()[0];
  }

  test::TemporaryDirectory directory_;
  Gate gate_;
  std::atomic<bool> is_open_again_{false};
  std::shared_ptr<Watch> watch_ = std::make_shared<Watch>();
  Options options_ = test::options_for(ApplyChoice::async);
};

TEST_F(OnFail, ACommitDoesNotWaitForTheDisk) {
  const Opened mapping(directory_ / "file", options_, watch_);
  gate_.close();
  for (char value = 'a'; value < 'e'; ++value) {
    store(mapping, value);
    ASSERT_TRUE(mapping.commit().ok());
  }
  const MappingStatistics statistics = statistics_of(mapping);
  EXPECT_EQ(statistics.durability, PAWL_DURABILITY_ON_FAIL);
  EXPECT_GE(statistics.outstanding_bytes, 4 * kPageBytes);
  EXPECT_LE(statistics.outstanding_bytes, statistics.outstanding_bytes_max);
  gate_.open();
  ASSERT_TRUE(mapping->wait().ok());
  EXPECT_EQ(statistics_of(mapping).outstanding_bytes, 0u);
}

TEST_F(OnFail, WhatWasAcknowledgedOutlivesTheProcess) {
  Opened mapping(directory_ / "file", options_, watch_);
  gate_.close();
  store(mapping, 'x');
  ASSERT_TRUE(mapping.commit().ok());
  // The writer behind dies with the flush that it waits for.
  while (!gate_.holds_one()) std::this_thread::sleep_for(milliseconds(1));
  gate_.fail(Status::failure(EIO, "the process is dead"));
  mapping.crash();
  EXPECT_EQ(first_byte(), 'x');
}

TEST_F(OnFail, NeverMoreIsOutstandingThanTheBudget) {
  constexpr milliseconds kFlush{10};
  watch_->judge_with([&](const Event& event) {
    if (event.act == Act::flush) std::this_thread::sleep_for(kFlush);
    return gate_.pass(event);
  });
  options_.hold_up_ms = 50;  // two flushes, and what the rest of one half of it is enough for
  const Opened mapping(directory_ / "file", options_, watch_);
  const std::uint64_t budget = statistics_of(mapping).outstanding_bytes_max;
  ASSERT_LT(budget, options_.journal_size_bytes / 2);
  gate_.close();
  std::atomic<bool> is_done{false};
  std::atomic<std::uint64_t> outstanding_max{0};
  std::thread committer([&] {
    for (std::uint64_t bytes = 0; bytes < options_.journal_size_bytes / 2; bytes += kPageBytes) {
      store(mapping, static_cast<char>(bytes / kPageBytes));
      if (!mapping.commit().ok()) return;
      const std::uint64_t now = statistics_of(mapping).outstanding_bytes;
      if (!is_open_again_.load()) outstanding_max.store(std::max(outstanding_max.load(), now));
    }
    is_done.store(true);
  });
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_FALSE(is_done.load());
  EXPECT_LE(outstanding_max.load(), budget);
  is_open_again_.store(true);
  gate_.open();
  committer.join();
  EXPECT_TRUE(is_done.load());
}

// Something is on its way to the disk nearly always.
TEST_F(OnFail, KeepsTheBoundOfPrivateMemory) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "beside the sanitizer's own thread nothing is dropped";
#endif
  constexpr std::uint64_t kPages = 64;
  constexpr std::uint64_t kBoundPages = 8;
  test::write_file(directory_ / "file", std::string(kPages * kPageBytes, '.'));
  for (const bool is_queued : {false, true}) {
    watch_->judge_with([](const Event& event) {
      if (event.act == Act::flush) std::this_thread::sleep_for(milliseconds(1));
      return Status{};
    });
    options_.resident_bytes_max = kBoundPages * kPageBytes;
    options_.durability = is_queued ? DurabilityChoice::flush : DurabilityChoice::on_fail;
    Opened mapping(directory_ / "file", options_, watch_);
    std::uint64_t dropped = 0;
    for (std::uint64_t page = 0; page < kPages; ++page) {
      mapping.bytes()[page * kPageBytes] = is_queued ? 'q' : 'f';
      ASSERT_TRUE((is_queued ? mapping->commit_async(mapping.bytes(), kPages * kPageBytes)
                             : mapping.commit())
                      .ok());
      dropped = statistics_of(mapping).pages_dropped;
      EXPECT_LE(page + 1 - dropped, kBoundPages);
    }
    EXPECT_GE(dropped, kPages - kBoundPages);
    ASSERT_TRUE(mapping->close().ok());
  }
}

TEST_F(OnFail, WhileThePowerFailsCommitsWaitForTheDisk) {
  const Opened mapping(directory_ / "file", options_, watch_);
  gate_.close();
  store(mapping, 'a');
  ASSERT_TRUE(mapping.commit().ok());
  EXPECT_GT(statistics_of(mapping).outstanding_bytes, 0u);
  pawl_power_failing(1);
  std::atomic<bool> is_done{false};
  std::thread committer([&] {
    store(mapping, 'b');
    EXPECT_TRUE(mapping.commit().ok());
    is_done.store(true);
  });
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(is_done.load());
  gate_.open();
  committer.join();
  EXPECT_EQ(statistics_of(mapping).outstanding_bytes, 0u);
  pawl_power_failing(0);
  gate_.close();
  store(mapping, 'c');
  EXPECT_TRUE(mapping.commit().ok());
  EXPECT_GT(statistics_of(mapping).outstanding_bytes, 0u);
  gate_.open();
}

TEST_F(OnFail, AFlushThatFailsBehindIsTheNextCallsFailure) {
  const Opened mapping(directory_ / "file", options_, watch_);
  gate_.close();
  store(mapping, 'a');
  ASSERT_TRUE(mapping.commit().ok());
  gate_.fail(Status::failure(EIO, "the disk is gone"));
  EXPECT_EQ(mapping->wait().error_number(), EIO);
  store(mapping, 'b');
  EXPECT_EQ(mapping.commit().error_number(), EIO);
}

// SIGPWR, which ends a program that does nothing with it, says that the power fails; and a program
// that does something with it keeps it.
TEST_F(OnFail, TheSignalOfInitIsHeard) {
  ASSERT_EQ(std::fflush(nullptr), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const Opened mapping(directory_ / "file", options_);
    ::raise(SIGPWR);
    ::_exit(the_power_is_failing.load() ? 42 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

TEST_F(OnFail, AProgramsOwnHandlerStays) {
  ASSERT_EQ(std::fflush(nullptr), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGPWR, [](int) { ::_exit(42); });
    const Opened mapping(directory_ / "file", options_);
    ::raise(SIGPWR);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

TEST(OtherProcessesOption, IsReadAndRefused) {
  ::setenv("PAWL_OTHER_PROCESSES", "never-store", 1);
  const Result<Options> options = Options::from_environment();
  ::setenv("PAWL_OTHER_PROCESSES", "never", 1);
  EXPECT_FALSE(Options::from_environment().ok());
  ::unsetenv("PAWL_OTHER_PROCESSES");
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options.value().other_processes, OtherProcesses::never_store);
  EXPECT_EQ(Options::from_public(options.value().to_public()).value().other_processes,
            OtherProcesses::never_store);
  EXPECT_EQ(Options::from_environment().value().other_processes, OtherProcesses::store);
}

TEST(OnFailOptions, AreReadAndRefused) {
  ::setenv("PAWL_DURABILITY", "on-fail", 1);
  const Result<Options> without = Options::from_environment();
  ASSERT_FALSE(without.ok());
  EXPECT_NE(without.status().text().find("PAWL_HOLD_UP_MS"), std::string::npos);
  ::setenv("PAWL_HOLD_UP_MS", "250", 1);
  const Result<Options> options = Options::from_environment();
  ::setenv("PAWL_HOLD_UP_MS", "3600001", 1);
  EXPECT_FALSE(Options::from_environment().ok());
  ::unsetenv("PAWL_HOLD_UP_MS");
  ::setenv("PAWL_DURABILITY", "never", 1);
  EXPECT_FALSE(Options::from_environment().ok());
  ::unsetenv("PAWL_DURABILITY");
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options.value().durability, DurabilityChoice::on_fail);
  EXPECT_EQ(options.value().hold_up_ms, 250u);
  EXPECT_EQ(Options::from_public(options.value().to_public()).value().hold_up_ms, 250u);
}

}  // namespace
}  // namespace pawl
