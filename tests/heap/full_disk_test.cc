// A heap on a file system that fills up: growth, allocation and sync say so, nothing is lost, and
// with space again, or after a rollback, it goes on.

#include <cerrno>

#include <gtest/gtest.h>

#include "heap/heap_model.h"
#include "support/temporary_directory.h"
#include "support/test_size.h"
#include "torture/file_systems.h"

namespace pawl::test {
namespace {

constexpr unsigned kRounds = at_size(10U, 30U);
constexpr unsigned kStepsOfRound = 150;
constexpr std::uint64_t kLeftBytesMax = 3 << 20;
constexpr std::uint64_t kSizeBytesMax = std::uint64_t{48} << 20;
constexpr std::size_t kAlignment = alignof(std::max_align_t);

class Trial {
 public:
  explicit Trial(const std::string& directory)
      : random_(20130415), path_(directory + "/full.heap"), filler_(directory) {
    pawl_heap_options_init(&options_);
    options_.size_bytes_max = kSizeBytesMax;
    options_.mapping.journal_size_bytes = 1 << 20;
  }
  ~Trial() {
    if (heap_ != nullptr) pawl_heap_close(heap_);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  void run() {
    make_where_there_is_no_space();
    for (unsigned round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
      filler_.fill(below(random_, kLeftBytesMax));
      full_ = false;
      for (unsigned step = 0; step < kStepsOfRound && !full_; ++step) take_step();
      if (full_) refusals_ += 1;
      check("on the full disk");
      go_on();
    }
    EXPECT_GT(refusals_, 0u);
  }

 private:
  void check(const char* when) {
    EXPECT_EQ(now_.compare(heap_), "") << when;
    EXPECT_EQ(check_text(heap_), "") << when;
  }

  void make_where_there_is_no_space() {
    filler_.fill(64 << 10);
    EXPECT_EQ(pawl_heap_open(path_.c_str(), &options_), nullptr);
    EXPECT_EQ(errno, ENOSPC) << pawl_last_error();
    EXPECT_EQ(std::filesystem::file_size(path_), 0u);
    filler_.free();
    open();
  }

  void open() {
    heap_ = pawl_heap_open(path_.c_str(), &options_);
    ASSERT_NE(heap_, nullptr) << pawl_last_error();
  }

  // Whether the call succeeded; if not, it was for want of space.
  bool succeeded(bool right) {
    if (right) return true;
    full_ = true;
    EXPECT_TRUE(errno == ENOSPC || errno == ENOMEM) << errno << ": " << pawl_last_error();
    EXPECT_STRNE(pawl_last_error(), "");
    return false;
  }

  void take_step() {
    const std::uint64_t chance = below(random_, 100);
    if (chance < 5) {
      if (succeeded(pawl_heap_sync(heap_) == 0)) synced_ = now_;
    } else if (chance < 25 && !now_.blocks().empty()) {
      char* const block = now_.any_block(random_);
      now_.remove(block);
      ASSERT_EQ(pawl_heap_free(heap_, block), 0) << pawl_last_error();
    } else if (chance < 35 && !now_.blocks().empty()) {
      now_.rewrite(now_.any_block(random_));
    } else {
      const std::size_t size = below(random_, 60'000);
      auto* const block = static_cast<char*>(pawl_heap_malloc(heap_, size));
      if (!succeeded(block != nullptr)) return make_room();
      ASSERT_EQ(now_.add(heap_, block, size, kAlignment), "");
    }
  }

  // Sometimes it is the heap that is full, and not the disk.
  void make_room() {
    while (now_.blocks().size() > 50) {
      char* const block = now_.any_block(random_);
      now_.remove(block);
      ASSERT_EQ(pawl_heap_free(heap_, block), 0) << pawl_last_error();
    }
  }

  // In one of the ways that there are.
  void go_on() {
    const std::uint64_t way = below(random_, 3);
    if (way == 0) {  // still on the full disk, where a file system that copies on write may refuse
      if (!succeeded(pawl_heap_rollback(heap_) == 0)) {
        check("not rolled back");
        filler_.free();
        ASSERT_EQ(pawl_heap_rollback(heap_), 0) << pawl_last_error();
      }
      now_ = synced_;
      check("rolled back");
    }
    if (way == 1) {  // what is not synced goes
      // What close cannot write, the next open recovers.
      succeeded(pawl_heap_close(std::exchange(heap_, nullptr)) == 0);
      filler_.free();
      ASSERT_NO_FATAL_FAILURE(open());
      now_ = synced_;
      check("opened again");
    }
    filler_.free();
    ASSERT_EQ(pawl_heap_sync(heap_), 0) << pawl_last_error();
    synced_ = now_;
    check("with space again");
  }

  Random random_;
  const std::string path_;
  Filler filler_;
  pawl_heap_options options_;
  pawl_heap* heap_ = nullptr;
  HeapModel now_;
  HeapModel synced_;
  bool full_ = false;
  unsigned refusals_ = 0;
};

class HeapFullDisk : public testing::TestWithParam<const char*> {};

TEST_P(HeapFullDisk, SaysSoLosesNothingAndGoesOn) {
  const TemporaryDirectory scratch;
  FileSystems file_systems(scratch.path());
  if (!file_systems.make(GetParam())) GTEST_SKIP() << file_systems.left_out().front();
  Trial(file_systems.places().front().directory).run();
}

INSTANTIATE_TEST_SUITE_P(FileSystems, HeapFullDisk, testing::Values("ext4", "ext4-1k", "btrfs"),
                         [](const auto& parameters) {
                           std::string name = parameters.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace pawl::test
