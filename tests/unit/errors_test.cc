// Each error has its number and a text that says what to do, and leaves file and journal as they
// were.  docs/errors.md lists them.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "journal/format.h"
#include "medium/descriptor.h"
#include "pawl/pawl.h"
#include "support/open_mapping.h"
#include "support/temporary_directory.h"

namespace pawl {
namespace {

using test::Act;
using test::Event;
using test::Opened;
using test::options_for;
using test::read_file;
using test::Watch;
using test::Which;
using test::write_file;

constexpr auto kAsync = ApplyChoice::async;

class Errors : public testing::Test {
 protected:
  Errors() { write_file(path_, std::string(4 * kPageBytes, 'a')); }

  void leave_open() {
    Opened mapping(path_, options_for(kAsync));
    mapping.bytes()[0] = 'b';
    ASSERT_TRUE(mapping.commit().ok());
    mapping.crash();
  }
  // Refused with this number, this code and these words, and nothing was touched.
  void expect_refused(int error_number, pawl_error code, const std::string& words) {
    const std::string base = read_file(path_);
    const std::string side = read_file(journal_);
    auto opened = test::try_open(path_, options_for(kAsync));
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.status().error_number(), error_number) << opened.status().text();
    EXPECT_EQ(opened.status().code(), code) << opened.status().text();
    EXPECT_NE(opened.status().text().find(words), std::string::npos) << opened.status().text();
    EXPECT_TRUE(read_file(path_) == base);
    EXPECT_TRUE(read_file(journal_) == side);
  }
  void overwrite(std::uint64_t offset, const void* bytes, std::size_t count) {
    const int descriptor = ::open(journal_.c_str(), O_RDWR);
    ASSERT_EQ(::pwrite(descriptor, bytes, count, static_cast<off_t>(offset)),
              static_cast<ssize_t>(count));
    ::close(descriptor);
  }

  test::TemporaryDirectory directory_;
  std::string path_ = directory_ / "file";
  std::string journal_ = path_ + ".pawl";
};

TEST_F(Errors, AJournalOfANewerVersion) {
  leave_open();
  for (std::uint64_t slot = 0; slot < kJournalSlots; ++slot) {
    journal::Header header;
    header.version = journal::kVersionOfGroups + 1;
    overwrite(slot * kJournalSlotBytes, &header, sizeof header);
  }
  expect_refused(ENOTSUP, PAWL_ERROR_UNSUPPORTED_VERSION, "version 4");
}

// Its header was shorter, and so was what its checksum covers.
TEST_F(Errors, AJournalOfTheVersionThatWasNeverReleased) {
  leave_open();
  for (std::uint64_t slot = 0; slot < kJournalSlots; ++slot) {
    journal::Header header;
    header.version = 1;
    header.generation = 1 + slot;
    header.block_bytes = 0;
    header.crc32c = checksum(&header, offsetof(journal::Header, block_bytes));
    overwrite(slot * kJournalSlotBytes, &header, sizeof header);
  }
  expect_refused(ENOTSUP, PAWL_ERROR_UNSUPPORTED_VERSION, "version 1, which was never released");
}

TEST_F(Errors, AFileInTheJournalsPlaceThatIsNone) {
  write_file(journal_, "somebody's notes");
  expect_refused(EBADMSG, PAWL_ERROR_NOT_A_JOURNAL, "no Pawl journal");
}

TEST_F(Errors, ATruncatedJournal) {
  leave_open();
  ASSERT_EQ(::truncate(journal_.c_str(), 6000), 0);
  expect_refused(EBADMSG, PAWL_ERROR_CUT_JOURNAL, "cut short");
  expect_refused(EBADMSG, PAWL_ERROR_CUT_JOURNAL, "--accept-loss");
  ASSERT_EQ(::truncate(journal_.c_str(), 100), 0);
  expect_refused(EBADMSG, PAWL_ERROR_NOT_A_JOURNAL, "");
  ASSERT_EQ(::truncate(journal_.c_str(), 0), 0);
  expect_refused(EBADMSG, PAWL_ERROR_NOT_A_JOURNAL, "");
}

TEST_F(Errors, AJournalWithADamagedHeader) {
  leave_open();
  const char garbage[40] = "garbage";
  overwrite(16, garbage, sizeof garbage);
  overwrite(kJournalSlotBytes + 16, garbage, sizeof garbage);
  expect_refused(EBADMSG, PAWL_ERROR_DAMAGED_HEADER, "");
}

TEST_F(Errors, AJournalThatIsALinkADirectoryOrHasTwoNames) {
  leave_open();
  const std::string away = directory_ / "away";
  ASSERT_EQ(::rename(journal_.c_str(), away.c_str()), 0);
  ASSERT_EQ(::symlink(away.c_str(), journal_.c_str()), 0);
  expect_refused(ELOOP, PAWL_ERROR_JOURNAL_NAME_TAKEN, "symbolic link");
  ASSERT_EQ(::unlink(journal_.c_str()), 0);
  ASSERT_EQ(::link(away.c_str(), journal_.c_str()), 0);
  expect_refused(EBADMSG, PAWL_ERROR_UNBELIEVED_JOURNAL, "2 names");
  ASSERT_EQ(::unlink(journal_.c_str()), 0);
  ASSERT_EQ(::mkdir(journal_.c_str(), 0755), 0);
  auto opened = test::try_open(path_, options_for(kAsync));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().error_number(), EISDIR);
  EXPECT_NE(opened.status().text().find("move it away"), std::string::npos)
      << opened.status().text();
}

TEST_F(Errors, AJournalOfAnEarlierFileWithTheSameNumber) {
  leave_open();
  if (::removexattr(path_.c_str(), "user.pawl") != 0) GTEST_SKIP() << "no user attributes";
  const std::string side = read_file(journal_);
  for (std::uint64_t slot = 0; slot < kJournalSlots; ++slot) {
    journal::Header header;
    std::memcpy(&header, side.data() + slot * kJournalSlotBytes, sizeof header);
    if (header.magic != kJournalMagic) continue;
    header.file_birth_time_ns -= 1;
    header.crc32c = journal::header_checksum(header);
    overwrite(slot * kJournalSlotBytes, &header, sizeof header);
  }
  expect_refused(EBADMSG, PAWL_ERROR_FOREIGN_JOURNAL, "an earlier file with the same number");
}

TEST_F(Errors, ANameThatLeavesNoRoomForThatOfTheJournal) {
  const std::string path = directory_ / std::string(251, 'n');
  write_file(path, "a");
  auto opened = test::try_open(path, options_for(kAsync));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().error_number(), ENAMETOOLONG);
  const std::string text = opened.status().text();
  EXPECT_NE(text.find("no room for .pawl"), std::string::npos) << text;
  EXPECT_EQ(text.find("and writable"), std::string::npos) << text;
}

TEST_F(Errors, ALimitOfFilesBelowTheJournal) {
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit limit{kJournalSizeMin - 1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  auto opened = test::try_open(path_, options_for(kAsync));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().error_number(), EFBIG);
  const std::string text = opened.status().text();
  EXPECT_NE(text.find("ulimit -f"), std::string::npos) << text;
  EXPECT_EQ(text.find("ree some space"), std::string::npos) << text;
}

TEST_F(Errors, ACommitTooLargeForAFullDiskGivesItsAdviceOnce) {
  constexpr std::size_t kBytes = Opened::kWindowPages * kPageBytes;
  write_file(path_, std::string(kBytes, 'a'));
  auto watch = std::make_shared<Watch>();
  Opened mapping(path_, options_for(kAsync), watch);
  watch->judge_with([](const Event& event) {
    return event.which == Which::journal && event.act == Act::reserve
               ? Status::failure(ENOSPC, "full. Free some space and try again")
               : Status{};
  });
  std::memset(mapping.bytes(), 'b', kBytes);
  const Status committed = mapping.commit();
  EXPECT_EQ(committed.code(), PAWL_ERROR_COMMIT_TOO_LARGE) << committed.text();
  const std::string& text = committed.text();
  const std::size_t advice = text.find("ree some space");
  EXPECT_NE(advice, std::string::npos) << text;
  EXPECT_EQ(text.find("ree some space", advice + 1), std::string::npos) << text;
  EXPECT_NE(text.find("commit more often"), std::string::npos) << text;
  watch->judge_with({});
  EXPECT_TRUE(mapping.commit().ok());
  ASSERT_TRUE(mapping->close().ok());
}

TEST_F(Errors, ADiskWithoutRoomForTheJournalGivesItsAdviceOnce) {
  for (const char* const why : {"full", "full. Free some space and try again"}) {
    auto watch = std::make_shared<Watch>();
    watch->judge_with([why](const Event& event) {
      return event.which == Which::journal && event.act == Act::reserve
                 ? Status::failure(ENOSPC, why)
                 : Status{};
    });
    auto opened = test::try_open(path_, options_for(kAsync), watch);
    ASSERT_FALSE(opened.ok());
    const std::string text = opened.status().text();
    const std::size_t advice = text.find("ree some space");
    EXPECT_NE(advice, std::string::npos) << text;
    EXPECT_EQ(text.find("ree some space", advice + 1), std::string::npos) << text;
    // It is as small as it can be.
    EXPECT_EQ(text.find("PAWL_JOURNAL_SIZE"), std::string::npos) << text;
    // Which makes no journal: what a crash left can be had on a full disk.
    EXPECT_NE(text.find("pawl recover FILE"), std::string::npos) << text;
  }
}

TEST_F(Errors, AJournalThatAnyoneCouldHaveWritten) {
  leave_open();
  ASSERT_EQ(::chmod(journal_.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  expect_refused(EBADMSG, PAWL_ERROR_UNBELIEVED_JOURNAL, "written by anyone");
  if (::geteuid() != 0) return;
  // One with the same bytes, which is not the one that the mark names.
  const std::string content = test::read_file(journal_);
  ASSERT_EQ(::rename(journal_.c_str(), (directory_ / "away").c_str()), 0);
  write_file(journal_, content);
  ASSERT_EQ(::chmod(journal_.c_str(), 0644), 0);
  ASSERT_EQ(::chown(journal_.c_str(), 12345, 12345), 0);
  expect_refused(EBADMSG, PAWL_ERROR_UNBELIEVED_JOURNAL, "another user");
}

TEST_F(Errors, TheJournalTakesTheFilesOwnerAndMode) {
  ASSERT_EQ(::chmod(path_.c_str(), 0640), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path_.c_str(), 12345, 54321), 0);
  }
  Opened mapping(path_, options_for(kAsync));
  struct stat file{};
  struct stat side{};
  ASSERT_EQ(::stat(path_.c_str(), &file), 0);
  ASSERT_EQ(::stat(journal_.c_str(), &side), 0);
  EXPECT_EQ(side.st_mode & 07777, 0640u);
  EXPECT_EQ(side.st_uid, file.st_uid);
  EXPECT_EQ(side.st_gid, file.st_gid);
  ASSERT_TRUE(mapping->close().ok());
}

TEST_F(Errors, AFileThatReplacedTheOneTheJournalBelongsTo) {
  leave_open();
  const std::string other = directory_ / "other";
  write_file(other, "new content");
  ASSERT_EQ(::rename(other.c_str(), path_.c_str()), 0);
  expect_refused(EBADMSG, PAWL_ERROR_FOREIGN_JOURNAL, "another file");
}

TEST_F(Errors, AReadOnlyFileOrDirectory) {
  const int descriptor = ::open(path_.c_str(), O_RDONLY);
  auto medium = open_block_medium(descriptor);
  ASSERT_FALSE(medium.ok());
  EXPECT_EQ(medium.status().error_number(), EACCES);
  EXPECT_NE(medium.status().text().find("O_RDWR"), std::string::npos);
  ::close(descriptor);
  if (::geteuid() != 0) GTEST_SKIP() << "becoming another user takes root";
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0555), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 0666), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(12345) != 0 || ::setuid(12345) != 0) ::_exit(2);
    auto opened = test::try_open(path_, options_for(kAsync));
    // Where the directories above are closed to others, the file cannot be opened at all.
    const bool told = !opened.ok() && opened.status().error_number() == EACCES;
    ::_exit(told ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
}

TEST_F(Errors, WhatIsNoRegularFileOrHasNoName) {
  int pipes[2];
  ASSERT_EQ(::pipe(pipes), 0);
  EXPECT_EQ(open_block_medium(pipes[0]).status().error_number(), ENODEV);
  const int null = ::open("/dev/null", O_RDWR);
  EXPECT_EQ(open_block_medium(null).status().error_number(), ENODEV);
  const int descriptor = ::open(path_.c_str(), O_RDWR);
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  EXPECT_EQ(open_block_medium(descriptor).status().error_number(), ENOENT);
  EXPECT_EQ(open_block_medium(-1).status().error_number(), EBADF);
  for (const int open : {pipes[0], pipes[1], null, descriptor}) ::close(open);
}

TEST_F(Errors, AJournalThatCannotBeMade) {
  auto watch = std::make_shared<Watch>();
  watch->judge_with([](const Event& event) {
    return event.which == Which::journal && event.act == Act::reserve
               ? Status::failure(ENOSPC, "full")
               : Status{};
  });
  auto opened = test::try_open(path_, options_for(kAsync), watch);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().error_number(), ENOSPC);
  EXPECT_EQ(opened.status().code(), PAWL_ERROR_NO_SPACE_FOR_JOURNAL);
  EXPECT_NE(::access(journal_.c_str(), F_OK), 0);
  EXPECT_NE(::access((journal_ + ".new").c_str(), F_OK), 0);
  EXPECT_EQ(read_file(path_), std::string(4 * kPageBytes, 'a'));
}

// For every write, flush and reservation from open to close: it fails, once, with either error; the
// file recovers to a state that was committed or in flight.
TEST_F(Errors, TheNthOperationFailsForEveryN) {
  for (const int error_number : {ENOSPC, EIO}) {
    for (int fatal = 0;; ++fatal) {
      write_file(path_, std::string(4 * kPageBytes, 'a'));
      auto watch = std::make_shared<Watch>();
      // In any thread: the journal grows in the background.
      std::atomic<int> happened = 0;
      std::atomic<bool> failed = false;
      watch->judge_with([&](const Event& event) {
        if (event.act == Act::read) return Status{};
        if (happened++ != fatal) return Status{};
        failed = true;
        // A flush fails with nothing but EIO.
        return Status::failure(event.act == Act::flush ? EIO : error_number, "made up");
      });
      char acknowledged = 'a';
      char attempted = 'a';
      {
        auto opened = test::try_open(path_, options_for(ApplyChoice::eager), watch);
        if (opened.ok()) {
          auto window =
              opened.value()->map_window(nullptr, 8 * kPageBytes, PROT_READ | PROT_WRITE, 0, 0);
          ASSERT_TRUE(window.ok());
          for (char step = 'b'; step < 'e'; ++step) {
            if (!opened.value()->truncate((step == 'c' ? 2u : 6u) * kPageBytes).ok()) break;
            std::memset(window.value(), step, 2 * kPageBytes);
            attempted = step;
            if (opened.value()->commit_all().ok()) acknowledged = step;
          }
          [[maybe_unused]] const Status closed = opened.value()->close();
        }
      }
      auto opened = test::try_open(path_, options_for(kAsync));
      ASSERT_TRUE(opened.ok()) << opened.status().text() << " after failure " << fatal;
      char first = 0;
      char last = 0;
      ASSERT_TRUE(opened.value()->read(0, std::as_writable_bytes(std::span(&first, 1))).ok());
      ASSERT_TRUE(opened.value()
                      ->read(2 * kPageBytes - 1, std::as_writable_bytes(std::span(&last, 1)))
                      .ok());
      EXPECT_EQ(first, last) << "torn after failure " << fatal;
      EXPECT_GE(first, acknowledged) << "lost after failure " << fatal;
      EXPECT_LE(first, attempted) << "after failure " << fatal;
      ASSERT_TRUE(opened.value()->close().ok());
      if (!failed) {
        EXPECT_GT(fatal, 15) << "hardly anything was tried";
        break;
      }
    }
  }
}

// As a container's seccomp profile or a kernel without them does.
void forbid(std::initializer_list<unsigned> system_calls) {
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (const unsigned number : system_calls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

TEST_F(Errors, NoPermissionForUserfaultfd) {
  EXPECT_EXIT(
      {
        forbid({SYS_userfaultfd, SYS_perf_event_open});
        auto refused = test::try_open(path_, options_for(kAsync, TrackerChoice::scan));
        const bool told = !refused.ok() && refused.status().error_number() == EPERM &&
                          refused.status().text().find("userfaultfd") != std::string::npos;
        // Left to itself Pawl takes the other tracker, and nothing is lost.
        Opened mapping(path_, options_for(kAsync));
        mapping.bytes()[0] = 'b';
        const bool works = mapping.commit().ok() && mapping->close().ok();
        std::fprintf(stderr, "%s\n", refused.status().text().c_str());
        std::_Exit(told && works ? 0 : 1);
      },
      testing::ExitedWithCode(0), "userfaultfd");
  EXPECT_EQ(read_file(path_)[0], 'b');
}

TEST_F(Errors, NoPermissionForTheFaultLogIsNoError) {
  EXPECT_EXIT(
      {
        forbid({SYS_perf_event_open});
        auto opened = test::try_open(path_, options_for(kAsync));
        constexpr std::size_t kLength = std::size_t{64} << 20;
        auto window = opened.value()->map_window(nullptr, kLength, PROT_READ | PROT_WRITE, 0, 0);
        bool works = opened.value()->truncate(kLength).ok();
        window.value()[kLength - 1] = 'z';
        works = works && opened.value()->commit_all().ok() && opened.value()->close().ok();
        std::_Exit(works ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EQ(read_file(path_).back(), 'z');
}

// FUSE does so, too, of a file of another user's mount.
TEST_F(Errors, ADescriptorOfWhichNothingIsToldWasNeverClosed) {
  EXPECT_EXIT(
      {
        Descriptor seen(::open(path_.c_str(), O_RDONLY));
        Descriptor given(::open(path_.c_str(), O_RDONLY));
        const int number = given.get();
        ::close(number);
        const bool is_anew = ::open("/dev/null", O_RDONLY) == number;
        given.reset(-1);
        const bool is_spared = ::fcntl(number, F_GETFD) >= 0;
        forbid({SYS_statx, SYS_newfstatat, SYS_fstat});
        Descriptor hidden(::open(path_.c_str(), O_RDONLY));
        const int one = seen.get();
        const int other = hidden.get();
        seen.reset(-1);
        hidden.reset(-1);
        const bool are_closed = ::fcntl(one, F_GETFD) < 0 && ::fcntl(other, F_GETFD) < 0;
        std::_Exit(is_anew && is_spared && are_closed ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

class BadArguments : public Errors {
 protected:
  void* map(std::size_t length, int flags, off_t offset) {
    errno = 0;
    return pawl_mmap(nullptr, length, PROT_READ | PROT_WRITE, flags, descriptor_, offset);
  }
  int descriptor_ = ::open(path_.c_str(), O_RDWR);
};

TEST_F(BadArguments, OfMmap) {
  EXPECT_EQ(map(0, MAP_ATOMIC, 0), MAP_FAILED);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(map(4096, MAP_ATOMIC, 100), MAP_FAILED);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(map(4096, MAP_SHARED, 0), MAP_FAILED);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(map(4096, MAP_ATOMIC | MAP_HUGETLB, 0), MAP_FAILED);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(map(~std::size_t{0} - 4096, MAP_ATOMIC, 0), MAP_FAILED);
  EXPECT_EQ(errno, ENOMEM);
  pawl_options options{};
  EXPECT_EQ(pawl_mmap_with(nullptr, 4096, PROT_READ, MAP_ATOMIC, descriptor_, 0, &options),
            MAP_FAILED);
  EXPECT_EQ(errno, EINVAL);
  ASSERT_EQ(pawl_options_init(&options), 0);
  options.journal_size_bytes = 5;
  EXPECT_EQ(pawl_mmap_with(nullptr, 4096, PROT_READ, MAP_ATOMIC, descriptor_, 0, &options),
            MAP_FAILED);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_NE(std::strlen(pawl_last_error()), 0u);
  EXPECT_NE(::access(journal_.c_str(), F_OK), 0);
}

TEST_F(BadArguments, AKernelWithoutPawlRefusesMapAtomic) {
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor_, 0), MAP_FAILED);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(BadArguments, OfTheOtherCalls) {
  char* const bytes = static_cast<char*>(map(4 * kPageBytes, MAP_ATOMIC, 0));
  ASSERT_NE(bytes, MAP_FAILED) << pawl_last_error();
  char local = 0;
  const auto refused = [](int outcome, int error_number) {
    return outcome == -1 && errno == error_number;
  };
  EXPECT_TRUE(refused(pawl_msync(bytes, 4 * kPageBytes, MS_SYNC | MS_INVALIDATE), EINVAL));
  EXPECT_TRUE(refused(pawl_msync(bytes, 4 * kPageBytes, MS_SYNC | MS_ASYNC), EINVAL));
  EXPECT_TRUE(refused(pawl_msync(bytes, 4 * kPageBytes, 0), EINVAL));
  EXPECT_TRUE(refused(pawl_msync(bytes + 1, 100, MS_SYNC), EINVAL));
  EXPECT_TRUE(refused(pawl_msync(bytes, 5 * kPageBytes, MS_SYNC), ENOMEM));
  EXPECT_TRUE(refused(pawl_msync(bytes, ~std::size_t{0}, MS_SYNC), ENOMEM));
  EXPECT_TRUE(refused(pawl_msync(bytes + kPageBytes, 4 * kPageBytes, MS_SYNC), ENOMEM));
  EXPECT_TRUE(refused(pawl_msync(&local, 1, MS_SYNC), ENOMEM));
  EXPECT_TRUE(refused(pawl_wait(&local), ENOMEM));
  EXPECT_TRUE(refused(pawl_stats(bytes, nullptr), EINVAL));
  EXPECT_TRUE(refused(pawl_ftruncate(descriptor_, -1), EINVAL));
  EXPECT_TRUE(refused(pawl_ftruncate(-1, 0), EBADF));
  EXPECT_TRUE(refused(pawl_munmap(bytes, kPageBytes), EINVAL));
  EXPECT_TRUE(refused(pawl_munmap(bytes + kPageBytes, 3 * kPageBytes), EINVAL));
  EXPECT_EQ(map(kPageBytes, MAP_ATOMIC, 0), MAP_FAILED);
  EXPECT_EQ(errno, EBUSY);
  bytes[0] = 'b';
  EXPECT_EQ(pawl_msync(bytes, 1, MS_SYNC), 0)
      << "a length that is no multiple of the page size is rounded up";
  pawl_statistics statistics;
  ASSERT_EQ(pawl_stats(bytes + 5000, &statistics), 0);
  EXPECT_EQ(statistics.commits, 1u);
  EXPECT_EQ(statistics.bytes_changed, 64u);
  EXPECT_EQ(statistics.bytes_logged, 4096u);
  EXPECT_EQ(pawl_munmap(bytes, 4 * kPageBytes), 0) << pawl_last_error();
  EXPECT_TRUE(refused(pawl_munmap(bytes, 4 * kPageBytes), EINVAL));
  EXPECT_EQ(read_file(path_)[0], 'b');
  EXPECT_EQ(pawl_recover(path_.c_str()), 0);
  EXPECT_EQ(pawl_recover((path_ + "none").c_str()), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(BadArguments, InTheEnvironment) {
  for (const char* variable : {"PAWL_JOURNAL_SIZE", "PAWL_TRACKER", "PAWL_APPLY",
                               "PAWL_APPLY_THRESHOLD", "PAWL_RESIDENT_MAX"}) {
    ::setenv(variable, "-7 bananas", 1);
    EXPECT_EQ(map(kPageBytes, MAP_ATOMIC, 0), MAP_FAILED) << variable;
    EXPECT_EQ(errno, EINVAL);
    EXPECT_NE(std::string(pawl_last_error()).find(variable), std::string::npos);
    ::unsetenv(variable);
  }
}

TEST_F(Errors, AMappingAtAnOffsetOfPartOfAFile) {
  const int descriptor = ::open(path_.c_str(), O_RDWR);
  char* const bytes = static_cast<char*>(pawl_mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE,
                                                   MAP_ATOMIC, descriptor, 2 * kPageBytes));
  ASSERT_NE(bytes, MAP_FAILED) << pawl_last_error();
  ::close(descriptor);
  std::memset(bytes, 'z', kPageBytes);
  ASSERT_EQ(pawl_msync(bytes, kPageBytes, MS_SYNC), 0);
  ASSERT_EQ(pawl_munmap(bytes, kPageBytes), 0);
  EXPECT_EQ(read_file(path_), std::string(2 * kPageBytes, 'a') + std::string(kPageBytes, 'z') +
                                  std::string(kPageBytes, 'a'));
}

// Whatever locks other threads of the parent hold: the child is refused, and does not wait.
TEST_F(Errors, AForkedChildIsRefusedByEachCallAndWaitsForNone) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer does not fork";
#endif
  const int descriptor = ::open(path_.c_str(), O_RDWR);
  char* const bytes = static_cast<char*>(
      pawl_mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0));
  ASSERT_NE(bytes, MAP_FAILED) << pawl_last_error();
  std::atomic<bool> is_over{false};
  std::thread committing([&] {
    while (!is_over.load()) {
      bytes[0] = static_cast<char>(bytes[0] + 1);
      EXPECT_EQ(pawl_msync(bytes, kPageBytes, MS_SYNC), 0);
    }
  });
  constexpr int kForks = 20;
  for (int i = 0; i < kForks && !HasFailure(); ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(30);  // ends one that waits
      pawl_statistics seen{};
      int others = 0;
      const auto refused = [&](int result) { others += result != -1 || errno != EPERM ? 1 : 0; };
      refused(pawl_msync(bytes, kPageBytes, MS_SYNC));
      refused(pawl_msync(bytes, kPageBytes, MS_INVALIDATE));
      refused(pawl_wait(bytes));
      refused(pawl_stats(bytes, &seen));
      refused(pawl_ftruncate(descriptor, 1));
      others += pawl_munmap(bytes, kPageBytes) == 0 ? 0 : 1;
      ::_exit(others);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  is_over.store(true);
  committing.join();
  EXPECT_EQ(pawl_munmap(bytes, kPageBytes), 0);
  ::close(descriptor);
}

TEST_F(Errors, PastTheEndOfTheFileAMappingRaisesSigbus) {
  const pid_t child = ::fork();
  if (child == 0) {
    Opened mapping(path_, options_for(kAsync));
    ::signal(SIGBUS, [](int) { ::_exit(7); });
    mapping.bytes()[4 * kPageBytes] = 'x';
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

}  // namespace
}  // namespace pawl
