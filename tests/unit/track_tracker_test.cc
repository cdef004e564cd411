// What every tracker promises: no page that was stored to is ever missed, whoever stored.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "medium/inherited_memory.h"
#include "medium/medium.h"
#include "pawl/store.h"
#include "track/fault_log.h"
#include "track/kernel_stores.h"
#include "track/scan_tracker.h"
#include "track/tracker.h"

namespace pawl {
namespace {

enum class Kind { scan_flat, scan_located, fault };

constexpr int kReadWrite = PROT_READ | PROT_WRITE;

std::string scratch_template() {
  const char* directory = std::getenv("PAWL_TEST_DIR");
  if (directory == nullptr) directory = std::getenv("TMPDIR");
  return std::string(directory == nullptr ? "." : directory) + "/track_test_XXXXXX";
}

// An unlinked file of `pages` pages, each filled with its own byte.
class ScratchFile {
 public:
  explicit ScratchFile(std::size_t pages) {
    std::string path = scratch_template();
    descriptor_ = mkstemp(path.data());
    EXPECT_GE(descriptor_, 0) << path;
    unlink(path.c_str());
    for (std::size_t page = 0; page < pages; ++page) {
      const std::vector<char> bytes(kPageBytes, static_cast<char>(page % 251 + 1));
      EXPECT_EQ(
          pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(page * kPageBytes)),
          static_cast<ssize_t>(bytes.size()));
    }
  }
  ~ScratchFile() { close(descriptor_); }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

class Memory {
 public:
  explicit Memory(std::size_t pages, int descriptor = -1) : length_(pages * kPageBytes) {
    const int flags = MAP_PRIVATE | MAP_NORESERVE | (descriptor < 0 ? MAP_ANONYMOUS : 0);
    void* memory = mmap(nullptr, length_, kReadWrite, flags, descriptor, 0);
    EXPECT_NE(memory, MAP_FAILED);
    start_ = static_cast<char*>(memory);
  }
  ~Memory() { munmap(start_, length_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  char* page(std::size_t number) const { return start_ + number * kPageBytes; }
  char* start() const { return start_; }
  std::size_t length() const { return length_; }
  std::size_t pages() const { return length_ / kPageBytes; }
  void store(std::size_t number) const {
    volatile char* const byte = page(number) + number % kPageBytes;
    *byte = static_cast<char>(*byte + 1);
  }

 private:
  char* start_ = nullptr;
  std::size_t length_ = 0;
};

std::uint64_t page_number(const void* address) {
  return reinterpret_cast<std::uint64_t>(address) / kPageBytes;
}

class TrackerTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    link_kernel_stores_io();
    link_kernel_stores_other();
    const TrackerSupport support = probe_trackers();
    if (GetParam() != Kind::fault && !support.scan) GTEST_SKIP() << support.scan_reason;
    if (GetParam() == Kind::scan_located && !support.fault_log)
      GTEST_SKIP() << support.fault_log_reason;
  }

  static std::unique_ptr<Tracker> make() {
    Result<std::unique_ptr<Tracker>> tracker = GetParam() == Kind::fault ? make_fault_tracker()
                                               : GetParam() == Kind::scan_flat
                                                   ? make_scan_tracker_with(ScanMode::flat)
                                                   : make_scan_tracker_with(ScanMode::located);
    EXPECT_TRUE(tracker.ok()) << tracker.status().text();
    return std::move(tracker.value());
  }

  // The watched page numbers, counted from the start of the memory.
  static std::set<std::uint64_t> collect(Tracker& tracker, const Memory& memory, std::size_t first,
                                         std::size_t count) {
    PageRuns stored;
    const Status status = tracker.collect(memory.page(first), count * kPageBytes, stored);
    EXPECT_TRUE(status.ok()) << status.text();
    std::set<std::uint64_t> pages;
    for (const PageRun& run : stored.runs()) {
      for (std::uint64_t page = run.first; page < run.end(); ++page) {
        pages.insert(page - page_number(memory.start()));
      }
    }
    return pages;
  }
  static std::set<std::uint64_t> collect(Tracker& tracker, const Memory& memory) {
    return collect(tracker, memory, 0, memory.pages());
  }
  static void watch(Tracker& tracker, const Memory& memory) {
    const Status status = tracker.watch(memory.start(), memory.length(), kReadWrite);
    ASSERT_TRUE(status.ok()) << status.text();
  }
};

using Pages = std::set<std::uint64_t>;

TEST_P(TrackerTest, SeesEachStoreOnce) {
  const Memory memory(64);
  const auto tracker = make();
  watch(*tracker, memory);
  EXPECT_EQ(collect(*tracker, memory), Pages());
  memory.store(7);
  memory.store(63);
  EXPECT_EQ(collect(*tracker, memory), Pages({7, 63}));
  EXPECT_EQ(collect(*tracker, memory), Pages());
  memory.store(7);
  EXPECT_EQ(collect(*tracker, memory), Pages({7}));
  tracker->unwatch(memory.start(), memory.length());
}

// For what no tracker can see: a device that stores into memory that was pinned before.
TEST_P(TrackerTest, TakesWhatPawlStoredNames) {
  const Memory memory(64);
  const std::unique_ptr<Tracker> tracker = make();
  watch(*tracker, memory);
  memory.store(3);
  (void)collect(*tracker, memory);
  for (const std::size_t page : {40, 3, 20, 50, 10, 60}) pawl_stored(memory.page(page) + 10, 1);
  pawl_stored(memory.page(7) - 1, 2);
  pawl_stored(memory.start() - 1, 1);
  const std::set<std::uint64_t> low = collect(*tracker, memory, 0, 12);
  const std::set<std::uint64_t> rest = collect(*tracker, memory);
  for (const std::uint64_t page : {3, 6, 7, 10}) EXPECT_TRUE(low.contains(page)) << page;
  for (const std::uint64_t page : {20, 40, 50, 60})
    EXPECT_TRUE(low.contains(page) || rest.contains(page)) << page;
  EXPECT_TRUE(collect(*tracker, memory).empty());
}

TEST_P(TrackerTest, SeesStoresToAFileMapping) {
  const ScratchFile file(64);
  const Memory memory(64, file.descriptor());
  const auto tracker = make();
  watch(*tracker, memory);
  memory.store(5);
  EXPECT_TRUE(collect(*tracker, memory).contains(5));
  memory.store(5);
  memory.store(6);
  const Pages stored = collect(*tracker, memory);
  EXPECT_TRUE(stored.contains(5));
  EXPECT_TRUE(stored.contains(6));
  char byte = 0;
  ASSERT_EQ(pread(file.descriptor(), &byte, 1, 5 * kPageBytes + 5), 1);
  EXPECT_EQ(byte, 6) << "the store reached the file";
}

TEST_P(TrackerTest, SeesStoresOfThreadsLiveAndExited) {
  constexpr std::size_t kThreads = 8;
  const Memory memory(kThreads * 32);
  const auto tracker = make();
  std::atomic<int> phase{0};
  std::atomic<int> arrived{0};
  const auto store_all = [&](std::size_t thread) {
    for (std::size_t i = 0; i < 32; ++i) memory.store(thread * 32 + i);
  };
  // Half of the threads are there before the range is watched.
  std::vector<std::thread> early;
  for (std::size_t thread = 0; thread < kThreads / 2; ++thread) {
    early.emplace_back([&, thread] {
      for (int round = 1; round <= 2; ++round) {
        while (phase.load() < round) std::this_thread::yield();
        store_all(thread);
        arrived.fetch_add(1);
      }
    });
  }
  watch(*tracker, memory);
  Pages all;
  for (std::uint64_t page = 0; page < memory.pages(); ++page) all.insert(page);
  for (int round = 1; round <= 2; ++round) {
    phase.store(round);
    std::vector<std::thread> late;
    for (std::size_t thread = kThreads / 2; thread < kThreads; ++thread)
      late.emplace_back(store_all, thread);
    for (std::thread& thread : late) thread.join();
    while (arrived.load() < round * static_cast<int>(kThreads / 2)) std::this_thread::yield();
    EXPECT_EQ(collect(*tracker, memory), all);
  }
  for (std::thread& thread : early) thread.join();
}

TEST_P(TrackerTest, SeesWhatSystemCallsStore) {
  const ScratchFile file(64);
  const Memory memory(64);
  const auto tracker = make();
  watch(*tracker, memory);
  (void)collect(*tracker, memory);
  ASSERT_EQ(pread(file.descriptor(), memory.page(9) + 100, 2 * kPageBytes, 0),
            static_cast<ssize_t>(2 * kPageBytes));
  EXPECT_EQ(collect(*tracker, memory), Pages({9, 10, 11}));
  ASSERT_EQ(pread(file.descriptor(), memory.page(9) + 100, 2 * kPageBytes, 0),
            static_cast<ssize_t>(2 * kPageBytes));
  EXPECT_EQ(collect(*tracker, memory), Pages({9, 10, 11}));

  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  ASSERT_EQ(write(sockets[0], "pawl", 4), 4);
  ASSERT_EQ(recv(sockets[1], memory.page(20), kPageBytes, 0), 4);
  EXPECT_TRUE(collect(*tracker, memory).contains(20));
  close(sockets[0]);
  close(sockets[1]);
}

TEST_P(TrackerTest, SeesDirectReads) {
  const ScratchFile file(64);
  const std::string path = "/proc/self/fd/" + std::to_string(file.descriptor());
  const int direct = open(path.c_str(), O_RDONLY | O_DIRECT);
  if (direct < 0) GTEST_SKIP() << "no O_DIRECT here";
  const Memory memory(64);
  const auto tracker = make();
  watch(*tracker, memory);
  for (std::size_t round = 0; round < 4; ++round) {
    (void)collect(*tracker, memory);
    ASSERT_EQ(pread(direct, memory.page(30 + round), kPageBytes, 0),
              static_cast<ssize_t>(kPageBytes));
    EXPECT_TRUE(collect(*tracker, memory).contains(30 + round));
    memory.store(40 + round);
    EXPECT_TRUE(collect(*tracker, memory).contains(40 + round));
  }
  close(direct);
}

TEST_P(TrackerTest, KeepsTheRestWhenAPartIsCollected) {
  const Memory memory(64);
  const auto tracker = make();
  watch(*tracker, memory);
  (void)collect(*tracker, memory);
  for (const std::size_t page : {3, 20, 21, 22, 40}) memory.store(page);
  Pages seen = collect(*tracker, memory, 21, 1);
  EXPECT_TRUE(seen.contains(21));
  seen.merge(collect(*tracker, memory, 0, 21));
  EXPECT_TRUE(seen.contains(3));
  EXPECT_TRUE(seen.contains(20));
  memory.store(50);
  seen.merge(collect(*tracker, memory));
  EXPECT_EQ(seen, Pages({3, 20, 21, 22, 40, 50}));
}

TEST_P(TrackerTest, WatchesGrowth) {
  const ScratchFile file(16);
  const Memory memory(64);
  ASSERT_NE(mmap(memory.start(), 16 * kPageBytes, kReadWrite, MAP_PRIVATE | MAP_FIXED,
                 file.descriptor(), 0),
            MAP_FAILED);
  const auto tracker = make();
  ASSERT_TRUE(tracker->watch(memory.page(0), 16 * kPageBytes, kReadWrite).ok());
  (void)collect(*tracker, memory, 0, 16);
  memory.store(15);
  for (std::size_t page = 16; page < 64; page += 8) {
    ASSERT_TRUE(tracker->watch(memory.page(page), 8 * kPageBytes, kReadWrite).ok());
    memory.store(page + 3);
    Pages stored = collect(*tracker, memory, 0, page + 8);
    EXPECT_TRUE(stored.contains(page + 3));
    EXPECT_EQ(stored.contains(15), page == 16);
  }
}

// Each growth took one of the process's places for ranges, and the 1024th failed.
TEST_P(TrackerTest, MoreGrowthsThanThereMayBeRangesAreWatched) {
  constexpr std::size_t kGrowths = kWatchedRangesMax + 76;
  const Memory memory(1 + kGrowths);
  const auto tracker = make();
  const auto watch_page = [&](std::size_t page) {
    return tracker->watch(memory.page(page), kPageBytes, kReadWrite);
  };
  ASSERT_TRUE(watch_page(0).ok());
  for (std::size_t page = 1; page <= kGrowths; ++page) {
    // One that fails shrinks again.
    ASSERT_TRUE(watch_page(page).ok()) << page;
    tracker->unwatch(memory.page(page), kPageBytes);
    const Status status = watch_page(page);
    ASSERT_TRUE(status.ok()) << page << ": " << status.text();
  }
  (void)collect(*tracker, memory);
  memory.store(0);
  memory.store(kGrowths);
  EXPECT_EQ(collect(*tracker, memory), Pages({0, kGrowths}));
}

TEST_P(TrackerTest, StopsWatchingWhatIsUnwatched) {
  const Memory memory(64);
  const auto tracker = make();
  watch(*tracker, memory);
  memory.store(5);
  memory.store(30);
  memory.store(60);
  tracker->unwatch(memory.page(20), 20 * kPageBytes);
  memory.store(31);
  EXPECT_EQ(collect(*tracker, memory), Pages({5, 60}));
  memory.store(19);
  memory.store(40);
  memory.store(32);
  EXPECT_EQ(collect(*tracker, memory), Pages({19, 40}));

  // The hole becomes a new mapping and is watched anew.
  ASSERT_NE(mmap(memory.page(20), 20 * kPageBytes, kReadWrite,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
  ASSERT_TRUE(tracker->watch(memory.page(20), 20 * kPageBytes, kReadWrite).ok());
  memory.store(33);
  memory.store(45);
  EXPECT_EQ(collect(*tracker, memory), Pages({33, 45}));
}

TEST_P(TrackerTest, SeesAHundredThousandScatteredPages) {
  constexpr std::size_t kPages = 100'000;
  const Memory memory(kPages * 2);
  const auto tracker = make();
  watch(*tracker, memory);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < kPages; ++i) memory.store(i * 2);
    const Pages stored = collect(*tracker, memory);
    std::size_t missed = 0;
    for (std::size_t i = 0; i < kPages; ++i) missed += stored.contains(i * 2) ? 0 : 1;
    EXPECT_EQ(missed, 0U);
  }
  memory.store(77);
  EXPECT_TRUE(collect(*tracker, memory).contains(77));
}

TEST_P(TrackerTest, DoesNotReportManyPagesThatWereOnlyRead) {
  constexpr std::size_t kPages = 4096;
  const ScratchFile file(kPages);
  const Memory memory(kPages, file.descriptor());
  const auto tracker = make();
  watch(*tracker, memory);
  unsigned sum = 0;
  for (std::size_t page = 0; page < kPages; ++page)
    sum += static_cast<unsigned char>(*memory.page(page));
  EXPECT_GT(sum, 0U);
  memory.store(1000);
  const Pages stored = collect(*tracker, memory);
  EXPECT_TRUE(stored.contains(1000));
  EXPECT_LT(stored.size(), 100U);
  memory.store(2000);
  EXPECT_EQ(collect(*tracker, memory), Pages({2000}));
}

// As those that a program cleared and the kernel's merging of equal pages (KSM with use_zero_pages)
// or its splitting of huge pages then replaced.  Here by dropping them, which every kernel permits.
TEST_P(TrackerTest, APageThatBecameTheZeroPageIsReported) {
  constexpr std::size_t kPages = 64;
  const Memory memory(kPages);
  const auto tracker = make();
  watch(*tracker, memory);
  for (std::size_t page = 0; page < kPages; ++page) memory.store(page);
  (void)collect(*tracker, memory);
  for (std::size_t page = 0; page < kPages; ++page) memory.store(page);
  ASSERT_EQ(syscall(SYS_madvise, memory.start(), memory.length(), MADV_DONTNEED), 0);
  for (std::size_t page = 0; page < kPages; ++page)
    ASSERT_EQ(*static_cast<const volatile char*>(memory.page(page)), 0);
  const Pages stored = collect(*tracker, memory);
  EXPECT_EQ(stored.size(), kPages);
}

TEST_P(TrackerTest, SeesStoresToPagesThatWereDropped) {
  const ScratchFile file(64);
  const Memory memory(64, file.descriptor());
  const auto tracker = make();
  watch(*tracker, memory);
  for (std::size_t page = 0; page < 64; ++page) memory.store(page);
  (void)collect(*tracker, memory);
  ASSERT_EQ(madvise(memory.page(8), 16 * kPageBytes, MADV_DONTNEED), 0);
  EXPECT_EQ(*memory.page(10), 11) << "the file shows again";
  memory.store(10);  // after it was read
  memory.store(20);
  Pages stored = collect(*tracker, memory);
  EXPECT_TRUE(stored.contains(10));
  EXPECT_TRUE(stored.contains(20));
  memory.store(10);
  stored = collect(*tracker, memory);
  EXPECT_TRUE(stored.contains(10));
}

TEST_P(TrackerTest, SeesStoresToPagesThatWerePopulatedBefore) {
  const Memory memory(64);
  for (std::size_t page = 0; page < 64; ++page) memory.store(page);
  const auto tracker = make();
  watch(*tracker, memory);
  (void)collect(*tracker, memory);
  memory.store(12);
  EXPECT_EQ(collect(*tracker, memory), Pages({12}));
}

TEST_P(TrackerTest, ServesSeveralMappingsAtOnce) {
  constexpr std::size_t kTrackers = 6;
  std::vector<std::unique_ptr<Memory>> memories;
  std::vector<std::unique_ptr<Tracker>> trackers;
  for (std::size_t i = 0; i < kTrackers; ++i) {
    memories.push_back(std::make_unique<Memory>(128));
    trackers.push_back(make());
    watch(*trackers[i], *memories[i]);
  }
  for (std::size_t round = 0; round < 100; ++round) {
    for (std::size_t i = 0; i < kTrackers; ++i) memories[i]->store((round + i) % 128);
    // One of them is not collected in each round and must keep what it has.
    const std::size_t spared = round % kTrackers;
    for (std::size_t i = 0; i < kTrackers; ++i) {
      if (i == spared) continue;
      EXPECT_TRUE(collect(*trackers[i], *memories[i]).contains((round + i) % 128))
          << i << " in " << round;
    }
    EXPECT_TRUE(collect(*trackers[spared], *memories[spared]).contains((round + spared) % 128));
    if (round == 50) {
      trackers[2]->unwatch(memories[2]->start(), memories[2]->length());
      trackers[2] = make();
      watch(*trackers[2], *memories[2]);
    }
  }
}

TEST_P(TrackerTest, ReadOnlyRangesReportNothingAndBecomeWritable) {
  const Memory memory(64);
  const auto tracker = make();
  ASSERT_TRUE(mprotect(memory.start(), memory.length(), PROT_READ) == 0);
  ASSERT_TRUE(tracker->watch(memory.start(), memory.length(), PROT_READ).ok());
  EXPECT_EQ(*memory.page(3), 0);
  EXPECT_FALSE(collect(*tracker, memory).contains(9));
  ASSERT_TRUE(tracker->protect(memory.page(8), 8 * kPageBytes, kReadWrite).ok());
  memory.store(9);
  EXPECT_TRUE(collect(*tracker, memory).contains(9));
  memory.store(9);
  EXPECT_TRUE(collect(*tracker, memory).contains(9));
}

TEST_P(TrackerTest, AForkedChildStoresToItsCopy) {
  const ScratchFile file(64);
  const Memory memory(64, file.descriptor());
  // As a window's: else nothing in a child tells what it has of its parent's.
  ASSERT_TRUE(inherited_memory::add(memory.start(), memory.length()).ok());
  const auto tracker = make();
  watch(*tracker, memory);
  memory.store(3);
  (void)collect(*tracker, memory);
  memory.store(4);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (std::size_t page = 0; page < 64; ++page) memory.store(page);
    tracker->unwatch(memory.start(), memory.length());
    _exit(*memory.page(0) == 2 ? 0 : 1);
  }
  memory.store(5);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  const Pages stored = collect(*tracker, memory);
  EXPECT_TRUE(stored.contains(4));
  EXPECT_TRUE(stored.contains(5));
  memory.store(3);
  EXPECT_TRUE(collect(*tracker, memory).contains(3));
  inherited_memory::remove(memory.start(), memory.length());
}

// Also one that was made without the handlers of fork(): it read its parent's log, which is not
// mapped there, and crashed.
TEST_P(TrackerTest, AForkedChildTracksMappingsOfItsOwn) {
  const Memory memory(64);
  const auto tracker = make();
  watch(*tracker, memory);
  const auto by_clone = [] { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); };
  for (const std::function<pid_t()>& make_child :
       {std::function<pid_t()>(fork), std::function<pid_t()>(by_clone)}) {
    memory.store(3);
    const pid_t child = make_child();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const Memory own(64);
      const auto own_tracker = make();
      if (!own_tracker->watch(own.start(), own.length(), kReadWrite).ok()) _exit(1);
      (void)collect(*own_tracker, own);
      own.store(9);
      _exit(collect(*own_tracker, own) == Pages({9}) ? 0 : 2);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_TRUE(collect(*tracker, memory).contains(3));
  }
}

// Threads store at random between collects, some of which are of a part, and a model knows what
// must be reported.  Other threads come, go, and fault elsewhere all the while.
TEST_P(TrackerTest, MissesNothingInManyRandomRounds) {
  constexpr std::size_t kPages = 2048;
  constexpr int kRounds = 3000;
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const ScratchFile file(kPages);
  const Memory memory(kPages, file.descriptor());
  const auto tracker = make();
  watch(*tracker, memory);

  std::atomic<bool> stop{false};
  std::thread elsewhere([&] {
    while (!stop.load()) {
      const Memory scratch(16);
      for (std::size_t page = 0; page < 16; ++page) scratch.store(page);
      std::this_thread::yield();
    }
  });
  Pages pending;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::size_t> chosen;
    const std::size_t count = random() % (round % 100 == 0 ? 1000 : 12);
    for (std::size_t i = 0; i < count; ++i) chosen.push_back(random() % kPages);
    const auto store_chosen = [&] {
      for (const std::size_t page : chosen) memory.store(page);
    };
    switch (random() % 4) {
      case 0:
        std::thread(store_chosen).join();
        break;
      case 1:
        for (const std::size_t page : chosen) {
          ASSERT_EQ(pread(file.descriptor(), memory.page(page), 10, static_cast<off_t>(page)), 10);
        }
        break;
      default:
        store_chosen();
    }
    pending.insert(chosen.begin(), chosen.end());
    if (random() % 64 == 0) {
      // As a commit drops clean pages: only those that have been collected.
      const std::size_t page = random() % kPages;
      if (!pending.contains(page)) {
        ASSERT_EQ(madvise(memory.page(page), kPageBytes, MADV_DONTNEED), 0);
      }
    }
    std::size_t first = 0;
    std::size_t length = kPages;
    if (random() % 3 == 0) {
      first = random() % kPages;
      length = random() % (kPages - first) + 1;
    }
    for (const std::uint64_t page : collect(*tracker, memory, first, length)) pending.erase(page);
    for (const std::uint64_t page : pending) {
      ASSERT_TRUE(page < first || page >= first + length)
          << "page " << page << " missed in round " << round;
    }
  }
  stop.store(true);
  elsewhere.join();
}

INSTANTIATE_TEST_SUITE_P(All, TrackerTest,
                         ::testing::Values(Kind::scan_flat, Kind::scan_located, Kind::fault),
                         [](const ::testing::TestParamInfo<Kind>& parameter) {
                           switch (parameter.param) {
                             case Kind::scan_flat:
                               return "ScanFlat";
                             case Kind::scan_located:
                               return "ScanLocated";
                             default:
                               return "Fault";
                           }
                         });

}  // namespace
}  // namespace pawl
