// Commits of what stores marked, on both kinds of medium; and PAWL_VERIFY, which finds what they
// did not mark.
#include <sys/mman.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "mapping/mapping.h"
#include "mapping/statistics.h"
#include "medium/open_medium.h"
#include "pawl/store.h"
#include "support/open_mapping.h"
#include "support/temporary_directory.h"
#include "support/watched_medium.h"
#include "track/tracker.h"

namespace pawl {
namespace {

constexpr std::size_t kPages = 16;

class StoreCommit : public testing::TestWithParam<MediumKind> {
 protected:
  StoreCommit()
      : directory_(GetParam() == MediumKind::memory ? "/dev/shm" : nullptr),
        path_(directory_ / "file") {
    test::write_file(path_, std::string(kPages * kPageBytes, 'a'));
  }

  void open(bool verify = false, void* address = nullptr, int flags = 0) {
    Options options = Options::from_environment().value();
    options.tracker = TrackerChoice::store;
    options.journal_size_bytes = std::uint64_t{1} << 20;
    options.verify = verify;
    auto medium = open_medium(path_, false, GetParam());
    ASSERT_TRUE(medium.ok()) << medium.status().text();
    auto mapping = Mapping::open(std::move(medium.value()), options);
    ASSERT_TRUE(mapping.ok()) << mapping.status().text();
    mapping_ = std::move(mapping.value());
    window_ = mapping_->map_window(address, kPages * kPageBytes, PROT_READ | PROT_WRITE, flags, 0);
    if (window_.ok()) bytes_ = window_.value();
  }
  void crash_and_open() {
    mapping_.reset();
    open();
  }
  void store(std::size_t offset, char value) {
    bytes_[offset] = value;
    pawl_stored(bytes_ + offset, 1);
  }
  MappingStatistics statistics() const {
    MappingStatistics seen;
    mapping_->statistics(seen);
    return seen;
  }
  void commit() {
    const Status status = mapping_->commit_all();
    ASSERT_TRUE(status.ok()) << status.text();
  }

  test::TemporaryDirectory directory_;
  std::string path_;
  std::unique_ptr<Mapping> mapping_;
  Result<char*> window_ = Status::failure(EINVAL, "not mapped");
  char* bytes_ = nullptr;
};

TEST_P(StoreCommit, TakesTheMarkedLinesAndNoOthers) {
  open();
  store(100, 'b');
  bytes_[200] = 'c';  // another line, of which nobody is told
  commit();
  EXPECT_EQ(statistics().bytes_changed, 64U);
  EXPECT_EQ(statistics().tracker, PAWL_TRACKER_STORE);
  EXPECT_EQ(statistics().medium,
            GetParam() == MediumKind::memory ? PAWL_MEDIUM_MEMORY : PAWL_MEDIUM_BLOCK);
  crash_and_open();
  EXPECT_EQ(bytes_[100], 'b');
  EXPECT_EQ(bytes_[200], 'a');
}

TEST_P(StoreCommit, AByteThatIsChangedBackIsCommittedBack) {
  open();
  store(100, 'b');
  commit();
  store(100, 'a');
  commit();
  crash_and_open();
  EXPECT_EQ(bytes_[100], 'a');
}

TEST_P(StoreCommit, OfARangeLeavesTheOthersPending) {
  open();
  for (std::size_t page = 0; page < 8; ++page) store(page * kPageBytes, 'b');
  EXPECT_TRUE(mapping_->has_pending_changes());
  ASSERT_TRUE(mapping_->commit(bytes_ + 2 * kPageBytes, 3 * kPageBytes).ok());
  EXPECT_TRUE(mapping_->has_pending_changes());
  commit();
  EXPECT_FALSE(mapping_->has_pending_changes());
  for (std::size_t page = 0; page < 8; ++page) store(page * kPageBytes, 'c');
  ASSERT_TRUE(mapping_->commit(bytes_ + 2 * kPageBytes, 3 * kPageBytes).ok());
  crash_and_open();
  for (std::size_t page = 0; page < 8; ++page)
    EXPECT_EQ(bytes_[page * kPageBytes], page >= 2 && page < 5 ? 'c' : 'b') << page;
}

TEST_P(StoreCommit, OfThreadsThatLiveAndThatExited) {
  open();
  std::thread exited([&] { store(0, 'x'); });
  exited.join();
  std::atomic<int> step{0};
  std::thread live([&] {
    store(5000, 'l');
    step = 1;
    while (step != 2) std::this_thread::yield();
  });
  while (step != 1) std::this_thread::yield();
  commit();
  step = 2;
  live.join();
  crash_and_open();
  EXPECT_EQ(bytes_[0], 'x');
  EXPECT_EQ(bytes_[5000], 'l');
}

TEST_P(StoreCommit, RollsBackWhatWasMarked) {
  open();
  store(100, 'b');
  commit();
  store(100, 'c');
  store(9000, 'c');
  ASSERT_TRUE(mapping_->roll_back(bytes_, kPageBytes).ok());
  EXPECT_EQ(bytes_[100], 'b');
  EXPECT_EQ(bytes_[9000], 'c');
  ASSERT_TRUE(mapping_->roll_back(bytes_, kPages * kPageBytes).ok());
  EXPECT_EQ(bytes_[9000], 'a');
  EXPECT_FALSE(mapping_->has_pending_changes());
}

TEST_P(StoreCommit, WritesAndTruncationsNeedNoMarks) {
  open();
  const std::string text = "written";
  ASSERT_TRUE(mapping_->write(3000, std::as_bytes(std::span(text))).ok());
  ASSERT_TRUE(mapping_->truncate(8 * kPageBytes + 100).ok());
  ASSERT_TRUE(mapping_->truncate(12 * kPageBytes).ok());
  commit();
  store(11 * kPageBytes, 'n');
  commit();
  crash_and_open();
  EXPECT_EQ(std::string(bytes_ + 3000, text.size()), text);
  EXPECT_EQ(bytes_[8 * kPageBytes + 99], 'a');
  EXPECT_EQ(bytes_[8 * kPageBytes + 100], '\0');
  EXPECT_EQ(bytes_[11 * kPageBytes], 'n');
  EXPECT_EQ(mapping_->size(), 12 * kPageBytes);
}

TEST_P(StoreCommit, MoreThanTheJournalHolds) {
  open();
  for (int round = 0; round < 40; ++round) {
    std::memset(bytes_, 'b' + round % 20, kPages * kPageBytes);
    pawl_stored(bytes_, kPages * kPageBytes);
    commit();
  }
  EXPECT_GT(statistics().checkpoints, 0U);
  crash_and_open();
  EXPECT_EQ(bytes_[kPages * kPageBytes - 1], 'b' + 39 % 20);
}

TEST_P(StoreCommit, QueuedIsDurableAfterTheWait) {
  open();
  store(100, 'b');
  ASSERT_TRUE(mapping_->commit_async(bytes_, kPages * kPageBytes).ok());
  store(100, 'c');
  ASSERT_TRUE(mapping_->wait().ok());
  crash_and_open();
  EXPECT_EQ(bytes_[100], 'b');
}

TEST_P(StoreCommit, AMappingLiesWhereCompiledMarksSeeIt) {
  open();
  const auto at = reinterpret_cast<std::uint64_t>(bytes_);
  EXPECT_GE(at, kStoreRegionFirst);
  EXPECT_LE(at + kPages * kPageBytes, kStoreRegionEnd);
  memory::LeftPlace left;
  auto moved = mapping_->remap_window(2 * kPages * kPageBytes, true, nullptr, left);
  ASSERT_TRUE(moved.ok());
  EXPECT_GE(reinterpret_cast<std::uint64_t>(moved.value()), kStoreRegionFirst);
}

TEST_P(StoreCommit, AHintIsTakenWhereCompiledMarksSeeItAndElsewhereAnotherAddress) {
  open();
  char* const seen = bytes_;
  mapping_.reset();
  open(false, seen);
  ASSERT_TRUE(window_.ok()) << window_.status().text();
  EXPECT_EQ(bytes_, seen);
  mapping_.reset();
  int on_the_stack = 0;
  open(false, &on_the_stack);
  ASSERT_TRUE(window_.ok()) << window_.status().text();
  EXPECT_GE(reinterpret_cast<std::uint64_t>(bytes_), kStoreRegionFirst);
  EXPECT_LT(reinterpret_cast<std::uint64_t>(bytes_), kStoreRegionEnd);
}

TEST_P(StoreCommit, AnAddressThatMarksDoNotSeeIsRefused) {
  char* const above = static_cast<char*>(
      ::mmap(nullptr, kPages * kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(above, MAP_FAILED);
  // Below all that is asked of the kernel meanwhile, which a medium that is memory asks for much
  // of.
  char* const elsewhere = above - (std::size_t{1} << 40);
  ASSERT_GE(reinterpret_cast<std::uint64_t>(elsewhere), kStoreRegionEnd);
  open(false, elsewhere, MAP_FIXED_NOREPLACE);
  ::munmap(above, kPages * kPageBytes);
  ASSERT_FALSE(window_.ok());
  EXPECT_EQ(window_.status().error_number(), EINVAL);
  EXPECT_FALSE(mapping_->window().has_value());
}

TEST_P(StoreCommit, AFixedAddressThatMarksDoNotSeeIsRefusedBeforeItIsMappedOver) {
  char* const elsewhere = static_cast<char*>(::mmap(
      nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(elsewhere, MAP_FAILED);
  elsewhere[5000] = 'p';
  open(false, elsewhere, MAP_FIXED);
  ASSERT_FALSE(window_.ok());
  EXPECT_EQ(window_.status().error_number(), EINVAL);
  ASSERT_EQ(::msync(elsewhere, kPages * kPageBytes, MS_ASYNC), 0) << "unmapped";
  EXPECT_EQ(elsewhere[5000], 'p');
  ::munmap(elsewhere, kPages * kPageBytes);
}

// As mremap(2): a mapping that cannot be had elsewhere, or larger, is where it was.
TEST_P(StoreCommit, AMoveThatFailsLeavesTheMappingWhereItWas) {
  open();
  store(100, 'b');
  commit();
  store(200, 'c');
  constexpr std::size_t kTooLong = std::size_t{1} << 47;
  void* const low = reinterpret_cast<void*>(std::uintptr_t{1} << 40);  // NOLINT: an address
  memory::LeftPlace left;
  EXPECT_EQ(mapping_->remap_window(kTooLong, true, nullptr, left).status().error_number(), ENOMEM);
  EXPECT_EQ(mapping_->remap_window(kPages * kPageBytes, true, low, left).status().error_number(),
            EINVAL);
  EXPECT_EQ(mapping_->remap_window(kTooLong, false, nullptr, left).status().error_number(), ENOMEM);
  ASSERT_TRUE(mapping_->window().has_value());
  EXPECT_EQ(mapping_->window()->address, bytes_);
  EXPECT_EQ(mapping_->window()->length, kPages * kPageBytes);
  EXPECT_EQ(bytes_[100], 'b');
  EXPECT_EQ(bytes_[200], 'c');
  store(300, 'd');
  commit();
  crash_and_open();
  EXPECT_EQ(bytes_[100], 'b');
  EXPECT_EQ(bytes_[200], 'c');
  EXPECT_EQ(bytes_[300], 'd');
}

TEST_P(StoreCommit, VerifyReportsEachByteThatNobodyMarkedAndTakesIt) {
  open(true);
  store(100, 'b');
  bytes_[5000] = 'c';
  bytes_[5001] = 'c';
  bytes_[100 + 64] = 'd';
  testing::internal::CaptureStderr();
  commit();
  const std::string report = testing::internal::GetCapturedStderr();
  EXPECT_NE(report.find("2 bytes"), std::string::npos) << report;
  EXPECT_NE(report.find("offset 5000 "), std::string::npos) << report;
  EXPECT_NE(report.find("offset 164 "), std::string::npos) << report;
  EXPECT_EQ(report.find("offset 100 "), std::string::npos) << report;
  EXPECT_EQ(statistics().unmarked_bytes, 3U);
  testing::internal::CaptureStderr();
  store(200, 'e');
  commit();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(statistics().unmarked_bytes, 3U);
  crash_and_open();
  EXPECT_EQ(bytes_[5001], 'c');
  EXPECT_EQ(bytes_[164], 'd');
}

TEST_P(StoreCommit, VerifyReportsAFewAndCountsTheRest) {
  open(true);
  for (std::size_t page = 0; page < kPages; ++page) {
    bytes_[page * kPageBytes] = 'u';
    bytes_[page * kPageBytes + 999] = 'u';
  }
  testing::internal::CaptureStderr();
  commit();
  const std::string report = testing::internal::GetCapturedStderr();
  EXPECT_NE(report.find("16 more places, 32 bytes in all"), std::string::npos) << report;
}

TEST(StoreCommitVerify, ThatFailsForgetsNoMark) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "file";
  test::write_file(path, std::string(kPages * kPageBytes, 'a'));
  Options options = test::options_for(ApplyChoice::async, TrackerChoice::store);
  options.verify = true;
  {
    auto watch = std::make_shared<test::Watch>();
    test::Opened mapping(path, options, watch);
    mapping.bytes()[100] = 'b';
    pawl_stored(mapping.bytes() + 100, 1);
    watch->judge_with([](const test::Event& event) {
      return event.act == test::Act::read ? Status::failure(ENOMEM, "not now") : Status{};
    });
    EXPECT_EQ(mapping.commit().error_number(), ENOMEM);
    watch->judge_with({});
    const Status committed = mapping.commit();
    ASSERT_TRUE(committed.ok()) << committed.text();
    MappingStatistics seen;
    mapping->statistics(seen);
    EXPECT_EQ(seen.unmarked_bytes, 0U) << "the mark was forgotten";
    mapping.crash();
  }
  test::Opened mapping(path, options);
  EXPECT_EQ(mapping.bytes()[100], 'b');
}

// Nobody knows whether it is durable, and the base must not run ahead of what is.
TEST(StoreCommitInMemory, ARecordWhoseFlushFailedNeverReachesTheBase) {
  test::TemporaryDirectory directory("/dev/shm");
  const std::string path = directory / "file";
  test::write_file(path, std::string(kPages * kPageBytes, 'a'));
  auto medium = open_medium(path, false, MediumKind::memory);
  ASSERT_TRUE(medium.ok()) << medium.status().text();
  auto watch = std::make_shared<test::Watch>();
  auto mapping = Mapping::open(test::watched_medium(std::move(medium.value()), watch),
                               test::options_for(ApplyChoice::async, TrackerChoice::store));
  ASSERT_TRUE(mapping.ok()) << mapping.status().text();
  auto window =
      mapping.value()->map_window(nullptr, kPages / 2 * kPageBytes, PROT_READ | PROT_WRITE, 0, 0);
  ASSERT_TRUE(window.ok()) << window.status().text();
  char* const bytes = window.value();
  for (const char value : {'b', 'c'}) {
    bytes[0] = value;
    pawl_stored(bytes, 1);
    ASSERT_TRUE(mapping.value()->commit_all().ok());
  }
  EXPECT_EQ(test::read_file(path)[0], 'b') << "the last record waits for the next commit";
  watch->judge_with([](const test::Event& event) {
    return event.which == test::Which::journal && event.act == test::Act::flush
               ? Status::failure(EIO, "the memory is on fire")
               : Status{};
  });
  bytes[0] = 'd';
  pawl_stored(bytes, 1);
  EXPECT_EQ(mapping.value()->commit_all().error_number(), EIO);
  watch->judge_with({});
  // What looks at the base, outside of the window, lets records that wait go there first.
  std::array<std::byte, 1> seen{};
  [[maybe_unused]] const auto read = mapping.value()->read((kPages - 1) * kPageBytes, seen);
  EXPECT_EQ(mapping.value()->close().error_number(), EIO);
  EXPECT_EQ(test::read_file(path)[0], 'c');
}

INSTANTIATE_TEST_SUITE_P(Media, StoreCommit, testing::Values(MediumKind::block, MediumKind::memory),
                         [](const auto& parameter) {
                           return parameter.param == MediumKind::memory ? "Memory" : "Block";
                         });

}  // namespace
}  // namespace pawl
