// pawl_ftruncate() beside other threads that open and close the same file.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "mapping/file_turn.h"
#include "pawl/pawl.h"
#include "support/temporary_directory.h"

namespace pawl {
namespace {

using test::read_file;
using test::write_file;
using To = FileTurn::To;

constexpr off_t kCutBytes = kPageBytes;
constexpr auto kLong = std::chrono::milliseconds(50);
constexpr auto kShort = std::chrono::milliseconds(1);

class Resizes : public testing::Test {
 protected:
  int open_of(std::size_t bytes) const {
    write_file(path_, std::string(bytes, 'a'));
    return ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  }
  static char* map(int descriptor, std::size_t bytes) {
    void* const at = pawl_mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
    return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
  }
  // Without SIGBUS.
  bool is_there(const char* byte) const { return ::write(pipe_[1], byte, 1) == 1; }

  void SetUp() override { ASSERT_EQ(::pipe(pipe_.data()), 0); }
  void TearDown() override {
    for (const int end : pipe_) ::close(end);
  }

  const test::TemporaryDirectory directory_;
  const std::string path_ = directory_ / "file";
  std::array<int, 2> pipe_{};
};

// The file got bytes of the last commit behind zeros.
TEST_F(Resizes, CutAFileThatAClosingStillWroteTo) {
  constexpr std::size_t kBytes = 400 * kPageBytes;
  constexpr unsigned kRounds = 20;
  for (unsigned round = 0; round < kRounds; ++round) {
    const int descriptor = open_of(kBytes);
    char* const bytes = map(descriptor, kBytes);
    ASSERT_NE(bytes, nullptr) << pawl_last_error();
    std::memset(bytes, 'x', kBytes);
    ASSERT_EQ(pawl_msync(bytes, kBytes, MS_SYNC), 0) << pawl_last_error();
    std::thread cutting([&] {
      ::usleep(round * 100);
      EXPECT_EQ(pawl_ftruncate(descriptor, kCutBytes), 0) << pawl_last_error();
    });
    EXPECT_EQ(pawl_munmap(bytes, kBytes), 0) << pawl_last_error();
    cutting.join();
    const std::string left = read_file(path_);
    EXPECT_TRUE(left.size() == kBytes || left.size() == kCutBytes) << left.size();
    EXPECT_EQ(left, std::string(left.size(), 'x'));
    ::close(descriptor);
  }
}

// The mapping had pages for bytes that were not in the file: SIGBUS.
TEST_F(Resizes, CutAFileWhoseSizeAnOpeningHadLearned) {
  constexpr std::size_t kBytes = 8 * kPageBytes;
  constexpr unsigned kRounds = 40;
  for (unsigned round = 0; round < kRounds; ++round) {
    const int descriptor = open_of(kBytes);
    std::thread cutting([&] {
      ::usleep(round * 150);
      EXPECT_EQ(pawl_ftruncate(descriptor, kCutBytes), 0) << pawl_last_error();
    });
    char* const bytes = map(descriptor, kBytes);
    cutting.join();
    ASSERT_NE(bytes, nullptr) << pawl_last_error();
    EXPECT_FALSE(is_there(bytes + kCutBytes));
    EXPECT_EQ(pawl_ftruncate(descriptor, kBytes), 0) << pawl_last_error();
    EXPECT_TRUE(is_there(bytes + kBytes - 1)) << "round " << round;
    EXPECT_EQ(pawl_munmap(bytes, kBytes), 0) << pawl_last_error();
    ::close(descriptor);
  }
}

TEST_F(Resizes, WaitForTheirTurnAtThisFileOnly) {
  const int descriptor = open_of(2 * kPageBytes);
  struct stat file{};
  ASSERT_EQ(::fstat(descriptor, &file), 0);
  std::atomic<bool> is_cut{false};
  std::thread cutting;
  {
    const FileTurn opening(To::open_or_close, file.st_dev, file.st_ino);
    const FileTurn another(To::open_or_close, file.st_dev, file.st_ino);
    const FileTurn resize_of_another(To::resize, file.st_dev, file.st_ino + 1);
    cutting = std::thread([&] {
      EXPECT_EQ(pawl_ftruncate(descriptor, kCutBytes), 0) << pawl_last_error();
      is_cut.store(true);
    });
    std::this_thread::sleep_for(kLong);
    EXPECT_FALSE(is_cut.load());
    EXPECT_EQ(std::filesystem::file_size(path_), 2 * kPageBytes);
    // One that waits keeps no thread waiting that has a turn already.
    const FileTurn third(To::open_or_close, file.st_dev, file.st_ino);
  }
  cutting.join();
  EXPECT_TRUE(is_cut.load());
  ::close(descriptor);
}

// Somebody else's began before each had ended.
TEST_F(Resizes, NeverHadTheirTurnBesideOpeningsThatOverlap) {
  std::atomic<bool> is_over{false};
  std::vector<std::thread> opening(3);
  for (std::thread& one : opening) {
    one = std::thread([&] {
      while (!is_over.load()) {
        const FileTurn turn(To::open_or_close, 1, 1);
        std::this_thread::sleep_for(kShort);
      }
    });
  }
  for (int i = 0; i < 5; ++i) const FileTurn turn(To::resize, 1, 1);
  is_over.store(true);
  for (std::thread& one : opening) one.join();
}

// A child has none of the threads whose turn it is.
TEST_F(Resizes, WaitForNoThreadOfTheParent) {
  const int descriptor = open_of(2 * kPageBytes);
  struct stat file{};
  ASSERT_EQ(::fstat(descriptor, &file), 0);
  for (pid_t (*const make)() : {::fork, ::_Fork}) {
    const FileTurn opening(To::open_or_close, file.st_dev, file.st_ino);
    const pid_t child = make();
    if (child == 0) {
      ::alarm(10);
      ::_exit(pawl_ftruncate(descriptor, kCutBytes) == 0 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  ::close(descriptor);
}

}  // namespace
}  // namespace pawl
