// Copies of a file whose time of change shows nothing.  The system calls that tell of it are made
// up here.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <functional>
#include <utility>

#include "fase/closed_file.h"
#include "snapshot/committed_copy.h"
#include "support/open_mapping.h"
#include "support/temporary_directory.h"

namespace {

constexpr time_t kLongAgo = 1;
constexpr time_t kNow = 1'000'000;
constexpr long kSecondNs = 1'000'000'000;
timespec now{kNow, 0};  // passes only while somebody sleeps
time_t shown_seconds = kLongAgo;
bool has_watches = true;
std::function<void()> behind_the_first_piece;

}  // namespace

extern "C" {

// In place of fstat(), which the library has a definition of.
int __real_fstat(int descriptor, struct stat* status) noexcept;
int __wrap_fstat(int descriptor, struct stat* status) noexcept {
  if (__real_fstat(descriptor, status) != 0) return -1;
  status->st_ctim = status->st_mtim = {shown_seconds, 0};
  return 0;
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (clock != CLOCK_REALTIME) return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  *time = now;
  return 0;
}

int nanosleep(const timespec* wanted, timespec* /*left*/) {
  now.tv_sec += wanted->tv_sec + (now.tv_nsec + wanted->tv_nsec) / kSecondNs;
  now.tv_nsec = (now.tv_nsec + wanted->tv_nsec) % kSecondNs;
  return 0;
}

int inotify_init1(int flags) noexcept {
  if (has_watches) return static_cast<int>(::syscall(SYS_inotify_init1, flags));
  errno = EMFILE;
  return -1;
}

ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t length,
                        unsigned flags) {
  const long copied =
      ::syscall(SYS_copy_file_range, from, from_offset, to, to_offset, length, flags);
  if (auto meanwhile = std::exchange(behind_the_first_piece, nullptr)) meanwhile();
  return copied;
}

}  // extern "C"

namespace pawl::test {
namespace {

constexpr std::size_t kFileBytes = std::size_t{2} << 20;  // two pieces of a copy

struct File {
  TemporaryDirectory directory;
  std::string path = directory / "file";
  std::string copy = directory / "copy";
  File() { write_file(path, std::string(kFileBytes, 'a')); }
};

// Opens the file, commits its first and its last byte and closes it.
void live(const std::string& path) {
  auto opened = try_open(path, options_for(ApplyChoice::async));
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  const std::byte changed{'b'};
  ASSERT_TRUE(opened.value()->write(0, {&changed, 1}).ok());
  ASSERT_TRUE(opened.value()->write(kFileBytes - 1, {&changed, 1}).ok());
  ASSERT_TRUE(opened.value()->commit_all().ok());
  ASSERT_TRUE(opened.value()->close().ok());
}

TEST(CoarseTime, AWriterThatCameAndWentWithinATickIsNoticed) {
  const File file;
  for (const time_t seconds : {kLongAgo, kNow + 3600}) {
    shown_seconds = seconds;
    write_file(file.path, std::string(kFileBytes, 'a'));
    behind_the_first_piece = [&] { live(file.path); };
    const auto copied =
        snapshot::make_snapshot(file.path, file.copy, true, fase::check_is_finished);
    ASSERT_TRUE(copied.ok()) << copied.status().text();
    const std::string content = read_file(file.copy);
    ASSERT_EQ(content.size(), kFileBytes);
    EXPECT_EQ(content.front(), content.back()) << "the copy is torn";
  }
}

TEST(CoarseTime, WithoutAWatchATickIsWaitedFor) {
  const File file;
  has_watches = false;
  // Nothing can be told of a file that another clock has changed.
  shown_seconds = kNow + 3600;
  const Status outrun =
      snapshot::make_snapshot(file.path, file.copy, true, fase::check_is_finished).status();
  EXPECT_EQ(outrun.error_number(), EBUSY);
  EXPECT_EQ(outrun.code(), PAWL_ERROR_COPY_OUTRUN);
  now = {kNow, 0};
  shown_seconds = kNow;
  const auto copied = snapshot::make_snapshot(file.path, file.copy, true, fase::check_is_finished);
  ASSERT_TRUE(copied.ok()) << copied.status().text();
  EXPECT_GT(copied.value().attempts, 1u) << "the time of the last change was believed";
  EXPECT_GE(now.tv_sec, kNow + 2);
  has_watches = true;
}

}  // namespace
}  // namespace pawl::test
