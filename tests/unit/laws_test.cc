// The laws, one by one.  Each test fails when its law is broken.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <thread>

#include <gtest/gtest.h>

#include "journal/format.h"
#include "journal/reader.h"
#include "mapping/group.h"
#include "support/loop_file_system.h"
#include "support/open_mapping.h"
#include "support/temporary_directory.h"

namespace pawl {
namespace {

using test::Act;
using test::Event;
using test::LoopFileSystem;
using test::Opened;
using test::options_for;
using test::read_file;
using test::Watch;
using test::Which;
using test::write_file;

constexpr auto kAsync = ApplyChoice::async;
constexpr auto kEager = ApplyChoice::eager;

struct File {
  explicit File(std::size_t pages = 8, char fill = 'a') {
    write_file(path, std::string(pages * kPageBytes, fill));
  }
  std::string journal() const { return path + ".pawl"; }
  std::string content() const { return read_file(path); }
  test::TemporaryDirectory directory;
  std::string path = directory / "file";
};

std::vector<Event> of_record_area(const std::vector<Event>& events) {
  std::vector<Event> kept;
  for (const Event& event : events) {
    const bool header = event.which == Which::journal && event.act == Act::write &&
                        event.offset < journal::kAreaStart;
    if (event.act != Act::read && event.act != Act::reserve && !header) kept.push_back(event);
  }
  return kept;
}

TEST(Law01WriteAhead, TheBaseIsWrittenAfterTheRecordIsFlushed) {
  File file;
  auto watch = std::make_shared<Watch>();
  Opened mapping(file.path, options_for(kEager), watch);
  for (int i = 0; i < 5; ++i) {
    mapping.bytes()[i * 5000] = 'b';
    watch->take_events();
    ASSERT_TRUE(mapping.commit().ok());
    const auto events = of_record_area(watch->take_events());
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(events[0].which, Which::journal);
    EXPECT_EQ(events[0].act, Act::write);
    EXPECT_EQ(events[1], (Event{Which::journal, Act::flush, 0, 0}));
    EXPECT_EQ(events[2].which, Which::base);
    EXPECT_EQ(events[2].act, Act::write);
  }
}

TEST(Law01WriteAhead, ARecordThatIsNotDurableNeverReachesTheBase) {
  for (const ApplyChoice apply : {kEager, kAsync}) {
    for (const bool queued : {false, true}) {
      File file;
      const std::string before = file.content();
      auto watch = std::make_shared<Watch>();
      Options options = options_for(apply);
      options.apply_threshold_pages = 0;
      Opened mapping(file.path, options, watch);
      watch->judge_with([](const Event& event) {
        return event.which == Which::journal && event.act == Act::flush
                   ? Status::failure(EIO, "made up")
                   : Status{};
      });
      std::memset(mapping.bytes(), 'b', 3 * kPageBytes);
      if (queued) {
        [[maybe_unused]] const Status taken =
            mapping->commit_async(mapping.bytes(), kPageBytes * 8);
        EXPECT_FALSE(mapping->wait().ok());
      } else {
        EXPECT_FALSE(mapping.commit().ok());
      }
      EXPECT_FALSE(mapping->close().ok());
      mapping.crash();
      EXPECT_TRUE(file.content() == before);
    }
  }
}

TEST(Law01WriteAhead, TheKernelNeverWritesTheWorkingViewBack) {
  File file;
  const std::string before = file.content();
  Opened mapping(file.path, options_for(kAsync));
  std::memset(mapping.bytes(), 'b', 8 * kPageBytes);
  ASSERT_EQ(::msync(mapping.bytes(), 8 * kPageBytes, MS_SYNC), 0);
  ::sync();
  EXPECT_TRUE(file.content() == before);
}

TEST(Law01WriteAhead, RecordsAreDroppedAfterTheBaseIsFlushed) {
  File file;
  auto watch = std::make_shared<Watch>();
  Opened mapping(file.path, options_for(kAsync), watch);
  std::memset(mapping.bytes(), 'b', 3 * kPageBytes);
  ASSERT_TRUE(mapping.commit().ok());
  watch->take_events();
  ASSERT_TRUE(mapping->close().ok());
  bool written = false;
  bool flushed = false;
  bool dropped = false;
  for (const Event& event : watch->take_events()) {
    if (event.which == Which::base && event.act == Act::write) {
      written = true;
      flushed = false;
    }
    if (event.which == Which::base && event.act == Act::flush) flushed = true;
    if (event.which == Which::journal && event.act == Act::write) {
      EXPECT_TRUE(written && flushed) << "the header let go of records that the base does not hold";
      dropped = true;
    }
  }
  EXPECT_TRUE(dropped);
}

TEST(Law02OneWriteOneFlush, ACommitWaitsForNothingElse) {
  File file;
  auto watch = std::make_shared<Watch>();
  Opened mapping(file.path, options_for(kAsync), watch);
  for (const std::size_t pages : {1, 3, 8}) {
    for (std::size_t page = 0; page < pages; ++page) mapping.bytes()[page * kPageBytes + 70] += 1;
    watch->take_events();
    ASSERT_TRUE(mapping.commit().ok());
    const auto events = of_record_area(watch->take_events());
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(events[0].act, Act::write);
    EXPECT_EQ(events[0].length, kPageBytes);
    EXPECT_EQ(events[1], (Event{Which::journal, Act::flush, 0, 0}));
  }
}

TEST(Law02OneWriteOneFlush, NothingToCommitWritesNothing) {
  File file;
  auto watch = std::make_shared<Watch>();
  Opened mapping(file.path, options_for(kAsync), watch);
  mapping.bytes()[0] = 'a';  // what is there already
  watch->take_events();
  ASSERT_TRUE(mapping.commit().ok());
  EXPECT_TRUE(of_record_area(watch->take_events()).empty());
}

TEST(Law03AgainstTheCommittedImage, AByteChangedAndChangedBackIsLoggedTwice) {
  for (const TrackerChoice tracker : {TrackerChoice::automatic, TrackerChoice::fault}) {
    File file;
    {
      Opened mapping(file.path, options_for(kAsync, tracker));
      mapping.bytes()[100] = 'b';
      ASSERT_TRUE(mapping.commit().ok());
      mapping.bytes()[100] = 'a';
      ASSERT_TRUE(mapping.commit().ok());
      mapping.crash();
    }
    Opened again(file.path, options_for(kAsync, tracker));
    EXPECT_EQ(again.bytes()[100], 'a');
  }
}

TEST(Law03AgainstTheCommittedImage, RollbackGoesToTheCommittedImageAndNotToTheLaggingBase) {
  File file;
  Opened mapping(file.path, options_for(kAsync));
  mapping.bytes()[100] = 'b';
  ASSERT_TRUE(mapping.commit().ok());
  mapping.bytes()[100] = 'c';
  ASSERT_TRUE(mapping->roll_back(mapping.bytes(), kPageBytes).ok());
  EXPECT_EQ(mapping.bytes()[100], 'b');
}

std::string mark_of(const std::string& path) {
  char value[PATH_MAX + 200];
  const ssize_t length = ::getxattr(path.c_str(), "user.pawl", value, sizeof value);
  return length < 0 ? std::string{} : std::string(value, static_cast<std::size_t>(length));
}

// Crashes each recovery at its n-th write, flush or change of size, for every n, two deep.
void crash_recoveries(const File& file, const std::string& expected, int depth) {
  const std::string file_before = file.content();
  const std::string journal_before = read_file(file.journal());
  const std::string mark_before = mark_of(file.path);
  for (int fatal = 0;; ++fatal) {
    auto watch = std::make_shared<Watch>();
    int happened = 0;
    watch->judge_with([&](const Event& event) {
      if (event.act == Act::read) return Status{};
      return happened++ >= fatal ? Status::failure(EIO, "crashed here") : Status{};
    });
    auto opened = test::try_open(file.path, options_for(kAsync), watch);
    const bool whole = opened.ok();
    watch->judge_with({});
    if (whole) opened.value().reset();
    if (depth > 1 && !whole) crash_recoveries(file, expected, depth - 1);
    if (testing::Test::HasFailure()) return;
    {
      Opened mapping(file.path, options_for(kAsync));
      if (testing::Test::HasFailure()) return;
      ASSERT_TRUE(std::memcmp(mapping.bytes(), expected.data(), expected.size()) == 0)
          << "after a crash at " << fatal;
    }
    if (whole) return;
    // The next crash starts from the same state.
    std::string patched = file_before;
    const int base = ::open(file.path.c_str(), O_RDWR);
    const int side = ::open(file.journal().c_str(), O_RDWR);
    ASSERT_EQ(::ftruncate(base, static_cast<off_t>(file_before.size())), 0);
    ASSERT_EQ(::pwrite(base, file_before.data(), file_before.size(), 0),
              static_cast<ssize_t>(file_before.size()));
    ASSERT_EQ(::ftruncate(side, static_cast<off_t>(journal_before.size())), 0);
    ASSERT_EQ(::pwrite(side, journal_before.data(), journal_before.size(), 0),
              static_cast<ssize_t>(journal_before.size()));
    ::close(base);
    ::close(side);
    if (!mark_before.empty()) {
      ASSERT_EQ(
          ::setxattr(file.path.c_str(), "user.pawl", mark_before.data(), mark_before.size(), 0), 0);
    }
  }
}

TEST(Law04ReplayIsIdempotent, ACrashAtAnyPointOfAnyRecoveryIsHarmless) {
  File file;
  Options options = options_for(kAsync);
  options.journal_size_bytes = kJournalSizeMin;
  Opened mapping(file.path, options);
  for (int i = 0; i < 4; ++i) {
    mapping.bytes()[i * 4000] = static_cast<char>('b' + i);
    if (i == 2) {
      ASSERT_TRUE(mapping->truncate(5 * kPageBytes + 10).ok());
    }
    if (i == 3) {
      ASSERT_TRUE(mapping->truncate(9 * kPageBytes).ok());
    }
    ASSERT_TRUE(mapping.commit().ok());
  }
  const std::string expected(mapping.bytes(), 9 * kPageBytes);
  mapping.crash();
  crash_recoveries(file, expected, 2);
}

struct Committed {
  std::string first;   // after the first commit
  std::string second;  // after the second
};

Committed two_commits(const File& file) {
  Committed states;
  Opened mapping(file.path, options_for(kAsync));
  std::memset(mapping.bytes() + 10, 'b', 300);
  EXPECT_TRUE(mapping.commit().ok());
  states.first.assign(mapping.bytes(), 8 * kPageBytes);
  std::memset(mapping.bytes() + 9000, 'c', 300);
  EXPECT_TRUE(mapping.commit().ok());
  states.second.assign(mapping.bytes(), 8 * kPageBytes);
  mapping.crash();
  return states;
}

void flip(const std::string& path, std::uint64_t offset) {
  const int descriptor = ::open(path.c_str(), O_RDWR);
  char byte = 0;
  ASSERT_EQ(::pread(descriptor, &byte, 1, static_cast<off_t>(offset)), 1);
  byte = static_cast<char>(byte ^ 0x40);
  ASSERT_EQ(::pwrite(descriptor, &byte, 1, static_cast<off_t>(offset)), 1);
  ::close(descriptor);
}

TEST(Law05OnlyWholeRecords, ATornLastRecordIsNotAppliedAndAllBeforeItIs) {
  for (const std::uint64_t torn : {0, 8, 70, 71, 80, 100, 380}) {
    File file;
    const Committed states = two_commits(file);
    flip(file.journal(), journal::kAreaStart + journal::kBlockBytes + torn);
    Opened mapping(file.path, options_for(kAsync));
    EXPECT_EQ(std::memcmp(mapping.bytes(), states.first.data(), states.first.size()), 0) << torn;
  }
}

TEST(Law05OnlyWholeRecords, ADamagedRecordBeforeADurableOneIsRefusedAndAllIsLeftAsItWas) {
  File file;
  two_commits(file);
  flip(file.journal(), journal::kAreaStart + 100);
  const std::string base = file.content();
  const std::string side = read_file(file.journal());
  auto opened = test::try_open(file.path, options_for(kAsync));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().error_number(), EBADMSG);
  EXPECT_NE(opened.status().text().find("--accept-loss"), std::string::npos);
  EXPECT_TRUE(file.content() == base);
  EXPECT_TRUE(read_file(file.journal()) == side);
}

TEST(Law05OnlyWholeRecords, AForeignJournalIsRefusedAndAllIsLeftAsItWas) {
  File file;
  File other;
  two_commits(file);
  two_commits(other);
  const std::string foreign = read_file(other.journal());
  write_file(file.journal(), foreign);
  const std::string base = file.content();
  auto opened = test::try_open(file.path, options_for(kAsync));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().error_number(), EBADMSG);
  EXPECT_NE(opened.status().text().find("another file"), std::string::npos);
  EXPECT_TRUE(file.content() == base);
  EXPECT_TRUE(read_file(file.journal()) == foreign);
}

TEST(Law05OnlyWholeRecords, ARecordOfAnEarlierRunIsStale) {
  File file;
  two_commits(file);
  Options options = options_for(kAsync);
  {
    Opened mapping(file.path, options);
    mapping.bytes()[0] = 'z';
    ASSERT_TRUE(mapping.commit().ok());
    mapping.crash();
  }
  // One record of this run stands where the first of the earlier run stood; the second still does.
  Opened mapping(file.path, options);
  EXPECT_EQ(mapping.bytes()[0], 'z');
}

TEST(Law06SizeIsState, GrowthAndShrinkageCommitWithTheRecord) {
  File file;
  {
    Opened mapping(file.path, options_for(kAsync));
    ASSERT_TRUE(mapping->truncate(20 * kPageBytes).ok());
    mapping.bytes()[19 * kPageBytes] = 'n';
    EXPECT_EQ(file.content().size(), 8 * kPageBytes);
    mapping.crash();
  }
  EXPECT_EQ(file.content().size(), 8 * kPageBytes);
  {
    Opened mapping(file.path, options_for(kAsync));
    EXPECT_EQ(mapping->size(), 8 * kPageBytes);
    ASSERT_TRUE(mapping->truncate(20 * kPageBytes).ok());
    mapping.bytes()[19 * kPageBytes] = 'n';
    ASSERT_TRUE(mapping.commit().ok());
    mapping.crash();
  }
  {
    Opened mapping(file.path, options_for(kAsync));
    EXPECT_EQ(mapping->size(), 20 * kPageBytes);
    EXPECT_EQ(mapping.bytes()[19 * kPageBytes], 'n');
  }
}

TEST(Law06SizeIsState, AShrinkTakesNoCommittedBytesBeforeItIsCommitted) {
  for (const ApplyChoice apply : {kAsync, kEager}) {
    File file;
    const std::string before = file.content();
    {
      Opened mapping(file.path, options_for(apply));
      ASSERT_TRUE(mapping->truncate(100).ok());
      EXPECT_EQ(mapping->size(), 100u);
      EXPECT_TRUE(file.content() == before);
      mapping.crash();
    }
    EXPECT_TRUE(file.content() == before);
    {
      Opened mapping(file.path, options_for(apply));
      ASSERT_TRUE(mapping->truncate(100).ok());
      ASSERT_TRUE(mapping->truncate(2 * kPageBytes).ok());
      ASSERT_TRUE(mapping.commit().ok());
      mapping.crash();
    }
    Opened mapping(file.path, options_for(apply));
    EXPECT_EQ(mapping->size(), 2 * kPageBytes);
    EXPECT_EQ(mapping.bytes()[99], 'a');
    EXPECT_EQ(mapping.bytes()[100], '\0');
    EXPECT_EQ(mapping.bytes()[5000], '\0');
  }
}

TEST(Law07SpaceFirst, AFullDiskLeavesMemoryAndFileIntactAndARetrySucceeds) {
  File file(1);
  auto watch = std::make_shared<Watch>();
  Opened mapping(file.path, options_for(kAsync), watch);
  ASSERT_TRUE(mapping->truncate(10 * kPageBytes).ok());
  std::memset(mapping.bytes(), 'n', 10 * kPageBytes);
  watch->judge_with([](const Event& event) {
    return event.which == Which::base && event.act == Act::reserve ? Status::failure(ENOSPC, "full")
                                                                   : Status{};
  });
  const Status refused = mapping.commit();
  EXPECT_EQ(refused.error_number(), ENOSPC);
  EXPECT_EQ(mapping.bytes()[9 * kPageBytes], 'n');
  watch->judge_with({});
  ASSERT_TRUE(mapping.commit().ok());
  mapping.crash();
  Opened again(file.path, options_for(kAsync));
  EXPECT_EQ(again->size(), 10 * kPageBytes);
  EXPECT_EQ(again.bytes()[9 * kPageBytes], 'n');
}

TEST(Law07SpaceFirst, WhatIsReservedIsWhatIsLogged) {
  File file(1);
  auto watch = std::make_shared<Watch>();
  Opened mapping(file.path, options_for(kEager), watch);
  ASSERT_TRUE(mapping->truncate(10 * kPageBytes).ok());
  mapping.bytes()[7 * kPageBytes + 3] = 'n';
  watch->take_events();
  ASSERT_TRUE(mapping.commit().ok());
  bool reserved = false;
  for (const Event& event : watch->take_events()) {
    if (event.which == Which::base && event.act == Act::reserve && event.offset <= 7 * kPageBytes &&
        event.offset + event.length >= 8 * kPageBytes)
      reserved = true;
    if (event.which == Which::journal && event.act == Act::write) {
      EXPECT_TRUE(reserved);
    }
  }
}

TEST(Law07SpaceFirst, AFileThatIsFilledPageByPageAsksSeldom) {
  constexpr int kPages = 60;
  File file(1);
  auto watch = std::make_shared<Watch>();
  Opened mapping(file.path, options_for(kEager), watch);
  ASSERT_TRUE(mapping->truncate((kPages + 1) * kPageBytes).ok());
  ASSERT_TRUE(mapping.commit().ok());
  watch->take_events();
  for (int page = 1; page <= kPages; ++page) {
    mapping.bytes()[page * kPageBytes] = 'n';
    ASSERT_TRUE(mapping.commit().ok());
  }
  int asked = 0;
  for (const Event& event : watch->take_events())
    asked += event.which == Which::base && event.act == Act::reserve ? 1 : 0;
  EXPECT_GE(asked, 1);
  EXPECT_LE(asked, 10);
}

TEST(Law07SpaceFirst, WhereThereIsNoRoomForMoreWhatIsNeededIsTakenAlone) {
  File file(1);
  auto watch = std::make_shared<Watch>();
  Opened mapping(file.path, options_for(kEager), watch);
  ASSERT_TRUE(mapping->truncate(10 * kPageBytes).ok());
  ASSERT_TRUE(mapping.commit().ok());
  watch->judge_with([](const Event& event) {
    return event.which == Which::base && event.act == Act::reserve && event.length > kPageBytes
               ? Status::failure(ENOSPC, "full")
               : Status{};
  });
  for (int page = 1; page < 9; ++page) {
    mapping.bytes()[page * kPageBytes] = 'n';
    ASSERT_TRUE(mapping.commit().ok());
  }
}

// A file system so small that it is soon full.
class SmallFileSystem {
 public:
  SmallFileSystem() {
    ::mkdir(path_.c_str(), 0755);
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=4m") == 0;
  }
  ~SmallFileSystem() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  test::TemporaryDirectory directory_;
  std::string path_ = directory_ / "small";
  bool mounted_ = false;
};

constexpr const char* kNoLoopDevice = "to mount a loop device takes root, and the tools of ";

bool share_blocks(const std::string& path, const std::string& copy) {
  const int from = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int to = ::open(copy.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const bool is_shared = ::ioctl(to, FICLONE, from) == 0;
  ::close(from);
  ::close(to);
  return is_shared;
}

constexpr std::size_t kSharedPages = 64;

// Acknowledges what can be applied, refuses the rest, and is recovered while the disk is full.
void commit_on_a_full_disk(const LoopFileSystem& disk, bool is_shared) {
  const std::string path = disk / "file";
  write_file(path, std::string(kSharedPages * kPageBytes, 'a'));
  Options options = options_for(kAsync);
  options.journal_size_bytes = 1 << 20;
  std::string expected;
  {
    Opened mapping(path, options);
    mapping.bytes()[0] = 'b';
    ASSERT_TRUE(mapping.commit().ok());
    if (is_shared) {
      ASSERT_TRUE(share_blocks(path, disk / "copy"));
    }
    // Between the copy and the full disk there is still space for this one.
    mapping.bytes()[kPageBytes] = 'c';
    const Status committed = mapping.commit();
    ASSERT_TRUE(committed.ok()) << committed.text();
    disk.fill();
    expected.assign(mapping.bytes(), kSharedPages * kPageBytes);
    for (std::size_t page = 0; page < kSharedPages; ++page) {
      mapping.bytes()[page * kPageBytes + 9] = 'd';
      const Status status = mapping->commit(mapping.bytes(), kSharedPages * kPageBytes);
      if (status.ok()) expected.assign(mapping.bytes(), kSharedPages * kPageBytes);
      EXPECT_TRUE(status.ok() || status.error_number() == ENOSPC) << status.text();
    }
    // Where nothing is shared the blocks are the file's own.
    EXPECT_EQ(expected[(kSharedPages - 1) * kPageBytes + 9], is_shared ? 'a' : 'd');
  }
  auto medium = open_block_medium(path, false);
  ASSERT_TRUE(medium.ok()) << medium.status().text();
  const auto recovered = recover(*medium.value());
  ASSERT_TRUE(recovered.ok()) << recovered.status().text();
  EXPECT_TRUE(read_file(path) == expected);
  EXPECT_NE(::access((path + kJournalSuffix).c_str(), F_OK), 0);
}

TEST(Law07SpaceFirst, WhereACopySharesTheBlocksAndTheDiskIsFull) {
  const LoopFileSystem disk("xfs", std::uint64_t{320} << 20);
  if (!disk.is_mounted()) GTEST_SKIP() << kNoLoopDevice << "XFS";
  commit_on_a_full_disk(disk, true);
  disk.empty();
  {
    // And with space again all goes on, and what is closed is just a file.
    Opened mapping(disk / "file", options_for(kAsync));
    std::memset(mapping.bytes(), 'e', kSharedPages * kPageBytes);
    ASSERT_TRUE(mapping.commit().ok());
    ASSERT_TRUE(mapping->close().ok());
  }
  EXPECT_EQ(read_file(disk / "file"), std::string(kSharedPages * kPageBytes, 'e'));
  EXPECT_EQ(read_file(disk / "copy")[kPageBytes], 'a');
}

void expect_recovery(const std::string& path) {
  auto medium = open_block_medium(path, false);
  ASSERT_TRUE(medium.ok()) << medium.status().text();
  const auto recovered = recover(*medium.value());
  EXPECT_TRUE(recovered.ok()) << path << ": " << recovered.status().text();
}

// The journal had the rights that the file had before, and was not believed: more users could write
// it than the file.
TEST(Law12TheFileIsJustTheFile, AJournalHadItsEarlierRightsBehindALossOfPower) {
  for (const bool is_open : {true, false}) {
    SCOPED_TRACE(is_open ? "changed while the file is open" : "changed before it is opened again");
    LoopFileSystem disk("ext4", std::uint64_t{32} << 20);
    if (!disk.is_mounted()) GTEST_SKIP() << kNoLoopDevice << "ext4";
    const std::string path = disk / "file";
    write_file(path, std::string(kPageBytes, 'a'));
    const auto change_rights = [&] {
      // It is the user's to make that durable.
      const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (::fchmod(file, 0600) != 0 || ::fsync(file) != 0) ::_exit(3);
      ::close(file);
    };
    const auto commit_and_die = [&](char value, bool changes_rights) {
      const pid_t child = ::fork();
      if (child == 0) {
        Opened mapping(path, options_for(kAsync));
        if (changes_rights) change_rights();
        mapping.bytes()[0] = value;
        ::_exit(mapping.commit().ok() ? 0 : 4);
      }
      int status = 0;
      EXPECT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    };
    // A journal that more users may write than the file is not opened.
    ASSERT_EQ(::chmod(path.c_str(), is_open ? 0666 : 0644), 0);
    commit_and_die('b', is_open);
    if (!is_open) {
      change_rights();
      commit_and_die('c', false);
    }
    if (!disk.cut_power()) GTEST_SKIP() << "this kernel does not shut ext4 down";
    struct stat journal{};
    ASSERT_EQ(::stat((path + kJournalSuffix).c_str(), &journal), 0);
    EXPECT_EQ(journal.st_mode & 0777, 0600u);
    expect_recovery(path);
    EXPECT_EQ(read_file(path)[0], is_open ? 'b' : 'c');
  }
}

// A copy is made between two commits, of which the second changes nothing that the first did.
TEST(Law07SpaceFirst, ACommitBehindACopyGivesTheEarlierOnesTheirSpaceBack) {
  const LoopFileSystem disk("xfs", std::uint64_t{320} << 20);
  if (!disk.is_mounted()) GTEST_SKIP() << kNoLoopDevice << "XFS";
  const std::string path = disk / "file";
  constexpr std::size_t kSize = kSharedPages * kPageBytes;
  constexpr std::size_t kContent = 60 * kPageBytes;  // the rest is a hole
  struct {
    const char* name;
    std::size_t size;
    std::function<Status(Opened&)> first;
    std::function<Status(Opened&)> second;
  } cases[] = {
      {"a page in a hole", kSize,
       [](Opened& mapping) {
         mapping.bytes()[5 * kPageBytes] = 'b';
         return mapping.commit();
       },
       [](Opened& mapping) {
         mapping.bytes()[kContent] = 'c';
         return mapping.commit();
       }},
      {"a size alone", kSize - kPageBytes,
       [](Opened& mapping) {
         mapping.bytes()[5 * kPageBytes] = 'b';
         return mapping.commit();
       },
       [](Opened& mapping) {
         PAWL_TRY(mapping->truncate(kSize));
         return mapping->commit_all();
       }},
      {"a growth that waits", kContent - 100,
       [](Opened& mapping) {
         PAWL_TRY(mapping->truncate(kSize));
         return mapping->commit_all();
       },
       [](Opened& mapping) {
         mapping.bytes()[0] = 'c';
         return mapping.commit();
       }},
  };
  for (const auto& [name, size, first, second] : cases) {
    SCOPED_TRACE(name);
    write_file(path, std::string(std::min(size, kContent), 'a'));
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(size)), 0);
    ::unlink((disk / "copy").c_str());
    std::string expected;
    {
      Opened mapping(path, options_for(kAsync));
      ASSERT_TRUE(first(mapping).ok());
      ASSERT_TRUE(share_blocks(path, disk / "copy"));
      const Status committed = second(mapping);
      ASSERT_TRUE(committed.ok()) << committed.text();
      expected.assign(mapping.bytes(), mapping->size());
      disk.fill();
    }
    expect_recovery(path);
    EXPECT_TRUE(read_file(path) == expected);
    disk.empty();
  }
}

// The same of many pieces, of which few are asked for at a time.
TEST(Law07SpaceFirst, ACommitBehindACopyOfAFileInManyPiecesGivesTheEarlierOnesTheirSpaceBack) {
  const LoopFileSystem disk("xfs", std::uint64_t{320} << 20);
  if (!disk.is_mounted()) GTEST_SKIP() << kNoLoopDevice << "XFS";
  const std::string path = disk / "file";
  {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(::ftruncate(file, kSharedPages * kPageBytes), 0);
    // Every other page is a hole.
    for (std::size_t page = 0; page < kSharedPages; page += 2)
      ASSERT_EQ(::pwrite(file, "a", 1, static_cast<off_t>(page * kPageBytes)), 1);
    ::fsync(file);
    ::close(file);
  }
  {
    Opened mapping(path, options_for(kAsync));
    for (const std::size_t page : {2, 62}) mapping.bytes()[page * kPageBytes] = 'b';
    ASSERT_TRUE(mapping.commit().ok());
    ASSERT_TRUE(share_blocks(path, disk / "copy"));
    mapping.bytes()[33 * kPageBytes] = 'c';
    const Status committed = mapping.commit();
    ASSERT_TRUE(committed.ok()) << committed.text();
    disk.fill();
  }
  expect_recovery(path);
  EXPECT_EQ(read_file(path)[62 * kPageBytes], 'b');
}

// The end of the file lay in a block that is shared, though not in the page behind it.
TEST(Law07SpaceFirst, AnEndThatIsNoneOfALargeBlockHadNoSpaceWhereACopySharesIt) {
  constexpr std::size_t kBlock = 16384;
  const LoopFileSystem disk("xfs", std::uint64_t{320} << 20, "-b size=16384");
  if (!disk.is_mounted())
    GTEST_SKIP() << kNoLoopDevice
                 << "XFS, and a kernel that knows blocks larger than a page (6.12)";
  const std::string path = disk / "file";
  struct {
    const char* name;
    std::size_t size;
    std::function<Status(Opened&)> change;
  } cases[] = {
      {"cut", 4 * kBlock, [](Opened& mapping) { return mapping->truncate(kBlock + kPageBytes); }},
      {"grown", kBlock + kPageBytes,
       [](Opened& mapping) { return mapping->truncate(2 * kBlock - kPageBytes); }},
      {"grown by a page with content", kBlock + kPageBytes,
       [](Opened& mapping) {
         PAWL_TRY(mapping->truncate(kBlock + 2 * kPageBytes));
         mapping.bytes()[kBlock + kPageBytes] = 'b';
         return Status{};
       }},
  };
  for (const auto& [name, size, change] : cases) {
    for (const bool is_full_before : {false, true}) {
      SCOPED_TRACE(std::string(name) + (is_full_before ? ", full before" : ", full after"));
      ::unlink((disk / "copy").c_str());
      write_file(path, std::string(size, 'a'));
      std::string expected(size, 'a');
      {
        Opened mapping(path, options_for(kAsync));
        ASSERT_TRUE(share_blocks(path, disk / "copy"));
        if (is_full_before) disk.fill();
        Status changed = change(mapping);
        if (changed.ok()) changed = mapping->commit_all();
        EXPECT_EQ(changed.error_number(), is_full_before ? ENOSPC : 0) << changed.text();
        if (changed.ok()) expected.assign(mapping.bytes(), mapping->size());
        if (!is_full_before) disk.fill();
      }
      expect_recovery(path);
      EXPECT_TRUE(read_file(path) == expected) << read_file(path).size();
      disk.empty();
    }
  }
}

// Files of one group on a file system of their own.
class GroupOnDisk {
 public:
  GroupOnDisk(const LoopFileSystem& disk, std::size_t files, std::size_t pages)
      : length_(pages * kPageBytes) {
    write_file(disk / "group", "");
    for (std::size_t i = 0; i < files; ++i) write_file(path(disk, i), std::string(length_, 'a'));
    Options options = options_for(kAsync);
    options.journal_size_bytes = std::uint64_t{16} << 20;
    group_ = Group::open(disk / "group", options).value();
    for (std::size_t i = 0; i < files; ++i) {
      auto joined = Group::join(group_, std::move(open_block_medium(path(disk, i), false).value()));
      mappings_.push_back(std::move(joined.value()));
      bytes_.push_back(
          mappings_[i]->map_window(nullptr, length_, PROT_READ | PROT_WRITE, 0, 0).value());
    }
  }
  static std::string path(const LoopFileSystem& disk, std::size_t file) {
    return disk / ("file" + std::to_string(file));
  }
  char* bytes(std::size_t file) const { return bytes_[file]; }
  Status commit_file(std::size_t file) const {
    return mappings_[file]->commit(bytes_[file], length_);
  }
  Group& group() const { return *group_; }

 private:
  const std::size_t length_;
  std::shared_ptr<Group> group_;
  std::vector<std::unique_ptr<Mapping>> mappings_;
  std::vector<char*> bytes_;
};

TEST(Law07SpaceFirst, ACommitOfOneFileGivesTheOthersOfItsGroupTheirSpaceBack) {
  const LoopFileSystem disk("xfs", std::uint64_t{320} << 20);
  if (!disk.is_mounted()) GTEST_SKIP() << kNoLoopDevice << "XFS";
  for (const bool is_of_all : {false, true}) {
    {
      const GroupOnDisk files(disk, 2, kSharedPages);
      std::memset(files.bytes(0), 'b', kSharedPages * kPageBytes);
      ASSERT_TRUE(files.group().commit().ok());
      ASSERT_TRUE(share_blocks(GroupOnDisk::path(disk, 0), disk / "copy"));
      files.bytes(1)[0] = 'c';
      const Status committed = is_of_all ? files.group().commit() : files.commit_file(1);
      ASSERT_TRUE(committed.ok()) << committed.text();
      // To remove a file's mark XFS wants some, too.
      disk.fill(kSharedPages * kPageBytes / 2);
    }
    expect_recovery(disk / "group");
    EXPECT_EQ(read_file(GroupOnDisk::path(disk, 0))[0], 'b');
    EXPECT_EQ(read_file(GroupOnDisk::path(disk, 1))[0], 'c');
    disk.empty();
  }
}

// A cut or a growth within a block zeroes the rest of it.
TEST(Law07SpaceFirst, ASizeWithinABlockThatACopySharesTakesANewOne) {
  const LoopFileSystem disk("xfs", std::uint64_t{320} << 20);
  if (!disk.is_mounted()) GTEST_SKIP() << kNoLoopDevice << "XFS";
  const std::string path = disk / "file";
  const std::string copy = disk / "copy";
  for (const std::size_t size : {kPageBytes + 50, kPageBytes + 200}) {
    write_file(path, std::string(kPageBytes + 100, 'a'));
    {
      Opened mapping(path, options_for(kAsync));
      mapping.bytes()[kPageBytes] = 'b';
      ASSERT_TRUE(mapping.commit().ok());
      ASSERT_TRUE(share_blocks(path, copy));
      disk.fill();
      ASSERT_TRUE(mapping->truncate(size).ok());
      const Status committed = mapping->commit_all();
      EXPECT_EQ(committed.error_number(), ENOSPC) << size << ": " << committed.text();
      disk.empty();
      const Status retried = mapping->commit_all();
      EXPECT_TRUE(retried.ok()) << retried.text();
      const Status closed = mapping->close();
      EXPECT_TRUE(closed.ok()) << closed.text();
    }
    EXPECT_EQ(read_file(path).size(), size);
  }
}

// What `disk` refuses while it is full is committed once it is not.
void expect_no_space_and_then_a_commit(const LoopFileSystem& disk, Opened& mapping) {
  disk.fill();
  mapping.bytes()[0] = 'n';
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Status refused = mapping.commit();
    EXPECT_EQ(refused.error_number(), ENOSPC) << refused.text();
  }
  disk.empty();
  const Status retried = mapping.commit();
  EXPECT_TRUE(retried.ok()) << retried.text();
  const Status closed = mapping->close();
  EXPECT_TRUE(closed.ok()) << closed.text();
  EXPECT_EQ(read_file(disk / "file")[0], 'n');
}

TEST(Law07SpaceFirst, AJournalThatCameToShareItsBlocksGetsItsOwn) {
  const LoopFileSystem disk("xfs", std::uint64_t{320} << 20);
  if (!disk.is_mounted()) GTEST_SKIP() << kNoLoopDevice << "XFS";
  const std::string path = disk / "file";
  write_file(path, std::string(kSharedPages * kPageBytes, 'a'));
  Options options = options_for(kAsync);
  options.journal_size_bytes = 1 << 20;
  {
    Opened mapping(path, options);
    mapping.bytes()[0] = 'b';
    ASSERT_TRUE(mapping.commit().ok());
    ASSERT_TRUE(share_blocks(path + kJournalSuffix, disk / "copy"));
    // The journal alone, so that nothing but its own blocks can be missing.
    expect_no_space_and_then_a_commit(disk, mapping);
  }
  {
    Opened mapping(path, options);
    ASSERT_TRUE(mapping.commit().ok());
  }
  // Copied as a crash left it; what opens it takes its blocks while there are some.
  ASSERT_TRUE(share_blocks(path + kJournalSuffix, disk / "copy"));
  Opened mapping(path, options);
  disk.fill();
  for (std::size_t i = 0; i < kSharedPages; ++i) {
    mapping.bytes()[i * kPageBytes] = 'c';
    const Status committed = mapping.commit();
    ASSERT_TRUE(committed.ok()) << committed.text();
  }
  ASSERT_TRUE(mapping->close().ok());
  EXPECT_EQ(read_file(path)[0], 'c');
}

// A header is written behind the commits, too.
TEST(Law07SpaceFirst, AHeaderOfAJournalThatCameToShareItsBlocksFailsWithNoSpace) {
  const LoopFileSystem disk("xfs", std::uint64_t{320} << 20);
  if (!disk.is_mounted()) GTEST_SKIP() << kNoLoopDevice << "XFS";
  const std::string path = disk / "file";
  write_file(path, std::string(kSharedPages * kPageBytes, 'a'));
  {
    Opened mapping(path, options_for(kAsync));
    mapping.bytes()[0] = 'b';
    ASSERT_TRUE(mapping.commit().ok());
    ASSERT_TRUE(share_blocks(path + kJournalSuffix, disk / "copy"));
    disk.fill();
    const Status closed = mapping->close();
    EXPECT_EQ(closed.error_number(), ENOSPC) << closed.text();
  }
  disk.empty();
  Opened mapping(path, options_for(kAsync));
  EXPECT_EQ(mapping.bytes()[0], 'b');
  ASSERT_TRUE(mapping->close().ok());
}

TEST(Law07SpaceFirst, AJournalWithHolesIsWrittenAnew) {
  const LoopFileSystem disk("ext4", std::uint64_t{32} << 20);
  if (!disk.is_mounted()) GTEST_SKIP() << kNoLoopDevice << "ext4";
  const std::string path = disk / "file";
  const std::string journal = path + kJournalSuffix;
  write_file(path, std::string(kSharedPages * kPageBytes, 'a'));
  const Options options = options_for(kAsync);
  {
    Opened mapping(path, options);
    mapping.bytes()[0] = 'b';
    ASSERT_TRUE(mapping.commit().ok());
  }
  // As a copy that left the zeros out (cp --sparse=always).
  const int left = ::open(journal.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::fallocate(left, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 16 << 10, 32 << 10), 0);
  Opened mapping(path, options);
  EXPECT_EQ(mapping.bytes()[0], 'b');
  EXPECT_EQ(::lseek(left, 0, SEEK_HOLE), kJournalSizeMin)
      << "a commit's flush has metadata to write";
  ::close(left);
  disk.fill();
  for (std::size_t i = 0; i < kSharedPages; ++i) {
    mapping.bytes()[i * kPageBytes] = 'c';
    const Status committed = mapping.commit();
    ASSERT_TRUE(committed.ok()) << committed.text();
  }
  ASSERT_TRUE(mapping->close().ok());
}

TEST(Law07SpaceFirst, RecoveryAndCloseFinishOnAFullDisk) {
  for (const std::string type : {"ext4", "xfs"}) {
    const LoopFileSystem disk(type, std::uint64_t{type == "xfs" ? 320u : 32u} << 20);
    if (!disk.is_mounted()) GTEST_SKIP() << kNoLoopDevice << type;
    commit_on_a_full_disk(disk, false);
    disk.empty();
    Options options = options_for(kAsync);
    options.journal_size_bytes = 1 << 20;
    Opened mapping(disk / "file", options);
    mapping.bytes()[0] = 'f';
    disk.fill();
    ASSERT_TRUE(mapping.commit().ok());
    const Status closed = mapping->close();
    EXPECT_TRUE(closed.ok()) << type << ": " << closed.text();
    EXPECT_EQ(read_file(disk / "file")[0], 'f');
  }
}

// XFS keeps for itself what a file gives back: replayed to the letter, record by record, the file
// became shorter, and there was no space to make it longer again.
TEST(Law07SpaceFirst, RecoveryOfAFileThatBecameShorterAndLongerFinishesOnAFullDisk) {
  const LoopFileSystem disk("xfs", std::uint64_t{320} << 20);
  if (!disk.is_mounted()) GTEST_SKIP() << kNoLoopDevice << "XFS";
  const std::string path = disk / "file";
  for (const std::size_t last : {kSharedPages, kSharedPages - 3}) {
    write_file(path, std::string(kSharedPages * kPageBytes, 'a'));
    std::string expected;
    {
      Opened mapping(path, options_for(kEager));
      for (const std::size_t low : {std::size_t{40}, std::size_t{4}, std::size_t{30}}) {
        ASSERT_TRUE(mapping->truncate(low * kPageBytes + 7).ok());
        ASSERT_TRUE(mapping->truncate(last * kPageBytes).ok());
        std::memset(mapping.bytes() + (low + 2) * kPageBytes, 'b' + static_cast<int>(low % 8),
                    (last - low - 10) * kPageBytes);
        ASSERT_TRUE(mapping->commit_all().ok());
      }
      expected.assign(mapping.bytes(), last * kPageBytes);
      disk.fill();
    }
    expect_recovery(path);
    EXPECT_TRUE(read_file(path) == expected);
    disk.empty();
  }
}

TEST(Law07SpaceFirst, WhereEveryOverwriteTakesSpaceAndTheDiskIsFull) {
  const LoopFileSystem disk("btrfs", std::uint64_t{128} << 20);
  if (!disk.is_mounted()) GTEST_SKIP() << kNoLoopDevice << "btrfs";
  const std::string path = disk / "file";
  write_file(path, std::string(kSharedPages * kPageBytes, 'a'));
  Opened mapping(path, options_for(kAsync));
  disk.fill();
  mapping.bytes()[0] = 'b';
  EXPECT_EQ(mapping.commit().error_number(), ENOSPC);
  disk.empty();
  // Its space is free when the file system has committed that.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(::syncfs(file), 0);
  ::close(file);
  const Status retried = mapping.commit();
  EXPECT_TRUE(retried.ok()) << retried.text();
  ASSERT_TRUE(mapping->close().ok());
  EXPECT_EQ(read_file(path)[0], 'b');
}

// The window was gone, and could not be put back for want of the same space.
TEST(Law07SpaceFirst, AWindowThatCannotMoveOnAFullDiskStaysWhereItIs) {
  const LoopFileSystem disk("btrfs", std::uint64_t{128} << 20);
  if (!disk.is_mounted()) GTEST_SKIP() << kNoLoopDevice << "btrfs";
  const std::string path = disk / "file";
  constexpr std::size_t kSize = kSharedPages * kPageBytes;
  write_file(path, std::string(kSize, 'a'));
  Opened mapping(path, options_for(kAsync));
  std::memset(mapping.bytes(), 'b', kSize);
  ASSERT_TRUE(mapping.commit().ok());
  disk.fill();
  memory::LeftPlace left;
  const auto moved = mapping->remap_window(4 * kSize, true, nullptr, left);
  if (moved.ok()) GTEST_SKIP() << "there was space";
  EXPECT_EQ(moved.status().error_number(), ENOSPC) << moved.status().text();
  std::memset(mapping.bytes(), 'c', kSize);
  disk.empty();
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(::syncfs(file), 0);
  ::close(file);
  const Status committed = mapping.commit();
  EXPECT_TRUE(committed.ok()) << committed.text();
  ASSERT_TRUE(mapping->close().ok());
  EXPECT_EQ(read_file(path)[0], 'c');
}

// There is space for the record, and for each of the files alone.
TEST(Law07SpaceFirst, WhereEveryOverwriteTakesSpaceTheFilesOfAGroupNeedItTogether) {
  const LoopFileSystem disk("btrfs", std::uint64_t{160} << 20);
  if (!disk.is_mounted()) GTEST_SKIP() << kNoLoopDevice << "btrfs";
  constexpr std::size_t kFiles = 4;
  constexpr std::size_t kFileBytes = std::size_t{1} << 20;
  const std::string first = GroupOnDisk::path(disk, 0);
  {
    const GroupOnDisk files(disk, kFiles, kFileBytes / kPageBytes);
    disk.fill((kFiles + 3) * kFileBytes);
    for (std::size_t i = 0; i < kFiles; ++i) std::memset(files.bytes(i), 'b', kFileBytes);
    const Status refused = files.group().commit();
    EXPECT_EQ(refused.error_number(), ENOSPC) << refused.text();
    const Status committed = files.commit_file(0);
    EXPECT_TRUE(committed.ok()) << committed.text();
  }
  expect_recovery(disk / "group");
  EXPECT_EQ(read_file(first)[0], 'b');
}

// Although it is overwritten in place, as long as nothing shares its blocks.
TEST(Law07SpaceFirst, WhereACopySharesTheBlocksOfAFileWithoutCopyOnWrite) {
  const LoopFileSystem disk("btrfs", std::uint64_t{128} << 20);
  if (!disk.is_mounted()) GTEST_SKIP() << kNoLoopDevice << "btrfs";
  const int directory = ::open((disk / "").c_str(), O_RDONLY | O_CLOEXEC);
  int attributes = FS_NOCOW_FL;
  ASSERT_EQ(::ioctl(directory, FS_IOC_SETFLAGS, &attributes), 0);
  const std::string path = disk / "file";
  write_file(path, std::string(kSharedPages * kPageBytes, 'a'));
  Opened mapping(path, options_for(kAsync));
  mapping.bytes()[0] = 'b';
  ASSERT_TRUE(mapping.commit().ok());
  ASSERT_TRUE(share_blocks(path, disk / "copy"));
  disk.fill();
  mapping.bytes()[0] = 'c';
  const Status refused = mapping.commit();
  EXPECT_EQ(refused.error_number(), ENOSPC) << refused.text();
  disk.empty();
  // Its space is free when the file system has committed that.
  EXPECT_EQ(::syncfs(directory), 0);
  const Status retried = mapping.commit();
  EXPECT_TRUE(retried.ok()) << retried.text();
  ASSERT_TRUE(mapping->close().ok());
  EXPECT_EQ(read_file(path)[0], 'c');
  ::close(directory);
}

TEST(Law07SpaceFirst, OnAReallyFullDiskToo) {
  SmallFileSystem disk;
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs takes root";
  const std::string path = disk / "file";
  write_file(path, std::string(kPageBytes, 'a'));
  Options options = options_for(kAsync);
  options.journal_size_bytes = 256 << 10;
  auto opened = test::try_open(path, options);
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  Mapping& mapping = *opened.value();
  constexpr std::size_t kLength = 1024 * kPageBytes;
  auto window = mapping.map_window(nullptr, kLength, PROT_READ | PROT_WRITE, 0, 0);
  ASSERT_TRUE(window.ok());
  ASSERT_TRUE(mapping.truncate(kLength).ok());
  write_file(disk / "ballast", std::string(3 << 20, 'x'));
  std::memset(window.value(), 'n', 400 * kPageBytes);
  for (int attempt = 0; attempt < 3; ++attempt)
    EXPECT_EQ(mapping.commit_all().error_number(), ENOSPC);
  EXPECT_EQ(read_file(path), std::string(kPageBytes, 'a'));
  ASSERT_EQ(::unlink((disk / "ballast").c_str()), 0);
  std::memset(window.value() + 400 * kPageBytes, 'm', kPageBytes);
  const Status retried = mapping.commit(window.value(), 300 * kPageBytes);
  ASSERT_TRUE(retried.ok()) << retried.text();
  const Status closed = mapping.close();
  ASSERT_TRUE(closed.ok()) << closed.text();
  const std::string content = read_file(path);
  ASSERT_EQ(content.size(), kLength);
  EXPECT_EQ(content.substr(0, 300 * kPageBytes), std::string(300 * kPageBytes, 'n'));
  EXPECT_EQ(content[300 * kPageBytes], '\0');
}

// To load a hole takes space there, and where none is left raises SIGBUS.
TEST(Law07SpaceFirst, ACutWithinAHoleOfAFullDiskTakesNone) {
  SmallFileSystem disk;
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs takes root";
  const std::string path = disk / "file";
  write_file(path, "");
  ASSERT_EQ(::truncate(path.c_str(), 8 * kPageBytes), 0);
  Options options = options_for(kAsync);
  options.journal_size_bytes = 64 << 10;
  Opened mapping(path, options);
  ::close(::open((disk / "ballast").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  std::string ballast(1 << 16, 'x');
  while (!ballast.empty()) {
    const int filling = ::open((disk / "ballast").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    const ssize_t written = ::write(filling, ballast.data(), ballast.size());
    ::close(filling);
    if (written <= 0) ballast.resize(ballast.size() / 2);
  }
  const std::string word = "word";
  EXPECT_EQ(mapping->write(5 * kPageBytes + 7, std::as_bytes(std::span(word))).error_number(),
            ENOSPC);
  std::array<std::byte, 16> read{};
  EXPECT_TRUE(mapping->read(6 * kPageBytes, read).ok());
  const Status cut = mapping->truncate(5 * kPageBytes + 100);
  EXPECT_TRUE(cut.ok()) << cut.text();
  const Status committed = mapping.commit();
  EXPECT_TRUE(committed.ok()) << committed.text();
  const Status closed = mapping->close();
  EXPECT_TRUE(closed.ok()) << closed.text();
  EXPECT_EQ(read_file(path), std::string(5 * kPageBytes + 100, '\0'));
}

// RLIMIT_FSIZE, as long as this lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(std::uint64_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const struct rlimit limit{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0);
    sigset_t pending;
    ::sigpending(&pending);
    EXPECT_EQ(::sigismember(&pending, SIGXFSZ), 0);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  struct rlimit before_{};
};

void expect_past_limit(const Status& refused) {
  EXPECT_EQ(refused.error_number(), EFBIG) << refused.text();
  EXPECT_EQ(refused.code(), PAWL_ERROR_FILE_SIZE_LIMIT) << refused.text();
}

// SIGXFSZ would end this program.
TEST(Law07SpaceFirst, TheLimitOfAFilesSizeIsAnErrorAndNoSignal) {
  for (const bool is_blocked : {false, true}) {
    sigset_t only;
    ::sigemptyset(&only);
    ::sigaddset(&only, SIGXFSZ);
    if (is_blocked) ::pthread_sigmask(SIG_BLOCK, &only, nullptr);
    File file(60);
    Options options = options_for(kAsync);
    options.journal_size_bytes = 64 << 10;
    {
      const FileSizeLimit limit(options.journal_size_bytes - 1);
      expect_past_limit(test::try_open(file.path, options).status());
    }
    Opened mapping(file.path, options);
    mapping.bytes()[0] = 'b';
    {
      // Below the journal's end.
      const FileSizeLimit limit(options.journal_size_bytes / 2);
      expect_past_limit(mapping.commit());
    }
    ASSERT_TRUE(mapping.commit().ok());
    mapping.bytes()[50 * kPageBytes] = 'c';
    {
      const FileSizeLimit limit(40 * kPageBytes);
      expect_past_limit(mapping.commit());
      expect_past_limit(mapping->truncate(61 * kPageBytes));
      mapping.bytes()[1] = 'd';
      EXPECT_TRUE(mapping->commit(mapping.bytes(), kPageBytes).ok());
    }
    ASSERT_TRUE(mapping->truncate(62 * kPageBytes).ok());
    mapping.bytes()[61 * kPageBytes] = 'e';
    ASSERT_TRUE(mapping.commit().ok());
    {
      // What was acknowledged cannot be applied, and stays where it is.
      const FileSizeLimit limit(40 * kPageBytes);
      expect_past_limit(mapping->close());
      mapping.crash();
      expect_past_limit(test::try_open(file.path, options).status());
    }
    Opened again(file.path, options);
    EXPECT_EQ(again->size(), 62 * kPageBytes);
    EXPECT_EQ(again.bytes()[0], 'b');
    EXPECT_EQ(again.bytes()[1], 'd');
    EXPECT_EQ(again.bytes()[50 * kPageBytes], 'c');
    EXPECT_EQ(again.bytes()[61 * kPageBytes], 'e');
    EXPECT_TRUE(again->close().ok());
    ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  }
}

TEST(Law08AFailedFlushIsFinal, NoMoreCommitsAndEachSaysWhy) {
  for (const bool queued : {false, true}) {
    File file;
    auto watch = std::make_shared<Watch>();
    Opened mapping(file.path, options_for(kAsync), watch);
    mapping.bytes()[0] = 'b';
    ASSERT_TRUE(mapping.commit().ok());
    watch->judge_with([](const Event& event) {
      return event.which == Which::journal && event.act == Act::flush
                 ? Status::failure(EIO, "the disk is on fire")
                 : Status{};
    });
    mapping.bytes()[0] = 'c';
    if (queued) {
      ASSERT_TRUE(mapping->commit_async(mapping.bytes(), kPageBytes).ok());
      EXPECT_EQ(mapping->wait().error_number(), EIO);
    } else {
      EXPECT_EQ(mapping.commit().error_number(), EIO);
    }
    watch->judge_with({});  // the next flush would succeed, and is not believed
    mapping.bytes()[1] = 'd';
    for (int attempt = 0; attempt < 3; ++attempt) {
      const Status refused = mapping.commit();
      EXPECT_EQ(refused.error_number(), EIO);
      EXPECT_NE(refused.text().find("the disk is on fire"), std::string::npos);
    }
    EXPECT_EQ(mapping->close().error_number(), EIO);
    mapping.crash();
    Opened again(file.path, options_for(kAsync));
    EXPECT_TRUE(again.bytes()[0] == 'b' || again.bytes()[0] == 'c');
    EXPECT_EQ(again.bytes()[1], 'a');
  }
}

// A record that was refused and is there must not be found in place of one that was acknowledged.
TEST(Law08AFailedFlushIsFinal, AWriteThatFailedIsWhateverItsErrorAndWhateverItDid) {
  constexpr char kRefused = 'r';
  for (const int error_number : {ENOSPC, EDQUOT, EFBIG, ETIMEDOUT, EINTR, EIO}) {
    for (const Act act : {Act::write, Act::flush}) {
      File file(64);
      auto watch = std::make_shared<Watch>();
      Options options = options_for(kAsync);
      options.journal_size_bytes = 64 << 10;  // 14 records of one page
      Opened mapping(file.path, options, watch);
      char last = 'a';
      for (int i = 0; i < 13; ++i) {
        mapping.bytes()[0] = ++last;
        ASSERT_TRUE(mapping.commit().ok());
      }
      watch->judge_afterwards_with([&](const Event& event) {
        return event.which == Which::journal && event.act == act &&
                       (act == Act::flush || event.offset >= journal::kAreaStart)
                   ? Status::failure(error_number, "done, and not said so")
                   : Status{};
      });
      mapping.bytes()[0] = kRefused;
      const Status refused = mapping.commit();
      EXPECT_EQ(refused.error_number(), EIO);
      EXPECT_NE(refused.text().find("done, and not said so"), std::string::npos);
      watch->judge_afterwards_with({});
      // Larger than what was refused, and so at the front of the ring.
      std::memset(mapping.bytes(), 'z', 3 * kPageBytes);
      EXPECT_EQ(mapping.commit().error_number(), EIO);
      EXPECT_EQ(mapping->commit_async(mapping.bytes(), kPageBytes).error_number(), EIO);
      mapping.crash();
      Opened again(file.path, options_for(kAsync));
      EXPECT_TRUE(again.bytes()[0] == last || again.bytes()[0] == kRefused) << again.bytes()[0];
      EXPECT_EQ(again.bytes()[1], 'a');
    }
  }
}

// A header that points to the front, where the next record is not.
TEST(Law08AFailedFlushIsFinal, AHeaderThatFailedIs) {
  File file(2200);
  auto watch = std::make_shared<Watch>();
  Options options = options_for(kAsync);
  options.journal_size_bytes = 64 << 10;
  auto opened = test::try_open(file.path, options, watch);
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  Mapping& mapping = *opened.value();
  constexpr std::size_t kLength = 2200 * kPageBytes;
  auto window = mapping.map_window(nullptr, kLength, PROT_READ | PROT_WRITE, 0, 0);
  ASSERT_TRUE(window.ok());
  char* const bytes = window.value();
  bytes[0] = 'b';
  ASSERT_TRUE(mapping.commit_all().ok());
  watch->judge_afterwards_with([&](const Event& event) {
    return event.which == Which::journal && event.act == Act::write &&
                   event.offset < journal::kAreaStart
               ? Status::failure(ENOSPC, "done, and not said so")
               : Status{};
  });
  // Larger than the journal.
  for (std::size_t page = 0; page < 2200; ++page) bytes[page * kPageBytes] = 'c';
  EXPECT_EQ(mapping.commit_all().error_number(), EIO);
  watch->judge_afterwards_with({});
  bytes[0] = 'd';
  EXPECT_EQ(mapping.commit(bytes, kPageBytes).error_number(), EIO);
  opened.value().reset();
  Opened again(file.path, options_for(kAsync));
  EXPECT_EQ(again.bytes()[0], 'b');
  EXPECT_EQ(again.bytes()[kPageBytes], 'a');
}

TEST(Law09OneWriter, ASecondWriterIsRefusedInThisProcessAndInAnother) {
  File file;
  Opened mapping(file.path, options_for(kAsync));
  EXPECT_EQ(test::try_open(file.path, options_for(kAsync)).status().error_number(), EBUSY);
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(test::try_open(file.path, options_for(kAsync)).status().error_number() == EBUSY ? 0
                                                                                            : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Law09OneWriter, TheLockGoesWithItsHolderAlthoughAChildLivesOn) {
  File file;
  int to_parent[2];
  int to_grandchild[2];
  ASSERT_EQ(::pipe(to_parent), 0);
  ASSERT_EQ(::pipe(to_grandchild), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Opened mapping(file.path, options_for(kAsync));
    mapping.bytes()[0] = 'b';
    if (!mapping.commit().ok()) ::_exit(1);
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      // Reads its copy; its commit is refused.
      mapping.bytes()[0] = 'x';
      const char verdict = mapping.commit().error_number() == EPERM ? 'y' : 'n';
      [[maybe_unused]] ssize_t done = ::write(to_parent[1], &verdict, 1);
      char go = 0;
      done = ::read(to_grandchild[0], &go, 1);
      ::_exit(0);
    }
    ::pause();
  }
  char verdict = 0;
  ASSERT_EQ(::read(to_parent[0], &verdict, 1), 1);
  EXPECT_EQ(verdict, 'y');
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  {
    Opened mapping(file.path, options_for(kAsync));
    EXPECT_EQ(mapping.bytes()[0], 'b');
  }
  [[maybe_unused]] const ssize_t done = ::write(to_grandchild[1], "g", 1);
  for (const int descriptor : {to_parent[0], to_parent[1], to_grandchild[0], to_grandchild[1]})
    ::close(descriptor);
}

TEST(Law09OneWriter, TheProgramsOwnLocksOnItsDataAreLeftAlone) {
  File file;
  const int descriptor = ::open(file.path.c_str(), O_RDWR);
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  ASSERT_EQ(::fcntl(descriptor, F_SETLK, &lock), 0);
  {
    Opened mapping(file.path, options_for(kAsync));
    mapping.bytes()[0] = 'b';
    ASSERT_TRUE(mapping.commit().ok());
    ASSERT_TRUE(mapping->close().ok());
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const int other = ::open(file.path.c_str(), O_RDWR);
    ::_exit(::fcntl(other, F_SETLK, &lock) != 0 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "the program's lock is gone";
  ::close(descriptor);
}

TEST(Law10Ranges, ARangeCommitsItsPagesAndLeavesTheOthersPending) {
  for (const TrackerChoice tracker : {TrackerChoice::automatic, TrackerChoice::fault}) {
    File file;
    {
      Opened mapping(file.path, options_for(kAsync, tracker));
      for (int page = 0; page < 8; ++page) mapping.bytes()[page * 4096] = 'b';
      ASSERT_TRUE(mapping->commit(mapping.bytes() + 2 * kPageBytes, 3 * kPageBytes).ok());
      mapping.crash();
    }
    {
      Opened mapping(file.path, options_for(kAsync, tracker));
      for (int page = 0; page < 8; ++page)
        EXPECT_EQ(mapping.bytes()[page * 4096], page >= 2 && page < 5 ? 'b' : 'a') << page;
      for (int page = 0; page < 8; ++page) mapping.bytes()[page * 4096] = 'c';
      ASSERT_TRUE(mapping->commit(mapping.bytes() + 2 * kPageBytes, 3 * kPageBytes).ok());
      ASSERT_TRUE(mapping.commit().ok());
      mapping.crash();
    }
    Opened mapping(file.path, options_for(kAsync, tracker));
    for (int page = 0; page < 8; ++page) EXPECT_EQ(mapping.bytes()[page * 4096], 'c') << page;
  }
}

TEST(Law10Ranges, PagesThatWereFoundAndNotCommittedAreNotForgotten) {
  File file;
  {
    Opened mapping(file.path, options_for(kAsync));
    for (int page = 0; page < 8; ++page) mapping.bytes()[page * 4096] = 'b';
    // Finds them all, and arms them again.
    EXPECT_TRUE(mapping->has_pending_changes());
    ASSERT_TRUE(mapping->commit(mapping.bytes() + 2 * kPageBytes, 3 * kPageBytes).ok());
    EXPECT_TRUE(mapping->has_pending_changes());
    ASSERT_TRUE(mapping.commit().ok());
    EXPECT_FALSE(mapping->has_pending_changes());
    mapping.crash();
  }
  Opened mapping(file.path, options_for(kAsync));
  for (int page = 0; page < 8; ++page) EXPECT_EQ(mapping.bytes()[page * 4096], 'b') << page;
}

TEST(Law11AllStores, ThoseOfThreadsThatLiveAndThatExited) {
  for (const TrackerChoice tracker : {TrackerChoice::automatic, TrackerChoice::fault}) {
    File file;
    {
      Opened mapping(file.path, options_for(kAsync, tracker));
      ASSERT_TRUE(mapping.commit().ok());
      std::atomic<int> stored{0};
      std::atomic<bool> done{false};
      std::thread exited([&] { mapping.bytes()[0] = 'x'; });
      exited.join();
      std::thread live([&] {
        mapping.bytes()[5000] = 'l';
        stored = 1;
        while (!done) std::this_thread::yield();
      });
      while (stored == 0) std::this_thread::yield();
      ASSERT_TRUE(mapping.commit().ok());
      done = true;
      live.join();
      mapping.crash();
    }
    Opened mapping(file.path, options_for(kAsync, tracker));
    EXPECT_EQ(mapping.bytes()[0], 'x');
    EXPECT_EQ(mapping.bytes()[5000], 'l');
  }
}

TEST(Law11AllStores, ThoseOfSystemCalls) {
  for (const TrackerChoice tracker : {TrackerChoice::automatic, TrackerChoice::fault}) {
    File file;
    File source(2, 's');
    {
      Opened mapping(file.path, options_for(kAsync, tracker));
      ASSERT_TRUE(mapping.commit().ok());
      const int descriptor = ::open(source.path.c_str(), O_RDONLY);
      ASSERT_EQ(::read(descriptor, mapping.bytes() + 4000, 200), 200);
      ::close(descriptor);
      const int direct = ::open(source.path.c_str(), O_RDONLY | O_DIRECT);
      if (direct >= 0) {
        ASSERT_EQ(::pread(direct, mapping.bytes() + 3 * kPageBytes, kPageBytes, 0),
                  static_cast<ssize_t>(kPageBytes));
      }
      ::close(direct);
      ASSERT_TRUE(mapping.commit().ok());
      mapping.crash();
    }
    Opened mapping(file.path, options_for(kAsync, tracker));
    EXPECT_EQ(std::string(mapping.bytes() + 4000, 200), std::string(200, 's'));
    EXPECT_EQ(mapping.bytes()[3 * kPageBytes], 's');
  }
}

TEST(Law12TheFileIsJustTheFile, AfterACleanCloseNothingElseIsLeft) {
  File file;
  {
    Opened mapping(file.path, options_for(kAsync));
    std::memset(mapping.bytes() + 5, 'b', 10000);
    ASSERT_TRUE(mapping.commit().ok());
    std::memset(mapping.bytes(), 'x', 5);  // never committed
    ASSERT_TRUE(mapping->close().ok());
  }
  std::string expected(8 * kPageBytes, 'a');
  expected.replace(5, 10000, 10000, 'b');
  EXPECT_TRUE(file.content() == expected);
  EXPECT_NE(::access(file.journal().c_str(), F_OK), 0);
  EXPECT_EQ(::getxattr(file.path.c_str(), "user.pawl", nullptr, 0), -1);
}

TEST(Law12TheFileIsJustTheFile, OpeningItWithoutItsJournalIsAnError) {
  File file;
  two_commits(file);
  if (::getxattr(file.path.c_str(), "user.pawl", nullptr, 0) < 0)
    GTEST_SKIP() << "this file system keeps no attributes";
  ASSERT_EQ(::rename(file.journal().c_str(), (file.journal() + ".away").c_str()), 0);
  const std::string before = file.content();
  auto opened = test::try_open(file.path, options_for(kAsync));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().error_number(), ENODATA);
  EXPECT_NE(opened.status().text().find(file.journal()), std::string::npos);
  EXPECT_TRUE(file.content() == before);
  EXPECT_NE(::access(file.journal().c_str(), F_OK), 0);
}

}  // namespace
}  // namespace pawl
