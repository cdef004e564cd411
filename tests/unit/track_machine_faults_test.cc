// A count of the machine's page faults that was prepared is of the moment when it is asked for.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

#include "medium/medium.h"
#include "track/machine_faults.h"

namespace pawl {
namespace {

constexpr std::size_t kPages = 64;

class MachineFaults : public ::testing::Test {
 protected:
  ~MachineFaults() override { machine_faults::close(); }

  std::int64_t count() {
    const std::optional<std::int64_t> counted = machine_faults::count(text_);
    EXPECT_TRUE(counted.has_value());
    return counted.value_or(0);
  }
  // At least kPages of them.
  void fault() {
    void* const fresh = ::mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(fresh, MAP_FAILED);
    ASSERT_EQ(::madvise(fresh, kPages * kPageBytes, MADV_NOHUGEPAGE), 0);
    for (std::size_t page = 0; page < kPages; ++page)
      static_cast<volatile char*>(fresh)[page * kPageBytes] = 'f';
    ::munmap(fresh, kPages * kPageBytes);
  }
  // Where the numbers before it became longer meanwhile, it is not; that is rare.
  void prepare() {
    constexpr int kTriesMax = 100;
    for (int i = 0; i < kTriesMax && !machine_faults::is_prepared(); ++i) {
      count();
      machine_faults::prepare();
    }
    ASSERT_TRUE(machine_faults::is_prepared());
  }

  machine_faults::Text text_{};
};

// The descriptor of /proc/vmstat; -1: none is open.
int descriptor() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code failure;
    if (std::filesystem::read_symlink(entry.path(), failure) == "/proc/vmstat")
      return std::stoi(entry.path().filename());
  }
  return -1;
}

TEST_F(MachineFaults, APreparedCountHasWhatCameAfterIt) {
  constexpr int kRounds = 1000;
  std::int64_t before = count();
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    machine_faults::prepare();
    fault();
    const std::int64_t now = count();
    EXPECT_GE(now, before + static_cast<std::int64_t>(kPages));
    before = now;
  }
}

TEST_F(MachineFaults, NothingIsPreparedForWhoDoesNotCount) {
  machine_faults::prepare();
  EXPECT_FALSE(machine_faults::is_prepared());
  prepare();
  count();
  EXPECT_FALSE(machine_faults::is_prepared());
  machine_faults::prepare();
  EXPECT_TRUE(machine_faults::is_prepared());
  machine_faults::close();
  EXPECT_EQ(descriptor(), -1);
}

// Its position is one for parent and child.
TEST_F(MachineFaults, AChildThatReadsTakesNothingFromItsParent) {
  for (const bool runs_handlers : {true, false}) {
    prepare();
    const std::int64_t before = count();
    prepare();
    const pid_t child = runs_handlers ? ::fork() : ::_Fork();
    if (child == 0) {
      for (int i = 0; i < 3; ++i) {
        if (!machine_faults::count(text_).has_value()) ::_exit(1);
        machine_faults::prepare();
      }
      ::_exit(0);
    }
    fault();
    EXPECT_GE(count(), before + static_cast<std::int64_t>(kPages));
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_GE(count(), before + static_cast<std::int64_t>(kPages));
  }
}

// What the program has done to the number.
TEST_F(MachineFaults, AnotherPositionOrAnotherFileIsNoticed) {
  const std::string path =
      ::testing::TempDir() + "/pawl-machine-faults-" + std::to_string(getpid());
  prepare();
  const std::int64_t before = count();
  prepare();
  ASSERT_EQ(::lseek(descriptor(), 0, SEEK_SET), 0);
  fault();
  EXPECT_GE(count(), before + static_cast<std::int64_t>(kPages));

  prepare();
  const int number = descriptor();
  const int own = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  const std::string lie = "pgfault 1\n";
  ASSERT_EQ(::pwrite(own, lie.data(), lie.size(), 0), static_cast<ssize_t>(lie.size()));
  ASSERT_EQ(::dup2(own, number), number);
  EXPECT_GE(count(), before + static_cast<std::int64_t>(kPages));
  // Nothing of it was read, nor is it closed.
  EXPECT_EQ(::lseek(number, 0, SEEK_CUR), 0);
  prepare();
  EXPECT_EQ(::lseek(number, 0, SEEK_CUR), 0);
  ::close(own);
  ::close(number);
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace pawl
