// pawl_last_error_code(): one errno has many reasons, and each its code.  docs/errors.md lists
// them.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "heap/heap.h"
#include "journal/format.h"
#include "mapping/view.h"
#include "medium/block_medium.h"
#include "medium/inherited_memory.h"
#include "medium/medium.h"
#include "medium/status.h"
#include "pawl/fase.h"
#include "pawl/heap.h"
#include "pawl/pawl.h"
#include "support/open_mapping.h"
#include "support/refused_calls.h"
#include "support/temporary_directory.h"
#include "support/watched_medium.h"

namespace pawl {
namespace {

using test::read_file;
using test::RefusedCall;
using test::write_file;

constexpr std::size_t kLength = 4 * kPageBytes;

class ErrorCodes : public testing::Test {
 protected:
  ErrorCodes() { write_file(path_, std::string(kLength, 'a')); }

  static char* map(const std::string& path, int flags = 0, void* at = nullptr,
                   std::size_t length = kLength) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    void* const mapped =
        pawl_mmap(at, length, PROT_READ | PROT_WRITE, MAP_ATOMIC | flags, descriptor, 0);
    const int error_number = errno;
    if (descriptor >= 0) ::close(descriptor);
    errno = error_number;
    return mapped == MAP_FAILED ? nullptr : static_cast<char*>(mapped);
  }
  static void expect_no_map(const std::string& path, int error_number, pawl_error code) {
    EXPECT_EQ(map(path), nullptr);
    expect_failure(error_number, code);
  }
  static void expect_failure(int error_number, pawl_error code) {
    EXPECT_EQ(errno, error_number) << pawl_last_error();
    EXPECT_EQ(pawl_last_error_code(), code) << pawl_last_error();
  }
  static void in_child(const std::function<void()>& act) {
    const pid_t child = ::fork();
    if (child == 0) {
      act();
      ::_exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  // In a child whose system calls fail so, as a sandbox or a disk has them fail.
  static void in_child_refused(const std::vector<RefusedCall>& calls,
                               const std::function<void()>& act) {
    in_child([&] {
      if (test::refuse_calls(calls)) act();
    });
  }
  // The commit of one byte in a child whose system calls fail so from then on.
  void expect_no_commit(const std::vector<RefusedCall>& calls, int error_number, pawl_error code,
                        std::size_t stored = 1) {
    in_child([&] {
      char* const bytes = map(path_, 0, nullptr, std::filesystem::file_size(path_));
      ASSERT_NE(bytes, nullptr) << pawl_last_error();
      if (!test::refuse_calls(calls)) return;
      std::memset(bytes, 'x', stored);
      EXPECT_EQ(pawl_msync(bytes, stored, MS_SYNC), -1);
      expect_failure(error_number, code);
    });
    EXPECT_EQ(pawl_recover(path_.c_str()), 0) << pawl_last_error();
  }
  // Two commits, and then a crash.
  void leave_open() {
    in_child([&] {
      char* const bytes = map(path_);
      if (bytes == nullptr) ::_exit(1);
      for (const char value : {'b', 'c'}) {
        bytes[0] = value;
        if (pawl_msync(bytes, kLength, MS_SYNC) != 0) ::_exit(1);
      }
      ::_exit(0);
    });
  }
  void overwrite(std::uint64_t offset, const void* bytes, std::size_t count) const {
    const int descriptor = ::open(journal_.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::pwrite(descriptor, bytes, count, static_cast<off_t>(offset)),
              static_cast<ssize_t>(count));
    ::close(descriptor);
  }
  void spoil(std::uint64_t offset) const {
    const std::string garbage(40, '!');
    overwrite(offset, garbage.data(), garbage.size());
  }
  static void copy(const std::string& from, const std::string& to) {
    ASSERT_EQ(std::system(("cp --preserve=all " + from + " " + to).c_str()), 0);
  }
  bool has_mark() const { return ::getxattr(path_.c_str(), "user.pawl", nullptr, 0) > 0; }

  test::TemporaryDirectory directory_;
  std::string path_ = directory_ / "file";
  std::string journal_ = path_ + ".pawl";
};

TEST_F(ErrorCodes, OfEachThreadAndKeptByWhatSucceeds) {
  EXPECT_EQ(map(path_, 0, nullptr, 0), nullptr);
  std::thread([] { EXPECT_EQ(pawl_last_error_code(), PAWL_ERROR_NONE); }).join();
  EXPECT_EQ(pawl_recover(path_.c_str()), 0);
  EXPECT_EQ(pawl_last_error_code(), PAWL_ERROR_INVALID_ARGUMENT);
}

TEST_F(ErrorCodes, OfAStatusInItsWaysOfBeingKept) {
  const Status own = Status::failure(EBADMSG, PAWL_ERROR_CUT_JOURNAL, "cut");
  EXPECT_EQ(Status(own).code(), PAWL_ERROR_CUT_JOURNAL);
  const Status prefixed = own.prefixed("it is ");
  EXPECT_EQ(prefixed.text(), "it is cut");
  EXPECT_EQ(prefixed.error_number(), EBADMSG);
  EXPECT_EQ(prefixed.code(), PAWL_ERROR_CUT_JOURNAL);
  EXPECT_EQ(own.with_text({}).code(), PAWL_ERROR_CUT_JOURNAL);
  EXPECT_EQ(Status{}.code(), PAWL_ERROR_NONE);
  EXPECT_TRUE(Status{}.with_text("nothing").ok());
  EXPECT_EQ(Status::failure(EINVAL, "ours").code(), PAWL_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(Status(FailedCall{EINVAL, "the kernel's"}).code(), PAWL_ERROR_SYSTEM);
  EXPECT_EQ(Status(FailedCall{EDQUOT, "full"}).code(), PAWL_ERROR_NO_SPACE);
}

TEST_F(ErrorCodes, OfWhatCannotBeMapped) {
  expect_no_map("/dev/null", ENODEV, PAWL_ERROR_NOT_REGULAR_FILE);
  expect_no_map("/proc/self/comm", ENODEV, PAWL_ERROR_UNSUPPORTED_FILE_SYSTEM);
  EXPECT_EQ(pawl_recover((directory_ / "none").c_str()), -1);
  expect_failure(ENOENT, PAWL_ERROR_NOT_FOUND);
  const std::string long_name = directory_ / std::string(251, 'n');
  write_file(long_name, "a");
  expect_no_map(long_name, ENAMETOOLONG, PAWL_ERROR_NAME_TOO_LONG);
  const int read_only = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(pawl_mmap(nullptr, kLength, PROT_READ, MAP_ATOMIC, read_only, 0), MAP_FAILED);
  expect_failure(EACCES, PAWL_ERROR_NOT_READ_WRITE);
  ::close(read_only);
  ASSERT_EQ(::mkdir(journal_.c_str(), 0755), 0);
  expect_no_map(path_, EISDIR, PAWL_ERROR_JOURNAL_NAME_TAKEN);
  ASSERT_EQ(::rmdir(journal_.c_str()), 0);
  ASSERT_EQ(::symlink("elsewhere", journal_.c_str()), 0);
  expect_no_map(path_, ELOOP, PAWL_ERROR_JOURNAL_NAME_TAKEN);
  ASSERT_EQ(::unlink(journal_.c_str()), 0);
  ::setenv("PAWL_TRACKER", "-7 bananas", 1);
  expect_no_map(path_, EINVAL, PAWL_ERROR_INVALID_VARIABLE);
  ::unsetenv("PAWL_TRACKER");
  const int nameless = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  EXPECT_EQ(pawl_mmap(nullptr, kLength, PROT_READ, MAP_ATOMIC, nameless, 0), MAP_FAILED);
  expect_failure(ENOENT, PAWL_ERROR_NO_NAME);
  ::close(nameless);
}

// What a newcomer tried, and the table has otherwise.
TEST_F(ErrorCodes, OfDirectoriesAndPartsWereThoseOfSomethingElse) {
  const int directory = ::open(directory_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  EXPECT_EQ(pawl_mmap(nullptr, kLength, PROT_READ | PROT_WRITE, MAP_ATOMIC, directory, 0),
            MAP_FAILED);
  expect_failure(ENODEV, PAWL_ERROR_NOT_REGULAR_FILE);
  ::close(directory);
  EXPECT_EQ(pawl_recover(directory_.path().c_str()), -1);
  expect_failure(ENODEV, PAWL_ERROR_NOT_REGULAR_FILE);
  EXPECT_EQ(pawl_ftruncate(-1, 0), -1);
  expect_failure(EBADF, PAWL_ERROR_INVALID_ARGUMENT);
  char* const mapped = map(path_);
  ASSERT_NE(mapped, nullptr) << pawl_last_error();
#ifdef PAWL_SANITIZED  // there munmap() is the kernel's alone
  EXPECT_EQ(pawl_munmap(mapped, kPageBytes), -1);
#else
  EXPECT_EQ(::munmap(mapped, kPageBytes), -1);
#endif
  expect_failure(EINVAL, PAWL_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(pawl_snapshot(path_.c_str(), path_.c_str(), PAWL_SNAPSHOT_REPLACE), -1);
  expect_failure(EINVAL, PAWL_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(pawl_munmap(mapped, kLength), 0);
}

TEST_F(ErrorCodes, OfAddressesAndSizes) {
  EXPECT_EQ(map(path_, 0, nullptr, ~std::size_t{0} - kPageBytes), nullptr);
  expect_failure(ENOMEM, PAWL_ERROR_NO_ADDRESS_SPACE);
  char* const bytes = map(path_);
  ASSERT_NE(bytes, nullptr) << pawl_last_error();
  expect_no_map(path_, EBUSY, PAWL_ERROR_IN_USE);
  expect_no_map(journal_, EINVAL, PAWL_ERROR_NAMES_JOURNAL);
  const std::string other = directory_ / "other";
  write_file(other, "a");
  EXPECT_EQ(map(other, MAP_FIXED_NOREPLACE, bytes), nullptr);
  expect_failure(EEXIST, PAWL_ERROR_ADDRESS_TAKEN);
  EXPECT_EQ(map(other, MAP_FIXED, bytes, kPageBytes), nullptr);
  expect_failure(EBUSY, PAWL_ERROR_ADDRESS_TAKEN);
  EXPECT_EQ(pawl_msync(bytes, kLength + kPageBytes, MS_SYNC), -1);
  expect_failure(ENOMEM, PAWL_ERROR_NOT_MAPPED);
  char local = 0;
  EXPECT_EQ(pawl_wait(&local), -1);
  expect_failure(ENOMEM, PAWL_ERROR_NOT_MAPPED);
  const int descriptor = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_EQ(pawl_ftruncate(descriptor, INT64_MAX), -1);
  expect_failure(EFBIG, PAWL_ERROR_TOO_LARGE);
  in_child([&] {
    EXPECT_EQ(pawl_msync(bytes, kLength, MS_SYNC), -1);
    expect_failure(EPERM, PAWL_ERROR_FORKED_CHILD);
  });
  ::close(descriptor);
  EXPECT_EQ(pawl_munmap(bytes, kLength), 0);
}

TEST_F(ErrorCodes, OfALimitOfFilesBelowTheJournal) {
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit limit{1 << 15, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  expect_no_map(path_, EFBIG, PAWL_ERROR_FILE_SIZE_LIMIT);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
}

TEST_F(ErrorCodes, OfADamagedJournal) {
  leave_open();
  const std::string sound = read_file(journal_);
  // The first of two records, then both headers, the end, all of it, and what was never one.
  spoil(kJournalSlots * kJournalSlotBytes);
  expect_no_map(path_, EBADMSG, PAWL_ERROR_DAMAGED_RECORD);
  spoil(16);
  spoil(kJournalSlotBytes + 16);
  expect_no_map(path_, EBADMSG, PAWL_ERROR_DAMAGED_HEADER);
  overwrite(0, sound.data(), sound.size());
  ASSERT_EQ(::truncate(journal_.c_str(), 20000), 0);
  expect_no_map(path_, EBADMSG, PAWL_ERROR_CUT_JOURNAL);
  ASSERT_EQ(::truncate(journal_.c_str(), 0), 0);
  expect_no_map(path_, EBADMSG, PAWL_ERROR_NOT_A_JOURNAL);
  overwrite(0, "somebody's notes", 16);
  expect_no_map(path_, EBADMSG, PAWL_ERROR_NOT_A_JOURNAL);
  journal::Header newer;
  newer.version = journal::kVersionOfGroups + 1;
  for (std::uint64_t slot = 0; slot < kJournalSlots; ++slot)
    overwrite(slot * kJournalSlotBytes, &newer, sizeof newer);
  expect_no_map(path_, ENOTSUP, PAWL_ERROR_UNSUPPORTED_VERSION);
}

TEST_F(ErrorCodes, OfAJournalInAnotherPlace) {
  leave_open();
  if (!has_mark()) GTEST_SKIP() << "no user attributes";
  const std::string away = directory_ / "away";
  const std::string renamed = directory_ / "renamed";
  ASSERT_EQ(::rename(path_.c_str(), renamed.c_str()), 0);
  expect_no_map(renamed, ENODATA, PAWL_ERROR_MOVED_JOURNAL);
  ASSERT_EQ(::rename(renamed.c_str(), path_.c_str()), 0);
  ASSERT_EQ(::rename(journal_.c_str(), away.c_str()), 0);
  expect_no_map(path_, ENODATA, PAWL_ERROR_MISSING_JOURNAL);
  copy(away, journal_);
  expect_no_map(path_, EBADMSG, PAWL_ERROR_COPIED_JOURNAL);
  ASSERT_EQ(::rename(away.c_str(), journal_.c_str()), 0);
  const std::string copied = directory_ / "copied";
  copy(path_, copied);
  expect_no_map(copied, ENODATA, PAWL_ERROR_COPIED_FILE);
  ASSERT_EQ(::rename(journal_.c_str(), (copied + ".pawl").c_str()), 0);
  expect_no_map(copied, EBADMSG, PAWL_ERROR_JOURNAL_OF_ORIGINAL);
  ASSERT_EQ(::rename((copied + ".pawl").c_str(), journal_.c_str()), 0);
  const std::string other = directory_ / "other";
  write_file(other, "new");
  ASSERT_EQ(::rename(journal_.c_str(), (other + ".pawl").c_str()), 0);
  expect_no_map(other, EBADMSG, PAWL_ERROR_FOREIGN_JOURNAL);
}

TEST_F(ErrorCodes, OfAMarkOrAModeThatSomebodyChanged) {
  leave_open();
  if (!has_mark()) GTEST_SKIP() << "no user attributes";
  ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  ASSERT_EQ(::chmod(journal_.c_str(), 0666), 0);
  expect_no_map(path_, EBADMSG, PAWL_ERROR_UNBELIEVED_JOURNAL);
  ASSERT_EQ(::chmod(journal_.c_str(), 0644), 0);
  ASSERT_EQ(::setxattr(path_.c_str(), "user.pawl", "from afar", 9, 0), 0);
  expect_no_map(path_, EBADMSG, PAWL_ERROR_UNKNOWN_MARK);
  ASSERT_EQ(::removexattr(path_.c_str(), "user.pawl"), 0);
  expect_no_map(path_, EBADMSG, PAWL_ERROR_MARK_REMOVED);
}

TEST_F(ErrorCodes, OfACommitThatIsRefused) {
  char* const bytes = map(path_);
  ASSERT_NE(bytes, nullptr) << pawl_last_error();
  bytes[0] = 'x';
  ASSERT_EQ(::unlink(journal_.c_str()), 0);
  EXPECT_EQ(pawl_msync(bytes, kLength, MS_SYNC), -1);
  expect_failure(ESTALE, PAWL_ERROR_JOURNAL_REMOVED);
  pawl_statistics seen;
  ASSERT_EQ(pawl_stats(bytes, &seen), 0);
  EXPECT_EQ(seen.last_error_number, ESTALE);
  EXPECT_EQ(seen.last_error_code, PAWL_ERROR_JOURNAL_REMOVED);
  EXPECT_EQ(pawl_munmap(bytes, kLength), 0) << pawl_last_error();
}

TEST_F(ErrorCodes, OfWhatTheSystemRefusesToAnOpening) {
  const auto expect = [&](const RefusedCall& call, int error_number, pawl_error code) {
    in_child_refused({call}, [&] { expect_no_map(path_, error_number, code); });
  };
  if (open_block_medium(path_, false).value()->can_mark())
    expect({SYS_fsetxattr, ENOSPC}, ENOSPC, PAWL_ERROR_NO_SPACE_FOR_MARK);
  expect({SYS_fallocate, ENOSPC}, ENOSPC, PAWL_ERROR_NO_SPACE_FOR_JOURNAL);
  expect({SYS_fallocate, EOPNOTSUPP}, EOPNOTSUPP, PAWL_ERROR_UNSUPPORTED_FILE_SYSTEM);
  expect({SYS_linkat, EEXIST}, EBUSY, PAWL_ERROR_OPENING_RACED);
  expect({SYS_fsync, EIO}, EIO, PAWL_ERROR_IO);
#ifndef PAWL_SANITIZED  // a sanitizer maps memory of its own
  expect({SYS_mmap, ENOMEM}, ENOMEM, PAWL_ERROR_NO_ADDRESS_SPACE);
  // As of addresses that are there and may not be locked, or may not be had.
  expect({SYS_mmap, EAGAIN}, EAGAIN, PAWL_ERROR_SYSTEM);
  expect({SYS_mmap, EPERM}, EPERM, PAWL_ERROR_NO_PERMISSION);
#endif
  ::setenv("PAWL_TRACKER", "scan", 1);
  expect({SYS_userfaultfd, EPERM}, EPERM, PAWL_ERROR_TRACKER_UNAVAILABLE);
  // Which is neither the kernel's fault nor a sandbox's.
  expect({SYS_userfaultfd, EMFILE}, EMFILE, PAWL_ERROR_SYSTEM);
  expect({SYS_userfaultfd, ENOMEM}, ENOMEM, PAWL_ERROR_NO_MEMORY);
  ::setenv("PAWL_TRACKER", "store", 1);
  expect_no_map(path_, EOPNOTSUPP, PAWL_ERROR_NO_STORE_MARKS);
  ::unsetenv("PAWL_TRACKER");
}

TEST_F(ErrorCodes, OfAPlaceThatCannotServe) {
  const int descriptor = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  const auto expect = [&](int error_number, pawl_error code) {
    EXPECT_EQ(pawl_mmap(nullptr, kLength, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0),
              MAP_FAILED);
    expect_failure(error_number, code);
  };
  in_child([&] {
    if (::chroot(directory_.path().c_str()) == 0) expect(ENOENT, PAWL_ERROR_NO_PROC);
  });
  in_child([&] {
    const std::string directory = directory_.path();
    const char* const at = directory.c_str();
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount(at, at, nullptr, MS_BIND, nullptr) != 0 ||
        ::mount(nullptr, at, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) != 0)
      return;
    EXPECT_EQ(pawl_recover(path_.c_str()), -1);
    expect_failure(EROFS, PAWL_ERROR_READ_ONLY_FILE_SYSTEM);
  });
  ::close(descriptor);
  // In memory there is such a file, and is no refusal.
  ::setenv("PAWL_MEDIUM", "memory", 1);
  if (char* const bytes = map(path_); bytes != nullptr)
    EXPECT_EQ(pawl_munmap(bytes, kLength), 0);
  else
    expect_failure(EOPNOTSUPP, PAWL_ERROR_NOT_PERSISTENT_MEMORY);
  ::unsetenv("PAWL_MEDIUM");
}

// Nothing is written yet: the same call may succeed later.
TEST_F(ErrorCodes, OfACommitForWhichThereIsNoRoom) {
  ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
  ASSERT_EQ(::truncate(path_.c_str(), kLength), 0);  // a hole
  expect_no_commit({{SYS_fallocate, ENOSPC}}, ENOSPC, PAWL_ERROR_NO_SPACE_FOR_COMMIT);
}

// It was said of whatever kept the journal from growing.
TEST_F(ErrorCodes, OfAJournalThatCannotGrowWereAllThatOfACommitTooLarge) {
  constexpr std::size_t kLarge = std::size_t{1} << 20;
  write_file(path_, std::string(kLarge, 'a'));
  ::setenv("PAWL_JOURNAL_SIZE", "64K", 1);
  expect_no_commit({{SYS_fallocate, ENOSPC}}, ENOSPC, PAWL_ERROR_COMMIT_TOO_LARGE, kLarge);
  expect_no_commit({{SYS_fallocate, EIO}}, EIO, PAWL_ERROR_IO, kLarge);
  in_child([&] {
    char* const bytes = map(path_, 0, nullptr, kLarge);
    ASSERT_NE(bytes, nullptr) << pawl_last_error();
    const struct rlimit limit{kLarge, kLarge};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    std::memset(bytes, 'x', kLarge);
    EXPECT_EQ(pawl_msync(bytes, kLarge, MS_SYNC), -1);
    expect_failure(EFBIG, PAWL_ERROR_FILE_SIZE_LIMIT);
  });
  ::unsetenv("PAWL_JOURNAL_SIZE");
}

// Bytes may have reached the journal: that is the disk's failure, whatever the system called it.
TEST_F(ErrorCodes, OfACommitThatCannotBeWritten) {
  for (const int error_number : {EIO, ENOSPC, EDQUOT, EFBIG, ENOMEM, EPERM})
    expect_no_commit({{SYS_pwrite64, error_number}, {SYS_pwritev2, error_number}}, EIO,
                     PAWL_ERROR_IO);
}

TEST_F(ErrorCodes, OfARecoveryWithoutRoom) {
  leave_open();
  in_child_refused({{SYS_pwrite64, ENOSPC}, {SYS_pwritev2, ENOSPC}},
                   [&] { expect_no_map(path_, ENOSPC, PAWL_ERROR_NO_SPACE_TO_RECOVER); });
  EXPECT_EQ(pawl_recover(path_.c_str()), 2) << pawl_last_error();
}

// What is wrong with it when it is read again was right before.
TEST_F(ErrorCodes, OfAJournalThatChangesWhileItIsRead) {
  leave_open();
  const std::string sound = read_file(journal_);
  bool is_found = false;
  bool is_read = true;
  for (int fatal = 0; is_read && !is_found; ++fatal) {
    overwrite(0, sound.data(), sound.size());
    int reads = 0;
    auto watch = std::make_shared<test::Watch>();
    watch->judge_with([&](const test::Event& event) {
      if (event.which == test::Which::journal && event.act == test::Act::read && reads++ == fatal)
        spoil(kJournalSlots * kJournalSlotBytes);
      return Status{};
    });
    auto opened = test::try_open(path_, test::options_for(ApplyChoice::async), watch);
    is_read = reads > fatal;
    is_found = opened.status().code() == PAWL_ERROR_JOURNAL_CHANGED;
    EXPECT_TRUE(!is_found || opened.status().error_number() == EBADMSG);
  }
  EXPECT_TRUE(is_found);
}

TEST_F(ErrorCodes, OfMemoryThatTheProgramUnmapped) {
  char* const bytes = map(path_);
  ASSERT_NE(bytes, nullptr) << pawl_last_error();
  ASSERT_EQ(::syscall(SYS_munmap, bytes + kPageBytes, kPageBytes), 0);
  EXPECT_EQ(pawl_msync(bytes, kLength, MS_SYNC), -1);
  expect_failure(EFAULT, PAWL_ERROR_MEMORY_UNMAPPED);
  EXPECT_EQ(pawl_munmap(bytes, kLength), 0);
}

// It was said that the disk had failed.
TEST_F(ErrorCodes, OfAMappingThatCannotBePutBackWasThatOfADisk) {
  in_child([&] {
    const test::Opened mapping(path_, test::options_for(ApplyChoice::async));
    if (!test::refuse_calls({{SYS_mprotect, ENOMEM}})) return;
    const Status refused = mapping->protect_window(mapping.bytes(), kPageBytes, PROT_READ);
    EXPECT_EQ(refused.error_number(), EIO) << refused.text();
    EXPECT_EQ(refused.code(), PAWL_ERROR_MAPPING_BROKEN) << refused.text();
  });
  EXPECT_EQ(pawl_recover(path_.c_str()), 0) << pawl_last_error();
}

// They were said to be out of memory, of which there was enough.
TEST_F(ErrorCodes, OfFullTablesWereThoseOfMemory) {
  constexpr std::size_t kPages =
      2 * (std::max(kProtectedPartsMax, inherited_memory::kPiecesMax) + 1);
  auto mapping = test::try_open(path_, test::options_for(ApplyChoice::async));
  ASSERT_TRUE(mapping.ok()) << mapping.status().text();
  const auto window =
      mapping.value()->map_window(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE, 0, 0);
  ASSERT_TRUE(window.ok()) << window.status().text();
  Status refused;
  for (std::size_t page = 0; page < kPages && refused.ok(); page += 2)
    refused =
        mapping.value()->protect_window(window.value() + page * kPageBytes, kPageBytes, PROT_READ);
  EXPECT_EQ(refused.error_number(), ENOMEM) << refused.text();
  EXPECT_EQ(refused.code(), PAWL_ERROR_TOO_MANY) << refused.text();
  in_child([&] {
    std::size_t page = 0;
    while (inherited_memory::add(window.value() + page * kPageBytes, kPageBytes).ok()) page += 2;
    const std::string other = directory_ / "other";
    write_file(other, "a");
    expect_no_map(other, ENOMEM, PAWL_ERROR_TOO_MANY);
  });
  EXPECT_TRUE(mapping.value()->close().ok());
}

// What a sandbox refuses, or a disk, was called a descriptor that the program closed, or a sandbox.
TEST_F(ErrorCodes, BlameNobodyForWhatFailed) {
  const auto expect_text = [&](const std::vector<RefusedCall>& calls, int error_number,
                               pawl_error code, const std::string& text) {
    expect_no_commit(calls, error_number, code);
    in_child([&] {
      char* const bytes = map(path_);
      if (!test::refuse_calls(calls)) return;
      bytes[0] = 'x';
      EXPECT_EQ(pawl_msync(bytes, kLength, MS_SYNC), -1);
      EXPECT_NE(std::string(pawl_last_error()).find(text), std::string::npos) << pawl_last_error();
    });
  };
  expect_text({{SYS_fcntl, EPERM}}, EIO, PAWL_ERROR_DESCRIPTOR_CLOSED,
              "Operation not permitted; nothing was written. A sandbox");
  expect_text({{SYS_statx, EIO}, {SYS_fstat, EIO}, {SYS_newfstatat, EIO}}, EIO,
              PAWL_ERROR_DESCRIPTOR_CLOSED, "Input/output error; nothing was written");
}

TEST_F(ErrorCodes, BlameNoClosedUserfaultfdForARefusedIoctl) {
  in_child([&] {
    char* const bytes = map(path_);
    ASSERT_NE(bytes, nullptr) << pawl_last_error();
    if (!test::refuse_calls({{SYS_ioctl, EPERM}})) return;
    bytes[0] = 'x';
    // Another tracker needs none.
    if (pawl_msync(bytes, kLength, MS_SYNC) == 0) return;
    expect_failure(EPERM, PAWL_ERROR_NO_PERMISSION);
    EXPECT_NE(std::string(pawl_last_error()).find("a sandbox"), std::string::npos)
        << pawl_last_error();
  });
}

// The first commit was final, and nothing had been written.
TEST_F(ErrorCodes, AreNoneWhereASandboxKnowsNoWriteThatFlushes) {
  for (const int error_number : {EPERM, ENOSYS}) {
    in_child_refused({{SYS_pwritev2, error_number}}, [&] {
      char* const bytes = map(path_);
      ASSERT_NE(bytes, nullptr) << pawl_last_error();
      bytes[0] = 'x';
      EXPECT_EQ(pawl_msync(bytes, kLength, MS_SYNC), 0) << pawl_last_error();
      EXPECT_EQ(pawl_munmap(bytes, kLength), 0) << pawl_last_error();
    });
  }
}

TEST_F(ErrorCodes, OfAFileOfSectionsThatIsClosed) {
  EXPECT_EQ(pawl_fase_root(nullptr), nullptr);
  expect_failure(EINVAL, PAWL_ERROR_CLOSED);
}

// What failed first says by what; what comes behind it, that it is over.
TEST_F(ErrorCodes, OfAMappingWhoseDescriptorsTheProgramClosed) {
  char* const bytes = map(path_);
  ASSERT_NE(bytes, nullptr) << pawl_last_error();
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const std::string target = std::filesystem::read_symlink(entry, ignored);
    if (target == path_) ::syscall(SYS_close, std::stoi(entry.path().filename()));
  }
  bytes[0] = 'x';
  EXPECT_EQ(pawl_msync(bytes, kLength, MS_SYNC), -1);
  expect_failure(EIO, PAWL_ERROR_DESCRIPTOR_CLOSED);
  EXPECT_EQ(pawl_msync(bytes, kLength, MS_SYNC), -1);
  expect_failure(EIO, PAWL_ERROR_MAPPING_BROKEN);
  EXPECT_EQ(pawl_munmap(bytes, kLength), -1);
}

TEST_F(ErrorCodes, OfACopy) {
  const std::string to = directory_ / "to";
  write_file(to, "there");
  EXPECT_EQ(pawl_snapshot(path_.c_str(), to.c_str(), 0), -1);
  expect_failure(EEXIST, PAWL_ERROR_COPY_TARGET_EXISTS);
  char* const bytes = map(to);
  ASSERT_NE(bytes, nullptr) << pawl_last_error();
  EXPECT_EQ(pawl_snapshot(path_.c_str(), to.c_str(), PAWL_SNAPSHOT_REPLACE), -1);
  expect_failure(EBUSY, PAWL_ERROR_COPY_TARGET_IN_USE);
  EXPECT_EQ(pawl_munmap(bytes, kLength), 0);
}

// It was said to be larger than any file can be.
TEST_F(ErrorCodes, OfACopyPastTheLimitOfFilesWasThatOfNoFile) {
  in_child([&] {
    const struct rlimit limit{kLength / 2, kLength / 2};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_EQ(pawl_snapshot(path_.c_str(), (directory_ / "to").c_str(), 0), -1);
    expect_failure(EFBIG, PAWL_ERROR_FILE_SIZE_LIMIT);
  });
}

TEST_F(ErrorCodes, OfAGroup) {
  const std::string name = directory_ / "group";
  const std::string second = directory_ / "second";
  write_file(second, std::string(kLength, 'a'));
  if (::setxattr(path_.c_str(), "user.test", "", 0, 0) != 0) GTEST_SKIP() << "no user attributes";
  EXPECT_EQ(pawl_group_open(path_.c_str(), nullptr), nullptr);
  expect_failure(EINVAL, PAWL_ERROR_INVALID_ARGUMENT);
  const auto map_in = [](pawl_group* group, const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    void* const mapped =
        pawl_group_mmap(group, nullptr, kLength, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
    ::close(descriptor);
    return mapped == MAP_FAILED ? nullptr : static_cast<char*>(mapped);
  };
  in_child([&] {
    pawl_group* const group = pawl_group_open(name.c_str(), nullptr);
    char* const one = map_in(group, path_);
    char* const other = map_in(group, second);
    if (one == nullptr || other == nullptr) ::_exit(1);
    one[0] = other[0] = 'b';
    ::_exit(pawl_group_msync(group, MS_SYNC) == 0 ? 0 : 1);
  });
  expect_no_map(name, EINVAL, PAWL_ERROR_NAMES_GROUP);
  const std::string away = directory_ / "away";
  ASSERT_EQ(::rename(second.c_str(), away.c_str()), 0);
  EXPECT_EQ(pawl_group_open(name.c_str(), nullptr), nullptr);
  expect_failure(ENODATA, PAWL_ERROR_GROUP_FILE_MISSING);
  write_file(second, "another");
  EXPECT_EQ(pawl_group_open(name.c_str(), nullptr), nullptr);
  expect_failure(ENODATA, PAWL_ERROR_GROUP_FILE_REPLACED);
  ASSERT_EQ(::rename(away.c_str(), second.c_str()), 0);
  pawl_group* const group = pawl_group_open(name.c_str(), nullptr);
  ASSERT_NE(group, nullptr) << pawl_last_error();
  char* const bytes = map_in(group, path_);
  ASSERT_NE(bytes, nullptr) << pawl_last_error();
  EXPECT_EQ(pawl_group_close(group), -1);
  expect_failure(EBUSY, PAWL_ERROR_STILL_OPEN);
  EXPECT_EQ(pawl_munmap(bytes, kLength), 0);
  EXPECT_EQ(pawl_group_close(group), 0);
}

TEST_F(ErrorCodes, OfAHeap) {
  EXPECT_EQ(pawl_heap_open(path_.c_str(), nullptr), nullptr);
  expect_failure(EINVAL, PAWL_ERROR_WRONG_KIND_OF_FILE);
  const std::string path = directory_ / "heap";
  pawl_heap_options options;
  ASSERT_EQ(pawl_heap_options_init(&options), 0);
  options.size_bytes_max = PAWL_HEAP_SIZE_MIN;
  options.layout = "one way";
  pawl_heap* heap = pawl_heap_open(path.c_str(), &options);
  ASSERT_NE(heap, nullptr) << pawl_last_error();
  EXPECT_EQ(pawl_heap_malloc(heap, PAWL_HEAP_SIZE_MIN), nullptr);
  expect_failure(ENOMEM, PAWL_ERROR_HEAP_FULL);
  EXPECT_EQ(pawl_heap_malloc(heap, ~std::size_t{0}), nullptr);
  expect_failure(ENOMEM, PAWL_ERROR_TOO_LARGE);
  EXPECT_EQ(pawl_heap_named_root(heap, "none", nullptr), nullptr);
  expect_failure(ENOENT, PAWL_ERROR_NO_SUCH_ROOT);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_EQ(pawl_ftruncate(descriptor, 0), -1);
  expect_failure(EBUSY, PAWL_ERROR_STILL_OPEN);
  void* const block = pawl_heap_malloc(heap, 100);
  ASSERT_EQ(pawl_heap_free(heap, block), 0);
  EXPECT_EQ(pawl_heap_free(heap, block), -1);
  expect_failure(EINVAL, PAWL_ERROR_WRONG_BLOCK);
  EXPECT_EQ(pawl_heap_sync(heap), -1);
  expect_failure(EUCLEAN, PAWL_ERROR_SYNC_REFUSED);
  ASSERT_EQ(pawl_heap_close(heap), 0) << pawl_last_error();
  options.layout = "another way";
  EXPECT_EQ(pawl_heap_open(path.c_str(), &options), nullptr);
  expect_failure(ENOTSUP, PAWL_ERROR_OTHER_LAYOUT);
  ASSERT_EQ(::ftruncate(descriptor, PAWL_HEAP_SIZE_MIN + 1), 0);
  EXPECT_EQ(pawl_heap_open(path.c_str(), nullptr), nullptr);
  expect_failure(EUCLEAN, PAWL_ERROR_DAMAGED_HEAP);
  ::close(descriptor);
}

// A file system gives EUCLEAN as well, and the heap believed itself damaged: nothing was synced any
// more.
TEST_F(ErrorCodes, OfAFileSystemWereTakenForThoseOfTheHeap) {
  bool is_damaged = false;
  auto watch = std::make_shared<test::Watch>();
  watch->judge_with([&](const test::Event& event) {
    const bool is_space = event.which == test::Which::base && event.act == test::Act::reserve;
    return is_damaged && is_space ? Status(FailedCall{EUCLEAN, "cannot reserve"}) : Status{};
  });
  const std::string path = directory_ / "heap";
  write_file(path, "");
  auto medium = open_block_medium(path, false);
  ASSERT_TRUE(medium.ok()) << medium.status().text();
  HeapOptions options;
  options.mapping = test::options_for(ApplyChoice::eager);
  auto heap = Heap::open(test::watched_medium(std::move(medium.value()), watch), options);
  ASSERT_TRUE(heap.ok()) << heap.status().text();
  auto block = heap.value()->allocate(100000, 16);
  ASSERT_TRUE(block.ok()) << block.status().text();
  std::memset(block.value(), 'x', 100000);
  is_damaged = true;
  const Status refused = heap.value()->sync();
  EXPECT_EQ(refused.error_number(), EUCLEAN);
  EXPECT_EQ(refused.code(), PAWL_ERROR_SYSTEM);
  is_damaged = false;
  const Status synced = heap.value()->sync();
  EXPECT_TRUE(synced.ok()) << synced.text();
  EXPECT_TRUE(heap.value()->close().ok());
}

}  // namespace
}  // namespace pawl
