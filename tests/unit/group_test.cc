// Files of a group move together: through commits, crashes, and each one's own recovery.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "journal/reader.h"
#include "mapping/group.h"
#include "mapping/recovery.h"
#include "medium/block_medium.h"
#include "pawl/pawl.h"
#include "support/open_mapping.h"
#include "support/temporary_directory.h"

namespace {

using pawl::test::read_file;
using pawl::test::TemporaryDirectory;
using pawl::test::write_file;

// So few that the records of some commits stay in a journal as it begins.
constexpr std::size_t kFileBytes = 2 * 4096;

struct Mapped {
  char* bytes = nullptr;
  std::size_t length = 0;
};

Mapped map_in(pawl_group* group, const std::string& path, std::size_t length = kFileBytes) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  if (std::filesystem::file_size(path) == 0) {
    EXPECT_EQ(::ftruncate(descriptor, static_cast<off_t>(length)), 0);
  }
  void* const at =
      pawl_group_mmap(group, nullptr, length, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
  const int failure = errno;
  ::close(descriptor);
  errno = failure;
  if (at == MAP_FAILED) return {};
  return {static_cast<char*>(at), length};
}

void fill(const Mapped& mapped, char value) { std::memset(mapped.bytes, value, mapped.length); }

// Runs `work` in a process that is then killed.
void run_and_kill(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

bool all_are(const std::string& content, char value) {
  return content.find_first_not_of(value) == std::string::npos && !content.empty();
}

class GroupTest : public testing::Test {
 protected:
  std::string a() const { return directory_ / "a"; }
  std::string b() const { return directory_ / "b"; }
  std::string name() const { return directory_ / "group"; }

  // Both files are x, durably; then y, durably; and in memory z.
  void crash_after_a_commit(int flags = MS_SYNC) const {
    run_and_kill([&] {
      pawl_group* const group = pawl_group_open(name().c_str(), nullptr);
      if (group == nullptr) ::_exit(10);
      const Mapped first = map_in(group, a());
      const Mapped second = map_in(group, b());
      if (first.bytes == nullptr || second.bytes == nullptr) ::_exit(11);
      for (const char value : {'x', 'y'}) {
        fill(first, value);
        fill(second, value);
        if (pawl_group_msync(group, flags) != 0 || pawl_group_wait(group) != 0) ::_exit(12);
      }
      fill(first, 'z');
      fill(second, 'z');
    });
  }
  // Both files have a commit of their own.
  void crash_after_commits_of(char in_a, char in_b) const {
    run_and_kill([&] {
      pawl_group* const group = pawl_group_open(name().c_str(), nullptr);
      if (group == nullptr) ::_exit(10);
      const Mapped first = map_in(group, a());
      const Mapped second = map_in(group, b());
      if (first.bytes == nullptr || second.bytes == nullptr) ::_exit(11);
      fill(first, in_a);
      fill(second, in_b);
      if (pawl_group_msync(group, MS_SYNC) != 0) ::_exit(12);
    });
  }
  // Another directory with all files and side files, with their attributes.
  std::string copy_of_all() const {
    const std::string folder = directory_ / "copy";
    std::filesystem::create_directory(folder);
    for (const char* const file : {"a", "b", "group"}) {
      const std::string from = directory_ / file;
      const std::string to = folder + "/" + file;
      std::filesystem::copy_file(from, to);
      std::filesystem::copy_file(from + ".pawl", to + ".pawl");
      char mark[4096];
      const ssize_t length = ::getxattr(from.c_str(), "user.pawl", mark, sizeof mark);
      EXPECT_GT(length, 0) << from;
      EXPECT_EQ(::setxattr(to.c_str(), "user.pawl", mark, static_cast<std::size_t>(length), 0), 0);
    }
    return folder;
  }
  void expect_clean(const std::string& path) const {
    EXPECT_FALSE(std::filesystem::exists(path + ".pawl")) << path;
    EXPECT_EQ(::getxattr(path.c_str(), "user.pawl", nullptr, 0), -1) << path;
  }

  TemporaryDirectory directory_;
};

// It was empty, and its journal had a commit that made it larger.
TEST_F(GroupTest, AFileThatRecoveryMadeLargerNamedAGroup) {
  write_file(name(), "");
  run_and_kill([&] {
    const int descriptor = ::open(name().c_str(), O_RDWR);
    char* const at = static_cast<char*>(
        pawl_mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0));
    if (at == MAP_FAILED || pawl_ftruncate(descriptor, kFileBytes) != 0) ::_exit(10);
    std::memset(at, 'x', kFileBytes);
    if (pawl_msync(at, kFileBytes, MS_SYNC) != 0) ::_exit(11);
  });
  EXPECT_EQ(pawl_group_open(name().c_str(), nullptr), nullptr);
  EXPECT_EQ(errno, EINVAL) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(name()), 'x'));
  expect_clean(name());
}

// With bytes it names no group any more.
TEST_F(GroupTest, TheFileOfAnOpenGroupWasGrown) {
  pawl_group* const group = pawl_group_open(name().c_str(), nullptr);
  ASSERT_NE(group, nullptr) << pawl_last_error();
  const int descriptor = ::open(name().c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_EQ(pawl_ftruncate(descriptor, 4096), -1);
  EXPECT_EQ(errno, EBUSY) << pawl_last_error();
  ::close(descriptor);
  ASSERT_EQ(pawl_group_close(group), 0) << pawl_last_error();
  EXPECT_EQ(std::filesystem::file_size(name()), 0);
}

TEST_F(GroupTest, AllFilesHaveACommitWhenTheGroupIsClosed) {
  pawl_group* const group = pawl_group_open(name().c_str(), nullptr);
  ASSERT_NE(group, nullptr) << pawl_last_error();
  const Mapped first = map_in(group, a());
  const Mapped second = map_in(group, b());
  ASSERT_NE(first.bytes, nullptr) << pawl_last_error();
  ASSERT_NE(second.bytes, nullptr) << pawl_last_error();
  fill(first, 'x');
  fill(second, 'y');
  ASSERT_EQ(pawl_group_msync(group, MS_SYNC), 0) << pawl_last_error();
  fill(first, 'z');
  EXPECT_EQ(pawl_group_close(group), -1);
  EXPECT_EQ(errno, EBUSY);
  ASSERT_EQ(pawl_munmap(first.bytes, first.length), 0) << pawl_last_error();
  ASSERT_EQ(pawl_munmap(second.bytes, second.length), 0) << pawl_last_error();
  ASSERT_EQ(pawl_group_close(group), 0) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(a()), 'x'));
  EXPECT_TRUE(all_are(read_file(b()), 'y'));
  for (const auto& path : {a(), b(), name()}) expect_clean(path);
}

TEST_F(GroupTest, OpeningTheGroupRecoversAllItsFiles) {
  crash_after_a_commit();
  pawl_group* const group = pawl_group_open(name().c_str(), nullptr);
  ASSERT_NE(group, nullptr) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(a()), 'y'));
  EXPECT_TRUE(all_are(read_file(b()), 'y'));
  for (const auto& path : {a(), b()}) expect_clean(path);
  EXPECT_EQ(pawl_group_close(group), 0) << pawl_last_error();
  expect_clean(name());
}

TEST_F(GroupTest, QueuedCommitsAreRecoveredToo) {
  crash_after_a_commit(MS_ASYNC);
  ASSERT_EQ(pawl_recover(name().c_str()), 2) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(a()), 'y'));
  EXPECT_TRUE(all_are(read_file(b()), 'y'));
  for (const auto& path : {a(), b(), name()}) expect_clean(path);
}

TEST_F(GroupTest, EachFileIsRecoveredByItself) {
  crash_after_a_commit();
  ASSERT_EQ(pawl_recover(b().c_str()), 2) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(b()), 'y'));
  expect_clean(b());
  EXPECT_TRUE(std::filesystem::exists(a() + ".pawl"));
  ASSERT_EQ(pawl_recover(a().c_str()), 2) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(a()), 'y'));
  expect_clean(a());
  EXPECT_EQ(pawl_recover(name().c_str()), 2) << pawl_last_error();
  expect_clean(name());
}

// The group's journal still has records of a file that was recovered, and changed since.
TEST_F(GroupTest, ALaterRecoveryOfTheGroupLeavesAFileThatWentOnAlone) {
  crash_after_a_commit();
  {
    const int descriptor = ::open(a().c_str(), O_RDWR);
    void* const at =
        pawl_mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
    ::close(descriptor);
    ASSERT_NE(at, MAP_FAILED) << pawl_last_error();
    EXPECT_EQ(static_cast<char*>(at)[0], 'y');
    std::memset(at, 'n', kFileBytes);
    ASSERT_EQ(pawl_msync(at, kFileBytes, MS_SYNC), 0) << pawl_last_error();
    // While it is mapped alone, too.
    ASSERT_EQ(pawl_recover(name().c_str()), 2) << pawl_last_error();
    ASSERT_EQ(pawl_munmap(at, kFileBytes), 0) << pawl_last_error();
  }
  EXPECT_TRUE(all_are(read_file(a()), 'n'));
  EXPECT_TRUE(all_are(read_file(b()), 'y'));
  for (const auto& path : {a(), b(), name()}) expect_clean(path);
}

TEST_F(GroupTest, SizesMoveWithTheCommit) {
  run_and_kill([&] {
    pawl_group* const group = pawl_group_open(name().c_str(), nullptr);
    const int first_fd = ::open(a().c_str(), O_RDWR | O_CREAT, 0600);
    const int second_fd = ::open(b().c_str(), O_RDWR | O_CREAT, 0600);
    if (::ftruncate(first_fd, 10 * 4096) != 0 || ::ftruncate(second_fd, 4096) != 0) ::_exit(10);
    const Mapped first = map_in(group, a(), 64 * 4096);
    const Mapped second = map_in(group, b(), 64 * 4096);
    std::memset(first.bytes, 'x', 10 * 4096);
    std::memset(second.bytes, 'x', 4096);
    if (pawl_group_msync(group, MS_SYNC) != 0) ::_exit(11);
    if (pawl_ftruncate(first_fd, 3000) != 0 || pawl_ftruncate(second_fd, 5000) != 0) ::_exit(12);
    second.bytes[4999] = 'e';
    if (pawl_group_msync(group, MS_SYNC) != 0) ::_exit(13);
    // Cut and grown again in one commit: zeros between.
    if (pawl_ftruncate(first_fd, 1000) != 0 || pawl_ftruncate(first_fd, 2000) != 0) ::_exit(14);
    if (pawl_group_msync(group, MS_SYNC) != 0) ::_exit(15);
    if (pawl_ftruncate(second_fd, 1) != 0) ::_exit(16);
  });
  ASSERT_EQ(pawl_recover(name().c_str()), 3) << pawl_last_error();
  EXPECT_EQ(read_file(a()), std::string(1000, 'x') + std::string(1000, '\0'));
  EXPECT_EQ(read_file(b()),
            std::string(4096, 'x') + std::string(5000 - 4096 - 1, '\0') + std::string("e"));
}

TEST_F(GroupTest, ALargeCommitGoesStraightIntoAllFiles) {
  constexpr std::size_t kLarge = std::size_t{3000} * 4096;  // two of them are over what is staged
  run_and_kill([&] {
    pawl_group* const group = pawl_group_open(name().c_str(), nullptr);
    const Mapped first = map_in(group, a(), kLarge);
    const Mapped second = map_in(group, b(), kLarge);
    fill(first, 'x');
    fill(second, 'y');
    if (pawl_group_msync(group, MS_SYNC) != 0) ::_exit(11);
    first.bytes[0] = 'f';
    second.bytes[0] = 's';
    if (pawl_group_msync(group, MS_SYNC) != 0) ::_exit(12);
  });
  ASSERT_GE(pawl_recover(name().c_str()), 1) << pawl_last_error();
  EXPECT_EQ(read_file(a()), "f" + std::string(kLarge - 1, 'x'));
  EXPECT_EQ(read_file(b()), "s" + std::string(kLarge - 1, 'y'));
}

TEST_F(GroupTest, ACommitOfOneMappingIsOfThatFileAlone) {
  run_and_kill([&] {
    pawl_group* const group = pawl_group_open(name().c_str(), nullptr);
    const Mapped first = map_in(group, a());
    const Mapped second = map_in(group, b());
    fill(first, 'x');
    fill(second, 'x');
    if (pawl_group_msync(group, MS_SYNC) != 0) ::_exit(11);
    fill(first, 'y');
    fill(second, 'y');
    if (pawl_msync(second.bytes, second.length, MS_SYNC) != 0) ::_exit(12);
  });
  ASSERT_EQ(pawl_recover(name().c_str()), 2) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(a()), 'x'));
  EXPECT_TRUE(all_are(read_file(b()), 'y'));
}

TEST_F(GroupTest, RollbackTakesAllFilesBack) {
  pawl_group* const group = pawl_group_open(name().c_str(), nullptr);
  const Mapped first = map_in(group, a());
  const Mapped second = map_in(group, b());
  fill(first, 'x');
  fill(second, 'y');
  ASSERT_EQ(pawl_group_msync(group, MS_SYNC), 0) << pawl_last_error();
  fill(first, 'z');
  fill(second, 'z');
  ASSERT_EQ(pawl_group_msync(group, MS_INVALIDATE), 0) << pawl_last_error();
  EXPECT_TRUE(all_are({first.bytes, first.length}, 'x'));
  EXPECT_TRUE(all_are({second.bytes, second.length}, 'y'));
  EXPECT_EQ(pawl_munmap(first.bytes, first.length), 0) << pawl_last_error();
  EXPECT_EQ(pawl_munmap(second.bytes, second.length), 0) << pawl_last_error();
  EXPECT_EQ(pawl_group_close(group), 0) << pawl_last_error();
}

// Records of a file that left must not be taken for those of the next one with its number.
TEST_F(GroupTest, AFileThatLeftIsNotTouchedByWhatComesAfter) {
  run_and_kill([&] {
    pawl_group* const group = pawl_group_open(name().c_str(), nullptr);
    const Mapped first = map_in(group, a());
    const Mapped second = map_in(group, b());
    fill(first, 'x');
    fill(second, 'x');
    if (pawl_group_msync(group, MS_SYNC) != 0) ::_exit(11);
    if (pawl_munmap(first.bytes, first.length) != 0) ::_exit(12);
    if (::truncate(a().c_str(), 10) != 0) ::_exit(13);
    const Mapped third = map_in(group, directory_ / "c");
    fill(third, 'c');
    fill(second, 'y');
    if (pawl_group_msync(group, MS_SYNC) != 0) ::_exit(14);
    std::filesystem::remove(a());
  });
  ASSERT_EQ(pawl_recover(name().c_str()), 1) << pawl_last_error();
  EXPECT_FALSE(std::filesystem::exists(a()));
  EXPECT_TRUE(all_are(read_file(b()), 'y'));
  EXPECT_TRUE(all_are(read_file(directory_ / "c"), 'c'));
}

TEST_F(GroupTest, AMissingFileStopsTheRecoveryOfTheGroup) {
  crash_after_a_commit();
  std::filesystem::rename(a(), directory_ / "elsewhere");
  EXPECT_EQ(pawl_group_open(name().c_str(), nullptr), nullptr);
  EXPECT_EQ(errno, ENODATA);
  EXPECT_NE(std::string(pawl_last_error()).find("Put it back"), std::string::npos)
      << pawl_last_error();
  std::filesystem::rename(directory_ / "elsewhere", a());
  EXPECT_EQ(pawl_recover(name().c_str()), 2) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(a()), 'y'));
}

TEST_F(GroupTest, AMissingGroupStopsTheRecoveryOfAFile) {
  crash_after_a_commit();
  std::filesystem::rename(name(), directory_ / "elsewhere");
  EXPECT_EQ(pawl_recover(a().c_str()), -1);
  EXPECT_EQ(errno, ENODATA);
  // An empty file will do: what counts stands in the journal.
  write_file(name(), "");
  EXPECT_EQ(pawl_recover(a().c_str()), 2) << pawl_last_error();
  EXPECT_EQ(pawl_recover(name().c_str()), 2) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(a()), 'y'));
  EXPECT_TRUE(all_are(read_file(b()), 'y'));
}

TEST_F(GroupTest, ADirectoryThatMovesAsAWholeIsRecovered) {
  std::filesystem::create_directories(directory_ / "db/index");
  run_and_kill([&] {
    pawl_group* const group = pawl_group_open((directory_ / "db/group").c_str(), nullptr);
    const Mapped first = map_in(group, directory_ / "db/data");
    const Mapped second = map_in(group, directory_ / "db/index/1");
    fill(first, 'x');
    fill(second, 'x');
    if (pawl_group_msync(group, MS_SYNC) != 0) ::_exit(11);
  });
  std::filesystem::rename(directory_ / "db", directory_ / "moved");
  ASSERT_EQ(pawl_recover((directory_ / "moved/index/1").c_str()), 1) << pawl_last_error();
  ASSERT_EQ(pawl_recover((directory_ / "moved/group").c_str()), 1) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(directory_ / "moved/data"), 'x'));
  EXPECT_TRUE(all_are(read_file(directory_ / "moved/index/1"), 'x'));
}

TEST_F(GroupTest, OneWriterHasTheGroupAndItsFiles) {
  pawl_group* const group = pawl_group_open(name().c_str(), nullptr);
  ASSERT_NE(group, nullptr) << pawl_last_error();
  const Mapped first = map_in(group, a());
  EXPECT_EQ(pawl_group_open(name().c_str(), nullptr), nullptr);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_EQ(map_in(group, a()).bytes, nullptr);
  EXPECT_EQ(errno, EBUSY);
  const int descriptor = ::open(a().c_str(), O_RDWR);
  EXPECT_EQ(pawl_mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0),
            MAP_FAILED);
  EXPECT_EQ(errno, EBUSY);
  ::close(descriptor);
  EXPECT_EQ(pawl_recover(a().c_str()), -1);
  EXPECT_EQ(errno, EBUSY);
  // The group goes on.
  fill(first, 'x');
  EXPECT_EQ(pawl_group_msync(group, MS_SYNC), 0) << pawl_last_error();
  EXPECT_EQ(pawl_munmap(first.bytes, first.length), 0);
  EXPECT_EQ(pawl_group_close(group), 0) << pawl_last_error();
}

TEST_F(GroupTest, AGroupHasABoundedNumberOfFiles) {
  pawl_group* const group = pawl_group_open(name().c_str(), nullptr);
  std::vector<Mapped> files;
  for (int i = 0; i < 16; ++i) {
    files.push_back(map_in(group, directory_ / std::to_string(i), 4096));
    ASSERT_NE(files.back().bytes, nullptr) << pawl_last_error();
    fill(files.back(), 'x');
  }
  EXPECT_EQ(map_in(group, a(), 4096).bytes, nullptr);
  EXPECT_EQ(errno, ENFILE);
  EXPECT_EQ(pawl_last_error_code(), PAWL_ERROR_TOO_MANY);
  EXPECT_EQ(pawl_group_msync(group, MS_SYNC), 0) << pawl_last_error();
  for (const Mapped& file : files) EXPECT_EQ(pawl_munmap(file.bytes, file.length), 0);
  EXPECT_EQ(pawl_group_close(group), 0) << pawl_last_error();
  for (int i = 0; i < 16; ++i)
    EXPECT_TRUE(all_are(read_file(directory_ / std::to_string(i)), 'x')) << i;
}

TEST_F(GroupTest, AFileWithContentNamesNoGroup) {
  write_file(name(), "precious");
  EXPECT_EQ(pawl_group_open(name().c_str(), nullptr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(read_file(name()), "precious");
  expect_clean(name());
}

TEST_F(GroupTest, AGroupThatACrashLeftIsNotMappedAsAFile) {
  crash_after_a_commit();
  const int descriptor = ::open(name().c_str(), O_RDWR);
  EXPECT_EQ(pawl_mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0),
            MAP_FAILED);
  EXPECT_EQ(errno, EINVAL);
  ::close(descriptor);
  EXPECT_EQ(pawl_recover(name().c_str()), 2) << pawl_last_error();
}

TEST_F(GroupTest, AForkedChildDoesNotCommit) {
  pawl_group* const group = pawl_group_open(name().c_str(), nullptr);
  const Mapped first = map_in(group, a());
  const pid_t child = ::fork();
  if (child == 0) {
    if (pawl_group_msync(group, MS_SYNC) != -1 || errno != EPERM) ::_exit(1);
    if (pawl_group_close(group) != -1 || errno != EPERM) ::_exit(2);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  fill(first, 'x');
  EXPECT_EQ(pawl_group_msync(group, MS_SYNC), 0) << pawl_last_error();
  EXPECT_EQ(pawl_munmap(first.bytes, first.length), 0);
  EXPECT_EQ(pawl_group_close(group), 0) << pawl_last_error();
}

// Its records must stay in the journal, whatever the other files go on to do.
TEST_F(GroupTest, AMappingThatIsNotClosedEndsTheGroup) {
  for (const auto& path : {a(), b()}) write_file(path, std::string(kFileBytes, '\0'));
  {
    const std::shared_ptr<pawl::Group> group = pawl::Group::open(name(), pawl::Options{}).value();
    const auto join = [&](const std::string& path) {
      auto joined =
          pawl::Group::join(group, std::move(pawl::open_block_medium(path, false).value()));
      std::unique_ptr<pawl::Mapping> mapping = std::move(joined.value());
      std::memset(mapping->map_window(nullptr, kFileBytes, PROT_READ | PROT_WRITE, 0, 0).value(),
                  'x', kFileBytes);
      return mapping;
    };
    auto first = join(a());
    const auto second = join(b());
    ASSERT_TRUE(group->commit().ok());
    first.reset();
    const pawl::Status refused = group->commit();
    EXPECT_EQ(refused.error_number(), EIO);
    EXPECT_NE(refused.text().find("was not closed"), std::string::npos) << refused.text();
    EXPECT_EQ(second->close().error_number(), EIO);
  }
  EXPECT_EQ(pawl_recover(name().c_str()), 1) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(a()), 'x'));
  EXPECT_TRUE(all_are(read_file(b()), 'x'));
}

// The lock that orders the group's calls is the parent's, and nobody gives it back in the child.
TEST_F(GroupTest, AForkedChildThatMapsDoesNotWaitForTheParentsCommit) {
  write_file(name(), "");
  for (const auto& path : {a(), b()}) write_file(path, std::string(kFileBytes, 'a'));
  const auto open = [](const std::string& path) {
    return std::move(pawl::open_block_medium(path, false).value());
  };
  auto watch = std::make_shared<pawl::test::Watch>();
  auto group = pawl::Group::open(pawl::test::watched_medium(open(name()), watch),
                                 pawl::test::options_for(pawl::ApplyChoice::async));
  ASSERT_TRUE(group.ok()) << group.status().text();
  auto mapping = pawl::Group::join(group.value(), open(a()));
  ASSERT_TRUE(mapping.ok()) << mapping.status().text();
  const std::vector<std::byte> bytes(10, std::byte{'x'});
  ASSERT_TRUE(mapping.value()->write(0, bytes).ok());
  int status = -1;
  bool forked = false;
  watch->judge_with([&](const pawl::test::Event& event) -> pawl::Status {
    if (event.act != pawl::test::Act::flush || forked) return {};
    forked = true;
    const pid_t child = ::fork();
    if (child == 0) {
      constexpr unsigned kSecondsMax = 60;  // else the test hangs
      ::alarm(kSecondsMax);
      const auto joined = pawl::Group::join(group.value(), open(b()));
      ::_exit(joined.status().error_number() == EPERM ? 0 : 1);
    }
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return {};
  });
  EXPECT_TRUE(group.value()->commit().ok());
  EXPECT_TRUE(forked);
  EXPECT_EQ(status, 0);
  watch->judge_with(nullptr);
  EXPECT_TRUE(mapping.value()->close().ok());
  EXPECT_TRUE(group.value()->close().ok());
}

// Runs `work` as somebody who may not open what has the mode 0.
int without_privileges(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::seteuid(kNobody) != 0) ::_exit(99);
    ::_exit(work());
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// It is there, and may be opened again with the right to: nothing of it is lost yet.
TEST_F(GroupTest, WhatMayNotBeOpenedWasGivenUpAsLost) {
  for (const bool of_a_file : {true, false}) {
    crash_after_a_commit();
    const std::string recovered = of_a_file ? a() : name();
    const std::string closed = of_a_file ? name() : b();
    constexpr mode_t kAnyone = 0777;
    ASSERT_EQ(::chmod(directory_.path().c_str(), kAnyone), 0);
    for (const auto& path : {a(), b(), name()}) {
      ASSERT_EQ(::chmod(path.c_str(), kAnyone), 0);
      ASSERT_EQ(::chmod((path + ".pawl").c_str(), kAnyone), 0);
    }
    ASSERT_EQ(::chmod(closed.c_str(), 0), 0);
    for (const bool accept_loss : {false, true}) {
      const auto medium = std::move(pawl::open_block_medium(recovered, false).value());
      EXPECT_EQ(without_privileges(
                    [&] { return pawl::recover(*medium, accept_loss).status().error_number(); }),
                EACCES)
          << recovered << (accept_loss ? ", accepting loss" : "");
    }
    ASSERT_EQ(::chmod(closed.c_str(), kAnyone), 0);
    for (const auto& path : {a(), name()})
      EXPECT_EQ(pawl_recover(path.c_str()), 2) << pawl_last_error();
    EXPECT_TRUE(all_are(read_file(a()), 'y'));
    EXPECT_TRUE(all_are(read_file(b()), 'y'));
  }
}

// A group of the same name, opened since, has it: to wait for that one to end is of no use.
TEST_F(GroupTest, AFileThatCameBackWasToldToWaitForAnotherLifeOfItsGroup) {
  crash_after_a_commit();
  std::filesystem::create_directory(directory_ / "away");
  for (const std::string suffix : {"", ".pawl"})
    std::filesystem::rename(a() + suffix, directory_ / ("away/a" + suffix));
  {
    auto medium = pawl::open_block_medium(name(), false);
    ASSERT_TRUE(pawl::recover(*medium.value(), true).ok());
  }
  pawl_group* const group = pawl_group_open(name().c_str(), nullptr);
  ASSERT_NE(group, nullptr) << pawl_last_error();
  for (const std::string suffix : {"", ".pawl"})
    std::filesystem::rename(directory_ / ("away/a" + suffix), a() + suffix);
  EXPECT_EQ(map_in(group, a()).bytes, nullptr);
  EXPECT_EQ(errno, EBADMSG) << pawl_last_error();
  EXPECT_EQ(pawl_last_error_code(), PAWL_ERROR_GROUP_MISMATCH) << pawl_last_error();
  EXPECT_NE(std::string(pawl_last_error()).find("--accept-loss"), std::string::npos)
      << pawl_last_error();
  {
    auto medium = pawl::open_block_medium(a(), false);
    EXPECT_TRUE(pawl::recover(*medium.value(), true).ok());
  }
  const Mapped back = map_in(group, a());
  ASSERT_NE(back.bytes, nullptr) << pawl_last_error();
  EXPECT_EQ(pawl_munmap(back.bytes, back.length), 0);
  EXPECT_EQ(pawl_group_close(group), 0) << pawl_last_error();
}

// Whoever put it there by mistake has commits in it.
TEST_F(GroupTest, TheJournalOfAnotherFileWasRemovedWithTheGroup) {
  crash_after_a_commit();
  const std::string other = directory_ / "other";
  write_file(other, std::string(kFileBytes, 'o'));
  run_and_kill([&] {
    const int descriptor = ::open(other.c_str(), O_RDWR);
    void* const at =
        pawl_mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
    std::memset(at, 'p', kFileBytes);
    if (pawl_msync(at, kFileBytes, MS_SYNC) != 0) ::_exit(10);
  });
  std::filesystem::rename(b() + ".pawl", directory_ / "side");
  std::filesystem::rename(other + ".pawl", b() + ".pawl");
  EXPECT_EQ(pawl_recover(name().c_str()), -1);
  EXPECT_EQ(errno, EBADMSG) << pawl_last_error();
  ASSERT_TRUE(std::filesystem::exists(b() + ".pawl"));
  std::filesystem::rename(b() + ".pawl", other + ".pawl");
  EXPECT_EQ(pawl_recover(other.c_str()), 1) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(other), 'p'));
  // The mark and the list do not suffice: the file's own side file has to agree.
  EXPECT_EQ(pawl_recover(name().c_str()), -1);
  EXPECT_EQ(errno, ENODATA) << pawl_last_error();
  std::filesystem::rename(directory_ / "side", b() + ".pawl");
  EXPECT_EQ(pawl_recover(name().c_str()), 2) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(a()), 'y'));
  EXPECT_TRUE(all_are(read_file(b()), 'y'));
}

// All files of a group have one journal id, and a side file is found by its name.
TEST_F(GroupTest, FilesThatChangedNamesGotEachOthersRecords) {
  for (const bool is_copied : {false, true}) {
    crash_after_commits_of('a', 'b');
    const std::string spare = directory_ / "spare";
    std::string folder = directory_.path();
    std::filesystem::rename(a(), spare);
    std::filesystem::rename(b(), a());
    std::filesystem::rename(spare, b());
    // A copy of all has other inodes, and is refused and recovered all the same.
    if (is_copied) folder = copy_of_all();
    const std::string first = folder + "/a";
    const std::string second = folder + "/b";
    const std::string group = folder + "/group";
    for (const auto& path : {first, second, group}) {
      for (const bool accept_loss : {false, true}) {
        const auto medium = std::move(pawl::open_block_medium(path, false).value());
        const pawl::Status refused = pawl::recover(*medium, accept_loss).status();
        EXPECT_EQ(refused.error_number(), ENODATA) << path << ": " << refused.text();
        EXPECT_EQ(refused.code(), PAWL_ERROR_GROUP_FILE_RENAMED) << path;
        EXPECT_NE(refused.text().find("under another name"), std::string::npos) << refused.text();
      }
    }
    std::filesystem::rename(first, folder + "/spare");
    std::filesystem::rename(second, first);
    std::filesystem::rename(folder + "/spare", second);
    EXPECT_EQ(pawl_recover(second.c_str()), 1) << pawl_last_error();
    EXPECT_EQ(pawl_recover(group.c_str()), 1) << pawl_last_error();
    EXPECT_TRUE(all_are(read_file(first), 'a'));
    EXPECT_TRUE(all_are(read_file(second), 'b'));
    for (const auto& path : {a(), b(), name()}) {
      std::filesystem::remove(path);
      std::filesystem::remove(path + ".pawl");
    }
  }
}

TEST_F(GroupTest, AFileThatTookTheNameOfAnotherGotItsRecords) {
  crash_after_commits_of('a', 'b');
  std::filesystem::rename(a(), b());
  EXPECT_EQ(pawl_recover(b().c_str()), -1);
  EXPECT_EQ(errno, ENODATA) << pawl_last_error();
  EXPECT_NE(std::string(pawl_last_error()).find("lists it as a,"), std::string::npos)
      << pawl_last_error();
  std::filesystem::rename(b(), a());
  EXPECT_EQ(pawl_recover(a().c_str()), 1) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(a()), 'a'));
}

// Whatever had the listed name and no mark was taken for a file that had left.
TEST_F(GroupTest, ARotatedFileLostItsCommitsWhenItsGroupWasRecovered) {
  crash_after_commits_of('a', 'b');
  const std::string rotated = directory_ / "a.old";
  std::filesystem::rename(a(), rotated);
  write_file(a(), "new");
  EXPECT_EQ(pawl_recover(name().c_str()), -1);
  EXPECT_EQ(errno, ENODATA) << pawl_last_error();
  EXPECT_TRUE(std::filesystem::exists(name() + ".pawl"));
  std::filesystem::rename(rotated, a());
  EXPECT_EQ(pawl_recover(name().c_str()), 1) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(a()), 'a'));
  EXPECT_TRUE(all_are(read_file(b()), 'b'));
}

TEST_F(GroupTest, TheLossOfARotatedFileIsAccepted) {
  crash_after_commits_of('a', 'b');
  std::filesystem::rename(a(), directory_ / "a.old");
  write_file(a(), "new");
  const auto medium = std::move(pawl::open_block_medium(name(), false).value());
  EXPECT_TRUE(pawl::recover(*medium, true).ok());
  EXPECT_EQ(read_file(a()), "new");
  EXPECT_TRUE(all_are(read_file(b()), 'b'));
}

// Its side file said that it was in the group, and without the mark that was not believed: the side
// file was removed, with nothing said, and the commits of the file with it.
class GroupWithoutMarkTest : public GroupTest {
 protected:
  std::string copy() const { return directory_ / "snapshot"; }
  static long recover_accepting_loss(const std::string& path) {
    auto medium = pawl::open_block_medium(path, false);
    auto recovered = pawl::recover(*medium.value(), true);
    return recovered.ok() ? static_cast<long>(recovered.value()) : -1;
  }
  // By every call that may find it so.
  void expect_refused(const std::string& path) const {
    const std::string side = read_file(path + ".pawl");
    EXPECT_EQ(pawl_recover(path.c_str()), -1) << path;
    EXPECT_EQ(errno, EBADMSG) << pawl_last_error();
    EXPECT_EQ(pawl_snapshot(path.c_str(), copy().c_str(), 0), -1);
    EXPECT_EQ(errno, EBADMSG) << pawl_last_error();
    const int descriptor = ::open(path.c_str(), O_RDWR);
    EXPECT_EQ(pawl_mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0),
              MAP_FAILED);
    EXPECT_EQ(errno, EBADMSG) << pawl_last_error();
    ::close(descriptor);
    EXPECT_EQ(read_file(path + ".pawl"), side);
  }
  void expect_group_refused() const {
    EXPECT_EQ(pawl_recover(name().c_str()), -1);
    EXPECT_EQ(errno, EBADMSG) << pawl_last_error();
    EXPECT_EQ(pawl_group_open(name().c_str(), nullptr), nullptr);
    EXPECT_EQ(errno, EBADMSG) << pawl_last_error();
    EXPECT_TRUE(std::filesystem::exists(name() + ".pawl"));
  }
};

TEST_F(GroupWithoutMarkTest, ARotatedFileLostItsCommitsWhenTheNewOneWasOpened) {
  crash_after_commits_of('a', 'b');
  const std::string rotated = directory_ / "a.old";
  std::filesystem::rename(a(), rotated);
  write_file(a(), std::string(kFileBytes, 'n'));
  expect_refused(a());
  std::filesystem::rename(rotated, a());
  EXPECT_EQ(pawl_recover(name().c_str()), 1) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(a()), 'a'));
  EXPECT_TRUE(all_are(read_file(b()), 'b'));
}

TEST_F(GroupWithoutMarkTest, ACopyWithoutAttributesLostItsCommits) {
  crash_after_commits_of('a', 'b');
  const std::string folder = copy_of_all();
  for (const char* const file : {"a", "b", "group"})
    ASSERT_EQ(::removexattr((folder + "/" + file).c_str(), "user.pawl"), 0);
  expect_refused(folder + "/a");
  EXPECT_EQ(pawl_recover((folder + "/group").c_str()), -1);
  EXPECT_EQ(errno, ENODATA) << pawl_last_error();
}

TEST_F(GroupWithoutMarkTest, AFileWhoseMarkWasRemovedWasTornFromItsGroup) {
  crash_after_commits_of('a', 'b');
  ASSERT_EQ(::removexattr(a().c_str(), "user.pawl"), 0);
  expect_group_refused();
  expect_refused(a());
  // Nobody changed it, says who accepts it.
  EXPECT_EQ(recover_accepting_loss(name()), 1) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(a()), 'a'));
  EXPECT_TRUE(all_are(read_file(b()), 'b'));
  for (const auto& path : {a(), b(), name()}) expect_clean(path);
}

TEST_F(GroupWithoutMarkTest, AFileWithoutMarkIsTakenAloneWhereThatIsAccepted) {
  crash_after_commits_of('a', 'b');
  ASSERT_EQ(::removexattr(a().c_str(), "user.pawl"), 0);
  EXPECT_EQ(recover_accepting_loss(a()), 1) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(a()), 'a'));
  expect_clean(a());
  EXPECT_EQ(pawl_recover(name().c_str()), 1) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(b()), 'b'));
}

// What the group had under that number is elsewhere.
TEST_F(GroupWithoutMarkTest, ANewFileGetsNothingOfTheRotatedOneWhereLossIsAccepted) {
  crash_after_commits_of('a', 'b');
  std::filesystem::rename(a(), directory_ / "a.old");
  write_file(a(), std::string(kFileBytes, 'n'));
  EXPECT_EQ(recover_accepting_loss(a()), 0) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(a()), 'n'));
  expect_clean(a());
}

TEST_F(GroupWithoutMarkTest, AFileThatGotTheMarkOfAnotherWasTornFromItsGroup) {
  crash_after_commits_of('a', 'b');
  const std::string other = directory_ / "other";
  write_file(other, std::string(kFileBytes, 'o'));
  run_and_kill([&] {
    const int descriptor = ::open(other.c_str(), O_RDWR);
    if (pawl_mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0) ==
        MAP_FAILED)
      ::_exit(10);
  });
  char mark[4096];
  const ssize_t length = ::getxattr(other.c_str(), "user.pawl", mark, sizeof mark);
  ASSERT_GT(length, 0);
  ASSERT_EQ(::setxattr(a().c_str(), "user.pawl", mark, static_cast<std::size_t>(length), 0), 0);
  expect_group_refused();
  expect_refused(a());
}

// Its commits were in it already, and what says so came before its mark went.
TEST_F(GroupWithoutMarkTest, ACrashBehindTheMarkOfAFileThatIsRecoveredNeedsNoHelp) {
  crash_after_commits_of('a', 'b');
  {
    const auto medium = std::move(pawl::open_block_medium(a(), false).value());
    const auto side = std::move(medium->acquire_journal(false).value());
    const auto reader = std::move(pawl::journal::Reader::open(*side.file).value());
    ASSERT_TRUE(pawl::journal::leave_group(*side.file, reader.header(), medium->identity()).ok());
    ASSERT_TRUE(medium->clear_mark().ok());
  }
  ASSERT_TRUE(std::filesystem::exists(a() + ".pawl"));
  EXPECT_EQ(pawl_recover(name().c_str()), 1) << pawl_last_error();
  EXPECT_EQ(pawl_recover(a().c_str()), 0) << pawl_last_error();
  for (const auto& path : {a(), b(), name()}) expect_clean(path);
}

// The same before its mark went.
TEST_F(GroupWithoutMarkTest, ACrashBeforeTheMarkOfAFileThatIsRecoveredNeedsNoHelp) {
  for (const bool is_alone : {false, true}) {
    crash_after_commits_of('a', 'b');
    {
      const auto medium = std::move(pawl::open_block_medium(a(), false).value());
      const auto side = std::move(medium->acquire_journal(false).value());
      const auto reader = std::move(pawl::journal::Reader::open(*side.file).value());
      ASSERT_TRUE(pawl::journal::leave_group(*side.file, reader.header(), medium->identity()).ok());
    }
    if (is_alone) {
      EXPECT_EQ(pawl_recover(a().c_str()), 0) << pawl_last_error();
    }
    EXPECT_EQ(pawl_recover(name().c_str()), 1) << pawl_last_error();
    EXPECT_TRUE(all_are(read_file(b()), 'b'));
    for (const auto& path : {a(), b(), name()}) expect_clean(path);
  }
}

// Only the group's journal was asked for; recovery asks for the file's own side file as well.
TEST_F(GroupTest, CommitsAfterTheSideFileOfAFileWasRemovedWereAcknowledged) {
  pawl_group* const group = pawl_group_open(name().c_str(), nullptr);
  ASSERT_NE(group, nullptr) << pawl_last_error();
  const Mapped first = map_in(group, a());
  const Mapped second = map_in(group, b());
  fill(first, 'x');
  fill(second, 'x');
  ASSERT_EQ(pawl_group_msync(group, MS_SYNC), 0) << pawl_last_error();
  std::filesystem::remove(a() + ".pawl");
  fill(first, 'y');
  fill(second, 'y');
  for (const int flags : {MS_SYNC, MS_ASYNC}) {
    EXPECT_EQ(pawl_group_msync(group, flags), -1);
    EXPECT_EQ(errno, ESTALE) << pawl_last_error();
    EXPECT_NE(std::string(pawl_last_error()).find("Unmap " + a()), std::string::npos)
        << pawl_last_error();
  }
  EXPECT_EQ(pawl_msync(first.bytes, first.length, MS_SYNC), -1);
  EXPECT_EQ(errno, ESTALE) << pawl_last_error();
  // The others go on without it, and it comes back.
  EXPECT_EQ(pawl_msync(second.bytes, second.length, MS_SYNC), 0) << pawl_last_error();
  ASSERT_EQ(pawl_munmap(first.bytes, first.length), 0) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(a()), 'x'));
  const Mapped again = map_in(group, a());
  ASSERT_NE(again.bytes, nullptr) << pawl_last_error();
  fill(again, 'z');
  EXPECT_EQ(pawl_group_msync(group, MS_SYNC), 0) << pawl_last_error();
  for (const Mapped& mapped : {again, second})
    EXPECT_EQ(pawl_munmap(mapped.bytes, mapped.length), 0) << pawl_last_error();
  EXPECT_EQ(pawl_group_close(group), 0) << pawl_last_error();
  EXPECT_TRUE(all_are(read_file(a()), 'z'));
  EXPECT_TRUE(all_are(read_file(b()), 'y'));
  for (const auto& path : {a(), b(), name()}) expect_clean(path);
}

TEST_F(GroupTest, CommitsAfterTheJournalOfTheGroupWasRemovedAreRefused) {
  pawl_group* const group = pawl_group_open(name().c_str(), nullptr);
  ASSERT_NE(group, nullptr) << pawl_last_error();
  const Mapped first = map_in(group, a());
  ASSERT_NE(first.bytes, nullptr) << pawl_last_error();
  fill(first, 'x');
  ASSERT_EQ(pawl_group_msync(group, MS_SYNC), 0) << pawl_last_error();
  std::filesystem::remove(name() + ".pawl");
  fill(first, 'y');
  EXPECT_EQ(pawl_group_msync(group, MS_SYNC), -1);
  EXPECT_EQ(errno, ESTALE) << pawl_last_error();
  EXPECT_EQ(pawl_msync(first.bytes, first.length, MS_SYNC), -1);
  EXPECT_EQ(errno, ESTALE) << pawl_last_error();
  EXPECT_EQ(pawl_munmap(first.bytes, first.length), 0) << pawl_last_error();
  pawl_group_close(group);
  EXPECT_TRUE(all_are(read_file(a()), 'x'));
}

// Its size was looked at before a commit that waited in its own journal made it larger.
TEST_F(GroupTest, AFileThatRecoveryMadeTooLargeForAGroupJoinedIt) {
  const TemporaryDirectory memory("/dev/shm");
  const std::string path = memory / "file";
  constexpr off_t kTooLarge = off_t{1} << 57;
  write_file(path, "x");
  if (::truncate(path.c_str(), kTooLarge) != 0 || ::truncate(path.c_str(), 1) != 0)
    GTEST_SKIP() << "no file of such a size";
  if (!pawl::open_block_medium(path, false).value()->can_mark())
    GTEST_SKIP() << "this file system keeps no attributes";
  run_and_kill([&] {
    const int descriptor = ::open(path.c_str(), O_RDWR);
    void* const at = pawl_mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
    if (at == MAP_FAILED || pawl_ftruncate(descriptor, kTooLarge) != 0) ::_exit(10);
    if (pawl_msync(at, 4096, MS_SYNC) != 0) ::_exit(11);
  });
  ASSERT_EQ(::truncate(path.c_str(), 1), 0);  // as a crash before the apply leaves it
  pawl_group* const group = pawl_group_open((memory / "group").c_str(), nullptr);
  ASSERT_NE(group, nullptr) << pawl_last_error();
  EXPECT_EQ(map_in(group, path).bytes, nullptr);
  EXPECT_EQ(errno, EFBIG) << pawl_last_error();
  EXPECT_EQ(pawl_group_close(group), 0) << pawl_last_error();
  expect_clean(path);
}

// The background stopped when the disk was full for a while; then it was the first file's overlay
// alone that was looked at.
TEST_F(GroupTest, TheOverlayOfTheSecondFileGrewWithoutBound) {
  constexpr std::uint64_t kPagesOfACommit = 1900;
  constexpr std::uint64_t kCommits = 6;
  constexpr std::uint64_t kBytes = kPagesOfACommit * kCommits * 4096;
  write_file(name(), "");
  for (const auto& path : {a(), b()}) write_file(path, "a");
  std::filesystem::resize_file(b(), kBytes);
  pawl::Options options = pawl::test::options_for(pawl::ApplyChoice::async);
  options.journal_size_bytes = std::uint64_t{8} << 20;
  options.apply_threshold_pages = 128;
  auto group = pawl::Group::open(name(), options);
  ASSERT_TRUE(group.ok()) << group.status().text();
  auto watch = std::make_shared<pawl::test::Watch>();
  std::atomic<bool> full{true};
  watch->judge_with([&](const pawl::test::Event& event) -> pawl::Status {
    if (event.which != pawl::test::Which::base || event.act != pawl::test::Act::write ||
        !full.load())
      return {};
    full.store(false);
    return pawl::Status::failure(ENOSPC, "made up");
  });
  auto medium = pawl::open_block_medium(b(), false);
  auto first =
      pawl::Group::join(group.value(), std::move(pawl::open_block_medium(a(), false).value()));
  auto second = pawl::Group::join(group.value(),
                                  pawl::test::watched_medium(std::move(medium.value()), watch));
  ASSERT_TRUE(first.ok() && second.ok());
  auto window = second.value()->map_window(nullptr, kBytes, PROT_READ | PROT_WRITE, 0, 0);
  ASSERT_TRUE(window.ok()) << window.status().text();
  for (std::uint64_t commit = 0; commit < kCommits; ++commit) {
    for (std::uint64_t page = 0; page < kPagesOfACommit; ++page)
      window.value()[(commit * kPagesOfACommit + page) * 4096] = 'x';
    ASSERT_TRUE(group.value()->commit().ok());
    // The background meets the full disk, and gives up.
    while (commit == 0 && full.load()) std::this_thread::yield();
  }
  watch->judge_with(nullptr);
  std::uint64_t written = 0;
  for (const pawl::test::Event& event : watch->take_events()) {
    if (event.which == pawl::test::Which::base && event.act == pawl::test::Act::write)
      written += event.length;
  }
  EXPECT_GT(written, 0u) << "nothing was applied";
  for (auto* file : {&first, &second}) EXPECT_TRUE(file->value()->close().ok());
  EXPECT_TRUE(group.value()->close().ok());
}

// A journal that could not be read was taken for a plain file's: it was replayed into the file that
// names the group, emptied and removed, with all commits of the others.
TEST_F(GroupTest, AReadThatFailedWhileAGroupWasRecoveredLostAllItsCommits) {
  constexpr int kReadsMax = 1000;
  for (const auto& path : {name(), a()}) {
    bool has_failed = true;
    for (int nth = 1; has_failed; ++nth) {
      ASSERT_LT(nth, kReadsMax);
      crash_after_a_commit();
      has_failed = false;
      auto watch = std::make_shared<pawl::test::Watch>();
      int reads = 0;
      watch->judge_with([&](const pawl::test::Event& event) -> pawl::Status {
        if (event.which != pawl::test::Which::journal || event.act != pawl::test::Act::read ||
            ++reads != nth)
          return {};
        has_failed = true;
        return pawl::Status::failure(EIO, "made up");
      });
      auto medium = pawl::test::watched_medium(
          std::move(pawl::open_block_medium(path, false).value()), watch);
      const auto recovered = pawl::recover(*medium);
      medium.reset();  // with its lock
      EXPECT_TRUE(!has_failed || !recovered.ok()) << path << " " << nth;
      EXPECT_TRUE(pawl_recover(name().c_str()) >= 0 && pawl_recover(a().c_str()) >= 0)
          << pawl_last_error();
      EXPECT_TRUE(all_are(read_file(a()), 'y')) << path << " " << nth;
      EXPECT_TRUE(all_are(read_file(b()), 'y')) << path << " " << nth;
    }
  }
}

}  // namespace
