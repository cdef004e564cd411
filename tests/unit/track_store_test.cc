// The store tracker: no mark is lost, whoever makes it, however many there are, whatever it
// interrupts.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "medium/medium.h"
#include "pawl/store.h"
#include "support/temporary_directory.h"
#include "track/kernel_stores.h"
#include "track/store_marks.h"
#include "track/tracker.h"

namespace pawl {
namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr std::uint64_t kLineBytes = 64;

// Address space in the region, nothing of it there until it is touched.
class Region {
 public:
  explicit Region(std::size_t pages) : length_(pages * kPageBytes) {
    static std::atomic<std::uint64_t> next{std::max(kStoreRegionFirst, std::uint64_t{0x30} << 40) +
                                           (std::uint64_t{1} << 32)};
    const std::uint64_t at = next.fetch_add(round_up(length_, std::uint64_t{1} << 30));
    void* const memory =
        mmap(reinterpret_cast<void*>(at), length_, kReadWrite,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    start_ = static_cast<char*>(memory);
  }
  ~Region() { munmap(start_, length_); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  char* page(std::size_t number) const { return start_ + number * kPageBytes; }
  char* start() const { return start_; }
  std::size_t length() const { return length_; }
  std::size_t pages() const { return length_ / kPageBytes; }
  std::uint64_t first() const { return reinterpret_cast<std::uint64_t>(start_) / kPageBytes; }

 private:
  char* start_ = nullptr;
  std::size_t length_ = 0;
};

// Lines by page, counted from the region's first.
using Lines = std::map<std::uint64_t, std::uint64_t>;

std::unique_ptr<Tracker> make() {
  auto tracker = make_store_tracker();
  EXPECT_TRUE(tracker.ok());
  return std::move(tracker.value());
}

Lines collect(Tracker& tracker, const Region& region, std::size_t first, std::size_t count) {
  std::vector<StoredLines> stored;
  const Status status = tracker.collect_lines(region.page(first), count * kPageBytes, stored);
  EXPECT_TRUE(status.ok()) << status.text();
  Lines lines;
  for (const StoredLines& page : stored) {
    EXPECT_GE(page.page, region.first() + first);
    EXPECT_LT(page.page, region.first() + first + count);
    EXPECT_NE(page.lines, 0u);
    lines[page.page - region.first()] |= page.lines;
  }
  return lines;
}
Lines collect(Tracker& tracker, const Region& region) {
  return collect(tracker, region, 0, region.pages());
}

// A region that a tracker of its own watches.
struct Watched {
  explicit Watched(std::size_t pages) : region(pages), tracker(make()) {
    const Status status = tracker->watch(region.start(), region.length(), kReadWrite);
    EXPECT_TRUE(status.ok()) << status.text();
  }
  Lines collect() const { return pawl::collect(*tracker, region); }
  Lines collect(std::size_t first, std::size_t count) const {
    return pawl::collect(*tracker, region, first, count);
  }
  // Marks a byte of a line.
  void mark(std::size_t page, std::size_t line = 0) const {
    pawl_stored(region.page(page) + line * kLineBytes + line % kLineBytes, 1);
  }

  Region region;
  std::unique_ptr<Tracker> tracker;
};

Lines whole_pages(std::uint64_t first, std::uint64_t end) {
  Lines lines;
  for (std::uint64_t page = first; page < end; ++page) lines[page] = kAllLines;
  return lines;
}

TEST(StoreTracker, SeesEachMarkOnce) {
  const Watched watched(256);
  EXPECT_EQ(watched.collect(), Lines());
  watched.mark(7, 3);
  watched.mark(7, 63);
  watched.mark(255);
  EXPECT_EQ(watched.collect(), (Lines{{7, 1ull << 3 | 1ull << 63}, {255, 1}}));
  EXPECT_EQ(watched.collect(), Lines());
  watched.mark(7, 4);
  EXPECT_EQ(watched.collect(), (Lines{{7, 1ull << 4}}));
}

TEST(StoreTracker, MarksExactlyTheLinesThatAStoreTouches) {
  const Watched watched(256);
  char* const start = watched.region.start();
  const auto marked = [&](std::size_t from, std::size_t length) {
    pawl_stored(start + from, length);
    return watched.collect();
  };
  EXPECT_EQ(marked(0, 0), Lines());
  EXPECT_EQ(marked(63, 1), (Lines{{0, 1}}));
  EXPECT_EQ(marked(63, 2), (Lines{{0, 3}}));
  EXPECT_EQ(marked(64, 64), (Lines{{0, 2}}));
  EXPECT_EQ(marked(4095, 2), (Lines{{0, 1ull << 63}, {1, 1}}));
  EXPECT_EQ(marked(4096, 4096), (Lines{{1, kAllLines}}));
  EXPECT_EQ(marked(4095, 4098), (Lines{{0, 1ull << 63}, {1, kAllLines}, {2, 1}}));
  // A run, and its ends.
  Lines run = whole_pages(3, 3 + 2 * kRunPagesMin);
  run[2] = 1ull << 63;
  run[3 + 2 * kRunPagesMin] = 1;
  EXPECT_EQ(marked(3 * kPageBytes - 1, 2 * kRunPagesMin * kPageBytes + 2), run);
  EXPECT_EQ(watched.collect(), Lines());
}

TEST(StoreTracker, TakesOnlyTheRangeAndKeepsTheRest) {
  const Watched watched(1024);
  for (const std::size_t page : {3, 20, 21, 22, 900}) watched.mark(page, page % 64);
  pawl_stored(watched.region.page(300), 200 * kPageBytes);
  EXPECT_EQ(watched.collect(21, 1), (Lines{{21, 1ull << 21}}));
  EXPECT_EQ(watched.collect(310, 2), whole_pages(310, 312));
  EXPECT_EQ(watched.collect(0, 22), (Lines{{3, 8}, {20, 1 << 20}}));
  watched.mark(3);
  EXPECT_EQ(watched.collect(22, 978), [] {
    Lines rest = whole_pages(300, 500);
    rest.erase(310);
    rest.erase(311);
    rest[22] = 1 << 22;
    rest[900] = 1 << (900 % 64);
    return rest;
  }());
  EXPECT_EQ(watched.collect(), (Lines{{3, 1}}));
}

TEST(StoreTracker, SeesMarksAgainThatAProbeTook) {
  const Watched watched(1024);
  for (int round = 0; round < 3; ++round) {
    watched.mark(5, 1);
    EXPECT_EQ(watched.collect(5, 1), (Lines{{5, 2}}));
    watched.mark(5, 2);
    EXPECT_EQ(watched.collect(), (Lines{{5, 4}}));
    watched.mark(5, 3);
    (void)watched.collect(900, 100);  // puts the page aside
    EXPECT_EQ(watched.collect(5, 1), (Lines{{5, 8}}));
    watched.mark(5, 4);
    EXPECT_EQ(watched.collect(), (Lines{{5, 16}}));
  }
}

TEST(StoreTracker, KeepsWhatOtherMappingsHavePending) {
  const Watched one(1024);
  const Watched other(1024);
  for (std::size_t round = 0; round < 4; ++round) {
    for (std::size_t page = 0; page < 300; ++page) {
      one.mark(page, round);
      other.mark(page, round + 8);
    }
    EXPECT_EQ(one.collect().size(), 300u);
    other.mark(5, 63);
    EXPECT_EQ(one.collect(), Lines());
  }
  const Lines rest = other.collect();
  EXPECT_EQ(rest.size(), 300u);
  for (const auto& [page, lines] : rest)
    EXPECT_EQ(lines, 0xf00ull | (page == 5 ? 1ull << 63 : 0)) << page;
}

TEST(StoreTracker, HasNoBoundToWhatIsStored) {
  const Watched watched(20'000);
  const Watched other(20'000);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t page = 0; page < watched.region.pages(); ++page) {
      watched.mark(page, page % 64);
      if (page % 3 == 0) other.mark(page, 1);
      if (page % 1000 == 999) (void)other.collect(19'999, 1);
    }
    const Lines all = watched.collect();
    EXPECT_EQ(all.size(), watched.region.pages());
    for (const auto& [page, lines] : all) EXPECT_EQ(lines, 1ull << (page % 64)) << page;
    EXPECT_EQ(watched.collect(), Lines());
  }
  EXPECT_EQ(other.collect().size(), (other.region.pages() + 2) / 3);
}

TEST(StoreTracker, PagesThatWereTakenMakeRoomForOthers) {
  const Watched watched(100'000);
  std::mt19937_64 random(3);
  for (int round = 0; round < 3'000; ++round) {
    Lines expected;
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t page = random() % watched.region.pages();
      const std::uint64_t line = random() % 64;
      watched.mark(page, line);
      expected[page] |= std::uint64_t{1} << line;
    }
    ASSERT_EQ(watched.collect(), expected);
  }
}

TEST(StoreTracker, LongStoresCostNoWalk) {
  constexpr std::size_t kPages = std::size_t{1} << 18;  // 1 GiB
  const Watched watched(kPages);
  pawl_stored(watched.region.start(), watched.region.length());
  pawl_stored(watched.region.page(100), 1000 * kPageBytes);
  std::vector<StoredLines> stored;
  ASSERT_TRUE(
      watched.tracker->collect_lines(watched.region.start(), watched.region.length(), stored).ok());
  std::vector<bool> seen(kPages);
  for (const StoredLines& page : stored) {
    EXPECT_EQ(page.lines, kAllLines);
    seen[page.page - watched.region.first()] = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), static_cast<std::ptrdiff_t>(kPages));
  EXPECT_EQ(watched.collect(), Lines());
}

TEST(StoreTracker, IgnoresWhatIsNotWatched) {
  const Region outside(8);
  const Watched watched(8);
  char local = 0;
  pawl_stored(&local, 1);
  pawl_stored(nullptr, 0);
  pawl_stored(nullptr, 1);
  pawl_stored(outside.start(), outside.length());
  pawl_stored(reinterpret_cast<void*>(~std::uint64_t{0} - 10), 100);
  pawl_stored(reinterpret_cast<void*>(kStoreRegionEnd), 100);
  EXPECT_EQ(watched.collect(), Lines());
  // A store over everything there is.
  pawl_stored(nullptr, ~std::size_t{0});
  EXPECT_EQ(watched.collect(), whole_pages(0, 8));
  // Marked before it is watched.
  for (std::size_t page = 0; page < 8; ++page) pawl_stored(outside.page(page), 1);
  const auto tracker = make();
  ASSERT_TRUE(tracker->watch(outside.start(), outside.length(), kReadWrite).ok());
  EXPECT_EQ(collect(*tracker, outside), Lines());
  pawl_stored(outside.page(1), 1);
  EXPECT_EQ(collect(*tracker, outside), (Lines{{1, 1}}));
}

TEST(StoreTracker, RefusesAddressesThatNoProgramMarks) {
  const auto tracker = make();
  std::array<char, 3 * kPageBytes> local{};
  const auto at = reinterpret_cast<std::uint64_t>(local.data());
  const Status refused =
      tracker->watch(reinterpret_cast<char*>(round_up(at, kPageBytes)), kPageBytes, kReadWrite);
  EXPECT_EQ(refused.error_number(), EINVAL);
  EXPECT_NE(refused.text().find("NULL"), std::string::npos) << refused.text();
  EXPECT_NE(refused.text().find("heap"), std::string::npos) << refused.text();
  EXPECT_EQ(
      tracker
          ->watch(reinterpret_cast<char*>(kStoreRegionEnd - kPageBytes), 2 * kPageBytes, kReadWrite)
          .error_number(),
      EINVAL);
  EXPECT_STREQ(tracker->name(), "store");
  EXPECT_TRUE(tracker->knows_lines());
}

TEST(StoreTracker, UnwatchedPartsAreForgotten) {
  const Region region(1024);
  const auto tracker = make();
  ASSERT_TRUE(tracker->watch(region.start(), region.length(), kReadWrite).ok());
  const auto mark_all = [&] {
    for (std::size_t page = 0; page < 400; ++page) pawl_stored(region.page(page), 1);
    pawl_stored(region.page(400), 624 * kPageBytes);
  };
  mark_all();
  tracker->unwatch(region.page(100), 100 * kPageBytes);
  tracker->unwatch(region.page(500), 100 * kPageBytes);
  tracker->unwatch(region.page(1000), 24 * kPageBytes);
  const auto expect_rest = [&] {
    const Lines rest = collect(*tracker, region);
    for (std::uint64_t page = 0; page < 1024; ++page) {
      const bool is_watched =
          page < 1000 && (page < 100 || page >= 200) && (page < 500 || page >= 600);
      EXPECT_EQ(rest.contains(page), is_watched) << page;
    }
  };
  expect_rest();
  mark_all();
  expect_rest();
  // Another's, in the gap.
  const auto second = make();
  ASSERT_TRUE(second->watch(region.page(100), 100 * kPageBytes, kReadWrite).ok());
  EXPECT_EQ(collect(*second, region, 100, 100), Lines());
  mark_all();
  expect_rest();
  EXPECT_EQ(collect(*second, region, 100, 100).size(), 100u);
  // Both begin and end as they like.
  tracker->unwatch(region.start(), region.length());
  pawl_stored(region.page(10), 1);
  pawl_stored(region.page(110), 1);
  EXPECT_EQ(collect(*tracker, region), Lines());
  EXPECT_EQ(collect(*second, region, 100, 100), (Lines{{110, 1}}));
}

TEST(StoreTracker, AWatchedRangeGrows) {
  const Region region(5000);
  const auto tracker = make();
  ASSERT_TRUE(tracker->watch(region.start(), 10 * kPageBytes, kReadWrite).ok());
  std::size_t watched = 10;
  for (const std::size_t pages : {1, 1, 88, 900, 4000}) {
    pawl_stored(region.page(watched - 1), 1);                        // in a table
    if (watched > 80) pawl_stored(region.start(), 80 * kPageBytes);  // in the area
    ASSERT_TRUE(tracker->watch(region.page(watched), pages * kPageBytes, kReadWrite).ok());
    watched += pages;
    pawl_stored(region.page(watched - 1), 1);
    const Lines lines = collect(*tracker, region);
    EXPECT_TRUE(lines.contains(watched - 1));
    EXPECT_TRUE(lines.contains(watched - pages - 1));
    EXPECT_EQ(lines.size(), watched - pages > 80 ? 82u : 2u);
  }
  pawl_stored(region.start(), region.length());
  EXPECT_EQ(collect(*tracker, region).size(), 5000u);
}

TEST(StoreTracker, ManyRangesAreWatched) {
  const Region region(2 * kWatchedRangesMax + 2);
  {
    const auto tracker = make();
    for (std::size_t i = 0; i < kWatchedRangesMax; ++i)
      ASSERT_TRUE(tracker->watch(region.page(2 * i), kPageBytes, kReadWrite).ok());
    const Status refused =
        tracker->watch(region.page(2 * kWatchedRangesMax), kPageBytes, kReadWrite);
    EXPECT_EQ(refused.error_number(), ENOMEM);
    EXPECT_EQ(refused.code(), PAWL_ERROR_TOO_MANY);
    pawl_stored(region.start(), region.length());
    for (std::size_t i = 0; i < kWatchedRangesMax; ++i) pawl_stored(region.page(2 * i), 1);
    const Lines lines = collect(*tracker, region);
    EXPECT_EQ(lines.size(), kWatchedRangesMax);
    for (const auto& [page, marks] : lines) EXPECT_EQ(page % 2, 0u);
  }
  EXPECT_FALSE(StoreMarks::in_use());
}

TEST(StoreTracker, ReportsPagesToo) {
  const Watched watched(300);
  watched.mark(1);
  watched.mark(2);
  pawl_stored(watched.region.page(100), 100 * kPageBytes);
  PageRuns pages;
  ASSERT_TRUE(
      watched.tracker->collect(watched.region.start(), watched.region.length(), pages).ok());
  EXPECT_EQ(pages.runs(), (std::vector<PageRun>{{watched.region.first() + 1, 2},
                                                {watched.region.first() + 100, 100}}));
}

TEST(StoreTracker, NotesWhatACommitGivesBack) {
  const Watched watched(300);
  watched.tracker->note_store(watched.region.page(3) + 64, 64);
  EXPECT_EQ(watched.collect(), (Lines{{3, 2}}));
}

TEST(StoreTracker, SeesMarksOfThreadsLiveAndExited) {
  constexpr std::size_t kThreads = 8;
  constexpr std::size_t kPages = 3000;  // more than a table has
  const Watched watched(kThreads * kPages);
  std::atomic<int> phase{0};
  std::atomic<int> arrived{0};
  const auto mark_all = [&](std::size_t thread) {
    for (std::size_t i = 0; i < kPages; ++i) watched.mark(thread * kPages + i, thread);
  };
  std::vector<std::thread> early;
  for (std::size_t thread = 0; thread < kThreads / 2; ++thread) {
    early.emplace_back([&, thread] {
      for (int round = 1; round <= 3; ++round) {
        while (phase.load() < round) std::this_thread::yield();
        mark_all(thread);
        arrived.fetch_add(1);
      }
    });
  }
  for (int round = 1; round <= 3; ++round) {
    phase.store(round);
    std::vector<std::thread> late;
    for (std::size_t thread = kThreads / 2; thread < kThreads; ++thread)
      late.emplace_back(mark_all, thread);
    for (std::thread& thread : late) thread.join();
    while (arrived.load() < round * static_cast<int>(kThreads / 2)) std::this_thread::yield();
    const Lines lines = watched.collect();
    EXPECT_EQ(lines.size(), kThreads * kPages);
    for (const auto& [page, marks] : lines) EXPECT_EQ(marks, 1ull << (page / kPages));
  }
  for (std::thread& thread : early) thread.join();
}

TEST(StoreTracker, ThreadsLeaveTheirTablesToTheNext) {
  const Watched watched(1000);
  const std::size_t before = StoreMarks::tables();
  constexpr std::size_t kThreads = 1000;
  for (std::size_t thread = 0; thread < kThreads; ++thread)
    std::thread([&] { watched.mark(thread, thread % 64); }).join();
  EXPECT_EQ(watched.collect().size(), kThreads);
  EXPECT_LT(StoreMarks::tables() - before, kThreads / 10);
}

TEST(StoreTracker, SeesMarksThatAThreadMakesAsItEnds) {
  const Watched watched(1000);
  struct Late {
    const Watched* watched = nullptr;
    ~Late() {
      if (watched != nullptr) watched->mark(7, 7);
    }
  };
  static pthread_key_t key;
  ASSERT_EQ(pthread_key_create(&key,
                               [](void* argument) {
                                 // Once more, behind all other destructors.
                                 static int turns = 0;
                                 if (++turns < 3) pthread_setspecific(key, argument);
                                 static_cast<const Watched*>(argument)->mark(
                                     static_cast<std::size_t>(20 + turns), 9);
                               }),
            0);
  std::thread([&] {
    static thread_local Late late;
    late.watched = &watched;
    pthread_setspecific(key, &watched);
  }).join();
  EXPECT_EQ(watched.collect(), (Lines{{7, 1 << 7}, {21, 1 << 9}, {22, 1 << 9}, {23, 1 << 9}}));
  pthread_key_delete(key);
}

TEST(StoreTracker, EverythingOfManyThreadsThatMarkWhileOthersCollect) {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kRounds = 300;
  struct Worker {
    Watched watched{2000};
    Watched shared_by_none{2000};
  };
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::size_t i = 0; i < kThreads; ++i) workers.push_back(std::make_unique<Worker>());
  // Each commits its own mapping over and over, while all others do so.
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const Watched& own = workers[i]->watched;
      std::mt19937_64 random(i);
      for (std::size_t round = 0; round < kRounds; ++round) {
        Lines expected;
        const std::size_t count = random() % (round % 50 == 0 ? 2000 : 30);
        for (std::size_t k = 0; k < count; ++k) {
          const std::uint64_t page = random() % 2000;
          const std::uint64_t line = random() % 64;
          own.mark(page, line);
          expected[page] |= std::uint64_t{1} << line;
        }
        workers[i]->shared_by_none.mark(round, i);
        ASSERT_EQ(own.collect(), expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& worker : workers) EXPECT_EQ(worker->shared_by_none.collect().size(), kRounds);
}

// Marks of a page that is being collected are taken or stay.
TEST(StoreTracker, AMarkDuringACollectIsNotLost) {
  const Watched watched(1000);
  std::atomic<bool> ends{false};
  std::atomic<std::uint64_t> made{0};
  std::thread marker([&] {
    for (std::uint64_t i = 0; !ends.load(); ++i) {
      watched.mark(i % 3, i / 3 % 64);
      made.store(i + 1);
    }
  });
  for (int i = 0; i < 20'000; ++i) {
    // All that was made before is taken now or was taken earlier: what is marked is never hidden.
    if (i % 2 == 0)
      (void)watched.collect();
    else
      (void)watched.collect(0, 3);
  }
  ends.store(true);
  marker.join();
  (void)watched.collect();
  for (std::size_t page = 0; page < 3; ++page) {
    for (std::size_t line = 0; line < 64; ++line) {
      std::thread([&] { watched.mark(page, line); }).join();
      watched.mark(page, line);
      EXPECT_EQ(watched.collect(), (Lines{{page, std::uint64_t{1} << line}}));
    }
  }
}

// A thread that finds its line marked leaves it at that; its store may still be on its way out of
// the processor, behind others that wait for memory.  Whoever takes that mark must see the store,
// or find another mark.
TEST(StoreTracker, AStoreToALineThatIsMarkedAlreadyIsNotLost) {
  constexpr std::size_t kRounds = 400;
  constexpr std::size_t kStores = 300;
  constexpr std::size_t kColdBytes = std::size_t{256} << 20;
  const Watched watched(1000);
  const Region cold(kColdBytes / kPageBytes);
  auto& number = *reinterpret_cast<std::atomic<std::uint64_t>*>(watched.region.page(5));
  std::atomic<std::size_t> started{0};
  std::atomic<std::size_t> ended{0};
  std::thread storer([&] {
    std::mt19937_64 random(1);
    std::uint64_t stored = 0;
    for (std::size_t round = 1; round <= kRounds; ++round) {
      while (started.load() < round) std::this_thread::yield();
      for (std::size_t i = 0; i < kStores; ++i) {
        for (std::size_t far = 0; far < 20; ++far)
          cold.start()[random() % (kColdBytes / 64) * 64] = 1;
        number.store(++stored, std::memory_order_relaxed);
        pawl_stored(&number, sizeof number);
      }
      ended.store(round);
    }
  });
  std::uint64_t seen = 0;
  const auto look = [&] {
    if (!watched.collect().empty()) seen = number.load(std::memory_order_relaxed);
  };
  for (std::size_t round = 1; round <= kRounds; ++round) {
    started.store(round);
    while (ended.load() < round) look();
    look();
    ASSERT_EQ(seen, round * kStores);
  }
  storer.join();
}

// The process shuts itself in after it mapped, and forbids what a collect of another thread's marks
// needs.
TEST(StoreTracker, ACollectThatASandboxForbidsLosesNoMark) {
  const pid_t child = fork();
  if (child == 0) {
    const Watched own(1000);
    std::thread([&] { own.mark(7, 3); }).join();
    const std::array<sock_filter, 4> filter = {{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    }};
    const sock_fprog program{filter.size(), const_cast<sock_filter*>(filter.data())};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      _exit(2);
    std::vector<StoredLines> stored;
    const Status status =
        own.tracker->collect_lines(own.region.start(), own.region.length(), stored);
    const bool given = stored.size() == 1 && stored[0].lines == 1u << 3;
    if (status.error_number() != EPERM || status.code() != PAWL_ERROR_TRACKER_UNAVAILABLE || !given)
      _exit(3);
    // What nobody else marked needs nothing.
    own.mark(8);
    stored.clear();
    const bool collected =
        own.tracker->collect_lines(own.region.start(), own.region.length(), stored).ok();
    _exit(collected && stored.size() == 1 ? 0 : 4);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "no filters of system calls here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Each mark of a thread is followed by a collect by another, which must see it.
TEST(StoreTracker, AMarkIsSeenByWhoIsTold) {
  const Watched watched(100'000);
  const Watched other(1000);
  std::atomic<std::uint64_t> asked{0};
  std::atomic<std::uint64_t> answered{0};
  // Each waits for two threads to be scheduled, and the sanitizers hide what a round could show.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr std::uint64_t kRounds = 2'000;
#else
  constexpr std::uint64_t kRounds = 20'000;
#endif
  std::atomic<bool> ends{false};
  std::thread disturber([&] {
    while (!ends.load()) (void)other.collect();
  });
  std::thread collector([&] {
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      while (asked.load() < round) std::this_thread::yield();
      const std::uint64_t page = round * 7 % 1000 + (round % 10 == 0 ? round : 0);
      EXPECT_EQ(watched.collect(), (Lines{{page, std::uint64_t{1} << (round % 64)}})) << round;
      answered.store(round);
    }
  });
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    watched.mark(round * 7 % 1000 + (round % 10 == 0 ? round : 0), round % 64);
    asked.store(round);
    while (answered.load() < round) std::this_thread::yield();
  }
  ends.store(true);
  collector.join();
  disturber.join();
}

// Signals.

const Watched* signal_watched = nullptr;
std::atomic<std::uint64_t> signals{0};

// Marks a page that nobody else marks, and one that everybody does.
void mark_in_handler(int) {
  const int before = errno;
  const std::uint64_t count = signals.fetch_add(1);
  signal_watched->mark(100'000 + count % 50'000, count % 64);
  signal_watched->mark(count % 64, 1);
  if (count % 7 == 0)
    pawl_stored(signal_watched->region.page(160'000), (kRunPagesMin + 5) * kPageBytes);
  EXPECT_EQ(errno, before);
}

TEST(StoreTracker, HandlersMarkWhateverTheyInterrupt) {
  const Watched watched(170'000);
  signal_watched = &watched;
  signals.store(0);
  struct sigaction action{};
  action.sa_handler = mark_in_handler;
  action.sa_flags = SA_RESTART;
  struct sigaction before{};
  ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
  itimerval often{};
  often.it_interval.tv_usec = 50;
  often.it_value.tv_usec = 50;
  ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
  Lines seen;
  Lines expected;
  std::mt19937_64 random(11);
  const auto merge = [](Lines& into, const Lines& from) {
    for (const auto& [page, lines] : from) into[page] |= lines;
  };
  for (int round = 0; round < 400 || signals.load() < 500; ++round) {
    expected.clear();
    const std::uint64_t first = random() % 90'000 + 64;
    for (std::uint64_t i = 0; i < 900; ++i) {
      const std::uint64_t page = first + random() % 2000;
      watched.mark(page, i % 64);
      expected[page] |= std::uint64_t{1} << (i % 64);
    }
    const Lines taken = watched.collect();
    for (const auto& [page, lines] : expected) {
      const auto found = taken.find(page);
      ASSERT_TRUE(found != taken.end() && (found->second & lines) == lines) << page;
    }
    merge(seen, taken);
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  ASSERT_EQ(sigaction(SIGALRM, &before, nullptr), 0);
  merge(seen, watched.collect());
  const std::uint64_t count = signals.load();
  for (std::uint64_t i = 0; i < count; ++i) {
    ASSERT_TRUE((seen[100'000 + i % 50'000] >> (i % 64) & 1) != 0) << i << " of " << count;
    ASSERT_TRUE((seen[i % 64] >> 1 & 1) != 0) << i;
  }
  EXPECT_EQ(seen[160'001], kAllLines);
}

// A handler at each instruction of a mark: it makes the table too full, so that it is rebuilt under
// the mark.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
int steps_left = 0;
std::size_t first_page_of_step = 0;
const Watched* stepped = nullptr;
constexpr std::size_t kPagesOfStep = 1500;  // twice what a table holds
constexpr int kStepsMax = 20'000;           // a mark has some 50; a sanitizer makes them hundreds
#ifdef __SANITIZE_ADDRESS__
constexpr int kStride = 7;  // most of those hundreds are the sanitizer's own
#else
constexpr int kStride = 1;
#endif

void on_step(int, siginfo_t*, void* context) {
  if (--steps_left != 0) return;
  for (std::size_t page = 0; page < kPagesOfStep; ++page)
    stepped->mark(first_page_of_step + page, 5);
  constexpr greg_t kTrapFlag = 0x100;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
}

__attribute__((noinline)) void mark_in_steps(const void* address) {
  asm volatile(
      "lea -128(%%rsp), %%rsp; pushfq; orl $0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::
          : "memory", "cc");
  pawl_stored(address, 1);
  asm volatile(
      "lea -128(%%rsp), %%rsp; pushfq; andl $~0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::
          : "memory", "cc");
}

TEST(StoreTracker, AHandlerMayComeAtAnyInstruction) {
  const Watched watched(4000);
  const Watched other(1000);
  stepped = &watched;
  struct sigaction action{};
  action.sa_sigaction = on_step;
  action.sa_flags = SA_SIGINFO;
  struct sigaction before{};
  ASSERT_EQ(sigaction(SIGTRAP, &action, &before), 0);
  enum { new_page, marked_page, listed_page, known_page, kinds = known_page + 8 };
  for (int kind = 0; kind < kinds; ++kind) {
    // Known pages in several slots: of some the handler's pages take the place.
    const auto own_page = static_cast<std::size_t>(7 + kind);
    for (int step = 1; step <= kStepsMax; step += kStride) {
      if (kind != new_page) watched.mark(own_page, 5);
      if (kind == listed_page) (void)other.collect();
      if (kind == new_page || kind >= known_page) (void)watched.collect();
      if (kind == new_page) {
        for (std::size_t page = 0; page < 700; ++page) watched.mark(3000 + page);
        (void)watched.collect();
      }
      ASSERT_LT(step + kStride, kStepsMax) << "without an end";
      steps_left = step;
      // Others each time: the page found its slot beside those of the last.
      first_page_of_step = 1000 + static_cast<std::size_t>(step) % 15 * 97;
      mark_in_steps(watched.region.page(own_page) + 5 * kLineBytes);
      if (steps_left > 0) {  // the mark has no more
        (void)watched.collect();
        break;
      }
      // By its place first, for what is in no list and no area.
      const Lines lines = step % 2 == 0 ? watched.collect() : watched.collect(own_page, 1);
      ASSERT_TRUE(lines.contains(own_page)) << "kind " << kind << ", step " << step;
      ASSERT_EQ(lines.at(own_page) >> 5 & 1, 1u) << "kind " << kind << ", step " << step;
      const Lines rest = watched.collect();
      ASSERT_EQ(rest.size() + lines.size(), kPagesOfStep + 1) << step;
    }
  }
  sigaction(SIGTRAP, &before, nullptr);
}

// A handler that leaves a mark by siglongjmp() takes that mark with it, and no other: the line can
// be marked again.
sigjmp_buf behind_the_mark;

void leave_on_step(int, siginfo_t*, void*) {
  if (--steps_left == 0) siglongjmp(behind_the_mark, 1);
}

// False: the mark has fewer steps.
__attribute__((noinline)) bool leave_mark_at(int step, const void* address) {
  steps_left = step;
  if (sigsetjmp(behind_the_mark, 1) == 0) mark_in_steps(address);
  return steps_left == 0;
}

TEST(StoreTracker, AMarkThatAHandlerLeftDoesNotHideTheNext) {
  const Watched watched(kStepsMax + 1);
  struct sigaction action{};
  action.sa_sigaction = leave_on_step;
  action.sa_flags = SA_SIGINFO;
  struct sigaction before{};
  ASSERT_EQ(sigaction(SIGTRAP, &action, &before), 0);
  for (const bool is_known : {false, true}) {
    bool has_more = true;
    for (int step = 1; has_more; ++step) {
      ASSERT_LT(step + kStride, kStepsMax) << "without an end";
      const auto page = static_cast<std::size_t>(step);
      if (is_known) watched.mark(page, 1);
      (void)watched.collect();
      has_more = leave_mark_at(step, watched.region.page(page) + 5 * kLineBytes);
      watched.mark(page, 5);
      const Lines lines = watched.collect();
      ASSERT_TRUE(lines.contains(page)) << "step " << step;
      ASSERT_EQ(lines.at(page) >> 5 & 1, 1u) << "step " << step;
    }
  }
  sigaction(SIGTRAP, &before, nullptr);
}

// A handler that finds its line marked by what it interrupted, and tells another thread, which
// collects before the interrupted mark goes on.
std::atomic<int> collect_asked{0};
std::atomic<int> collect_done{0};

void tell_on_step(int, siginfo_t*, void* context) {
  if (--steps_left != 0) return;
  stepped->mark(7, 5);
  collect_asked.store(1);
  while (collect_done.load() == 0) std::this_thread::yield();
  constexpr greg_t kTrapFlag = 0x100;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
}

TEST(StoreTracker, AMarkInAHandlerIsSeenBeforeTheInterruptedOneIsDone) {
  const Watched watched(4000);
  stepped = &watched;
  struct sigaction action{};
  action.sa_sigaction = tell_on_step;
  action.sa_flags = SA_SIGINFO;
  struct sigaction before{};
  ASSERT_EQ(sigaction(SIGTRAP, &action, &before), 0);
  std::atomic<bool> is_over{false};
  Lines seen;
  std::thread collector([&] {
    while (!is_over.load()) {
      if (collect_asked.exchange(0) == 0) {
        std::this_thread::yield();
        continue;
      }
      seen = watched.collect();
      collect_done.store(1);
    }
  });
  watched.mark(7, 1);  // the thread has its table, and the page its place
  bool has_more = true;
  for (int step = 1; has_more; ++step) {
    (void)watched.collect();
    seen.clear();
    collect_done.store(0);
    steps_left = step;
    mark_in_steps(watched.region.page(7) + 5 * kLineBytes);
    has_more = steps_left <= 0 && step < kStepsMax;
    if (!has_more) break;
    EXPECT_EQ(seen[7] >> 5 & 1, 1u) << "step " << step;
  }
  is_over.store(true);
  collector.join();
  sigaction(SIGTRAP, &before, nullptr);
}
#endif

// As a timeout does: the handler leaves whatever it interrupted, also while a mark has a lock.
sigjmp_buf behind_the_work;

TEST(StoreTracker, AHandlerThatLeavesAMarkLeavesNoLockBehind) {
  const Watched watched(100'000);
  struct sigaction action{};
  action.sa_handler = [](int) { siglongjmp(behind_the_work, 1); };
  struct sigaction before{};
  ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
  constexpr int kTimeouts = 2000;
  for (volatile int timeouts = 0; timeouts < kTimeouts;) {
    itimerval soon{};
    soon.it_value.tv_usec = 20 + timeouts % 50;
    if (sigsetjmp(behind_the_work, 1) != 0) {
      timeouts = timeouts + 1;
      (void)watched.collect(7, 1);
      continue;
    }
    setitimer(ITIMER_REAL, &soon, nullptr);
    for (std::size_t page = 0;; page = (page + 1) % 90'000) watched.mark(page);
  }
  ASSERT_EQ(sigaction(SIGALRM, &before, nullptr), 0);
  watched.mark(7);
  EXPECT_TRUE(watched.collect().contains(7));
}

// The signal by which the C library cancels a thread is none that its own calls block: it came
// while a mark had the lock, unwinding met C++ there and ended the process.
std::atomic<bool> cancelled_thread_marks{false};
void* mark_until_cancelled(void* start) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  cancelled_thread_marks = true;
  for (std::size_t page = 0;; page = (page + 1) % 4000)
    pawl_stored(static_cast<char*>(start) + page * kPageBytes, 1);
}

TEST(StoreTracker, AThreadMayBeCancelledInTheMidstOfAMark) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer cancels threads within its own code";
#elif defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer takes what a cancelled thread leaves for an overflow";
#endif
  const Watched watched(4000);
  for (int round = 0; round < 150; ++round) {
    cancelled_thread_marks = false;
    pthread_t thread{};
    ASSERT_EQ(pthread_create(&thread, nullptr, mark_until_cancelled, watched.region.start()), 0);
    while (!cancelled_thread_marks) std::this_thread::yield();
    for (int collects = 0; collects < round % 10; ++collects) (void)watched.collect(7, 1);
    ASSERT_EQ(pthread_cancel(thread), 0);
    void* outcome = nullptr;
    ASSERT_EQ(pthread_join(thread, &outcome), 0);
    EXPECT_EQ(outcome, PTHREAD_CANCELED);
    (void)watched.collect(7, 1);
  }
  watched.mark(7);
  EXPECT_TRUE(watched.collect().contains(7));
}

TEST(StoreTracker, ALengthThatGoesRoundMarksUpToTheEnd) {
  const Watched watched(100);
  watched.mark(1);
  (void)watched.collect();
  pawl_stored(watched.region.page(1) + 100, ~std::size_t{0});
  const Lines lines = watched.collect();
  EXPECT_EQ(lines.size(), 99U);
}

TEST(StoreTracker, KeepsErrno) {
  const Watched watched(1000);
  errno = 4711;
  pawl_stored(watched.region.start(), watched.region.length());
  std::thread([&] {
    errno = 4712;
    watched.mark(1);  // makes a table, or takes a dead thread's
    EXPECT_EQ(errno, 4712);
  }).join();
  EXPECT_EQ(errno, 4711);
}

TEST(StoreTracker, EachLivingThreadHasItsTable) {
  constexpr std::size_t kThreads = 24;
  const Watched watched(1000);
  std::atomic<std::size_t> marked{0};
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      watched.mark(thread, thread);
      marked.fetch_add(1);
      while (!ends.load()) std::this_thread::yield();
    });
  }
  while (marked.load() < kThreads) std::this_thread::yield();
  EXPECT_GE(StoreMarks::tables(), kThreads);
  // A page of each is found by looking into all tables.
  for (std::size_t thread = 0; thread < kThreads; ++thread)
    EXPECT_EQ(watched.collect(thread, 1), (Lines{{thread, 1ull << thread}}));
  EXPECT_EQ(watched.collect(), Lines());
  ends.store(true);
  for (std::thread& thread : threads) thread.join();
}

// A forked child has its own world, and the parent's is as it was.
TEST(StoreTracker, AForkedChildBeginsAnew) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer does not fork";
#endif
  const Watched watched(10'000);
  std::atomic<bool> ends{false};
  // Others hold the lock now and then.
  std::thread busy([&] {
    for (std::size_t i = 0; !ends.load(); ++i) {
      pawl_stored(watched.region.page(1000 + i % 5000), kRunPagesMin * 2 * kPageBytes);
      (void)watched.collect(9000, 1000);
    }
  });
  for (int round = 0; round < 15; ++round) {
    watched.mark(1);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (std::size_t page = 0; page < 5000; ++page) watched.mark(page);
      pawl_stored(watched.region.start(), watched.region.length());
      if (!collect(*watched.tracker, watched.region).empty()) _exit(1);
      watched.tracker->unwatch(watched.region.start(), watched.region.length());
      const Watched own(3000);
      own.mark(2);
      if (own.collect() != Lines{{2, 1}}) _exit(2);
      for (std::size_t page = 0; page < 3000; ++page) own.mark(page, 1);
      _exit(own.collect().size() == 3000 ? 0 : 3);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(watched.collect(0, 10), (Lines{{1, 1}}));
  }
  ends.store(true);
  busy.join();
}

// What uninstrumented code has the kernel store.
class KernelStores : public ::testing::Test {
 protected:
  void SetUp() override {
    link_kernel_stores_io();
    link_kernel_stores_other();
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_), 0);
    file_ = open((directory_ / "file").c_str(), O_RDWR | O_CREAT, 0600);
    ASSERT_EQ(ftruncate(file_, 1 << 20), 0);
  }
  void TearDown() override {
    for (const int descriptor : {sockets_[0], sockets_[1], file_}) close(descriptor);
  }
  // So many bytes to be received.
  void send(std::size_t count) const {
    const std::string bytes(count, 'x');
    ASSERT_EQ(write(sockets_[0], bytes.data(), count), static_cast<ssize_t>(count));
  }
  char* at(std::size_t line) const { return watched_.region.start() + line * kLineBytes; }

  test::TemporaryDirectory directory_;
  const Watched watched_{300};
  int sockets_[2] = {-1, -1};
  int file_ = -1;
};

TEST_F(KernelStores, AreMarkedAsFarAsTheyWent) {
  send(100);
  ASSERT_EQ(read(sockets_[1], at(3), 1 << 20), 100);
  EXPECT_EQ(watched_.collect(), (Lines{{0, 3 << 3}}));
  send(65);
  ASSERT_EQ(recv(sockets_[1], at(5), 1 << 20, 0), 65);
  EXPECT_EQ(watched_.collect(), (Lines{{0, 3 << 5}}));
  ASSERT_EQ(pread(file_, at(63), 4097, 1), 4097);
  EXPECT_EQ(watched_.collect(), (Lines{{0, 1ull << 63}, {1, kAllLines}}));
  // Nothing was read.
  ASSERT_EQ(pread(file_, at(0), 4096, 2 << 20), 0);
  ASSERT_EQ(read(-1, at(0), 4096), -1);
  ASSERT_EQ(recv(sockets_[1], at(0), 4096, MSG_DONTWAIT), -1);
  EXPECT_EQ(watched_.collect(), Lines());
}

TEST_F(KernelStores, AreMarkedInEachOfManyBuffers) {
  iovec vectors[40];
  for (std::size_t i = 0; i < 40; ++i) vectors[i] = {at(2 * i), 10};
  ASSERT_EQ(readv(file_, vectors, 40), 400);
  EXPECT_EQ(watched_.collect(), (Lines{{0, 0x5555555555555555}, {1, 0x5555}}));
  send(25);
  ASSERT_EQ(readv(sockets_[1], vectors, 40), 25);
  EXPECT_EQ(watched_.collect(), (Lines{{0, 1 << 0 | 1 << 2 | 1 << 4}}));

  send(15);
  msghdr message{};
  message.msg_iov = vectors;
  message.msg_iovlen = 40;
  ASSERT_EQ(recvmsg(sockets_[1], &message, 0), 15);
  EXPECT_EQ(watched_.collect(), (Lines{{0, 1 << 0 | 1 << 2}}));

  int datagrams[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams), 0);
  auto* const messages = reinterpret_cast<mmsghdr*>(watched_.region.page(9));
  for (int i = 0; i < 3; ++i) {
    messages[i] = {};
    messages[i].msg_hdr.msg_iov = &vectors[10 + i];
    messages[i].msg_hdr.msg_iovlen = 1;
    ASSERT_EQ(write(datagrams[0], "abc", 3), 3);
  }
  (void)watched_.collect();
  ASSERT_EQ(recvmmsg(datagrams[1], messages, 3, 0, nullptr), 3);
  const Lines lines = watched_.collect();
  EXPECT_EQ(lines.at(0), 0x15ull << 20);
  EXPECT_EQ(lines.at(9) & 7, 7u);
  close(datagrams[0]);
  close(datagrams[1]);
}

TEST_F(KernelStores, OfWholeStructuresAreMarked) {
  ASSERT_EQ(fstat(file_, reinterpret_cast<struct stat*>(at(4))), 0);
  EXPECT_EQ(watched_.collect(), (Lines{{0, 7 << 4}}));
  auto* const events = reinterpret_cast<pollfd*>(at(64));
  *events = {.fd = file_, .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(events, 1, 0), 1);
  EXPECT_EQ(watched_.collect(), (Lines{{1, 1}}));
  ASSERT_EQ(pipe(reinterpret_cast<int*>(at(128))), 0);
  EXPECT_EQ(watched_.collect(), (Lines{{2, 1}}));
  close(reinterpret_cast<int*>(at(128))[0]);
  close(reinterpret_cast<int*>(at(128))[1]);
}

TEST_F(KernelStores, OfStreamsAreMarkedToTheLastPart) {
  std::FILE* const stream = fdopen(dup(file_), "r");
  ASSERT_NE(stream, nullptr);
  ASSERT_EQ(fread(at(1), 1, 64, stream), 64u);
  EXPECT_EQ(watched_.collect(), (Lines{{0, 2}}));
  ASSERT_EQ(fseek(stream, -100, SEEK_END), 0);
  ASSERT_EQ(fread(at(1), 80, 3, stream), 1u);  // and 20 bytes more
  EXPECT_EQ(watched_.collect(), (Lines{{0, 0b1110}}));
  std::fclose(stream);
}

// Random calls, against a set of marked lines.
TEST(StoreTracker, AgreesWithAModel) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    constexpr std::size_t kMappings = 3;
    constexpr std::size_t kPages = 4000;
    std::vector<std::unique_ptr<Watched>> mappings;
    std::array<Lines, kMappings> model;
    for (std::size_t i = 0; i < kMappings; ++i)
      mappings.push_back(std::make_unique<Watched>(kPages));
    for (int step = 0; step < 3000; ++step) {
      const std::size_t i = random() % kMappings;
      const Watched& watched = *mappings[i];
      const std::uint64_t choice = random() % 100;
      if (choice < 90) {
        const std::uint64_t from = random() % (kPages * kPageBytes);
        const std::uint64_t longest = choice < 80   ? 300
                                      : choice < 88 ? 5 * kPageBytes
                                                    : 200 * kPageBytes;
        const std::uint64_t length =
            std::min<std::uint64_t>(random() % longest, kPages * kPageBytes - from);
        const auto mark = [&] { pawl_stored(watched.region.start() + from, length); };
        if (random() % 50 == 0)
          std::thread(mark).join();
        else
          mark();
        for (std::uint64_t line = from / kLineBytes;
             line * kLineBytes < from + length && length > 0; ++line)
          model[i][line / 64] |= std::uint64_t{1} << (line % 64);
      } else {
        const std::size_t first = choice < 94 ? 0 : random() % kPages;
        const std::size_t count = choice < 94   ? kPages
                                  : choice < 97 ? std::min<std::size_t>(kPages - first, 3)
                                                : random() % (kPages - first) + 1;
        Lines expected;
        for (auto at = model[i].lower_bound(first);
             at != model[i].end() && at->first < first + count;) {
          expected.insert(*at);
          at = model[i].erase(at);
        }
        ASSERT_EQ(watched.collect(first, count), expected) << step;
      }
    }
    for (std::size_t i = 0; i < kMappings; ++i) ASSERT_EQ(mappings[i]->collect(), model[i]);
  }
}

}  // namespace
}  // namespace pawl
