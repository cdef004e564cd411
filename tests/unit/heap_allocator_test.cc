// The allocator alone, on plain memory: blocks do not meet, hold what was put into them, and what
// is freed is found again.

#include <sys/mman.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "heap/allocator.h"
#include "heap/size_classes.h"

namespace pawl {
namespace {

using heap_format::kSegmentBytes;

// Memory that grows as a heap does, and cannot be touched beyond its size.
class PlainMemory {
 public:
  explicit PlainMemory(std::uint64_t size_bytes_max)
      : size_bytes_max_(size_bytes_max),
        base_(static_cast<char*>(::mmap(nullptr, size_bytes_max + kSegmentBytes, PROT_NONE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
        start_(reinterpret_cast<char*>(
            round_up(reinterpret_cast<std::uintptr_t>(base_), kSegmentBytes))),
        arena(start_, kSegmentBytes, size_bytes_max,
              [this](std::uint64_t size_bytes) { return open(size_bytes); }) {
    EXPECT_TRUE(open(kSegmentBytes).ok());
    arena.segment_table()[0] = heap_format::kSegmentAdministration;
  }
  ~PlainMemory() { ::munmap(base_, size_bytes_max_ + kSegmentBytes); }

 private:
  Status open(std::uint64_t size_bytes) {
    if (::mprotect(start_, size_bytes, PROT_READ | PROT_WRITE) != 0)
      return FailedCall{errno, "mprotect"};
    return {};
  }

  const std::uint64_t size_bytes_max_;
  char* const base_;
  char* const start_;

 public:
  Arena arena;
};

TEST(HeapSizeClasses, WasteUnderAnEighthAndEachSizeFits) {
  for (std::size_t size = 1; size <= kSlabBlockMax; ++size) {
    const SizeClass& of = kSizeClasses[size_class_for(size)];
    ASSERT_GE(of.block_bytes, size);
    if (size_class_for(size) > 0) {
      ASSERT_LT(kSizeClasses[size_class_for(size) - 1].block_bytes, size);
    }
    if (size > 128) {
      ASSERT_LE((of.block_bytes - size) * 8, of.block_bytes) << size;
    }
  }
  for (const SizeClass& of : kSizeClasses) {
    ASSERT_EQ(of.block_bytes % heap_format::kBlockAlignment, 0u);
    ASSERT_LE(sizeof(heap_format::SlabHeader) + of.capacity * of.block_bytes,
              of.slab_pages * kPageBytes);
  }
}

// A table that told lengths in steps of 16 hid runs of 70 pages from those who wanted 70.
TEST(HeapRuns, WhatWasFreedServesTheSameSizeAgain) {
  for (const auto& [pages, alignment] :
       {std::pair{64, 16}, {65, 16}, {70, 16}, {100, 16}, {505, 16}, {2, 8192}, {16, 65536}}) {
    PlainMemory memory(std::uint64_t{64} << 20);
    Allocator allocator(memory.arena);
    const auto take = [&] {
      return allocator.allocate(static_cast<std::size_t>(pages) * kPageBytes,
                                static_cast<std::size_t>(alignment));
    };
    std::vector<char*> blocks;
    for (auto block = take(); block.ok(); block = take()) blocks.push_back(block.value());
    ASSERT_GT(blocks.size(), 10u);
    char* const freed = blocks[blocks.size() / 2];
    ASSERT_TRUE(allocator.free(freed).ok());
    auto again = take();
    ASSERT_TRUE(again.ok()) << pages << " pages, " << again.status().text();
    EXPECT_EQ(again.value(), freed);
  }
}

TEST(HeapRunCodes, NeverHideARunThatIsLongEnough) {
  for (std::uint32_t have = 1; have <= heap_format::kRunPagesMax; ++have)
    ASSERT_GE(heap_format::run_code(have), heap_format::run_code(have - 1));
}

class HeapAllocator : public testing::Test {
 protected:
  PlainMemory memory_{std::uint64_t{1} << 30};
  Allocator allocator_{memory_.arena};

  char* take(std::size_t size, std::size_t alignment = 16) {
    auto block = allocator_.allocate(size, alignment);
    EXPECT_TRUE(block.ok()) << block.status().text();
    return block.ok() ? block.value() : nullptr;
  }
  int error_of_free(char* block) { return allocator_.free(block).error_number(); }
  std::uint64_t blocks() {
    std::uint64_t count = 0;
    EXPECT_TRUE(allocator_.for_each_block([&](const char*, std::size_t) { ++count; }).ok());
    return count;
  }
};

TEST_F(HeapAllocator, RandomBlocksDoNotMeetAndKeepTheirBytes) {
  struct Block {
    std::size_t size;
    unsigned char filling;
  };
  std::map<char*, Block> blocks;
  std::mt19937 random(20130415);
  const auto draw_size = [&]() -> std::size_t {
    switch (random() % 10) {
      case 0:
        return random() % 3'000'000;
      case 1:
        return random() % 100'000;
      default:
        return random() % 4'000;
    }
  };
  const auto check = [&](const std::map<char*, Block>::value_type& entry) {
    const auto& [start, block] = entry;
    // Each byte is as the one before it, and the first as it was filled.
    if (block.size == 0) return;
    ASSERT_EQ(static_cast<unsigned char>(*start), block.filling);
    ASSERT_EQ(std::memcmp(start, start + 1, block.size - 1), 0);
  };
  std::uint64_t held = 0;
  for (int step = 0; step < 20'000; ++step) {
    const bool take_one = blocks.empty() || (random() % 2 == 0 && held < 200'000'000);
    if (take_one) {
      const std::size_t alignment = random() % 8 == 0 ? std::size_t{16} << random() % 13 : 16;
      const std::size_t size = draw_size();
      char* const block = take(size, alignment);
      ASSERT_NE(block, nullptr);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
      const auto next = blocks.lower_bound(block);
      if (next != blocks.end()) {
        ASSERT_LE(block + size, next->first);
      }
      if (next != blocks.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second.size, block);
      }
      const auto filling = static_cast<unsigned char>(random());
      std::memset(block, filling, size);
      blocks[block] = {size, filling};
      held += size;
      continue;
    }
    auto chosen = blocks.begin();
    std::advance(chosen, random() % blocks.size());
    check(*chosen);
    if (random() % 4 == 0) {
      const std::size_t size = draw_size();
      auto resized = allocator_.resize(chosen->first, size);
      ASSERT_TRUE(resized.ok());
      if (resized.value()) {
        held = held - chosen->second.size + size;
        auto usable = allocator_.usable_size(chosen->first);
        ASSERT_TRUE(usable.ok());
        ASSERT_GE(usable.value(), size);
        chosen->second.size = size;
        std::memset(chosen->first, chosen->second.filling, size);
        continue;
      }
    }
    held -= chosen->second.size;
    ASSERT_TRUE(allocator_.free(chosen->first).ok());
    blocks.erase(chosen);
  }
  ASSERT_EQ(this->blocks(), blocks.size());
  for (const auto& entry : blocks) {
    check(entry);
    ASSERT_TRUE(allocator_.free(entry.first).ok());
  }
  EXPECT_EQ(this->blocks(), 0u);
  for (std::uint32_t segment = 1; segment < memory_.arena.segment_count(); ++segment)
    ASSERT_TRUE(allocator_.segments().check(segment).ok());
}

TEST_F(HeapAllocator, AHugeBlockTakesWholeSegmentsAndGivesThemBack) {
  char* const first = take(10'000'000);
  std::memset(first, 'x', 10'000'000);
  const std::uint64_t size_before = memory_.arena.size_bytes();
  ASSERT_TRUE(allocator_.free(first).ok());
  EXPECT_EQ(take(10'000'000), first);
  EXPECT_EQ(memory_.arena.size_bytes(), size_before);
  ASSERT_TRUE(allocator_.free(first).ok());
  // Its segments serve as pages again, whatever stood in them.
  std::vector<char*> pages;
  while (memory_.arena.size_bytes() == size_before) pages.push_back(take(kPageBytes));
  EXPECT_GT(pages.size(), 10'000'000 / kPageBytes);
}

TEST_F(HeapAllocator, WhatIsFreedIsUsedBeforeTheHeapGrows) {
  std::vector<char*> blocks;
  for (int i = 0; i < 10'000; ++i) blocks.push_back(take(1'025));
  const std::uint64_t size_before = memory_.arena.size_bytes();
  for (int round = 0; round < 5; ++round) {
    for (char* const block : blocks) ASSERT_TRUE(allocator_.free(block).ok());
    for (char*& block : blocks) block = take(1'025);
  }
  EXPECT_EQ(memory_.arena.size_bytes(), size_before);
}

TEST_F(HeapAllocator, OneBlockThatComesAndGoesTakesNoPagesAnew) {
  char* const first = take(100);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(allocator_.free(first).ok());
    ASSERT_EQ(take(100), first);
  }
}

TEST_F(HeapAllocator, AFullHeapSaysSoAndGoesOn) {
  PlainMemory small(8 << 20);
  Allocator allocator(small.arena);
  std::vector<char*> blocks;
  for (;;) {
    auto block = allocator.allocate(100'000);
    if (!block.ok()) {
      EXPECT_EQ(block.status().error_number(), ENOMEM);
      EXPECT_NE(block.status().text().find("size_bytes_max"), std::string::npos);
      break;
    }
    blocks.push_back(block.value());
  }
  EXPECT_EQ(blocks.size(), 1023u / 25u);
  EXPECT_EQ(allocator.allocate(5 << 20).status().error_number(), ENOMEM);
  EXPECT_TRUE(allocator.allocate(16).ok());
  ASSERT_TRUE(allocator.free(blocks[7]).ok());
  EXPECT_TRUE(allocator.allocate(100'000).ok());
  EXPECT_EQ(allocator.allocate(~std::size_t{0}).status().error_number(), ENOMEM);
}

TEST_F(HeapAllocator, WhatIsNoBlockIsNotFreed) {
  char* const slab_block = take(100);
  char* const neighbour = take(100);
  char* const run = take(20'000);
  char* const huge = take(5'000'000);
  char outside = 0;
  EXPECT_EQ(error_of_free(&outside), EINVAL);
  EXPECT_EQ(error_of_free(memory_.arena.base()), EINVAL);
  EXPECT_EQ(error_of_free(slab_block + 16), EINVAL);
  EXPECT_EQ(error_of_free(run + 16), EINVAL);
  EXPECT_EQ(error_of_free(run + kPageBytes), EINVAL);
  EXPECT_EQ(error_of_free(huge + 16), EINVAL);
  EXPECT_EQ(error_of_free(huge + kSegmentBytes), EINVAL);
  EXPECT_EQ(error_of_free(slab_block), 0);
  EXPECT_EQ(error_of_free(slab_block), EINVAL);
  EXPECT_EQ(error_of_free(run), 0);
  EXPECT_EQ(error_of_free(run), EINVAL);
  EXPECT_EQ(error_of_free(huge), 0);
  EXPECT_EQ(error_of_free(huge), EINVAL);
  EXPECT_EQ(error_of_free(neighbour), 0);
  EXPECT_EQ(blocks(), 0u);
}

TEST_F(HeapAllocator, ARunGrowsInPlaceOnlyIntoFreePages) {
  char* const first = take(10'000);
  char* const second = take(10'000);
  ASSERT_EQ(second, first + 3 * kPageBytes);
  EXPECT_TRUE(allocator_.resize(first, 3 * kPageBytes).value());
  EXPECT_FALSE(allocator_.resize(first, 3 * kPageBytes + 1).value());
  EXPECT_TRUE(allocator_.resize(second, 100'000).value());
  EXPECT_EQ(allocator_.usable_size(second).value(), 25 * kPageBytes);
  EXPECT_TRUE(allocator_.resize(second, 9'000).value());
  EXPECT_EQ(take(10'000), second + 3 * kPageBytes);
  EXPECT_FALSE(allocator_.resize(second, 100).value()) << "a slab serves that better";
}

// Each structure that a stray store can hit.
TEST_F(HeapAllocator, AHugeBlockOfOneSegmentIsResizedInPlace) {
  char* const block = take(3 << 20);
  for (const std::size_t size : {3 << 20, (3 << 20) + 1, (2 << 20) + 1, (4 << 20) - 4096}) {
    auto resized = allocator_.resize(block, size);
    ASSERT_TRUE(resized.ok()) << resized.status().text();
    EXPECT_TRUE(resized.value()) << size;
  }
  EXPECT_FALSE(allocator_.resize(block, (4 << 20) - 4095).value());
  EXPECT_FALSE(allocator_.resize(block, 2 << 20).value());
  EXPECT_EQ(error_of_free(block), 0);
}

TEST_F(HeapAllocator, NoBytesOfABlockStayInAHeaderThatTakesItsPlace) {
  const std::size_t size = 10 << 20;
  char* const huge = take(size);
  std::memset(huge, 0xee, size);
  ASSERT_EQ(error_of_free(huge), 0);
  for (int i = 0; i < 3; ++i) take(2 << 20);
  for (std::uint32_t segment = 1; segment < memory_.arena.segment_count(); ++segment)
    for (const std::byte reserved : memory_.arena.segment(segment).reserved)
      ASSERT_EQ(reserved, std::byte{0}) << segment;
}

TEST_F(HeapAllocator, AnOverwrittenSlabHeaderIsDamage) {
  char* const block = take(100);
  char* const header = block - sizeof(heap_format::SlabHeader);
  for (std::size_t at = 0; at < sizeof(heap_format::SlabHeader); ++at) {
    header[at] ^= 0x20;
    EXPECT_EQ(error_of_free(block), EUCLEAN) << at;
    EXPECT_EQ(allocator_.allocate(100).status().error_number(), EUCLEAN) << at;
    header[at] ^= 0x20;
  }
  EXPECT_EQ(error_of_free(block), 0);
}

TEST_F(HeapAllocator, AnOverwrittenSegmentHeaderIsDamage) {
  char* const run = take(20'000);
  auto* const header = reinterpret_cast<char*>(&memory_.arena.segment(1));
  for (std::size_t at = 0; at < sizeof(heap_format::SegmentHeader); at += 3) {
    header[at] ^= 0x20;
    EXPECT_FALSE(allocator_.segments().check(1).ok()) << at;
    EXPECT_NE(error_of_free(run), 0) << at;
    EXPECT_EQ(allocator_.allocate(20'000).status().error_number(), EUCLEAN) << at;
    header[at] ^= 0x20;
  }
  EXPECT_EQ(error_of_free(run), 0);
}

TEST_F(HeapAllocator, AListThatLeadsAstrayIsNotFollowed) {
  take(100);
  std::uint32_t& first = memory_.arena.header().slabs_with_room[size_class_for(100)];
  const std::uint32_t was = first;
  for (const std::uint32_t wrong : {1u, was + 1, was - 1, 0xffffffffu}) {
    first = wrong;
    EXPECT_EQ(allocator_.allocate(100).status().error_number(), EUCLEAN) << wrong;
  }
  first = was;
  EXPECT_TRUE(allocator_.allocate(100).ok());
}

}  // namespace
}  // namespace pawl
