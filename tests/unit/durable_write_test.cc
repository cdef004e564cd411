// A commit's one write is flushed, whatever the file system makes of the flag that asks for it.
#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "medium/medium.h"
#include "support/open_mapping.h"
#include "support/refused_calls.h"
#include "support/temporary_directory.h"

namespace pawl {
namespace {

class DurableWrite : public testing::Test {
 protected:
  DurableWrite() { test::write_file(path_, std::string(4 * kPageBytes, 'a')); }

  // What the commit of a child answers that cannot flush from now on, after one that could.
  int commit_without_flushes(const std::function<void()>& before) const {
    const pid_t child = ::fork();
    if (child == 0) {
      before();
      test::Opened mapping(path_, test::options_for(ApplyChoice::async));
      mapping.bytes()[0] = 'b';
      if (!mapping.commit().ok()) ::_exit(255);
      if (!test::refuse_calls({{SYS_fdatasync, EIO}, {SYS_fsync, EIO}})) ::_exit(0);
      mapping.bytes()[0] = 'c';
      ::_exit(mapping.commit().error_number());
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status);
  }

  test::TemporaryDirectory directory_;
  const std::string path_ = directory_ / "file";
};

// FUSE with direct I/O took the flag, and asked its server for no flush: the commit was
// acknowledged, and a loss of power took it.
TEST_F(DurableWrite, WasLeftToAFlagOfWhichTheFileSystemNeedNotKnow) {
  const auto hide_the_file_system = [] {
    if (!test::refuse_calls({{SYS_fstatfs, ENOSYS}})) ::_exit(EIO);  // there are no such filters
  };
  EXPECT_EQ(commit_without_flushes(hide_the_file_system), EIO);
}

TEST_F(DurableWrite, IsOneCallWhereTheFileSystemHonoursTheFlag) {
  struct statfs file_system{};
  ASSERT_EQ(::statfs(path_.c_str(), &file_system), 0);
  if (file_system.f_type != EXT4_SUPER_MAGIC && file_system.f_type != TMPFS_MAGIC)
    GTEST_SKIP() << "neither ext4 nor tmpfs";
  EXPECT_EQ(commit_without_flushes([] {}), 0);
}

}  // namespace
}  // namespace pawl
