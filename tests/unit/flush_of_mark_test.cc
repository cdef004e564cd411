// The flush behind a changed mark takes attributes, whatever other threads change and flush
// meanwhile.  The system calls are this program's: what happens during one is a test's to say.
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <functional>
#include <utility>

#include <gtest/gtest.h>

#include "medium/block_medium.h"
#include "support/temporary_directory.h"

namespace {

int full_flushes = 0;
int data_flushes = 0;
std::function<void()> before_change;
std::function<void()> during_full_flush;

void run_once(std::function<void()>& meanwhile) {
  if (meanwhile) std::exchange(meanwhile, {})();
}

}  // namespace

extern "C" {
int fsetxattr(int fd, const char* name, const void* value, std::size_t size, int flags) noexcept {
  run_once(before_change);
  return static_cast<int>(::syscall(SYS_fsetxattr, fd, name, value, size, flags));
}
int fremovexattr(int fd, const char* name) noexcept {
  run_once(before_change);
  return static_cast<int>(::syscall(SYS_fremovexattr, fd, name));
}
int fsync(int fd) {
  full_flushes += 1;
  run_once(during_full_flush);
  return static_cast<int>(::syscall(SYS_fsync, fd));
}
int fdatasync(int fd) {
  data_flushes += 1;
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}
}

namespace pawl {
namespace {

class FlushOfMark : public ::testing::Test {
 protected:
  FlushOfMark() {
    test::write_file(directory_ / "file", "bytes");
    medium_ = std::move(open_block_medium(directory_ / "file", false).value());
  }
  void SetUp() override {
    if (!medium_->can_mark()) GTEST_SKIP() << "this file system keeps no attributes";
  }
  Status flush() { return medium_->base().flush(); }
  void expect_full_flush() {
    const int before = full_flushes;
    EXPECT_TRUE(flush().ok());
    EXPECT_EQ(full_flushes, before + 1);
  }

  const Mark mark_{JournalId{}, "journal"};
  test::TemporaryDirectory directory_;
  std::unique_ptr<Medium> medium_;
};

TEST_F(FlushOfMark, IsAFullOneAndTheNextIsNot) {
  ASSERT_TRUE(medium_->set_mark(mark_).ok());
  expect_full_flush();
  const int before = data_flushes;
  EXPECT_TRUE(flush().ok());
  EXPECT_EQ(data_flushes, before + 1);
  ASSERT_TRUE(medium_->clear_mark().ok());
  expect_full_flush();
}

// As a checkpoint's in another thread.
TEST_F(FlushOfMark, IsAFullOneAlthoughAnotherCameJustBeforeTheChange) {
  before_change = [this] { EXPECT_TRUE(flush().ok()); };
  ASSERT_TRUE(medium_->set_mark(mark_).ok());
  expect_full_flush();
  before_change = [this] { EXPECT_TRUE(flush().ok()); };
  ASSERT_TRUE(medium_->clear_mark().ok());
  expect_full_flush();
}

TEST_F(FlushOfMark, IsAFullOneAlthoughAnotherWasUnderWay) {
  ASSERT_TRUE(medium_->set_mark(mark_).ok());
  during_full_flush = [this] { EXPECT_TRUE(medium_->clear_mark().ok()); };
  expect_full_flush();
  expect_full_flush();
}

TEST_F(FlushOfMark, IsAFullOneAlthoughTheChangeIsSaidToHaveFailed) {
  EXPECT_TRUE(medium_->clear_mark().ok());  // there is none
  expect_full_flush();
}

// Its writer died after it named the journal, and before it flushed the directory.
TEST_F(FlushOfMark, TheNameOfAJournalThatWasFoundIsFlushedAsOfANewOne) {
  auto first = medium_->acquire_journal(true);
  ASSERT_TRUE(first.ok()) << first.status().text();
  ASSERT_TRUE(medium_->publish_journal().ok());
  first.value().file.reset();
  medium_.reset();
  medium_ = std::move(open_block_medium(directory_ / "file", false).value());
  const auto found = medium_->acquire_journal(true);
  ASSERT_TRUE(found.ok()) << found.status().text();
  EXPECT_FALSE(found.value().is_new);
  const int before = full_flushes;
  ASSERT_TRUE(medium_->publish_journal().ok());
  EXPECT_EQ(full_flushes, before + 1);
}

}  // namespace
}  // namespace pawl
