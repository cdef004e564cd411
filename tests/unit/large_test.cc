// Commits larger than the journal, files larger than memory, and what bounds the memory in use.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "mapping/implementation.h"
#include "mapping/statistics.h"
#include "support/open_mapping.h"
#include "support/temporary_directory.h"

namespace pawl {
namespace {

using test::Act;
using test::Event;
using test::options_for;
using test::read_file;
using test::Watch;
using test::Which;
using test::write_file;

constexpr auto kAsync = ApplyChoice::async;

std::unique_ptr<Mapping> open_sized(const std::string& path, std::size_t length, char*& bytes,
                                    const Options& options,
                                    std::shared_ptr<Watch> watch = nullptr) {
  auto opened = test::try_open(path, options, std::move(watch));
  EXPECT_TRUE(opened.ok()) << opened.status().text();
  auto window = opened.value()->map_window(nullptr, length, PROT_READ | PROT_WRITE, 0, 0);
  EXPECT_TRUE(window.ok()) << window.status().text();
  bytes = window.value();
  return std::move(opened.value());
}

struct Shape {
  const char* name;
  std::size_t stored_pages;
  std::size_t stride_pages;
  bool whole_pages;
};

class LargeCommit : public testing::TestWithParam<Shape> {};

TEST_P(LargeCommit, IsWholeAfterACrashAndLeavesTheJournalItsSize) {
  const Shape& shape = GetParam();
  const std::size_t length = shape.stored_pages * shape.stride_pages * kPageBytes;
  test::TemporaryDirectory directory;
  const std::string path = directory / "file";
  write_file(path, std::string(3 * kPageBytes + 5, 'a'));
  Options options = options_for(kAsync);
  options.journal_size_bytes = 256 << 10;
  std::string expected;
  {
    char* bytes = nullptr;
    auto mapping = open_sized(path, length, bytes, options);
    // A small one before, so that there is something to apply first.
    bytes[1] = 'b';
    ASSERT_TRUE(mapping->commit_all().ok());
    ASSERT_TRUE(mapping->truncate(kPageBytes + 1).ok());
    ASSERT_TRUE(mapping->truncate(length).ok());
    for (std::size_t page = 0; page < shape.stored_pages; ++page) {
      char* const at = bytes + page * shape.stride_pages * kPageBytes;
      std::memset(at, static_cast<char>('c' + page % 20), shape.whole_pages ? kPageBytes : 20);
    }
    const Status committed = mapping->commit_all();
    ASSERT_TRUE(committed.ok()) << committed.text();
    expected.assign(bytes, length);
    struct stat side{};
    ASSERT_EQ(::stat((path + ".pawl").c_str(), &side), 0);
    EXPECT_EQ(side.st_size, 256 << 10);
    bytes[2] = 'd';
    ASSERT_TRUE(mapping->commit_all().ok());
    expected[2] = 'd';
  }
  char* bytes = nullptr;
  auto mapping = open_sized(path, length, bytes, options);
  ASSERT_EQ(mapping->size(), length);
  EXPECT_EQ(std::memcmp(bytes, expected.data(), length), 0);
  ASSERT_TRUE(mapping->close().ok());
  EXPECT_TRUE(read_file(path) == expected);
}

TEST_P(LargeCommit, IsNothingAfterACrashBeforeItsFlush) {
  const Shape& shape = GetParam();
  const std::size_t length = shape.stored_pages * shape.stride_pages * kPageBytes;
  test::TemporaryDirectory directory;
  const std::string path = directory / "file";
  const std::string before(3 * kPageBytes + 5, 'a');
  write_file(path, before);
  Options options = options_for(kAsync);
  options.journal_size_bytes = 256 << 10;
  struct Failure {
    Act act;
    int error_number;
  };
  // The journal may not grow past its size, or the last write of the record fails.
  for (const Failure& failure :
       {Failure{Act::reserve, ENOSPC}, {Act::write, ENOSPC}, {Act::write, EIO}}) {
    const bool needs_no_room = !shape.whole_pages;
    if (failure.act == Act::reserve && needs_no_room) continue;
    auto watch = std::make_shared<Watch>();
    char* bytes = nullptr;
    auto mapping = open_sized(path, length, bytes, options, watch);
    ASSERT_TRUE(mapping->truncate(length).ok());
    for (std::size_t page = 0; page < shape.stored_pages; ++page) {
      std::memset(bytes + page * shape.stride_pages * kPageBytes, 'c',
                  shape.whole_pages ? kPageBytes : 20);
    }
    watch->judge_with([&](const Event& event) {
      const bool is_record = event.act != Act::write || event.offset >= journal::kAreaStart;
      return event.which == Which::journal && event.act == failure.act && is_record
                 ? Status::failure(failure.error_number, "made up")
                 : Status{};
    });
    const bool is_final = failure.act == Act::write;
    EXPECT_EQ(mapping->commit_all().error_number(), is_final ? EIO : failure.error_number);
    EXPECT_EQ(bytes[0], 'c');
    watch->judge_with({});
    if (!is_final) {
      // Nothing was lost: the same commit goes through when there is space.
      const Status retried = mapping->commit_all();
      EXPECT_TRUE(retried.ok()) << retried.text();
      ASSERT_TRUE(mapping->close().ok());
      EXPECT_EQ(read_file(path)[0], 'c');
      write_file(path, before);
      continue;
    }
    EXPECT_EQ(mapping->commit_all().error_number(), EIO);
    mapping.reset();
    auto again = open_sized(path, length, bytes, options);
    EXPECT_EQ(again->size(), before.size());
    EXPECT_EQ(bytes[0], 'a');
    ASSERT_TRUE(again->close().ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LargeCommit,
                         testing::Values(Shape{"OverTheJournal", 200, 1, true},
                                         Shape{"OverTheOverlay", kStagedPagesMax + 500, 1, true},
                                         Shape{"ManyPagesFewBytes", kStagedPagesMax + 500, 1,
                                               false},
                                         Shape{"OverTheRecordBuffer", 6000, 1, true}),
                         [](const auto& shape) { return shape.param.name; });

TEST(LargeFile, ASparseOneOfFortyGigabytesIsOpenedGrownAndCommitted) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "file";
  write_file(path, "begin");
  constexpr std::uint64_t kSize = std::uint64_t{40} << 30;
  ASSERT_EQ(::truncate(path.c_str(), kSize), 0);
  {
    char* bytes = nullptr;
    auto mapping = open_sized(path, kSize + (std::uint64_t{20} << 30), bytes, options_for(kAsync));
    bytes[kSize / 2] = 'm';
    bytes[kSize - 1] = 'e';
    ASSERT_TRUE(mapping->truncate(kSize + (std::uint64_t{20} << 30)).ok());
    bytes[kSize + (std::uint64_t{19} << 30)] = 'g';
    ASSERT_TRUE(mapping->commit_all().ok());
  }
  char* bytes = nullptr;
  auto mapping = open_sized(path, kSize, bytes, options_for(kAsync));
  EXPECT_EQ(mapping->size(), kSize + (std::uint64_t{20} << 30));
  EXPECT_EQ(bytes[kSize / 2], 'm');
  EXPECT_EQ(bytes[kSize - 1], 'e');
  char grown = 0;
  ASSERT_TRUE(
      mapping->read(kSize + (std::uint64_t{19} << 30), std::as_writable_bytes(std::span(&grown, 1)))
          .ok());
  EXPECT_EQ(grown, 'g');
  ASSERT_TRUE(mapping->close().ok());
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_LT(status.st_blocks, 2048) << "the holes were filled";
}

// Recovery believes no record of such a size: what was acknowledged was lost.
TEST(LargeFile, OfMoreBytesThanARecordCanTellIsRefused) {
  const test::TemporaryDirectory directory("/dev/shm");
  const std::string path = directory / "file";
  write_file(path, "begin");
  constexpr off_t kSizeMax = journal::kFileSizeMax;
  if (::truncate(path.c_str(), kSizeMax + 1) != 0) GTEST_SKIP() << "no file of such a size";
  const Status refused = test::try_open(path, options_for(kAsync)).status();
  EXPECT_EQ(refused.error_number(), EFBIG) << refused.text();
  EXPECT_FALSE(std::filesystem::exists(path + ".pawl"));
  ASSERT_EQ(::truncate(path.c_str(), kSizeMax), 0);
  auto opened = test::try_open(path, options_for(kAsync));
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  EXPECT_EQ(opened.value()->truncate(kSizeMax + 1).error_number(), EFBIG);
  EXPECT_TRUE(opened.value()->close().ok());
}

TEST(LargeFile, HolesStayHolesThroughAShrinkAndRegrowth) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "file";
  write_file(path, std::string(100 * kPageBytes, 'a'));
  {
    char* bytes = nullptr;
    auto mapping = open_sized(path, 1000 * kPageBytes, bytes, options_for(kAsync));
    ASSERT_TRUE(mapping->truncate(10 * kPageBytes).ok());
    ASSERT_TRUE(mapping->truncate(1000 * kPageBytes).ok());
    bytes[50 * kPageBytes] = 'b';
    ASSERT_TRUE(mapping->commit_all().ok());
    ASSERT_TRUE(mapping->close().ok());
  }
  const std::string content = read_file(path);
  ASSERT_EQ(content.size(), 1000 * kPageBytes);
  std::string expected(1000 * kPageBytes, '\0');
  expected.replace(0, 10 * kPageBytes, 10 * kPageBytes, 'a');
  expected[50 * kPageBytes] = 'b';
  EXPECT_TRUE(content == expected);
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, 40 * static_cast<long>(kPageBytes));
}

std::uint64_t private_bytes_of(const char* address) {
  FILE* const maps = std::fopen("/proc/self/smaps", "re");
  char line[512];
  bool inside = false;
  std::uint64_t bytes = 0;
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long start = 0;
    unsigned long end = 0;
    unsigned long kibibytes = 0;
    if (std::sscanf(line, "%lx-%lx ", &start, &end) == 2)
      inside = start <= reinterpret_cast<std::uintptr_t>(address) &&
               reinterpret_cast<std::uintptr_t>(address) < end;
    if (inside && std::sscanf(line, "Anonymous: %lu kB", &kibibytes) == 1) bytes = kibibytes << 10;
  }
  std::fclose(maps);
  return bytes;
}

TEST(Memory, PrivatePagesAreDroppedWhenTheyAreOverTheBound) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "beside the sanitizer's own thread nothing is dropped";
#endif
  for (const TrackerChoice tracker : {TrackerChoice::automatic, TrackerChoice::fault}) {
    test::TemporaryDirectory directory;
    const std::string path = directory / "file";
    constexpr std::size_t kLength = std::size_t{64} << 20;
    write_file(path, std::string(kLength, 'a'));
    Options options = options_for(kAsync, tracker);
    options.resident_bytes_max = std::uint64_t{8} << 20;
    char* bytes = nullptr;
    auto mapping = open_sized(path, kLength, bytes, options);
    std::uint64_t most = 0;
    for (std::size_t offset = 0; offset < kLength; offset += 128 * kPageBytes) {
      std::memset(bytes + offset, 'b', 128 * kPageBytes);
      ASSERT_TRUE(mapping->commit_all().ok());
      most = std::max(most, private_bytes_of(bytes));
    }
    EXPECT_LE(most, options.resident_bytes_max + 128 * kPageBytes);
    MappingStatistics statistics;
    mapping->statistics(statistics);
    EXPECT_GT(statistics.pages_dropped, 10000u);
    EXPECT_EQ(std::string(bytes, kLength), std::string(kLength, 'b'));
    // What is dropped is tracked as before.
    bytes[5] = 'c';
    ASSERT_TRUE(mapping->commit_all().ok());
    ASSERT_TRUE(mapping->close().ok());
    EXPECT_EQ(read_file(path)[5], 'c');
  }
}

// Between the look at the pages and their drop a store of the other thread was lost.
TEST(Memory, PrivatePagesWereDroppedBesideAThreadThatMayStore) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "file";
  constexpr std::size_t kLength = 16 * kPageBytes;
  write_file(path, std::string(kLength, 'a'));
  Options options = options_for(kAsync);
  options.resident_bytes_max = 0;
  char* bytes = nullptr;
  auto mapping = open_sized(path, kLength, bytes, options);
  const auto dropped_by_a_commit = [&] {
    MappingStatistics statistics;
    mapping->statistics(statistics);
    const std::uint64_t before = statistics.pages_dropped;
    ++bytes[0];
    EXPECT_TRUE(mapping->commit_all().ok());
    mapping->statistics(statistics);
    return statistics.pages_dropped - before;
  };
  std::promise<void> end;
  std::thread other([ended = end.get_future()] { ended.wait(); });
  EXPECT_EQ(dropped_by_a_commit(), 0u);
  // So a program with threads gives its memory back itself, while they do not store.
  EXPECT_GT(private_bytes_of(bytes), 0u);
  EXPECT_TRUE(mapping->roll_back(bytes, kLength).ok());
  EXPECT_EQ(private_bytes_of(bytes), 0u);
  end.set_value();
  other.join();
#ifndef __SANITIZE_THREAD__  // it has a thread of its own
  // A thread that was joined may not be gone yet.
  for (int tries = 0; tries < 1000 && dropped_by_a_commit() == 0; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GT(dropped_by_a_commit(), 0u);
#endif
}

TEST(Memory, DirtyPagesAreCommittedFromSwap) {
  test::TemporaryDirectory directory;
  const std::string swap = directory / "swap";
  constexpr std::size_t kLength = std::size_t{16} << 20;
  write_file(swap, std::string(4 * kLength, '\0'));
  ASSERT_EQ(::chmod(swap.c_str(), 0600), 0);
  const std::string command = "PATH=$PATH:/sbin:/usr/sbin mkswap " + swap + " >/dev/null 2>&1";
  if (std::system(command.c_str()) != 0 || ::swapon(swap.c_str(), 0) != 0)
    GTEST_SKIP() << "swap takes root and a file system that can hold it";
  const std::string path = directory / "file";
  write_file(path, std::string(kLength, 'a'));
  {
    char* bytes = nullptr;
    auto mapping = open_sized(path, kLength, bytes, options_for(kAsync));
    std::memset(bytes, 'b', kLength);
    ASSERT_TRUE(mapping->commit_all().ok());
    for (std::size_t offset = 0; offset < kLength; offset += kPageBytes) bytes[offset + 9] = 'c';
    ASSERT_EQ(::madvise(bytes, kLength, MADV_PAGEOUT), 0);
    EXPECT_LT(private_bytes_of(bytes), kLength / 2) << "nothing was swapped out";
    ASSERT_TRUE(mapping->commit_all().ok());
  }
  char* bytes = nullptr;
  auto mapping = open_sized(path, kLength, bytes, options_for(kAsync));
  for (std::size_t offset = 0; offset < kLength; offset += kPageBytes)
    ASSERT_EQ(bytes[offset + 9], 'c');
  mapping.reset();
  EXPECT_EQ(::swapoff(swap.c_str()), 0);
}

TEST(Memory, OpeningReadsTheJournalAndNotTheFile) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "file";
  write_file(path, std::string(std::size_t{32} << 20, 'a'));
  for (const bool crashed : {false, true}) {
    auto watch = std::make_shared<Watch>();
    char* bytes = nullptr;
    auto mapping = open_sized(path, kPageBytes, bytes, options_for(kAsync), watch);
    std::uint64_t base_bytes = 0;
    for (const Event& event : watch->take_events()) {
      if (event.which == Which::base && event.act == Act::read) base_bytes += event.length;
    }
    EXPECT_EQ(base_bytes, 0u) << crashed;
    bytes[0] = 'b';
    ASSERT_TRUE(mapping->commit_all().ok());
  }
}

}  // namespace
}  // namespace pawl
