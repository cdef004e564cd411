// What may be opened, by whom, and what is said of the rest.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "fase/accounts.h"
#include "fase/closed_file.h"
#include "fase/crash_everywhere.h"
#include "fase/format.h"
#include "fase/program.h"
#include "fase/recovery_by_order.h"
#include "medium/checksum.h"
#include "medium/descriptor.h"
#include "pawl/pawl.h"
#include "support/loop_file_system.h"
#include "support/refused_calls.h"

namespace pawl {
namespace {

using test::Account;
using test::accounts_of;

class FaseOpen : public test::FaseTest {
 protected:
  void expect_refused(int error_number, pawl_error code, const std::string& text) {
    errno = 0;
    EXPECT_EQ(open(), nullptr);
    EXPECT_EQ(errno, error_number) << pawl_last_error();
    EXPECT_EQ(pawl_last_error_code(), code) << pawl_last_error();
    EXPECT_NE(std::string(pawl_last_error()).find(text), std::string::npos) << pawl_last_error();
  }
  // Leaves it with an interrupted section.
  void interrupt() {
    open_and([](pawl_fase* fase) { test::make_accounts(fase); });
    EXPECT_EQ(run_in_child([this] {
                Account* const accounts = accounts_of(open());
                test::count_both(accounts, accounts + 1, [] { ::_exit(42); });
              }),
              42);
  }
  template <class Act>
  static int run_in_child(Act act) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      act();
      ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  template <class T>
  void overwrite_with(std::uint64_t offset, const T& value) {
    overwrite(static_cast<off_t>(offset),
              std::string(reinterpret_cast<const char*>(&value), sizeof value));
  }
  void overwrite(off_t offset, const std::string& bytes) {
    const int file = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_EQ(::pwrite(file, bytes.data(), bytes.size(), offset),
              static_cast<ssize_t>(bytes.size()));
    ::close(file);
  }
};

TEST_F(FaseOpen, TheAddressIsTheSameInEveryRun) {
  pawl_fase* first = nullptr;
  open_and([&](pawl_fase* fase) { first = fase; });
  open_and([&](pawl_fase* fase) { EXPECT_EQ(fase, first); });
  EXPECT_TRUE(fase::is_in_window(first));
}

TEST_F(FaseOpen, WithoutProtectionItIsRefusedUnlessItWasClosed) {
  pawl_fase_options options;
  ASSERT_EQ(pawl_fase_options_init(&options), 0);
  options.size_bytes_max = PAWL_FASE_SIZE_MIN;
  options.unprotected = 1;
  pawl_fase* const fase = pawl_fase_open(path_.c_str(), &options);
  ASSERT_NE(fase, nullptr) << pawl_last_error();
  // Of code that was compiled as any other.
  pawl_fase_begin();
  EXPECT_NE(pawl_fase_malloc(fase, 100), nullptr);
  pawl_fase_end();
  pawl_fase_statistics statistics;
  EXPECT_EQ(pawl_fase_stats(fase, &statistics), 0);
  EXPECT_EQ(statistics.fences, 0u);
  EXPECT_EQ(pawl_fase_close(fase), 0) << pawl_last_error();
  open_and([](pawl_fase*) {});
  EXPECT_EQ(run_in_child([&] { pawl_fase_open(path_.c_str(), &options); }), 0);
  expect_refused(EUCLEAN, PAWL_ERROR_WAS_UNPROTECTED, "without protection");
  options.unprotected = 2;
  EXPECT_EQ(pawl_fase_open(path_.c_str(), &options), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(FaseOpen, WhenItIsFlushedIsToldOrRefused) {
  pawl_fase_options options;
  ASSERT_EQ(pawl_fase_options_init(&options), 0);
  EXPECT_EQ(options.flush_on_fail, 0);
  options.flush_on_fail = 2;
  EXPECT_EQ(pawl_fase_open(path_.c_str(), &options), nullptr);
  EXPECT_EQ(errno, EINVAL);
  for (const auto& [value, on_fail] : {std::pair{"commit", 0}, std::pair{"on-fail", 1}}) {
    ASSERT_EQ(::setenv("PAWL_FASE_FLUSH", value, 1), 0);
    EXPECT_EQ(pawl_fase_options_init(&options), 0) << pawl_last_error();
    EXPECT_EQ(options.flush_on_fail, on_fail);
  }
  ASSERT_EQ(::setenv("PAWL_FASE_FLUSH", "never", 1), 0);
  EXPECT_EQ(pawl_fase_options_init(&options), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(pawl_last_error_code(), PAWL_ERROR_INVALID_VARIABLE);
  EXPECT_NE(std::string(pawl_last_error()).find("on-fail"), std::string::npos);
  ::unsetenv("PAWL_FASE_FLUSH");
}

// Sections of iDO, too, are finished after a death when their frames lie in the caches.
TEST_F(FaseOpen, ASectionThatIsFlushedOnFailIsFinished) {
  ASSERT_EQ(::setenv("PAWL_FASE_FLUSH", "on-fail", 1), 0);
  interrupt();
  open_and([](pawl_fase* fase) {
    test::expect_balanced(accounts_of(fase));
    pawl_fase_statistics statistics;
    ASSERT_EQ(pawl_fase_stats(fase, &statistics), 0);
    EXPECT_EQ(statistics.sections_recovered, 1u);
    EXPECT_EQ(statistics.fences, 0u);
  });
  ::unsetenv("PAWL_FASE_FLUSH");
}

// What is interrupted is finished as it was begun, by whomever.
TEST_F(FaseOpen, ACrashWhileItIsFinishedWithoutProtectionDoesNothingTwice) {
  open_and([](pawl_fase* fase) { test::make_accounts(fase); });
  const test::FileImage before = test::FileImage::read(path_);
  const auto run = [this] {
    open_and(
        [](pawl_fase* fase) { test::transfer(accounts_of(fase), accounts_of(fase) + 1, 100); });
  };
  std::size_t open_sections = 0;
  for (std::uint64_t event = 1; open_sections == 0; ++event) {
    before.write(path_);
    ASSERT_TRUE(test::crashes(before, run, event, test::Unfenced::kept, 0));
    open_sections = fase::look_at_file(path_).value().unfinished.size();
  }
  const test::FileImage interrupted = test::FileImage::read(path_);
  pawl_fase_options options;
  ASSERT_EQ(pawl_fase_options_init(&options), 0);
  options.unprotected = 1;
  bool is_finished = false;
  for (std::uint64_t event = 1; !is_finished; ++event) {
    SCOPED_TRACE("event " + std::to_string(event));
    interrupted.write(path_);
    const auto open_unprotected = [&] {
      EXPECT_NE(pawl_fase_open(path_.c_str(), &options), nullptr) << pawl_last_error();
    };
    ASSERT_TRUE(test::crashes(interrupted, open_unprotected, event, test::Unfenced::kept, 0));
    is_finished = fase::look_at_file(path_).value().unfinished.empty();
    if (is_finished) break;
    open_and([](pawl_fase* fase) {
      const Account* const accounts = accounts_of(fase);
      test::expect_balanced(accounts);
      EXPECT_EQ(accounts[0].transfers, 1u);
    });
    ASSERT_FALSE(HasFailure());
  }
}

TEST_F(FaseOpen, LogsOfAnUnknownSchemeAreRefused) {
  open_and([](pawl_fase*) {});
  overwrite(offsetof(fase::Header, scheme), std::string("\x7f\0\0\0\0\0\0\0", 8));
  expect_refused(ENOTSUP, PAWL_ERROR_UNSUPPORTED_VERSION, "scheme");
}

TEST_F(FaseOpen, AProgramWithSectionsOfTwoSchemesIsRefused) {
  EXPECT_EQ(run_in_child([&] {
              fase::Program::own().use(fase::Scheme::undo);
              expect_refused(ENOTSUP, PAWL_ERROR_UNSUPPORTED_PROGRAM, "different schemes");
            }),
            0);
}

// It was said to be larger than any file can be.
TEST_F(FaseOpen, AFilePastTheLimitOfFilesIsRefused) {
  EXPECT_EQ(run_in_child([&] {
              const struct rlimit limit{kSizeBytes / 2, kSizeBytes / 2};
              ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
              expect_refused(EFBIG, PAWL_ERROR_FILE_SIZE_LIMIT, "cannot make");
            }),
            0);
}

TEST_F(FaseOpen, TheRootIsKept) {
  void* block = nullptr;
  open_and([&](pawl_fase* fase) {
    EXPECT_EQ(pawl_fase_root(fase), nullptr);
    block = pawl_fase_malloc(fase, 100);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(pawl_fase_set_root(fase, block), 0);
    int outside = 0;
    EXPECT_EQ(pawl_fase_set_root(fase, &outside), -1);
    EXPECT_EQ(errno, EINVAL);
  });
  open_and([&](pawl_fase* fase) { EXPECT_EQ(pawl_fase_root(fase), block); });
}

TEST_F(FaseOpen, TheFileOfSectionsWasCutBeneathThem) {
  const int descriptor = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(descriptor, 0);
  open_and([&](pawl_fase* fase) {
    EXPECT_EQ(pawl_ftruncate(descriptor, 0), -1);
    EXPECT_EQ(errno, EBUSY) << pawl_last_error();
    EXPECT_NE(pawl_fase_malloc(fase, 100), nullptr);
  });
  EXPECT_EQ(pawl_ftruncate(descriptor, 0), 0) << pawl_last_error();
  ::close(descriptor);
}

// It is refused for such a lock; to close the file then dropped it.
TEST_F(FaseOpen, ARefusedOpenDroppedTheProgramsLock) {
  struct flock lock = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1, .l_pid = 0};
  const int descriptor = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::fcntl(descriptor, F_SETLK, &lock), 0);
  expect_refused(EBUSY, PAWL_ERROR_IN_USE, "open already");
  EXPECT_EQ(run_in_child([&] { EXPECT_NE(::fcntl(descriptor, F_SETLK, &lock), 0); }), 0);
  ::close(descriptor);
}

TEST_F(FaseOpen, OneAtATime) {
  open_and([&](pawl_fase*) {
    expect_refused(ENFILE, PAWL_ERROR_STILL_OPEN, "one file");
    EXPECT_EQ(run_in_child([&] { expect_refused(EPERM, PAWL_ERROR_FORKED_CHILD, "fork"); }), 0);
  });
}

TEST_F(FaseOpen, AnotherProcessIsRefusedUntilTheHolderDies) {
  open_and([](pawl_fase*) {});
  int told[2];
  ASSERT_EQ(::pipe(told), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    open();
    // A child of the holder, which outlives it, does not hold it.
    if (::fork() == 0) {
      const pid_t child = ::getpid();
      ::write(told[1], &child, sizeof child);
    }
    for (;;) ::pause();
  }
  pid_t child = 0;
  ASSERT_EQ(::read(told[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  expect_refused(EBUSY, PAWL_ERROR_IN_USE, "open already");
  EXPECT_TRUE(fase::look_at_file(path_).value().is_in_use);
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  open_and([](pawl_fase*) {});
  ::kill(child, SIGKILL);
}

// It came from fork(2) itself, and no handler closed its descriptor.
TEST_F(FaseOpen, AChildThatNoHandlerKnewKeptAClosedFileFromBeingOpened) {
  pid_t child = 0;
  open_and([&](pawl_fase*) {
    child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    while (child == 0) ::pause();
  });
  open_and([](pawl_fase*) {});
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// In a directory where anybody may make names.
TEST_F(FaseOpen, WhateverHadTheNameOfAJournalKeptAFileFromBeingOpened) {
  open_and([](pawl_fase*) {});
  const std::string side = path_ + ".pawl";
  const auto make = [&](const std::string& bytes) {
    const int file = ::open(side.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    EXPECT_EQ(::write(file, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ::close(file);
  };
  const std::string magic("PAWLJRNL");
  ASSERT_EQ(::symlink("nowhere", side.c_str()), 0);
  open_and([](pawl_fase*) {});
  ASSERT_EQ(::unlink(side.c_str()), 0);
  ASSERT_EQ(::mkfifo(side.c_str(), 0600), 0);
  open_and([](pawl_fase*) {});
  ASSERT_EQ(::unlink(side.c_str()), 0);
  make("something else");
  open_and([](pawl_fase*) {});
  ASSERT_EQ(::unlink(side.c_str()), 0);
  make(magic);
  expect_refused(EBUSY, PAWL_ERROR_COPY_TARGET_IN_USE, "if the journal is none of this file's");
  ASSERT_EQ(::chmod(side.c_str(), 0666), 0);
  open_and([](pawl_fase*) {});
  constexpr uid_t kStranger = 12345;
  ASSERT_EQ(::chmod(side.c_str(), 0600), 0);
  if (::chown(side.c_str(), kStranger, kStranger) == 0) open_and([](pawl_fase*) {});
  ::unlink(side.c_str());
}

TEST_F(FaseOpen, AForkedChildHasNoPartInIt) {
  open_and([&](pawl_fase* fase) {
    auto* const accounts = test::make_accounts(fase);
    EXPECT_EQ(run_in_child([&] {
                EXPECT_EQ(pawl_fase_malloc(fase, 1), nullptr);
                EXPECT_EQ(errno, EPERM);
                EXPECT_EQ(pawl_fase_mutex_lock(&accounts[0].mutex), EPERM);
                EXPECT_EQ(pawl_fase_close(fase), -1);
              }),
              0);
    // A signal; or what a sanitizer makes of it.
    EXPECT_NE(run_in_child([&] { *reinterpret_cast<volatile char*>(accounts) = 1; }), 0);
  });
}

TEST_F(FaseOpen, AnotherFileIsRefused) {
  test::write_file(path_, std::string(10000, 'x'));
  expect_refused(EINVAL, PAWL_ERROR_WRONG_KIND_OF_FILE, "no file of failure-atomic sections");
  EXPECT_EQ(test::read_file(path_), std::string(10000, 'x'));
}

TEST_F(FaseOpen, AFileThatWasNeverFinishedIsMadeAnew) {
  test::write_file(path_, "PAWLFNEW" + std::string(10000, '\0'));
  open_and([](pawl_fase* fase) { EXPECT_EQ(pawl_fase_root(fase), nullptr); });
}

TEST_F(FaseOpen, ANewerOneIsRefused) {
  open_and([](pawl_fase*) {});
  overwrite(offsetof(fase::Identity, version), std::string("\x02\0\0\0", 4));
  expect_refused(ENOTSUP, PAWL_ERROR_UNSUPPORTED_VERSION, "newer");
}

TEST_F(FaseOpen, ADamagedOneIsRefused) {
  open_and([](pawl_fase*) {});
  overwrite(offsetof(fase::Identity, heap_offset), "x");
  expect_refused(EUCLEAN, PAWL_ERROR_DAMAGED_SECTIONS, "damaged header");
}

// Its checksum is right.
TEST_F(FaseOpen, AHeapThatIsNotOfWholeChunksIsRefused) {
  open_and([](pawl_fase*) {});
  fase::Header header;
  const std::string bytes = test::read_file(path_).substr(0, sizeof header);
  std::memcpy(&header, bytes.data(), sizeof header);
  header.identity.size_bytes += kPageBytes;
  constexpr std::size_t kFrom = offsetof(fase::Identity, address);
  header.identity.crc32c = checksum(reinterpret_cast<const std::byte*>(&header.identity) + kFrom,
                                    sizeof header.identity - kFrom);
  overwrite_with(0, header.identity);
  overwrite_with(fase::kHeapOffset + 16, header.identity.size_bytes - fase::kHeapOffset);
  ASSERT_EQ(::truncate(path_.c_str(), static_cast<off_t>(header.identity.size_bytes)), 0);
  expect_refused(EUCLEAN, PAWL_ERROR_DAMAGED_SECTIONS, "damaged header");
}

TEST_F(FaseOpen, ARootOutsideOfTheFileIsRefused) {
  open_and([](pawl_fase*) {});
  overwrite_with(offsetof(fase::Header, root), std::uint64_t{0x1000});
  expect_refused(EUCLEAN, PAWL_ERROR_DAMAGED_SECTIONS, "root");
}

// Numbers are counted up: behind the highest there are none.
TEST_F(FaseOpen, NumbersThatLeaveNoneToCountUpAreRefused) {
  open_and([](pawl_fase*) {});
  constexpr std::uint64_t kHighest = ~std::uint64_t{0};
  overwrite_with(offsetof(fase::Header, scheme), fase::SchemeRecord{0, kHighest, 0});
  expect_refused(EUCLEAN, PAWL_ERROR_DAMAGED_SECTIONS, "number");
  overwrite_with(offsetof(fase::Header, scheme), fase::SchemeRecord{0, 0, 0});
  overwrite_with(offsetof(fase::Header, logs_used), std::uint64_t{1});
  overwrite_with(fase::kLogsOffset, fase::BlockEntry{kHighest, 0});
  expect_refused(EUCLEAN, PAWL_ERROR_DAMAGED_SECTIONS, "number");
  overwrite_with(fase::kLogsOffset, fase::BlockEntry{});
  overwrite_with(fase::kLogsOffset + offsetof(fase::LogArea, frames), kHighest);
  expect_refused(EUCLEAN, PAWL_ERROR_DAMAGED_SECTIONS, "number");
}

// Two logs name a block, and one of them as allocated behind its frame.
TEST_F(FaseOpen, LogsThatNameTheSameBlockAreRefused) {
  open_and([](pawl_fase* fase) { test::make_accounts(fase); });
  const test::FileImage before = test::FileImage::read(path_);
  const auto run = [this] {
    open_and([](pawl_fase* fase) {
      Account* const accounts = accounts_of(fase);
      test::leave_note(fase, accounts, accounts + 1, accounts + 2, nullptr);
    });
  };
  std::vector<fase::FoundFrame> chain;
  for (std::uint64_t event = 1; chain.empty() || chain.back().entries == 0; ++event) {
    before.write(path_);
    ASSERT_TRUE(test::crashes(before, run, event, test::Unfenced::kept, 0));
    const auto looked = fase::look_at_file(path_);
    if (!looked.value().unfinished.empty()) chain = looked.value().unfinished[0];
  }
  const std::string log = test::read_file(path_).substr(fase::kLogsOffset, fase::kLogBytes);
  overwrite(static_cast<off_t>(fase::kLogsOffset + fase::kLogBytes), log);
  overwrite_with(offsetof(fase::Header, logs_used), std::uint64_t{2});
  overwrite_with(fase::kLogsOffset + offsetof(fase::LogArea, frames) +
                     chain.back().name.place * sizeof(fase::FramePlace) + 2 * fase::kWordBytes,
                 chain.back().list << fase::kListShift);
  expect_refused(EUCLEAN, PAWL_ERROR_DAMAGED_SECTIONS, "block");
}

TEST_F(FaseOpen, AnEndThatFreesWhatIsNoBlockIsRefused) {
  open_and([](pawl_fase*) {});
  overwrite_with(offsetof(fase::Header, logs_used), std::uint64_t{1});
  // Number 1, one line; an end with one block.
  const std::array<std::uint64_t, 4> end{1 << fase::kNumberShift | 1, 1, 1 << fase::kListShift,
                                         0x1234560};
  overwrite_with(fase::kLogsOffset + offsetof(fase::LogArea, frames), end);
  expect_refused(EUCLEAN, PAWL_ERROR_DAMAGED_SECTIONS, "block");
}

TEST_F(FaseOpen, ACutOneIsRefused) {
  open_and([](pawl_fase*) {});
  ASSERT_EQ(::truncate(path_.c_str(), 1 << 20), 0);
  expect_refused(EUCLEAN, PAWL_ERROR_DAMAGED_SECTIONS, "cut");
}

TEST_F(FaseOpen, ItIsNotClosedUnderASection) {
  open_and([](pawl_fase* fase) {
    auto* const accounts = test::make_accounts(fase);
    ASSERT_EQ(pawl_fase_mutex_lock(&accounts[0].mutex), 0);
    EXPECT_EQ(pawl_fase_close(fase), -1);
    EXPECT_EQ(errno, EBUSY);
    EXPECT_EQ(pawl_last_error_code(), PAWL_ERROR_STILL_OPEN);
    ASSERT_EQ(pawl_fase_mutex_unlock(&accounts[0].mutex, nullptr, 0, nullptr), 0);
  });
}

TEST_F(FaseOpen, LocksOfADeadProcessAreFree) {
  open_and([](pawl_fase* fase) { test::make_accounts(fase); });
  EXPECT_EQ(run_in_child([this] {
              Account* const accounts = accounts_of(open());
              pawl_fase_mutex_lock(&accounts[0].mutex);
              ::_exit(42);
            }),
            42);
  open_and([](pawl_fase* fase) {
    Account* const accounts = accounts_of(fase);
    EXPECT_EQ(pawl_fase_mutex_trylock(&accounts[0].mutex), 0);
    EXPECT_EQ(pawl_fase_mutex_unlock(&accounts[0].mutex, nullptr, 0, nullptr), 0);
  });
}

// --- descriptors
// ----------------------------------------------------------------------------------

// A program that becomes a daemon closes "all" of them, and opens others.
TEST_F(FaseOpen, AnotherFileGotTheSpaceOfABlockAndLostItsLock) {
  const std::string other_path = directory_ / "other";
  struct flock lock = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
  int number = -1;
  open_and([&](pawl_fase* fase) {
    number = 3;
    while (name_of_descriptor(number) != path_) ASSERT_LT(++number, 1000);
    const int other = ::open(other_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(::dup3(other, number, O_CLOEXEC), number);
    ::close(other);
    ASSERT_EQ(::fcntl(number, F_OFD_SETLK, &lock), 0);
    EXPECT_EQ(pawl_fase_malloc(fase, kSizeBytes / 2), nullptr);
    EXPECT_EQ(errno, EIO);
    EXPECT_EQ(pawl_last_error_code(), PAWL_ERROR_DESCRIPTOR_CLOSED) << pawl_last_error();
    EXPECT_EQ(run_in_child([&] { expect_refused(EPERM, PAWL_ERROR_FORKED_CHILD, "fork"); }), 0);
  });
  struct stat status{};
  ASSERT_EQ(::fstat(number, &status), 0);
  EXPECT_EQ(status.st_size, 0);
  EXPECT_EQ(status.st_blocks, 0);
  const int again = ::open(other_path.c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_NE(::fcntl(again, F_OFD_SETLK, &lock), 0);
  ::close(again);
  ::close(number);
  open_and([](pawl_fase* fase) { EXPECT_NE(pawl_fase_malloc(fase, kSizeBytes / 2), nullptr); });
}

// --- another program
// -------------------------------------------------------------------------------

TEST_F(FaseOpen, AnotherProgramDoesNotFinishWhatWasInterrupted) {
  interrupt();
  const auto looked = fase::look_at_file(path_);
  ASSERT_TRUE(looked.ok());
  ASSERT_EQ(looked.value().unfinished.size(), 1u);
  EXPECT_EQ(looked.value().unfinished[0].back().locks.size(), 1u);
  EXPECT_EQ(looked.value().fingerprint, fase::Program::own().fingerprint());
  // As if the last program had been another one.
  const std::string fingerprint =
      test::read_file(path_).substr(offsetof(fase::Header, program), sizeof(fase::Fingerprint));
  overwrite(offsetof(fase::Header, program), "xxxx");
  expect_refused(ENOEXEC, PAWL_ERROR_OTHER_PROGRAM, "pawl fase recover --binary");
  expect_refused(ENOEXEC, PAWL_ERROR_OTHER_PROGRAM, "pawl fase recover --binary");
  overwrite(offsetof(fase::Header, program), fingerprint);
  open_and([](pawl_fase* fase) { EXPECT_EQ(accounts_of(fase)[1].transfers, 1u); });
}

TEST_F(FaseOpen, AProgramRecoversByOrder) {
  interrupt();
  EXPECT_EQ(run_in_child([this] {
              ::setenv(fase::kRecoverVariable, path_.c_str(), 1);
              ::execl("/proc/self/exe", "recovers", nullptr);
            }),
            0);
  EXPECT_TRUE(fase::look_at_file(path_).value().unfinished.empty());
  open_and([](pawl_fase* fase) { EXPECT_EQ(accounts_of(fase)[1].transfers, 1u); });
}

TEST_F(FaseOpen, TheFingerprintIsThatOfTheFile) {
  EXPECT_FALSE(fase::Program::own().fingerprint().empty());
  EXPECT_EQ(fase::fingerprint_of_file("/proc/self/exe").value(),
            fase::Program::own().fingerprint());
}

// --- space
// ----------------------------------------------------------------------------------------

TEST_F(FaseOpen, WhereThereIsNoSpaceTheCallSaysSo) {
  open_and([](pawl_fase* fase) {
    std::size_t blocks = 0;
    while (pawl_fase_malloc(fase, 10000) != nullptr) ASSERT_LT(++blocks, kSizeBytes / 10000);
    EXPECT_EQ(errno, ENOMEM) << pawl_last_error();
    EXPECT_EQ(pawl_last_error_code(), PAWL_ERROR_HEAP_FULL);
    EXPECT_GT(blocks, kSizeBytes / 10000 / 2);
  });
}

// A copy has holes where nothing was stored yet.
void expect_a_copy_is_refused_on_a_full_disk(const test::LoopFileSystem& disk,
                                             const std::string& how_to_copy) {
  pawl_fase_options options;
  ASSERT_EQ(pawl_fase_options_init(&options), 0);
  options.size_bytes_max = 4 << 20;
  constexpr std::size_t kBlockBytes = 1 << 20;
  const std::string original = disk / "original";
  const std::string copy = disk / "copy";
  const auto open = [&](const std::string& path) { return pawl_fase_open(path.c_str(), &options); };
  const auto use = [&](pawl_fase* fase) {
    ASSERT_NE(fase, nullptr) << pawl_last_error();
    void* const root = pawl_fase_root(fase);
    std::memset(root, 1, kBlockBytes);
    EXPECT_EQ(pawl_fase_persist(root, kBlockBytes), 0);
    EXPECT_EQ(pawl_fase_close(fase), 0);
  };
  pawl_fase* const fase = open(original);
  ASSERT_NE(fase, nullptr) << pawl_last_error();
  EXPECT_EQ(pawl_fase_set_root(fase, pawl_fase_malloc(fase, kBlockBytes)), 0);
  EXPECT_EQ(pawl_fase_close(fase), 0);
  disk.fill();
  use(open(original));
  disk.empty();
  ASSERT_EQ(std::system((how_to_copy + " " + original + " " + copy).c_str()), 0);
  disk.fill();
  EXPECT_EQ(open(copy), nullptr);
  EXPECT_EQ(errno, ENOSPC) << pawl_last_error();
  disk.empty();
  use(open(copy));
  disk.fill();
  use(open(copy));
}

TEST(FaseOpenOnAFullDisk, ACopyEndedItsProgram) {
  for (const char* const type : {"tmpfs", "ext4"}) {
    const test::LoopFileSystem disk(type, std::uint64_t{64} << 20);
    if (!disk.is_mounted()) GTEST_SKIP() << "to mount takes root, and the tools of " << type;
    expect_a_copy_is_refused_on_a_full_disk(disk, "cp --sparse=always");
  }
}

TEST(FaseOpenOnAFullDisk, ACopyThatSharesItsBlocksEndedItsProgram) {
  const test::LoopFileSystem disk("xfs", std::uint64_t{320} << 20);
  if (!disk.is_mounted()) GTEST_SKIP() << "to mount takes root, and the tools of XFS";
  expect_a_copy_is_refused_on_a_full_disk(disk, "cp --reflink=always");
}

// As NFS, and many a server of FUSE.
TEST_F(FaseOpen, WhereSpaceIsOnlyGivenByModeZeroNoFileCouldBeMade) {
  EXPECT_EQ(run_in_child([this] {
              if (!test::refuse_calls({{SYS_fallocate, EOPNOTSUPP, FALLOC_FL_KEEP_SIZE}})) return;
              pawl_fase* const fase = open();
              ASSERT_NE(fase, nullptr) << pawl_last_error();
              EXPECT_NE(pawl_fase_malloc(fase, kSizeBytes / 2), nullptr) << pawl_last_error();
              EXPECT_EQ(pawl_fase_close(fase), 0);
            }),
            0);
}

TEST_F(FaseOpen, WhereSpaceCannotBeAskedForAFileCouldNotBeOpenedAgain) {
  open_and([](pawl_fase* fase) { EXPECT_NE(pawl_fase_malloc(fase, 100), nullptr); });
  const std::string sparse = directory_ / "sparse";
  ASSERT_EQ(std::system(("cp --sparse=always " + path_ + " " + sparse).c_str()), 0);
  ASSERT_EQ(::rename(sparse.c_str(), path_.c_str()), 0);
  const auto expect_opens = [this] {
    pawl_fase* const fase = open();
    ASSERT_NE(fase, nullptr) << pawl_last_error();
    EXPECT_EQ(pawl_fase_close(fase), 0);
  };
  for (const test::RefusedCall& refused :
       {test::RefusedCall{SYS_fallocate, EOPNOTSUPP}, test::RefusedCall{SYS_munlock, EPERM},
        test::RefusedCall{SYS_ioctl, EPERM, FS_IOC_FIEMAP}}) {
    EXPECT_EQ(run_in_child([&] {
                if (test::refuse_calls({refused})) expect_opens();
              }),
              0);
  }
}

// Stores through a mapping know no limit.
TEST_F(FaseOpen, AFilePastTheLimitOfFilesCouldNotBeOpenedAgain) {
  open_and([](pawl_fase*) {});
  EXPECT_EQ(run_in_child([this] {
              const struct rlimit limit{4096, 4096};
              ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
              pawl_fase* const fase = open();
              ASSERT_NE(fase, nullptr) << pawl_last_error();
              EXPECT_NE(pawl_fase_malloc(fase, kSizeBytes / 2), nullptr) << pawl_last_error();
              EXPECT_EQ(pawl_fase_close(fase), 0);
            }),
            0);
}

TEST_F(FaseOpen, LockingAllMemoryToComeFilledTheFile) {
  EXPECT_EQ(run_in_child([this] {
              if (::mlockall(MCL_FUTURE) != 0) return;
              if (open() == nullptr) {
                EXPECT_EQ(errno, EAGAIN) << pawl_last_error();  // RLIMIT_MEMLOCK
                return;
              }
              struct stat status{};
              ASSERT_EQ(::stat(path_.c_str(), &status), 0);
              EXPECT_LE(status.st_blocks * 512,
                        static_cast<off_t>(fase::kSchemeLogsOffset + 2 * fase::kLogBytes));
            }),
            0);
}

}  // namespace
}  // namespace pawl
