// When the log of page faults is believed, and when it must not be.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "medium/medium.h"
#include "track/fault_log.h"
#include "track/scan_tracker.h"
#include "track/tracker.h"

namespace pawl {
namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;

class LocatedScanTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kPages = 40'000;  // more than the rings hold samples
  static constexpr std::size_t kLength = kPages * kPageBytes;

  void SetUp() override {
    const TrackerSupport support = probe_trackers();
    if (!support.scan) GTEST_SKIP() << support.scan_reason;
    if (!support.fault_log) GTEST_SKIP() << support.fault_log_reason;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* memory = mmap(nullptr, kLength, kReadWrite, flags, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    start_ = static_cast<char*>(memory);
    Result<std::unique_ptr<Tracker>> tracker = make_scan_tracker();
    ASSERT_TRUE(tracker.ok()) << tracker.status().text();
    tracker_ = std::move(tracker.value());
    ASSERT_TRUE(tracker_->watch(start_, kLength, kReadWrite).ok());
  }
  void TearDown() override {
    tracker_.reset();
    if (start_ != nullptr) munmap(start_, kLength);
  }

  void store(std::size_t page) { *static_cast<volatile char*>(start_ + page * kPageBytes) = 1; }
  PageRuns collect(Tracker& tracker) {
    PageRuns stored;
    const Status status = tracker.collect(start_, kLength, stored);
    EXPECT_TRUE(status.ok()) << status.text();
    return stored;
  }
  bool collect_has(std::size_t page) {
    return collect(*tracker_).contains(reinterpret_cast<std::uint64_t>(start_) / kPageBytes + page);
  }
  std::uint64_t walks() const { return tracker_->counters().scans_flat; }

  char* start_ = nullptr;
  std::unique_ptr<Tracker> tracker_;
};

TEST_F(LocatedScanTest, LargeMappingsAreNotWalked) {
  for (std::size_t round = 0; round < 100; ++round) {
    store(round * 100);
    EXPECT_TRUE(collect_has(round * 100));
  }
  EXPECT_EQ(walks(), 0U);
  EXPECT_EQ(tracker_->counters().scans_located, 100U);
}

TEST_F(LocatedScanTest, ThreadsMadeLaterAreInTheLog) {
  for (std::size_t round = 0; round < 50; ++round) {
    std::thread([&] { store(round * 100); }).join();
    EXPECT_TRUE(collect_has(round * 100));
  }
  EXPECT_LT(walks(), 10U);
}

TEST_F(LocatedScanTest, AFaultWithoutSampleLeadsToAWalkAndThenToTrustAgain) {
  store(5);
  EXPECT_TRUE(collect_has(5));
  const int direct = open("/proc/self/exe", O_RDONLY | O_DIRECT);
  if (direct < 0) GTEST_SKIP() << "no O_DIRECT here";
  for (std::size_t round = 0; round < 20; ++round) {
    const std::uint64_t walks_before = walks();
    const ssize_t count = read(direct, start_ + (1000 + round) * kPageBytes, kPageBytes);
    if (count < 0) GTEST_SKIP() << "no O_DIRECT here";
    EXPECT_TRUE(collect_has(1000 + round));
    store(2000 + round);
    EXPECT_TRUE(collect_has(2000 + round));
    EXPECT_GE(walks(), walks_before + 1);
  }
  const std::uint64_t walks_before = walks();
  for (std::size_t round = 0; round < 20; ++round) {
    store(3000 + round);
    EXPECT_TRUE(collect_has(3000 + round));
  }
  EXPECT_LE(walks(), walks_before + 2);
  close(direct);
}

TEST_F(LocatedScanTest, AFullRingLeadsToAWalkAndThenToTrustAgain) {
  for (std::size_t page = 0; page < kPages; ++page) store(page);
  EXPECT_EQ(collect(*tracker_).page_count(), kPages);
  EXPECT_GE(walks(), 1U);
  const std::uint64_t walks_before = walks();
  for (std::size_t round = 0; round < 20; ++round) {
    store(3000 + round);
    EXPECT_TRUE(collect_has(3000 + round));
  }
  EXPECT_LE(walks(), walks_before + 2);
}

TEST_F(LocatedScanTest, AWalkOfAPartLeavesTheRestToBeWalked) {
  for (std::size_t page = 0; page < kPages; ++page) store(page);
  PageRuns stored;
  ASSERT_TRUE(tracker_->collect(start_, kLength / 2, stored).ok());
  EXPECT_EQ(stored.page_count(), kPages / 2);
  ASSERT_TRUE(tracker_->collect(start_ + kLength / 2, kLength / 2, stored).ok());
  EXPECT_EQ(stored.page_count(), kPages);
  EXPECT_EQ(collect(*tracker_).page_count(), 0U);
}

TEST_F(LocatedScanTest, AMismatchMakesEveryTrackerWalk) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* memory = mmap(nullptr, kLength, kReadWrite, flags, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  char* const other_start = static_cast<char*>(memory);
  auto other = make_scan_tracker();
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(other.value()->watch(other_start, kLength, kReadWrite).ok());
  (void)collect(*tracker_);
  // More than the rings hold, in the one range, and the last of it after the rings were full; the
  // other tracker notices first, and re-establishes the log.
  for (std::size_t page = 0; page < kPages; ++page) store(page);
  PageRuns none;
  ASSERT_TRUE(other.value()->collect(other_start, kLength, none).ok());
  ASSERT_TRUE(other.value()->collect(other_start, kLength, none).ok());
  EXPECT_EQ(collect(*tracker_).page_count(), kPages);
  other.value().reset();
  munmap(memory, kLength);
}

TEST_F(LocatedScanTest, ThreadsThatWereThereBeforeAreInTheLog) {
  std::atomic<std::size_t> wanted{0};
  std::atomic<std::size_t> done{0};
  std::atomic<bool> stop{false};
  tracker_.reset();  // the log ends, and starts anew with the threads there
  std::thread worker([&] {
    while (!stop.load()) {
      if (const std::size_t page = wanted.load(); page != done.load()) {
        store(page);
        done.store(page);
      }
      std::this_thread::yield();
    }
  });
  auto tracker = make_scan_tracker();
  ASSERT_TRUE(tracker.ok());
  tracker_ = std::move(tracker.value());
  ASSERT_TRUE(tracker_->watch(start_, kLength, kReadWrite).ok());
  for (std::size_t round = 1; round <= 100; ++round) {
    wanted.store(round * 50);
    while (done.load() != round * 50) std::this_thread::yield();
    EXPECT_TRUE(collect_has(round * 50));
  }
  stop.store(true);
  worker.join();
  EXPECT_LT(walks(), 20U);
}

TEST_F(LocatedScanTest, ThreadsThatFaultElsewhereAllTheTimeDoNotHideAStore) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 3; ++i) {
    busy.emplace_back([&] {
      while (!stop.load()) {
        void* memory =
            mmap(nullptr, 64 * kPageBytes, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (std::size_t page = 0; page < 64; ++page) {
          *static_cast<volatile char*>(static_cast<char*>(memory) + page * kPageBytes) = 1;
        }
        munmap(memory, 64 * kPageBytes);
      }
    });
  }
  for (std::size_t round = 0; round < 2000; ++round) {
    const std::size_t page = round * 7919 % kPages;
    store(page);
    ASSERT_TRUE(collect_has(page)) << round;
  }
  stop.store(true);
  for (std::thread& thread : busy) thread.join();
  RecordProperty("walks", static_cast<int>(walks()));
}

TEST(FaultLogTest, SmallMappingsDoWithout) {
  if (!probe_trackers().scan) GTEST_SKIP() << probe_trackers().scan_reason;
  auto tracker = make_scan_tracker();
  ASSERT_TRUE(tracker.ok());
  void* memory = mmap(nullptr, 16 * kPageBytes, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  char* const start = static_cast<char*>(memory);
  ASSERT_TRUE(tracker.value()->watch(start, 16 * kPageBytes, kReadWrite).ok());
  PageRuns stored;
  ASSERT_TRUE(tracker.value()->collect(start, 16 * kPageBytes, stored).ok());
  EXPECT_EQ(tracker.value()->counters().scans_flat, 1U);
  EXPECT_EQ(tracker.value()->counters().scans_located, 0U);
  tracker.value().reset();
  munmap(memory, 16 * kPageBytes);
}

TEST(FaultLogTest, NoDescriptorIsLeftBehind) {
  if (!probe_trackers().scan) GTEST_SKIP() << probe_trackers().scan_reason;
  const auto next_descriptor = [] {
    const int descriptor = dup(0);
    close(descriptor);
    return descriptor;
  };
  const int before = next_descriptor();
  for (int round = 0; round < 3; ++round) {
    auto tracker = make_scan_tracker_with(ScanMode::automatic);
    ASSERT_TRUE(tracker.ok());
  }
  (void)probe_trackers();
  EXPECT_EQ(next_descriptor(), before);
}

}  // namespace
}  // namespace pawl
