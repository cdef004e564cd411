// One writer to a file (law 9), whatever it is called: by hard links, after renames, in copies, and
// where the file system keeps no mark.  The system call that sets a mark is this program's: what
// happens before it is a test's to say.
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "mapping/group.h"
#include "medium/held_journal.h"
#include "medium/new_file.h"
#include "pawl/pawl.h"
#include "support/locks_of_another.h"
#include "support/open_mapping.h"
#include "support/refused_calls.h"
#include "support/temporary_directory.h"
#include "support/time_namespace.h"

namespace {

std::function<void()> before_mark;
std::function<void()> behind_mark;
bool has_room_for_marks = true;

}  // namespace

extern "C" int fsetxattr(int fd, const char* name, const void* value, std::size_t size,
                         int flags) noexcept {
  if (before_mark) std::exchange(before_mark, {})();
  if (!has_room_for_marks) {
    errno = ENOSPC;
    return -1;
  }
  const auto result = static_cast<int>(::syscall(SYS_fsetxattr, fd, name, value, size, flags));
  if (result == 0 && behind_mark) std::exchange(behind_mark, {})();
  return result;
}

namespace pawl {
namespace {

namespace fs = std::filesystem;
using test::Opened;

Options options() {
  Options chosen = test::options_for(ApplyChoice::async);
  chosen.journal_size_bytes = kJournalSizeMin;
  return chosen;
}

// Another process that has mapped a file, has made a commit of 'b' in it, and waits to be killed.
class Holder {
 public:
  explicit Holder(const std::string& path) {
    int told[2];
    EXPECT_EQ(::pipe(told), 0);
    process_ = ::fork();
    if (process_ == 0) {
      const Opened mapping(path, options());
      mapping.bytes()[0] = 'b';
      const char word = mapping.commit().ok() ? 'y' : 'n';
      if (::write(told[1], &word, 1) == 1) ::pause();
      ::_exit(1);
    }
    char word = 'n';
    EXPECT_EQ(::read(told[0], &word, 1), 1);
    EXPECT_EQ(word, 'y');
    ::close(told[0]);
    ::close(told[1]);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() { kill(); }
  void kill() {
    if (process_ == 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  pid_t process_ = 0;
};

class OneWriter : public ::testing::Test {
 protected:
  OneWriter() { test::write_file(file_, std::string(2 * kPageBytes, 'a')); }
  void SetUp() override {
    if (!open_block_medium(file_, false).value()->can_mark())
      GTEST_SKIP() << "this file system keeps no attributes";
  }
  void TearDown() override {
    before_mark = {};
    behind_mark = {};
    has_room_for_marks = true;
    ::unsetenv(kJournalElsewhere);
  }

  static Status open(const std::string& path) { return test::try_open(path, options()).status(); }
  static Status recover_file(const std::string& path, bool accept_loss = false) {
    auto medium = open_block_medium(path, false);
    return medium.ok() ? recover(*medium.value(), accept_loss).status() : medium.status();
  }
  // Leaves what a crash leaves behind the mark of an opening: the journal is not formatted yet.
  static void die_in_opening(const std::string& path) {
    const pid_t child = ::fork();
    if (child == 0) {
      behind_mark = [] { ::raise(SIGKILL); };
      ::_exit(open(path).ok() ? 1 : 2);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_TRUE(open_block_medium(path, false).value()->mark().value()->is_opening);
  }
  static void commit_and_close(const std::string& path, char value) {
    const Opened mapping(path, options());
    ASSERT_NE(mapping.bytes(), nullptr);
    mapping.bytes()[0] = value;
    ASSERT_TRUE(mapping.commit().ok());
    ASSERT_EQ(mapping->close().text(), "");
  }
  static void expect_busy(const std::string& path) {
    for (const Status& status : {open(path), recover_file(path), recover_file(path, true)}) {
      EXPECT_EQ(status.error_number(), EBUSY) << path << ": " << status.text();
      EXPECT_EQ(status.text().find("accept-loss"), std::string::npos) << status.text();
    }
  }
  static void expect_recovered(const std::string& path) {
    EXPECT_EQ(recover_file(path).text(), "");
    EXPECT_EQ(test::read_file(path).substr(0, 1), "b") << path;
  }
  // Refused, with what to do, and nothing is given up.
  static void expect_refused(const std::string& path, int error_number, pawl_error code,
                             const std::string& text) {
    for (const Status& status : {open(path), recover_file(path)}) {
      EXPECT_EQ(status.error_number(), error_number) << path << ": " << status.text();
      EXPECT_EQ(status.code(), code) << path << ": " << status.text();
      EXPECT_NE(status.text().find(text), std::string::npos) << status.text();
    }
  }
  // With its attributes.
  static void copy(const std::string& from, const std::string& to) {
    fs::copy_file(from, to);
    char mark[8192];
    const ssize_t length = ::getxattr(from.c_str(), "user.pawl", mark, sizeof mark);
    if (length < 0) return;
    ASSERT_EQ(::setxattr(to.c_str(), "user.pawl", mark, static_cast<std::size_t>(length), 0), 0);
  }

  const test::TemporaryDirectory directory_;
  const std::string file_ = directory_ / "file";
  const std::string journal_ = file_ + ".pawl";
  const std::string other_ = directory_ / "other";
  const std::string other_journal_ = other_ + ".pawl";
};

TEST_F(OneWriter, IsThatOfEveryLinkOfAFile) {
  fs::create_hard_link(file_, other_);
  Holder holder(file_);
  expect_busy(other_);
  expect_busy(file_);
  holder.kill();
  expect_refused(other_, ENODATA, PAWL_ERROR_MOVED_JOURNAL, "rename that to");
  EXPECT_EQ(recover_file(other_, true).error_number(), ENODATA) << "the journal is there";
  expect_recovered(file_);
  EXPECT_TRUE(open(other_).ok());
}

// Both have looked, and neither has a mark yet.
TEST_F(OneWriter, IsOneOfTwoThatOpenTwoLinksAtOnce) {
  fs::create_hard_link(file_, other_);
  std::unique_ptr<Mapping> winner;
  before_mark = [&] { winner = std::move(test::try_open(other_, options()).value()); };
  const Status late = open(file_);
  EXPECT_EQ(late.error_number(), EBUSY) << late.text();
  ASSERT_NE(winner, nullptr);
  EXPECT_FALSE(fs::exists(journal_)) << "the loser left a journal";
  EXPECT_TRUE(open_block_medium(file_, false).value()->mark().value().has_value())
      << "the loser took the winner's mark away";
  expect_busy(file_);
  EXPECT_TRUE(winner->close().ok());
  EXPECT_EQ(open(file_).text(), "");
}

TEST_F(OneWriter, IsThatOfAFileThatWasRenamedWhileItWasOpen) {
  Holder holder(file_);
  fs::rename(file_, other_);
  expect_busy(other_);
  test::write_file(file_, "another file of the old name");
  EXPECT_EQ(open(file_).error_number(), EBUSY);
  fs::remove(file_);
  fs::rename(journal_, other_journal_);
  expect_busy(other_);
  fs::rename(other_journal_, directory_ / "elsewhere");
  expect_busy(other_);
  fs::rename(directory_ / "elsewhere", other_journal_);
  holder.kill();
  expect_recovered(other_);
}

TEST_F(OneWriter, IsToldWhereTheJournalOfARenamedFileIs) {
  Holder(file_).kill();
  fs::rename(file_, other_);
  expect_refused(other_, ENODATA, PAWL_ERROR_MOVED_JOURNAL, journal_);
  EXPECT_EQ(recover_file(other_, true).error_number(), ENODATA) << "the journal is there";
  EXPECT_TRUE(fs::exists(journal_));
  fs::rename(journal_, other_journal_);
  expect_recovered(other_);
}

// A copy of the journal has the id, and not the lock.
TEST_F(OneWriter, IsNotReplacedByACopyOfItsJournal) {
  const Holder holder(file_);
  fs::rename(file_, other_);
  fs::copy_file(journal_, other_journal_);
  expect_busy(other_);
}

TEST_F(OneWriter, LeavesItsJournalToTheFileThatACopyIsOf) {
  Holder holder(file_);
  copy(file_, other_);
  expect_refused(other_, ENODATA, PAWL_ERROR_COPIED_FILE, "is a copy");
  holder.kill();
  expect_refused(other_, ENODATA, PAWL_ERROR_COPIED_FILE, "is a copy");
  fs::rename(journal_, other_journal_);
  expect_refused(other_, EBADMSG, PAWL_ERROR_JOURNAL_OF_ORIGINAL, "is a copy");
  EXPECT_EQ(recover_file(other_, true).error_number(), EBADMSG);
  fs::rename(other_journal_, journal_);
  EXPECT_EQ(recover_file(other_, true).text(), "");
  EXPECT_TRUE(fs::exists(journal_));
  expect_recovered(file_);
}

TEST_F(OneWriter, OfACopyWithACopyOfTheJournalIsItsOwn) {
  Holder(file_).kill();
  copy(file_, other_);
  fs::copy_file(journal_, other_journal_);
  const Holder holder(other_);
  expect_recovered(file_);
  expect_busy(other_);
}

// The journal of one crash is not replayed after another.
TEST_F(OneWriter, RefusesAJournalOfAnEarlierLife) {
  Holder(file_).kill();
  fs::copy_file(journal_, other_journal_);
  {
    const Opened mapping(file_, options());
    mapping.bytes()[0] = 'c';
    ASSERT_TRUE(mapping.commit().ok());
  }
  fs::rename(journal_, directory_ / "newest");
  fs::rename(other_journal_, journal_);
  expect_refused(file_, EBADMSG, PAWL_ERROR_FOREIGN_JOURNAL, "is the journal of another file");
  fs::rename(directory_ / "newest", journal_);
  EXPECT_TRUE(recover_file(file_).ok());
  EXPECT_EQ(test::read_file(file_).substr(0, 1), "c");
}

// An older copy has records that a checkpoint dropped: in the file they undid what came later.
TEST_F(OneWriter, RefusesAnOlderCopyOfItsJournalThatTookItsPlace) {
  {
    const Holder holder(file_);
    fs::copy_file(journal_, other_journal_);
  }
  fs::rename(journal_, directory_ / "newest");
  fs::rename(other_journal_, journal_);
  expect_refused(file_, EBADMSG, PAWL_ERROR_COPIED_JOURNAL, "is a copy");
  fs::rename(directory_ / "newest", other_journal_);
  EXPECT_EQ(recover_file(file_, true).text(), "") << "for want of the original a copy will do";
}

// A journal without records was taken over for the file that stood beside it, and the file whose it
// was could not be opened any more.
TEST_F(OneWriter, LeavesAnEmptyJournalToTheFileThatItIsOf) {
  const pid_t child = ::fork();
  if (child == 0) {
    const Opened mapping(file_, options());
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  fs::rename(file_, other_);
  test::write_file(file_, std::string(kPageBytes, 'n'));
  expect_refused(file_, EBADMSG, PAWL_ERROR_FOREIGN_JOURNAL, "is the journal of another file");
  fs::rename(journal_, other_journal_);
  EXPECT_EQ(recover_file(other_).text(), "");
  EXPECT_EQ(open(file_).text(), "");
}

// A damaged first record was taken for none: the journal was to be removed, which had commits.
TEST_F(OneWriter, IsNotAskedToRemoveADamagedJournal) {
  const pid_t child = ::fork();
  if (child == 0) {
    const Opened mapping(file_, options());
    for (char value = 'b'; value < 'e'; ++value) {
      mapping.bytes()[0] = value;
      if (!mapping.commit().ok()) ::_exit(1);
    }
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  {
    std::fstream journal(journal_, std::ios::in | std::ios::out | std::ios::binary);
    constexpr std::streamoff kInTheFirstRecord = 2 * 4096 + 100;
    journal.seekp(kInTheFirstRecord).put('?');
  }
  expect_refused(file_, EBADMSG, PAWL_ERROR_DAMAGED_RECORD, "is damaged");
  ASSERT_EQ(::removexattr(file_.c_str(), "user.pawl"), 0);
  const Status refused = recover_file(file_);
  EXPECT_EQ(refused.error_number(), EBADMSG);
  EXPECT_EQ(refused.text().find("remove the journal"), std::string::npos) << refused.text();
}

// Somebody removed the mark of a file that a crash had left: no command took the journal.
TEST_F(OneWriter, OfAFileWithoutItsMarkIsTakenWhenThatIsAccepted) {
  Holder(file_).kill();
  ASSERT_EQ(::removexattr(file_.c_str(), "user.pawl"), 0);
  expect_refused(file_, EBADMSG, PAWL_ERROR_MARK_REMOVED, "--accept-loss");
  EXPECT_EQ(recover_file(file_, true).text(), "");
  EXPECT_EQ(test::read_file(file_).substr(0, 1), "b");
}

// A tool that restores attributes, or setfattr(1), removed the mark of a file that was open;
// another name of it was then opened for writing beside the first.
TEST_F(OneWriter, IsFoundWhenItsMarkWasTakenAway) {
  fs::create_hard_link(file_, other_);
  Holder holder(file_);
  ASSERT_EQ(::removexattr(file_.c_str(), "user.pawl"), 0);
  EXPECT_EQ(open(other_).error_number(), EBUSY);
  EXPECT_LT(::getxattr(file_.c_str(), "user.pawl", nullptr, 0), 0) << "the second left its mark";
  EXPECT_FALSE(fs::exists(other_journal_));
  holder.kill();
}

// It had neither mark nor journal, so that it was taken for a file that nobody has open.
TEST_F(OneWriter, WasSaidToBeNoneWhileItHadSteppedAside) {
  fs::create_hard_link(file_, other_);
  const auto writer = std::move(test::try_open(file_, options()).value());
  ASSERT_TRUE(writer->step_aside(Mapping::Aside::is_renamed).ok());
  for (const std::string& name : {file_, other_}) {
    EXPECT_EQ(recover_file(name).error_number(), EBUSY);
    expect_busy(name);
  }
  EXPECT_EQ(writer->come_back().text(), "");
  EXPECT_EQ(writer->close().text(), "");
  EXPECT_EQ(recover_file(other_).text(), "");
}

// Others asked for the notices of each file that has no mark, in a list that any user can make
// long.
TEST_F(OneWriter, SaysByAnAttributeThatItIsToBeAskedForWithoutAMark) {
  const auto is_to_be_asked_for = [&] {
    return ::getxattr(file_.c_str(), kNoticeAttribute, nullptr, 0) >= 0;
  };
  const auto writer = std::move(test::try_open(file_, options()).value());
  EXPECT_FALSE(is_to_be_asked_for());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(writer->step_aside(Mapping::Aside::is_renamed).ok());
    EXPECT_TRUE(is_to_be_asked_for());
    EXPECT_EQ(writer->come_back().text(), "");
    EXPECT_TRUE(is_to_be_asked_for()) << "who had found no mark before found no attribute either";
  }
  EXPECT_EQ(writer->close().text(), "");
  EXPECT_FALSE(is_to_be_asked_for());
  const auto ended = std::move(test::try_open(file_, options()).value());
  ASSERT_TRUE(ended->step_aside(Mapping::Aside::is_ended).ok());
  EXPECT_FALSE(is_to_be_asked_for());
}

// A crash leaves it; then the next writer has it, and takes it away.
TEST_F(OneWriter, FindsTheAttributeOfOneThatDied) {
  ASSERT_EQ(::setxattr(file_.c_str(), kNoticeAttribute, "1", 1, 0), 0);
  const auto writer = std::move(test::try_open(file_, options()).value());
  EXPECT_GE(::getxattr(file_.c_str(), kNoticeAttribute, nullptr, 0), 0);
  EXPECT_EQ(writer->close().text(), "");
  EXPECT_LT(::getxattr(file_.c_str(), kNoticeAttribute, nullptr, 0), 0);
}

// An opener that was refused beside a writer whose mark was removed made it look as if that one had
// ended.
TEST_F(OneWriter, LeavesTheAttributeOfTheOtherThatItFinds) {
  fs::create_hard_link(file_, other_);
  const Holder holder(file_);
  ASSERT_EQ(::removexattr(file_.c_str(), "user.pawl"), 0);
  ASSERT_EQ(::setxattr(file_.c_str(), kNoticeAttribute, "1", 1, 0), 0);
  EXPECT_EQ(open(other_).error_number(), EBUSY);
  EXPECT_GE(::getxattr(file_.c_str(), kNoticeAttribute, nullptr, 0), 0);
}

// Where others gave up locks just then, the writer's was not found.
TEST_F(OneWriter, WasMissedWhileOthersGaveUpLocks) {
  constexpr off_t kLocks = 400;
  fs::create_hard_link(file_, other_);
  const test::LocksOfAnother first(directory_ / "first", kLocks);
  const Holder holder(file_);
  const test::LocksOfAnother second(directory_ / "second", kLocks);
  ASSERT_EQ(::removexattr(file_.c_str(), "user.pawl"), 0);
  for (int round = 0; round < 100 && !HasFailure(); ++round)
    EXPECT_EQ(open(other_).error_number(), EBUSY) << "in round " << round;
}

// Any user could keep all files of the machine from being opened.
TEST_F(OneWriter, OpensWhatIsFreeWhereSomebodyLockedAllNotices) {
  const int answer = test::ask_in_own_time_namespace([&] {
    const Descriptor hostile(::open("/proc/self/ns/time", O_RDONLY | O_CLOEXEC));
    struct flock all = {
        .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
    if (::fcntl(hostile.get(), F_OFD_SETLK, &all) != 0 || !open(file_).ok()) return false;
    Holder(file_).kill();
    return recover_file(file_).ok() && test::read_file(file_)[0] == 'b';
  });
  if (answer == test::kNoTimeNamespace) GTEST_SKIP() << "no time namespace can be had";
  EXPECT_EQ(answer, 0);
}

// A crash between the mark of an opening and its journal loses nothing, and stops nobody.
TEST_F(OneWriter, MayComeAfterAnOpeningThatDied) {
  fs::create_hard_link(file_, other_);
  for (const bool is_reopened : {true, false}) {
    {
      auto medium = open_block_medium(file_, false);
      ASSERT_TRUE(medium.value()->acquire_journal(true).ok());
      ASSERT_TRUE(medium.value()->claim(JournalId{}).ok());
      expect_busy(other_);
    }
    ASSERT_TRUE(open_block_medium(file_, false).value()->mark().value()->is_opening);
    if (is_reopened) {
      ASSERT_TRUE(test::try_open(other_, options()).value()->close().ok());
    } else {
      EXPECT_EQ(recover_file(other_).text(), "");
    }
    EXPECT_LT(::getxattr(file_.c_str(), "user.pawl", nullptr, 0), 0);
  }
}

// On a disk that was too full for another mark the file could not be recovered.
TEST_F(OneWriter, MayComeAfterAnOpeningThatDiedOnAFullDisk) {
  {
    auto medium = open_block_medium(file_, false);
    ASSERT_TRUE(medium.value()->acquire_journal(true).ok());
    ASSERT_TRUE(medium.value()->claim(JournalId{}).ok());
  }
  has_room_for_marks = false;
  EXPECT_EQ(recover_file(file_).text(), "");
  EXPECT_LT(::getxattr(file_.c_str(), "user.pawl", nullptr, 0), 0);
}

// Journal and file were copied after a crash in the midst of an opening, with their attributes, and
// nothing showed any more that they belong together.
TEST_F(OneWriter, OfACopyThatWasMadeBehindACrashInAnOpeningWasRefused) {
  Holder(file_).kill();
  die_in_opening(file_);
  copy(file_, other_);
  fs::copy_file(journal_, other_journal_);
  die_in_opening(other_);
  expect_recovered(other_);
  // A copy of the journal beside the file itself may be older than what the file has.
  fs::rename(journal_, directory_ / "original");
  fs::copy_file(directory_ / "original", journal_);
  EXPECT_EQ(recover_file(file_).error_number(), EBADMSG);
  fs::rename(directory_ / "original", journal_);
  die_in_opening(file_);
  die_in_opening(file_);
  expect_recovered(file_);
  EXPECT_FALSE(fs::exists(journal_));
}

// The journal that the dead opening had replayed was left under the other name.  Back under that,
// the file was refused, with the advice to take the old records over the newer commit.
TEST_F(OneWriter, LeftTheJournalOfAnOpeningThatDiedUnderAnotherName) {
  enum class Way { opened, recovered, opened_by_link };
  for (const Way way : {Way::opened, Way::recovered, Way::opened_by_link}) {
    Holder(file_).kill();
    die_in_opening(file_);
    if (way == Way::opened_by_link)
      fs::create_hard_link(file_, other_);
    else
      fs::rename(file_, other_);
    if (way == Way::recovered) {
      EXPECT_EQ(recover_file(other_).text(), "");
    }
    commit_and_close(other_, 'z');
    EXPECT_FALSE(fs::exists(journal_));
    fs::rename(other_, file_);
    fs::remove(other_);
    EXPECT_EQ(recover_file(file_).text(), "");
    EXPECT_EQ(test::read_file(file_).substr(0, 1), "z");
  }
}

// As before, where a journal without records stands beside the other name.
TEST_F(OneWriter, LeftTheJournalOfAnOpeningThatDiedForAnEmptyOne) {
  fs::create_hard_link(file_, other_);
  {
    auto mapping = test::try_open(other_, options());
    ASSERT_TRUE(mapping.ok());
    fs::copy_file(other_journal_, directory_ / "empty");
    ASSERT_TRUE(mapping.value()->close().ok());
  }
  Holder(file_).kill();
  die_in_opening(file_);
  fs::rename(directory_ / "empty", other_journal_);
  commit_and_close(other_, 'z');
  EXPECT_FALSE(fs::exists(journal_));
  EXPECT_EQ(recover_file(file_).text(), "");
  EXPECT_EQ(test::read_file(file_).substr(0, 1), "z");
}

// Who may write the file says by its mark which journal that is.
TEST_F(OneWriter, EmptiesNoJournalOfAnotherFileThatTheMarkOfItsOpeningNames) {
  const std::string victim = directory_ / "victim";
  test::write_file(victim, std::string(2 * kPageBytes, 'a'));
  Holder(victim).kill();
  const std::string before = test::read_file(victim + ".pawl");
  die_in_opening(file_);
  auto mark = open_block_medium(file_, false).value()->mark().value();
  ASSERT_TRUE(mark.has_value());
  auto medium = open_block_medium(victim, true);
  const FileIdentity journal = medium.value()->journal_identity().value();
  const auto numbers = [](const FileIdentity& identity) {
    return std::to_string(identity.inode) + ":" + std::to_string(identity.birth_time_ns) + " ";
  };
  const std::string id(32, '0');
  const std::string text = "2 " + id + " opening " + numbers(mark->file) + numbers(journal) + id +
                           " " + victim + ".pawl";
  ASSERT_EQ(::setxattr(file_.c_str(), "user.pawl", text.data(), text.size(), 0), 0);
  commit_and_close(file_, 'z');
  EXPECT_EQ(test::read_file(victim + ".pawl"), before);
  expect_recovered(victim);
}

// Runs `work`, a test with these calls refused, in a process of its own; false where that cannot be
// had.
bool with_refused(const std::vector<test::RefusedCall>& calls, const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!test::refuse_calls(calls)) ::_exit(2);
    work();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) return false;
  EXPECT_EQ(status, 0);
  return true;
}

TEST_F(OneWriter, IsKnownWhereTheFileSystemKeepsNoMark) {
  const auto work = [&] {
    fs::create_hard_link(file_, other_);
    Holder holder(file_);
    EXPECT_EQ(open(other_).error_number(), EBUSY);
    fs::remove(other_);
    fs::rename(file_, other_);
    EXPECT_EQ(open(other_).error_number(), EBUSY);
    fs::rename(other_, file_);
    holder.kill();
    expect_recovered(file_);
  };
  if (!with_refused({{SYS_fgetxattr, ENOTSUP}, {SYS_fsetxattr, ENOTSUP}}, work))
    GTEST_SKIP() << "no filter of system calls";
}

// One failed call while the file was opened: its mark named a journal without a birth, and behind a
// crash the journal was refused as a copy.
TEST_F(OneWriter, OpenedAFileWhoseBirthCouldNotBeAskedFor) {
  for (const int failure : {EIO, EINTR}) {
    if (!with_refused({{SYS_statx, failure}},
                      [&] { EXPECT_EQ(open(file_).error_number(), failure); }))
      GTEST_SKIP() << "no filter of system calls";
    EXPECT_FALSE(fs::exists(journal_));
    EXPECT_FALSE(open_block_medium(file_, false).value()->mark().value().has_value());
  }
  // Where the kernel does not know the question there is no birth.
  with_refused({{SYS_statx, ENOSYS}}, [&] {
    Holder(file_).kill();
    expect_recovered(file_);
  });
}

// Where there are no birth times the inode number alone named the journal, and a copy of it that
// was made in its place gets that: it was replayed.
TEST_F(OneWriter, TookAnOlderCopyOfItsJournalWhereThereAreNoBirths) {
  const auto work = [&] {
    {
      const Holder holder(file_);
      fs::copy_file(journal_, other_journal_);
    }
    const FileIdentity original =
        open_block_medium(file_, true).value()->journal_identity().value();
    if (original.birth_time_ns == 0) return;  // nor any generations
    fs::rename(journal_, directory_ / "newest");
    const int newest = ::open((directory_ / "newest").c_str(), O_RDONLY);
    fs::rename(other_journal_, journal_);
    expect_refused(file_, EBADMSG, PAWL_ERROR_COPIED_JOURNAL, "is a copy");
    // Now with its number.
    ::close(newest);
    fs::remove(directory_ / "newest");
    constexpr int kFilesMax = 2000;
    for (int i = 0; i < kFilesMax; ++i) {
      const std::string made = directory_ / ("made" + std::to_string(i));
      test::write_file(made, test::read_file(journal_));
      struct stat status{};
      ASSERT_EQ(::stat(made.c_str(), &status), 0);
      if (status.st_ino != original.inode) continue;
      fs::rename(made, journal_);
      expect_refused(file_, EBADMSG, PAWL_ERROR_COPIED_JOURNAL, "is a copy");
      EXPECT_EQ(recover_file(file_, true).text(), "");
      return;
    }
  };
  if (!with_refused({{SYS_statx, ENOSYS}}, work)) GTEST_SKIP() << "no filter of system calls";
}

// The writer had to do without births, and the next opener has not: the two numbers were compared.
TEST_F(OneWriter, TookAnOlderCopyOfItsJournalWhereTheWriterAloneHadNoBirths) {
  const auto work = [&] {
    const Holder holder(file_);
    fs::copy_file(journal_, other_journal_);
  };
  if (!with_refused({{SYS_statx, ENOSYS}}, work)) GTEST_SKIP() << "no filter of system calls";
  if (open_block_medium(file_, true).value()->identity().generation == 0)
    GTEST_SKIP() << "this file system keeps no generations";
  fs::rename(journal_, directory_ / "newest");
  fs::rename(other_journal_, journal_);
  expect_refused(file_, EBADMSG, PAWL_ERROR_COPIED_JOURNAL, "is a copy");
  fs::rename(directory_ / "newest", journal_);
  expect_recovered(file_);
}

// Where ext4 was an ext3 an inode gets its place for a birth with the first change of the mark, and
// the file that a crash left was refused by everything as a copy of itself.
TEST_F(OneWriter, RefusedAFileWhoseInodeGotABirthMeanwhile) {
  Holder(file_).kill();
  const FileIdentity known = open_block_medium(file_, true).value()->identity();
  if (known.generation == 0) GTEST_SKIP() << "this file system keeps no generations";
  std::string mark(PATH_MAX, '\0');
  const ssize_t length = ::getxattr(file_.c_str(), kMarkAttribute, mark.data(), mark.size());
  ASSERT_GT(length, 0);
  mark.resize(static_cast<std::size_t>(length));
  const std::string birth = ":" + std::to_string(known.birth_time_ns);
  ASSERT_NE(mark.find(birth), std::string::npos) << mark;
  mark.replace(mark.find(birth), birth.size(), ":" + std::to_string(known.generation));
  ASSERT_EQ(::setxattr(file_.c_str(), kMarkAttribute, mark.data(), mark.size(), 0), 0);
  expect_recovered(file_);
}

// And where neither number can be asked for any more, nothing shows that it is a copy.
TEST_F(OneWriter, RecoversAFileWhoseBirthCannotBeAskedForAnyMore) {
  Holder(file_).kill();
  if (!with_refused({{SYS_statx, ENOSYS}}, [&] { expect_recovered(file_); }))
    GTEST_SKIP() << "no filter of system calls";
}

// Who may only read a journal can lock it, and was called a writer.
TEST_F(OneWriter, WasSaidToBeWhoMayOnlyReadTheJournal) {
  Holder(file_).kill();
  const int reader = ::open(journal_.c_str(), O_RDONLY);
  struct flock lock = lock_of_writer();
  lock.l_type = F_RDLCK;
  ASSERT_EQ(::fcntl(reader, F_OFD_SETLK, &lock), 0);
  EXPECT_FALSE(has_writer(journal_).value());
  expect_refused(file_, EBUSY, PAWL_ERROR_JOURNAL_LOCKED_BY_READER, "may only read");
  ::close(reader);
  expect_recovered(file_);
}

// Whatever kept the journal from being opened, its owner was to be asked.
TEST_F(OneWriter, TookAReadOnlyMountOfTheJournalForAnotherUser) {
  Holder(file_).kill();
  die_in_opening(file_);
  fs::rename(file_, other_);
  const pid_t child = ::fork();
  if (child == 0) {
    const char* const at = journal_.c_str();
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount(at, at, nullptr, MS_BIND, nullptr) != 0 ||
        ::mount(nullptr, at, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) != 0)
      ::_exit(2);
    const Status refused = recover_file(other_);
    EXPECT_EQ(refused.error_number(), EROFS) << refused.text();
    EXPECT_EQ(refused.code(), PAWL_ERROR_READ_ONLY_FILE_SYSTEM) << refused.text();
    ::_exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this user cannot mount";
  EXPECT_EQ(status, 0);
  expect_recovered(other_);
}

// The program was ended.
TEST_F(OneWriter, WasAbortedWhereNoRandomNumberIsToBeHad) {
  for (const int failure : {EINTR, EPERM}) {
    if (!with_refused({{SYS_getrandom, failure}},
                      [&] { EXPECT_EQ(open(file_).error_number(), failure); }))
      GTEST_SKIP() << "no filter of system calls";
  }
  EXPECT_TRUE(open(file_).ok());
}

// That the kernel did not answer counted as a no.
TEST_F(OneWriter, WasMissedWhereItsLockCouldNotBeAskedFor) {
  const Holder holder(file_);
  EXPECT_TRUE(has_writer(journal_).value());
  if (!with_refused({{SYS_fcntl, ENOLCK, F_OFD_GETLK}},
                    [&] { EXPECT_EQ(has_writer(journal_).status().error_number(), ENOLCK); }))
    GTEST_SKIP() << "no filter of system calls";
}

// A file whose descriptor could not be asked which one it is was taken for one that is not mapped:
// its end was cut off in the file alone, with what was committed there.
TEST_F(OneWriter, CutTheFilePastItsJournal) {
  const auto work = [&] {
    const int descriptor = ::open(file_.c_str(), O_RDWR);
    ASSERT_NE(pawl_mmap(nullptr, 2 * kPageBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0),
              MAP_FAILED);
    ASSERT_TRUE(test::refuse_calls({{SYS_newfstatat, EIO}, {SYS_fstat, EIO}}));
    EXPECT_EQ(pawl_ftruncate(descriptor, 100), -1);
    EXPECT_EQ(errno, EIO);
    EXPECT_EQ(::lseek(descriptor, 0, SEEK_END), static_cast<off_t>(2 * kPageBytes));
    ::_exit(HasFailure() ? 1 : 0);
  };
  if (!with_refused({}, work)) GTEST_SKIP() << "no filter of system calls";
  EXPECT_TRUE(recover_file(file_).ok());
}

// By a process that has it not mapped: the commits of the other were gone.
TEST_F(OneWriter, HadItsFileCutByAnotherProcess) {
  const int descriptor = ::open(file_.c_str(), O_RDWR | O_CLOEXEC);
  {
    const Holder holder(file_);
    for (const off_t size : {off_t{0}, static_cast<off_t>(3 * kPageBytes)}) {
      EXPECT_EQ(pawl_ftruncate(descriptor, size), -1);
      EXPECT_EQ(errno, EBUSY) << pawl_last_error();
      EXPECT_EQ(pawl_last_error_code(), PAWL_ERROR_IN_USE) << pawl_last_error();
    }
  }
  ::close(descriptor);
}

// Its last commit stood in the journal only, and came back into a file that had got another size.
TEST_F(OneWriter, CameBackOverASizeThatWasSetBehindACrash) {
  for (const off_t size : {off_t{0}, off_t{100}, off_t{1} << 20}) {
    {
      const Holder holder(file_);
    }
    const int descriptor = ::open(file_.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_EQ(pawl_ftruncate(descriptor, size), 0) << pawl_last_error();
    ::close(descriptor);
    EXPECT_FALSE(fs::exists(journal_));
    EXPECT_EQ(pawl_recover(file_.c_str()), 0) << pawl_last_error();
    EXPECT_EQ(fs::file_size(file_), static_cast<std::uintmax_t>(size));
    fs::resize_file(file_, 4 * kPageBytes);
  }
}

// Where that cannot be done, or found out, the file is not touched.
TEST_F(OneWriter, WasCutWhereItCouldNotBeRecovered) {
  {
    const Holder holder(file_);
  }
  const auto before = fs::file_size(file_);
  const int descriptor = ::open(file_.c_str(), O_WRONLY | O_CLOEXEC);
  EXPECT_EQ(pawl_ftruncate(descriptor, 0), -1);
  ::close(descriptor);
  const auto work = [&] {
    const int other = ::open(file_.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_TRUE(test::refuse_calls({{SYS_fgetxattr, EPERM}}));
    EXPECT_EQ(pawl_ftruncate(other, 0), -1);
    EXPECT_EQ(errno, EPERM) << pawl_last_error();
    ::_exit(HasFailure() ? 1 : 0);
  };
  if (!with_refused({}, work)) GTEST_SKIP() << "no filter of system calls";
  EXPECT_EQ(fs::file_size(file_), before);
  expect_recovered(file_);
}

// With ENOSYS, as some sandboxes answer: the journal went, and the file could not be opened any
// more.
TEST_F(OneWriter, LeftItsMarkWithoutAJournal) {
  const auto work = [&] {
    const Opened mapping(file_, options());
    mapping.bytes()[0] = 'b';
    ASSERT_TRUE(mapping.commit().ok());
    ASSERT_TRUE(test::refuse_calls({{SYS_fremovexattr, ENOSYS}}));
    EXPECT_EQ(mapping->close().error_number(), ENOSYS);
    ::_exit(HasFailure() ? 1 : 0);
  };
  if (!with_refused({}, work)) GTEST_SKIP() << "no filter of system calls";
  EXPECT_TRUE(fs::exists(journal_));
  expect_recovered(file_);
}

TEST_F(OneWriter, RemovesItsJournalWhereverThatWasRenamed) {
  auto mapping = test::try_open(file_, options());
  ASSERT_TRUE(mapping.ok());
  fs::rename(file_, other_);
  fs::rename(journal_, other_journal_);
  EXPECT_TRUE(mapping.value()->close().ok());
  EXPECT_FALSE(fs::exists(other_journal_));
}

// The mark has the path of the journal, and an attribute has less room than a path may take.
TEST_F(OneWriter, OfAFileWithALongPathIsMarked) {
  std::string folder = directory_.path().string();
  constexpr std::size_t kLong = 3000;
  while (folder.size() < kLong) {
    folder += "/" + std::string(200, 'd');
    ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  }
  const std::string path = folder + "/file";
  // Where attributes have little room, others take it: what is left takes a mark without the path.
  test::write_file(path, std::string(kPageBytes, 'a'));
  std::size_t room = 1;
  while (::setxattr(path.c_str(), "user.other", std::string(room, 'x').data(), room, 0) == 0 &&
         room < 65536)
    room *= 2;
  if (room < 65536) {
    std::size_t taken = room / 2;
    for (std::size_t step = room / 4; step > 0; step /= 2) {
      const std::string value(taken + step, 'x');
      if (::setxattr(path.c_str(), "user.other", value.data(), value.size(), 0) == 0) taken += step;
    }
    const std::string value(taken > 600 ? taken - 600 : 1, 'x');
    ASSERT_EQ(::setxattr(path.c_str(), "user.other", value.data(), value.size(), XATTR_REPLACE), 0);
  }
  {
    auto mapping = test::try_open(path, options());
    ASSERT_TRUE(mapping.ok()) << mapping.status().text();
    ASSERT_TRUE(mapping.value()->close().ok());
  }
  Holder holder(path);
  holder.kill();
  fs::rename(path + ".pawl", path + ".away");
  expect_refused(path, ENODATA, PAWL_ERROR_MISSING_JOURNAL, "left open by a crash");
  fs::rename(path + ".away", path + ".pawl");
  expect_recovered(path);
}

TEST_F(OneWriter, LeavesFilesOfTheUserAlone) {
  test::write_file(journal_ + ".new", "mine");
  {
    auto mapping = test::try_open(file_, options());
    ASSERT_TRUE(mapping.ok());
    EXPECT_TRUE(mapping.value()->close().ok());
  }
  EXPECT_EQ(open(directory_ / "missing").error_number(), ENOENT);
  EXPECT_EQ(test::read_file(journal_ + ".new"), "mine");
}

TEST_F(OneWriter, MeetsNoLockOfTheProgram) {
  const int own = ::open(file_.c_str(), O_RDWR);
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  ASSERT_EQ(::flock(own, LOCK_EX), 0);
  ASSERT_EQ(::fcntl(own, F_OFD_SETLK, &whole), 0);
  const Holder holder(file_);
  const int late = ::open(file_.c_str(), O_RDWR);
  // The holder has inherited the open file, and its locks with it.
  whole.l_type = F_UNLCK;
  ASSERT_EQ(::flock(own, LOCK_UN), 0);
  ASSERT_EQ(::fcntl(own, F_OFD_SETLK, &whole), 0);
  whole.l_type = F_WRLCK;
  EXPECT_EQ(::flock(late, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(::fcntl(late, F_OFD_SETLK, &whole), 0);
  ::close(late);
  ::close(own);
}

TEST_F(OneWriter, OfAFileInAGroupIsThatOfItsLinks) {
  fs::create_hard_link(file_, other_);
  auto group = Group::open(directory_ / "group", options());
  ASSERT_TRUE(group.ok()) << group.status().text();
  {
    auto member = Group::join(group.value(), std::move(open_block_medium(file_, false).value()));
    ASSERT_TRUE(member.ok()) << member.status().text();
    expect_busy(other_);
    auto twice = Group::join(group.value(), std::move(open_block_medium(other_, false).value()));
    EXPECT_EQ(twice.status().error_number(), EBUSY) << twice.status().text();
    EXPECT_TRUE(member.value()->close().ok());
  }
  fs::create_hard_link(directory_ / "group", directory_ / "link");
  EXPECT_EQ(Group::open(directory_ / "link", options()).status().error_number(), EBUSY);
  EXPECT_TRUE(group.value()->close().ok());
}

// A bind mount of one file shows it in a directory of another file system.
TEST_F(OneWriter, KeepsItsJournalOnTheFileSystemOfItsFile) {
  const test::TemporaryDirectory memory("/dev/shm");
  const std::string shown = memory / "shown";
  test::write_file(shown, "");
  struct stat here{};
  struct stat there{};
  ASSERT_EQ(::stat(file_.c_str(), &here), 0);
  ASSERT_EQ(::stat(shown.c_str(), &there), 0);
  if (here.st_dev == there.st_dev) GTEST_SKIP() << "the tests run on /dev/shm";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount(file_.c_str(), shown.c_str(), nullptr, MS_BIND, nullptr) != 0)
      ::_exit(2);
    const Status refused = open(shown);
    if (refused.error_number() != EXDEV ||
        refused.code() != PAWL_ERROR_JOURNAL_ON_OTHER_FILE_SYSTEM)
      ::_exit(1);
    ::setenv(kJournalElsewhere, "1", 1);
    ::_exit(open(shown).ok() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this user cannot mount";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace pawl
