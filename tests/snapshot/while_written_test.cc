// Snapshots of a file that a program commits to all the while: each is one committed state, whole,
// and not older than what was acknowledged before it was asked for.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <thread>

#include "pawl/pawl.h"
#include "snapshot/writer.h"
#include "support/temporary_directory.h"
#include "support/test_size.h"
#include "torture/file_systems.h"

namespace pawl::test {
namespace {

constexpr int kSnapshots = at_size(8, 20);

StateShape shape_of(const WriterOptions& options) {
  StateShape shape;
  shape.large_every = options.large_every;
  return shape;
}

void expect_plain_file(const std::string& path) {
  char mark[64];
  EXPECT_LT(::getxattr(path.c_str(), "user.pawl", mark, sizeof mark), 0) << path << " has a mark";
  EXPECT_FALSE(std::filesystem::exists(path + ".pawl")) << path << " has a journal";
}

// Of the state that the file at `path` is a snapshot of.
std::uint64_t expect_state(const std::string& path, const StateShape& shape,
                           std::uint64_t not_before) {
  std::string problem;
  const auto generation = generation_of_file(path, shape, problem);
  EXPECT_TRUE(generation.has_value()) << problem;
  EXPECT_GE(generation.value_or(0), not_before) << "an acknowledged commit is missing";
  expect_plain_file(path);
  return generation.value_or(0);
}

// Nothing that was provisional is left.
void expect_nothing_left(const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".pawl-new-")) << entry.path();
}

// Where the disk is too small for what a snapshot asks of the journal it may fail, and only it.
void take_snapshots_while_written(const std::string& directory, const WriterOptions& options,
                                  bool is_small_disk = false) {
  const std::string path = directory + "/file";
  const std::string copy = directory + "/copy";
  const Writer writer(path, options);
  writer.wait_for_more_than(0);
  std::uint64_t newest = 0;
  int taken = 0;
  for (int i = 0; i < kSnapshots; ++i) {
    const std::uint64_t before = writer.acknowledged();
    const int outcome = ::pawl_snapshot(path.c_str(), copy.c_str(), PAWL_SNAPSHOT_REPLACE);
    if (outcome != 0 && is_small_disk && (errno == EBUSY || errno == ENOSPC)) {
      writer.wait_for_more_than(before);
      continue;
    }
    ASSERT_EQ(outcome, 0) << pawl_last_error();
    taken += 1;
    newest = std::max(newest, expect_state(copy, shape_of(options), before));
    if (::testing::Test::HasFailure()) return;
    writer.wait_for_more_than(newest);
  }
  EXPECT_GT(taken, 0);
  expect_nothing_left(directory);
}

TEST(WhileWritten, EachIsOneState) {
  for (const int apply : {PAWL_APPLY_ASYNC, PAWL_APPLY_EAGER}) {
    for (const int tracker : {PAWL_TRACKER_AUTO, PAWL_TRACKER_FAULT}) {
      SCOPED_TRACE("apply " + std::to_string(apply) + " tracker " + std::to_string(tracker));
      const TemporaryDirectory directory;
      take_snapshots_while_written(directory.path(), {.apply = apply, .tracker = tracker});
    }
  }
}

TEST(WhileWritten, EachIsOneStateWithTheSmallestJournal) {
  const TemporaryDirectory directory;
  take_snapshots_while_written(directory.path(), {.journal_bytes = 64 << 10});
}

TEST(WhileWritten, EachIsOneStateWithCommitsTooLargeToBeStaged) {
  for (const int apply : {PAWL_APPLY_ASYNC, PAWL_APPLY_EAGER}) {
    const TemporaryDirectory directory;
    take_snapshots_while_written(directory.path(), {.apply = apply, .large_every = 4});
  }
}

TEST(WhileWritten, EachIsOneStateWithQueuedCommits) {
  const TemporaryDirectory directory;
  take_snapshots_while_written(directory.path(), {.queued = 5});
}

TEST(WhileWritten, EachIsOneStateOfAFileInMemory) {
  for (const std::uint64_t large_every : {0, 4}) {
    const TemporaryDirectory directory("/dev/shm");
    take_snapshots_while_written(directory.path(),
                                 {.medium = PAWL_MEDIUM_MEMORY, .large_every = large_every});
  }
}

TEST(WhileWritten, EachIsOneStateOfAFileThatIsUnmappedAndMappedAgain) {
  for (const std::uint64_t reopen_every : {7, 50}) {
    const TemporaryDirectory directory;
    take_snapshots_while_written(directory.path(), {.reopen_every = reopen_every});
  }
}

TEST(WhileWritten, TwoAtATime) {
  const TemporaryDirectory directory;
  const std::string path = directory / "file";
  const WriterOptions options{.large_every = 9};
  const Writer writer(path, options);
  writer.wait_for_more_than(0);
  const auto take = [&](const std::string& copy) {
    for (int i = 0; i < kSnapshots; ++i) {
      const std::uint64_t before = writer.acknowledged();
      ASSERT_EQ(::pawl_snapshot(path.c_str(), copy.c_str(), PAWL_SNAPSHOT_REPLACE), 0)
          << pawl_last_error();
      expect_state(copy, shape_of(options), before);
    }
  };
  std::thread other([&] { take(directory / "other"); });
  take(directory / "copy");
  other.join();
}

// What it left is copied as recovery would leave it, again and again; and the next writer goes on.
TEST(WhileWritten, TheWriterIsKilledInBetween) {
  const TemporaryDirectory directory;
  const std::string path = directory / "file";
  const std::string copy = directory / "copy";
  const WriterOptions options{.large_every = 11};
  for (int life = 0; life < 8; ++life) {
    Writer writer(path, options);
    writer.wait_for_more_than(writer.acknowledged() + static_cast<std::uint64_t>(life) * 3);
    std::atomic<bool> is_dead = false;
    std::thread killer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3 * life));
      writer.kill();
      is_dead = true;
    });
    for (bool last = false; !last;) {
      last = is_dead;
      const std::uint64_t before = writer.acknowledged();
      EXPECT_EQ(::pawl_snapshot(path.c_str(), copy.c_str(), PAWL_SNAPSHOT_REPLACE), 0)
          << pawl_last_error();
      expect_state(copy, shape_of(options), before);
      last = last || HasFailure();
    }
    killer.join();
    ASSERT_FALSE(HasFailure());
  }
}

// The name is always that of a whole snapshot, the kernel lets the writer drop its records again,
// and nothing is left lying about.
TEST(WhileWritten, SnapshotsAreKilledInBetween) {
  const TemporaryDirectory directory;
  const std::string path = directory / "file";
  const std::string copy = directory / "copy";
  const WriterOptions options{.large_every = 5};
  Writer writer(path, options);
  writer.wait_for_more_than(0);
  ASSERT_EQ(::pawl_snapshot(path.c_str(), copy.c_str(), 0), 0) << pawl_last_error();
  for (int i = 0; i < 40; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) {
        if (::pawl_snapshot(path.c_str(), copy.c_str(), PAWL_SNAPSHOT_REPLACE) != 0) ::_exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 * i));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "a snapshot failed";
    expect_state(copy, shape_of(options), 1);
    ASSERT_FALSE(HasFailure());
  }
  writer.wait_for_more_than(writer.acknowledged() + 20);
  // Nobody holds the records any more.
  EXPECT_LE(std::filesystem::file_size(path + ".pawl"), 64u << 20);
}

// Reads the file at `path` into the page cache and asks for its extents, as cp, a backup and
// filefrag do, until it is killed.
[[noreturn]] void read_again_and_again(const std::string& path) {
  constexpr std::size_t kExtents = 64;
  alignas(fiemap) std::array<std::byte, sizeof(fiemap) + kExtents * sizeof(fiemap_extent)> extents;
  std::vector<char> bytes(1 << 16);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  for (off_t at = 0;; at += static_cast<off_t>(bytes.size())) {
    if (::pread(file.get(), bytes.data(), bytes.size(), at) <= 0) at = 0;
    extents = {};
    auto* const asked = reinterpret_cast<fiemap*>(extents.data());
    asked->fm_length = ~std::uint64_t{0};
    asked->fm_extent_count = kExtents;
    ::ioctl(file.get(), FS_IOC_FIEMAP, asked);
  }
}

// btrfs answers the flush after a write past its page cache with EIO where a reader kept the pages
// from being dropped.
TEST(WhileWritten, WhoReadsTheJournalFailsNoCommit) {
  const char* const scratch = std::getenv("PAWL_TEST_DIR");
  FileSystems systems(scratch != nullptr ? scratch : ".");
  for (const char* kind : {"ext4", "xfs", "btrfs"}) systems.make(kind);
  if (systems.places().empty()) GTEST_SKIP() << "no file system can be made here";
  for (const Place& place : systems.places()) {
    SCOPED_TRACE(place.file_system);
    const std::string path = place.directory + "/file";
    const Writer writer(path, {});
    writer.wait_for_more_than(0);
    std::vector<pid_t> readers;
    for (int i = 0; i < 2; ++i) {
      readers.push_back(::fork());
      if (readers.back() == 0) read_again_and_again(path + ".pawl");
    }
    bool goes_on = true;
    for (int i = 0; i < 300 && goes_on; ++i)
      goes_on = writer.wait_for_more_than(writer.acknowledged());
    EXPECT_TRUE(goes_on) << "a commit failed";
    for (const pid_t reader : readers) {
      ::kill(reader, SIGKILL);
      ::waitpid(reader, nullptr, 0);
    }
  }
}

// With shared blocks where the file system has them, with a journal that finds no room to grow, and
// where blocks are smaller than pages.
TEST(WhileWritten, EachIsOneStateOnEveryFileSystem) {
  const char* const scratch = std::getenv("PAWL_TEST_DIR");
  FileSystems systems(scratch != nullptr ? scratch : ".");
  int made = 0;
  for (const std::string& kind : FileSystems::kinds()) made += systems.make(kind) ? 1 : 0;
  for (const std::string& reason : systems.left_out()) std::puts(("left out: " + reason).c_str());
  if (made == 0) GTEST_SKIP() << "no file system can be made here";
  for (const Place& place : systems.places()) {
    SCOPED_TRACE(place.file_system);
    const bool is_small = place.file_system == "tmpfs";
    take_snapshots_while_written(place.directory,
                                 {.journal_bytes = 128 << 10, .large_every = is_small ? 0u : 10u},
                                 is_small);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace pawl::test

int main(int argc, char** argv) {
  pawl::test::be_a_writer_if_asked(argc, argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
