// Random calls of the heap's C interface against a model: each block keeps its bytes and meets no
// other, a sync keeps everything, a rollback and a new open bring the last sync back.  A seed
// repeats: PAWL_CRASH_SEED, PAWL_CRASH_COUNT.

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <gtest/gtest.h>

#include "crash/seeds.h"
#include "heap/allocator.h"
#include "heap/heap_file.h"
#include "heap/heap_model.h"
#include "support/test_size.h"

namespace pawl::test {
namespace {

constexpr unsigned kSeedsByDefault = at_size(4U, 16U);
constexpr unsigned kSteps = 2'500;
constexpr unsigned kStepsOfTide = 250;  // a heap fills for a while, then empties
constexpr std::uint64_t kMib = 1 << 20;

class Trial {
 public:
  explicit Trial(unsigned seed)
      : random_(seed),
        file_(below(random_, 2) == 0 ? 8 * kMib : (12 + below(random_, 60)) * kMib,
              64 << 10 << below(random_, 5)) {
    file_.options.mapping.apply = below(random_, 2) == 0 ? PAWL_APPLY_ASYNC : PAWL_APPLY_EAGER;
    file_.options.verify = below(random_, 4) == 0 ? 1 : 0;
  }

  void run() {
    file_.open();
    for (unsigned step = 0; step < kSteps && !testing::Test::HasFailure(); ++step) {
      if (step % kStepsOfTide == 0) fills_ = below(random_, 3) != 0;
      take_step();
    }
    if (testing::Test::HasFailure()) return;
    expect("at the end", now_.compare(heap()));
    free_everything();
    EXPECT_GT(refusals_ + syncs_, 0u);
  }

 private:
  pawl_heap* heap() const { return file_.get(); }
  static void expect(const char* when, const std::string& wrong) {
    EXPECT_TRUE(wrong.empty()) << when << ": " << wrong;
  }

  void take_step() {
    const std::uint64_t chance = below(random_, 1000);
    if (chance < 8) return sync();
    if (chance < 11) return roll_back();
    if (chance < 14) return open_again();
    if (chance < 18) return misuse();
    if (chance < 40) return set_some_root();
    if (chance < 80) return rewrite_one();
    if (chance < 90) return look();
    if (chance < 220) return resize_one();
    if (chance < (fills_ ? 750u : 450u)) return take_one();
    free_one();
  }

  // A block that was asked for, or why there is none.
  void got(void* given, std::size_t size, std::size_t alignment) {
    auto* const block = static_cast<char*>(given);
    if (block == nullptr) return was_refused(size);
    expect("a new block", now_.add(heap(), block, size, alignment));
  }

  // Only for want of room, and nothing was lost by it.
  void was_refused(std::size_t size) {
    refusals_ += 1;
    ASSERT_EQ(errno, ENOMEM) << pawl_last_error();
    pawl_heap_information information;
    ASSERT_EQ(pawl_heap_info(heap(), &information), 0);
    if (size > kSlabBlockMax) {
      EXPECT_GT(size, information.free_block_bytes_max);
    }
    EXPECT_LT(information.size_bytes_max - information.size_bytes,
              round_up(size + kPageBytes, heap_format::kSegmentBytes));
    fills_ = false;
  }

  void take_one() {
    const std::size_t size = draw_block_size(random_);
    switch (below(random_, 8)) {
      case 0: {
        const std::size_t alignment = std::size_t{1} << below(random_, 17);
        return got(pawl_heap_aligned_alloc(heap(), alignment, size), size, alignment);
      }
      case 1:
      case 2: {
        const std::size_t count = 1 + below(random_, 9);
        auto* const block = static_cast<char*>(pawl_heap_calloc(heap(), count, size / count));
        const std::size_t bytes = size / count * count;
        if (block != nullptr) {
          EXPECT_TRUE(std::all_of(block, block + bytes, [](char byte) { return byte == 0; }));
        }
        return got(block, bytes, heap_format::kBlockAlignment);
      }
      default:
        return got(pawl_heap_malloc(heap(), size), size, heap_format::kBlockAlignment);
    }
  }

  void free_one() {
    if (now_.blocks().empty()) return;
    char* const block = now_.any_block(random_);
    EXPECT_TRUE(now_.holds(block));
    now_.remove(block);
    ASSERT_EQ(pawl_heap_free(heap(), block), 0) << pawl_last_error();
  }

  void resize_one() {
    if (now_.blocks().empty()) return;
    char* const block = now_.any_block(random_);
    std::size_t size = draw_block_size(random_);
    // A step from where it is, which it may take in place.
    if (below(random_, 2) == 0) {
      const std::size_t present = now_.blocks().at(block).size;
      size = present + below(random_, present + 2) - present / 2;
    }
    auto* const resized = static_cast<char*>(pawl_heap_realloc(heap(), block, size));
    if (resized == nullptr) {
      EXPECT_TRUE(now_.holds(block)) << "a block that could not be resized is as it was";
      return was_refused(size);
    }
    expect("realloc", now_.resized(heap(), block, resized, size));
  }

  void rewrite_one() {
    if (!now_.blocks().empty()) now_.rewrite(now_.any_block(random_));
  }

  void set_some_root() {
    char* const to =
        now_.blocks().empty() || below(random_, 8) == 0 ? nullptr : now_.any_block(random_);
    if (below(random_, 2) == 0) {
      ASSERT_EQ(pawl_heap_set_root(heap(), to), 0);
      return now_.set_root(to);
    }
    const std::string name = "root " + std::to_string(below(random_, 40));
    const HeapModel::Named named{to, random_()};
    const bool is_there = now_.named().contains(name);
    if (to == nullptr && !is_there) {
      EXPECT_EQ(pawl_heap_set_named_root(heap(), name.c_str(), nullptr, 0), -1);
      EXPECT_EQ(errno, ENOENT);
      return;
    }
    ASSERT_EQ(pawl_heap_set_named_root(heap(), name.c_str(), to, named.type_tag), 0);
    now_.set_named(name, named);
  }

  void sync() {
    syncs_ += 1;
    ASSERT_EQ(pawl_heap_sync(heap()), 0) << pawl_last_error();
    synced_ = now_;
    expect("after a sync", check_text(heap()));
  }

  void roll_back() {
    ASSERT_EQ(pawl_heap_rollback(heap()), 0) << pawl_last_error();
    now_ = synced_;
    expect("after a rollback", now_.compare(heap()));
    expect("after a rollback", check_text(heap()));
  }

  // Of what was not synced nothing is found.
  void open_again() {
    if (below(random_, 2) == 0) sync();
    ASSERT_NO_FATAL_FAILURE(file_.close());
    ASSERT_NO_FATAL_FAILURE(file_.open());
    now_ = synced_;
    expect("opened again", now_.compare(heap()));
    expect("opened again", check_text(heap()));
  }

  void look() {
    expect("in between", check_text(heap()));
    if (below(random_, 4) == 0) expect("in between", now_.compare(heap()));
    EXPECT_EQ(pawl_heap_verify(heap(), nullptr, nullptr), 0);
  }

  // Something that is no block is freed or resized: refused, and from then on nothing is synced.
  void misuse() {
    if (now_.blocks().empty()) return;
    char* const block = now_.any_block(random_);
    char* wrong = block;
    switch (below(random_, 4)) {
      case 0:
        wrong =
            block + 1 + below(random_, std::max<std::size_t>(now_.blocks().at(block).size, 2) - 1);
        break;
      case 1:
        wrong = reinterpret_cast<char*>(this);
        break;
      case 2:
        wrong = block - 1 - below(random_, 8);
        break;
      default:
        ASSERT_EQ(pawl_heap_free(heap(), block), 0);
        break;
    }
    if (below(random_, 2) == 0) {
      EXPECT_EQ(pawl_heap_free(heap(), wrong), -1);
    } else {
      EXPECT_EQ(pawl_heap_realloc(heap(), wrong, draw_block_size(random_)), nullptr);
    }
    EXPECT_EQ(errno, EINVAL) << pawl_last_error();
    EXPECT_EQ(pawl_heap_sync(heap()), -1);
    EXPECT_EQ(errno, EUCLEAN);
    roll_back();
  }

  void free_everything() {
    while (!now_.blocks().empty()) {
      char* const block = now_.blocks().begin()->first;
      now_.remove(block);
      ASSERT_EQ(pawl_heap_free(heap(), block), 0) << pawl_last_error();
    }
    ASSERT_EQ(pawl_heap_set_root(heap(), nullptr), 0);
    now_.set_root(nullptr);
    sync();
    expect("empty", now_.compare(heap()));
    // What it says that it has can be had.
    pawl_heap_information information;
    ASSERT_EQ(pawl_heap_info(heap(), &information), 0);
    EXPECT_NE(pawl_heap_malloc(heap(), information.free_block_bytes_max), nullptr)
        << pawl_last_error();
    ASSERT_EQ(pawl_heap_info(heap(), &information), 0);
    EXPECT_EQ(information.blocks_used, 1u);
  }

  Random random_;
  HeapFile file_;
  HeapModel now_;
  HeapModel synced_;
  bool fills_ = true;
  unsigned refusals_ = 0;
  unsigned syncs_ = 0;
};

TEST(HeapModelTest, RandomCallsAgreeWithTheModel) {
  run_seeds(kSeedsByDefault, [](unsigned seed) { Trial(seed).run(); });
}

TEST(HeapModelTest, BlocksOfEachKindAreAlignedAsAsked) {
  HeapFile file(64 * kMib);
  file.open();
  for (const std::size_t size : {10u, 1'000u, 7'000u, 50'000u, 3'000'000u}) {
    for (std::size_t alignment = 1; alignment <= PAWL_HEAP_ALIGNMENT_MAX; alignment *= 2) {
      void* const block = pawl_heap_aligned_alloc(file.get(), alignment, size);
      ASSERT_NE(block, nullptr) << pawl_last_error();
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u) << size;
      EXPECT_GE(pawl_heap_usable_size(file.get(), block), size);
      EXPECT_EQ(pawl_heap_free(file.get(), block), 0);
    }
  }
}

}  // namespace
}  // namespace pawl::test
