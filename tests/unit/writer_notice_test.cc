// The notice by which a writer is found, whatever the file is called by now.
#include "medium/writer_notice.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include <gtest/gtest.h>

#include "support/locks_of_another.h"
#include "support/temporary_directory.h"
#include "support/time_namespace.h"

namespace pawl {
namespace {

class WriterNotice : public testing::Test {
 protected:
  struct stat make(const char* name) const {
    const Descriptor file(::open((directory_ / name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    struct stat status{};
    EXPECT_EQ(::fstat(file.get(), &status), 0);
    return status;
  }
  bool is_found(const struct stat& file, Notice notice = Notice::writer) const {
    WriterNotices asked;
    const auto found = asked.others_have(file, notice);
    EXPECT_TRUE(found.ok()) << found.status().text();
    return found.ok() && found.value();
  }
  // In a process of its own.
  static bool is_true_in_child(const std::function<bool()>& ask) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(ask() ? 0 : 1);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  test::TemporaryDirectory directory_;
  const struct stat file_ = make("file");
  const struct stat other_ = make("other");
};

TEST_F(WriterNotice, IsOfOneFileAndOneKindAndGoesWithItsHolder) {
  {
    WriterNotices holder;
    ASSERT_TRUE(holder.put(file_, Notice::opener).ok());
    EXPECT_TRUE(is_found(file_, Notice::opener));
    EXPECT_FALSE(is_found(file_));
    EXPECT_FALSE(is_found(other_, Notice::opener));
    ASSERT_TRUE(holder.put(file_, Notice::writer).ok());
    EXPECT_TRUE(is_found(file_));
    const auto own = holder.others_have(file_, Notice::writer);
    EXPECT_TRUE(own.ok() && !own.value()) << "found its own";
  }
  EXPECT_FALSE(is_found(file_, Notice::opener));
  EXPECT_FALSE(is_found(file_));
}

TEST_F(WriterNotice, IsFoundByOtherUsersAndInOtherNamespaces) {
  WriterNotices holder;
  ASSERT_TRUE(holder.put(file_, Notice::writer).ok());
  EXPECT_TRUE(is_true_in_child([&] { return is_found(file_); }));
  EXPECT_TRUE(is_true_in_child([&] {
    constexpr uid_t kNobody = 65534;
    return (::geteuid() != 0 || ::setuid(kNobody) == 0) && is_found(file_);
  }));
  EXPECT_TRUE(is_true_in_child([&] {
    constexpr int kOthers =
        CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS;
    if (::unshare(kOthers) != 0) return true;  // not permitted here
    return is_found(file_);
  }));
}

TEST_F(WriterNotice, OfAParentStaysWhenAChildLetsGo) {
  WriterNotices holder;
  ASSERT_TRUE(holder.put(file_, Notice::writer).ok());
  EXPECT_TRUE(is_true_in_child([&] {
    holder.abandon();
    return is_found(file_);
  }));
  EXPECT_TRUE(is_found(file_));
}

// A child that no handler knew has the descriptor as well.
TEST_F(WriterNotice, ThatIsWithdrawnIsGoneThoughAChildLivesOn) {
  WriterNotices holder;
  ASSERT_TRUE(holder.put(file_, Notice::writer).ok());
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  holder.withdraw();
  EXPECT_FALSE(is_found(file_));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// The file opened anew got the number of the one that was closed, and was closed with it.
TEST_F(WriterNotice, WasMissedOnceTheProgramHadClosedItsDescriptor) {
  const struct stat file = make("file");
  WriterNotices holder;
  ASSERT_TRUE(holder.put(file, Notice::writer).ok());
  WriterNotices asked;
  ASSERT_TRUE(asked.others_have(file, Notice::writer).ok());
  ASSERT_EQ(::close(asked.file().number), 0);
  for (int i = 0; i < 2; ++i) {
    const auto found = asked.others_have(file, Notice::writer);
    ASSERT_TRUE(found.ok()) << found.status().text();
    EXPECT_TRUE(found.value());
  }
}

// The kernel's table of locks was read in pieces, and those that others gave up between two pieces
// moved the place of the next past a notice.
TEST_F(WriterNotice, WasMissedWhileOthersGaveUpLocks) {
  constexpr off_t kLocks = 400;
  const test::LocksOfAnother first(directory_ / "first", kLocks);
  WriterNotices holder;
  ASSERT_TRUE(holder.put(file_, Notice::writer).ok());
  const test::LocksOfAnother second(directory_ / "second", kLocks);
  for (int time = 0; time < 2000 && !HasFailure(); ++time) {
    EXPECT_TRUE(is_found(file_)) << time;
    EXPECT_FALSE(is_found(other_)) << time;
  }
}

// It says so, and is not taken for the writer of every file.
TEST_F(WriterNotice, CannotBeToldWhereSomebodyLockedAll) {
  const int answer = test::ask_in_own_time_namespace([&] {
    const Descriptor hostile(::open("/proc/self/ns/time", O_RDONLY | O_CLOEXEC));
    struct flock all = {
        .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
    if (::fcntl(hostile.get(), F_OFD_SETLK, &all) != 0) return false;
    all.l_type = F_WRLCK;
    if (::fcntl(hostile.get(), F_OFD_SETLK, &all) == 0) return false;  // others locked out
    WriterNotices holder;
    WriterNotices asked;
    if (!holder.put(file_, Notice::writer).ok()) return false;
    const Status refused = asked.others_have(file_, Notice::writer).status();
    return refused.error_number() == EBUSY && refused.code() == PAWL_ERROR_WRITERS_UNKNOWN;
  });
  if (answer == test::kNoTimeNamespace) GTEST_SKIP() << "no time namespace can be had";
  EXPECT_EQ(answer, 0);
}

}  // namespace
}  // namespace pawl
