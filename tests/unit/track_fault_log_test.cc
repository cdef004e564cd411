// When the log of page faults is believed, and when it must not be.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "medium/medium.h"
#include "support/userfault_descriptors.h"
#include "track/fault_counts.h"
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
    track(FaultsOf::process);
  }
  // Where walks are counted, other processes' faults do not count.
  void track(FaultsOf whose) {
    tracker_.reset();
    auto tracker = make_scan_tracker_with(ScanMode::automatic, whose);
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
  void expect_walks_at_most(std::uint64_t most) const {
#ifndef __SANITIZE_THREAD__  // has a thread of its own, which may be running at any time
    EXPECT_LE(walks(), most);
#else
    (void)most;
#endif
  }

  char* start_ = nullptr;
  std::unique_ptr<Tracker> tracker_;
};

TEST_F(LocatedScanTest, LargeMappingsAreNotWalked) {
  for (std::size_t round = 0; round < 100; ++round) {
    store(round * 100);
    EXPECT_TRUE(collect_has(round * 100));
  }
  expect_walks_at_most(0);
  EXPECT_EQ(tracker_->counters().scans_located + walks(), 100U);
}

TEST_F(LocatedScanTest, ThreadsMadeLaterAreInTheLog) {
  for (std::size_t round = 0; round < 50; ++round) {
    std::thread([&] { store(round * 100); }).join();
    EXPECT_TRUE(collect_has(round * 100));
  }
  expect_walks_at_most(9);
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
  expect_walks_at_most(walks_before + 2);
  close(direct);
}

// A store by the kernel whose fault is counted and never sampled, as those of O_DIRECT reads.
void store_unsampled(char* address) {
  char byte = 1;
  const iovec from{&byte, 1};
  const iovec to{address, 1};
  ASSERT_EQ(process_vm_writev(getpid(), &from, 1, &to, 1, 0), 1);
}

// What threads do that fault all the time.
void fault_until(const std::atomic<bool>& stop) {
  while (!stop.load()) {
    void* memory = mmap(nullptr, 64 * kPageBytes, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (std::size_t page = 0; page < 64; ++page) {
      *static_cast<volatile char*>(static_cast<char*>(memory) + page * kPageBytes) = 1;
    }
    munmap(memory, 64 * kPageBytes);
  }
}

// Makes the faults of the calling thread take long between being counted and being sampled, by an
// event of our own that copies the stack and comes first; where it is not permitted, nothing.
class SlowFaults {
 public:
  SlowFaults() {
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.size = sizeof attributes;
    attributes.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
    attributes.sample_period = 1;
    attributes.sample_type = PERF_SAMPLE_STACK_USER;
    attributes.sample_stack_user = 32768;
    attributes.exclude_kernel = 1;
    event_ = static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
    if (event_ >= 0) ring_ = mmap(nullptr, kRingBytes, PROT_READ, MAP_SHARED, event_, 0);
  }
  ~SlowFaults() {
    if (ring_ != MAP_FAILED) munmap(ring_, kRingBytes);
    if (event_ >= 0) close(event_);
  }

 private:
  static constexpr std::size_t kRingBytes = 65 * kPageBytes;
  int event_ = -1;
  void* ring_ = MAP_FAILED;
};

// A fault in flight was taken for one that is never sampled, and hid the next one of these.
TEST(FaultLogTest, AStoreByTheKernelIsNotHiddenByAThreadThatFaults) {
  const TrackerSupport support = probe_trackers();
  if (!support.scan) GTEST_SKIP() << support.scan_reason;
  if (!support.fault_log) GTEST_SKIP() << support.fault_log_reason;
  for (const FaultsOf whose : {FaultsOf::process, FaultsOf::machine}) {
    constexpr std::size_t kLength = 64 * kPageBytes;
    auto tracker = make_scan_tracker_with(ScanMode::located, whose);
    ASSERT_TRUE(tracker.ok()) << tracker.status().text();
    void* memory = mmap(nullptr, kLength, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    char* const start = static_cast<char*>(memory);
    ASSERT_TRUE(tracker.value()->watch(start, kLength, kReadWrite).ok());
    std::atomic<bool> stop{false};
    std::thread busy([&] {
      alignas(64) volatile char stack[32768];
      stack[0] = 1;
      EXPECT_EQ(stack[0], 1);  // it is there, to be copied
      const SlowFaults slow;
      fault_until(stop);
    });
    std::size_t missed = 0;
    for (std::size_t round = 0; round < 3000; ++round) {
      char* const address = start + round * 7 % 64 * kPageBytes;
      store_unsampled(address);
      PageRuns stored;
      EXPECT_TRUE(tracker.value()->collect(start, kLength, stored).ok());
      if (!stored.contains(page_of(address))) ++missed;
    }
    stop.store(true);
    busy.join();
    EXPECT_EQ(missed, 0U);
    tracker.value().reset();
    munmap(memory, kLength);
  }
}

// It may be between the count and the sample of a fault, on its processor or taken off it.
TEST(FaultCounts, AThreadThatRunsIsNotSeenBlocked) {
  std::atomic<bool> stop{false};
  std::atomic<bool> runs{false};
  std::thread busy([&] {
    while (!stop.load()) runs.store(true);
  });
  while (!runs.load()) std::this_thread::yield();
  for (int look = 0; look < 100; ++look) EXPECT_FALSE(see_other_threads_blocked());
  stop.store(true);
  busy.join();
}

TEST_F(LocatedScanTest, AStoreByAnotherProcessIsSeen) {
  track(FaultsOf::machine);
  int requests[2];
  int answers[2];
  ASSERT_EQ(pipe(requests), 0);
  ASSERT_EQ(pipe(answers), 0);
  const pid_t parent = getpid();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    close(requests[1]);
    char* address = nullptr;
    while (read(requests[0], &address, sizeof address) == sizeof address) {
      char byte = 1;
      const iovec from{&byte, 1};
      const iovec to{address, 1};
      const ssize_t count = process_vm_writev(parent, &from, 1, &to, 1, 0);
      if (write(answers[1], &count, sizeof count) != sizeof count) break;
    }
    _exit(0);
  }
  bool permitted = true;
  for (std::size_t round = 0; round < 200 && permitted; ++round) {
    char* const address = start_ + (100 + round * 50) * kPageBytes;
    ssize_t count = 0;
    ASSERT_EQ(write(requests[1], &address, sizeof address), static_cast<ssize_t>(sizeof address));
    ASSERT_EQ(read(answers[0], &count, sizeof count), static_cast<ssize_t>(sizeof count));
    permitted = count == 1;
    if (permitted) {
      ASSERT_TRUE(collect_has(100 + round * 50)) << round;
      store(50 + round);
      ASSERT_TRUE(collect_has(50 + round)) << round;
    }
  }
  for (const int descriptor : {requests[0], requests[1], answers[0], answers[1]}) close(descriptor);
  waitpid(child, nullptr, 0);
  if (!permitted) GTEST_SKIP() << "a process may not store into its parent's memory here";
}

// One fault opens all of a huge page.
TEST_F(LocatedScanTest, AllPagesOfAHugePageAreReported) {
  constexpr std::size_t kHugeBytes = std::size_t{2} << 20;
  // Past the wrapper of madvise, which keeps this advice off watched memory.
  ASSERT_EQ(syscall(SYS_madvise, start_, kLength, MADV_HUGEPAGE), 0);
  const std::uint64_t address = reinterpret_cast<std::uint64_t>(start_);
  const std::size_t first = (kHugeBytes - address % kHugeBytes) / kPageBytes;
  (void)collect(*tracker_);
  for (std::size_t block = 0; block < 3; ++block) {
    const std::size_t from = first + 2 * block * 512;
    for (std::size_t page = from; page < from + 512; ++page) store(page);
    PageRuns stored = collect(*tracker_);
    for (std::size_t page = from; page < from + 512; ++page)
      ASSERT_TRUE(stored.contains(page_of(start_) + page)) << page - from;
  }
}

// Of a file the kernel makes no huge pages that are stored to, whoever asks for them: a fault there
// is looked into at its page alone.
TEST_F(LocatedScanTest, NoHugePageIsMadeOfAFileThatIsStoredTo) {
  constexpr std::size_t kBlockPages = 512;
  constexpr std::size_t kBytes = 64 << 20;  // from there on the log is used
  for (const char* directory : {".", "/dev/shm"}) {
    SCOPED_TRACE(directory);
    std::string name = std::string(directory) + "/pawl-huge-XXXXXX";
    const int file = mkstemp(name.data());
    ASSERT_GE(file, 0);
    unlink(name.c_str());
    ASSERT_EQ(ftruncate(file, kBytes), 0);
    void* const memory = mmap(nullptr, kBytes, kReadWrite, MAP_PRIVATE, file, 0);
    close(file);
    ASSERT_NE(memory, MAP_FAILED);
    char* const start = static_cast<char*>(memory);
    const std::size_t first = kBlockPages - page_of(start) % kBlockPages;
    const auto store_all = [&](int value) {
      for (std::size_t page = first; page < first + kBlockPages; ++page)
        *static_cast<volatile char*>(start + page * kPageBytes) = static_cast<char>(value);
    };
    auto tracker = make_scan_tracker_with(ScanMode::located, FaultsOf::process);
    ASSERT_TRUE(tracker.ok()) << tracker.status().text();
    ASSERT_TRUE(tracker.value()->watch(start, kBytes, kReadWrite).ok());
    tracker.value()->note_file_memory(start, kBytes);
    ASSERT_EQ(syscall(SYS_madvise, start, kBytes, MADV_HUGEPAGE), 0);
    for (int round = 1; round <= 3; ++round) {
      store_all(round);
#ifdef MADV_COLLAPSE
      EXPECT_NE(
          syscall(SYS_madvise, start + first * kPageBytes, kBlockPages * kPageBytes, MADV_COLLAPSE),
          0)
          << "there can be a huge page";
#endif
      PageRuns stored;
      ASSERT_TRUE(tracker.value()->collect(start, kBytes, stored).ok());
      EXPECT_EQ(
          stored.take(page_of(start) + first, page_of(start) + first + kBlockPages).page_count(),
          kBlockPages);
    }
    tracker.value()->unwatch(start, kBytes);
    munmap(start, kBytes);
  }
}

// The program closed the descriptor: the kernel lifted all write-protection, no store faulted any
// more, and the log without faults was believed.
TEST_F(LocatedScanTest, AWatchWhoseDescriptorWasClosedIsNotBelieved) {
  store(5);
  EXPECT_TRUE(collect_has(5));
  (void)collect(*tracker_);
  ASSERT_EQ(test::close_userfault_descriptors(), 1);
  store(5);
  PageRuns stored;
  const Status status = tracker_->collect(start_, kLength, stored);
  EXPECT_EQ(status.error_number(), EIO) << status.text();
}

// What the kernel's counts were read into did not fit: the thread crashed.
TEST_F(LocatedScanTest, AThreadWithASmallStackCollects) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need more stack";
#endif
  track(FaultsOf::machine);
  store(5);
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN + kPageBytes), 0);
  struct Work {
    std::function<bool()> collect;
    bool is_seen = false;
  } work{[this] { return collect_has(5); }};
  const auto collect_in_thread = [](void* argument) -> void* {
    Work& own = *static_cast<Work*>(argument);
    own.is_seen = own.collect();
    return nullptr;
  };
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, &attributes, collect_in_thread, &work), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  EXPECT_TRUE(work.is_seen);
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
  expect_walks_at_most(walks_before + 2);
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
  auto other = make_scan_tracker_with(ScanMode::automatic, FaultsOf::process);
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
  tracker_.reset();  // the log ends, and starts anew with the threads there
  std::thread worker([&] {
    for (std::size_t page = 0; page != kPages; done.notify_one()) {
      wanted.wait(page);  // blocked: else no bound could be proven
      page = wanted.load();
      if (page != kPages) store(page);
      done.store(page);
    }
  });
  const auto wait_until_blocked = [] {
    while (!see_other_threads_blocked()) std::this_thread::yield();
  };
  wait_until_blocked();
  track(FaultsOf::process);
  const auto ask = [&](std::size_t page) {
    const std::size_t before = done.load();
    wanted.store(page);
    wanted.notify_one();
    done.wait(before);
  };
  for (std::size_t round = 1; round <= 100; ++round) {
    ask(round * 50);
    wait_until_blocked();
    EXPECT_TRUE(collect_has(round * 50));
  }
  ask(kPages);
  worker.join();
  expect_walks_at_most(19);
}

TEST_F(LocatedScanTest, ThreadsThatFaultElsewhereAllTheTimeDoNotHideAStore) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 3; ++i) {
    busy.emplace_back([&] { fault_until(stop); });
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
