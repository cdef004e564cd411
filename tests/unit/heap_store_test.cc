// The heap's own stores, with the tracker that sees only what it is told: each is told.

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pawl/heap.h"
#include "pawl/store.h"
#include "support/temporary_directory.h"

namespace pawl {
namespace {

class HeapStoreTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::setenv("PAWL_VERIFY", "1", 1), 0); }
  void TearDown() override {
    if (heap_ != nullptr) {
      EXPECT_EQ(pawl_heap_close(heap_), 0) << pawl_last_error();
    }
    ::unsetenv("PAWL_VERIFY");
  }
  void open(std::uint64_t size_bytes_max = std::uint64_t{1} << 30, const char* layout = nullptr) {
    pawl_heap_options options;
    ASSERT_EQ(pawl_heap_options_init(&options), 0);
    options.size_bytes_max = size_bytes_max;
    options.layout = layout;
    options.mapping.tracker = PAWL_TRACKER_STORE;
    heap_ = pawl_heap_open(path_.c_str(), &options);
    ASSERT_NE(heap_, nullptr) << pawl_last_error();
  }
  void close() { ASSERT_EQ(pawl_heap_close(std::exchange(heap_, nullptr)), 0); }
  void expect_sound() {
    EXPECT_EQ(pawl_heap_check(heap_, nullptr, nullptr), 0) << pawl_last_error();
    expect_nothing_unmarked();
  }
  void expect_nothing_unmarked() const {
    pawl_statistics statistics;
    ASSERT_EQ(pawl_heap_stats(heap_, &statistics), 0);
    EXPECT_EQ(statistics.unmarked_bytes, 0u);
  }

  // Blocks with a content that the test knows, and marks itself.
  struct Block {
    char* at;
    std::string content;
  };
  static void fill(Block& block) {
    if (block.content.empty()) return;
    std::memcpy(block.at, block.content.data(), block.content.size());
    pawl_stored(block.at, block.content.size());
  }

  test::TemporaryDirectory directory_;
  const std::string path_ = directory_ / "test.heap";
  pawl_heap* heap_ = nullptr;
};

TEST_F(HeapStoreTest, RandomCallsLeaveNothingUnmarked) {
  open();
  std::mt19937_64 random(5);
  std::vector<Block> blocks;
  std::vector<Block> at_last_sync;
  const auto size = [&] {
    switch (random() % 20) {
      case 0:
        return random() % (9 << 20);  // in segments of its own
      case 1:
      case 2:
        return random() % 300'000;
      default:
        return random() % 3000;
    }
  };
  for (int step = 0; step < 800; ++step) {
    const std::uint64_t choice = random() % 100;
    const std::size_t bytes = size();
    const std::size_t index = blocks.empty() ? 0 : random() % blocks.size();
    if (choice < 40 || blocks.empty()) {
      const bool zeroed = choice % 2 == 0;
      char* const at = static_cast<char*>(zeroed ? pawl_heap_calloc(heap_, 1, bytes)
                                                 : pawl_heap_malloc(heap_, bytes));
      ASSERT_NE(at, nullptr) << pawl_last_error();
      blocks.push_back(
          {at, std::string(bytes, zeroed ? '\0' : static_cast<char>('a' + step % 26))});
      if (!zeroed) fill(blocks.back());
    } else if (choice < 70) {
      ASSERT_EQ(pawl_heap_free(heap_, blocks[index].at), 0) << pawl_last_error();
      blocks[index] = blocks.back();
      blocks.pop_back();
    } else if (choice < 85) {
      Block& block = blocks[index];
      block.at = static_cast<char*>(pawl_heap_realloc(heap_, block.at, bytes));
      ASSERT_NE(block.at, nullptr) << pawl_last_error();
      const std::size_t kept = std::min(bytes, block.content.size());
      block.content.resize(kept);
      ASSERT_EQ(std::memcmp(block.at, block.content.data(), kept), 0);
      block.content.resize(bytes, 'r');
      fill(block);
    } else if (choice < 90) {
      ASSERT_EQ(pawl_heap_set_root(heap_, blocks[index].at), 0);
      const std::string name = "root" + std::to_string(random() % 10);
      if (pawl_heap_set_named_root(heap_, name.c_str(),
                                   random() % 3 == 0 ? nullptr : blocks[index].at, random()) != 0) {
        ASSERT_EQ(errno, ENOENT);
      }
    } else if (choice < 97) {
      ASSERT_EQ(pawl_heap_sync(heap_), 0) << pawl_last_error();
      expect_nothing_unmarked();
      at_last_sync = blocks;
    } else {
      ASSERT_EQ(pawl_heap_rollback(heap_), 0) << pawl_last_error();
      blocks = at_last_sync;
      for (const Block& block : blocks)
        ASSERT_EQ(std::memcmp(block.at, block.content.data(), block.content.size()), 0);
    }
  }
  ASSERT_EQ(pawl_heap_sync(heap_), 0) << pawl_last_error();
  expect_sound();
  close();
  open();
  for (const Block& block : blocks)
    ASSERT_EQ(std::memcmp(block.at, block.content.data(), block.content.size()), 0);
  expect_sound();
}

TEST_F(HeapStoreTest, AnIdentityThatGrowsIsMarked) {
  open();
  close();
  open(std::uint64_t{2} << 30, "another layout");
  ASSERT_EQ(pawl_heap_sync(heap_), 0) << pawl_last_error();
  expect_sound();
  close();
  open();
  pawl_heap_information information;
  ASSERT_EQ(pawl_heap_info(heap_, &information), 0);
  EXPECT_EQ(information.size_bytes_max, std::uint64_t{2} << 30);
  EXPECT_STREQ(information.layout, "another layout");
}

// What a call had stored before it found damage is taken back by a rollback.
TEST_F(HeapStoreTest, DamageIsRolledBack) {
  open();
  std::vector<char*> blocks;
  for (int i = 0; i < 300; ++i) blocks.push_back(static_cast<char*>(pawl_heap_malloc(heap_, 200)));
  ASSERT_EQ(pawl_heap_sync(heap_), 0) << pawl_last_error();
  // The header of the slab on the page.
  char* const slab =
      reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(blocks[5]) & ~4095ull);
  std::memset(slab, 1, 64);
  pawl_stored(slab, 64);
  for (char* const block : blocks) (void)pawl_heap_free(heap_, block);
  EXPECT_NE(pawl_heap_sync(heap_), 0);
  EXPECT_EQ(errno, EUCLEAN);
  ASSERT_EQ(pawl_heap_rollback(heap_), 0) << pawl_last_error();
  for (char* const block : blocks) EXPECT_EQ(pawl_heap_free(heap_, block), 0) << pawl_last_error();
  ASSERT_EQ(pawl_heap_sync(heap_), 0) << pawl_last_error();
  expect_sound();
}

}  // namespace
}  // namespace pawl
