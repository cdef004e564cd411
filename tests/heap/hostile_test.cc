// Heaps that somebody has changed: each byte of their bookkeeping in turn, and many changes at once
// by chance, with checksums as they were and made right again.

#include <array>
#include <cerrno>

#include <gtest/gtest.h>

#include "crash/seeds.h"
#include "heap/format.h"
#include "heap/hostile_heap.h"
#include "heap/sealed.h"
#include "heap/size_classes.h"
#include "support/test_size.h"

namespace pawl::test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr unsigned kSeedsByDefault = 300;  // a sanitizer makes each dearer
#else
constexpr unsigned kSeedsByDefault = at_size(400U, 2'000U);
#endif
constexpr unsigned kFileEvery = 40;  // of the seeds
constexpr unsigned kChangesMax = 6;
constexpr unsigned kStepsByByte = 25;
constexpr unsigned kStepsByChance = 120;

class HostileHeaps : public testing::Test {
 protected:
  HeapImage image_;
  HostileHeap heap_{image_};

  // Where bookkeeping stands that a checksum covers.
  struct Sealed {
    std::uint64_t offset;
    std::uint64_t size_bytes;
  };
  std::vector<Sealed> sealed() const {
    std::vector<Sealed> all{{0, sizeof(heap_format::Identity)}};
    for (const std::uint32_t segment : image_.segments())
      all.push_back({segment * heap_format::kSegmentBytes, sizeof(heap_format::SegmentHeader)});
    for (const std::uint64_t page : image_.slabs())
      all.push_back({page * kPageBytes, sizeof(heap_format::SlabHeader)});
    return all;
  }
};

TEST_F(HostileHeaps, AsItWasMadeItHasNoFaultsAndWorks) {
  Random random(1);
  EXPECT_EQ(heap_.faults(), 0u);
  EXPECT_EQ(heap_.use(random, 3'000), "");
  heap_.reset();
  EXPECT_EQ(heap_.use_file(random, 300), "");
}

TEST_F(HostileHeaps, NoByteUnderAChecksumChangesUnseen) {
  Random random(2);
  for (const Sealed& where : sealed()) {
    // All of the short ones, some of the long ones.
    const std::uint64_t step = where.size_bytes > 500 ? 13 : 1;
    for (std::uint64_t at = 0; at < where.size_bytes; at += step) {
      heap_.reset();
      const std::uint64_t offset = where.offset + at;
      heap_.change_byte(offset,
                        static_cast<std::uint8_t>(heap_.base()[offset] ^ (1 << below(random, 8))));
      ASSERT_GT(heap_.faults(), 0u) << offset;
      ASSERT_EQ(heap_.use(random, kStepsByByte), "") << offset;
    }
  }
}

// With right checksums, only what contradicts something else can be seen; and only that matters.
TEST_F(HostileHeaps, WhatIsNotSeenDoesNoHarm) {
  Random random(3);
  for (const Sealed& where : sealed()) {
    const std::uint64_t step = where.size_bytes > 500 ? 7 : 1;
    for (std::uint64_t at = 0; at < where.size_bytes; at += step) {
      heap_.reset();
      const std::uint64_t offset = where.offset + at;
      heap_.change_byte(offset, static_cast<std::uint8_t>(random()));
      heap_.seal_all();
      ASSERT_EQ(heap_.use(random, kStepsByByte), "") << offset;
    }
  }
}

// Its last pages would be those of the next segment, or of nothing; giving them back ended the
// program.
TEST_F(HostileHeaps, ASlabAtTheEndOfItsSegmentLedOutOfIt) {
  constexpr std::uint8_t kMakeSlab = 10;  // of HostileHeap::change()
  const std::uint32_t segment = image_.segments().front();
  const std::uint64_t page =
      std::uint64_t{segment} * heap_format::kSegmentPages + heap_format::kSegmentPages - 1;
  unsigned tried = 0;
  for (const std::uint64_t of_its_class : image_.slabs()) {
    heap_.reset();
    const auto slab_at = [&](std::uint64_t number) {
      return reinterpret_cast<heap_format::SlabHeader*>(heap_.base() + number * kPageBytes);
    };
    const std::uint8_t size_class = slab_at(of_its_class)->size_class;
    if (kSizeClasses[size_class].slab_pages == 1) continue;
    const std::array<std::uint8_t, HostileHeap::kChangeBytes> how{kMakeSlab, 0, 0, size_class};
    heap_.change(std::as_bytes(std::span(how)));
    heap_.seal_all();
    EXPECT_GT(heap_.faults(), 0u);
    // Its last block is freed; it is in a list, and so gives its pages back.
    heap_format::SlabHeader& slab = *slab_at(page);
    slab.used = 1;
    slab.used_bits = {1};
    slab.next = static_cast<std::uint32_t>(of_its_class);
    slab.previous = 0;
    seal(slab);
    EXPECT_EQ(heap_.free_at(page * kPageBytes + sizeof slab).error_number(), EUCLEAN);
    tried += 1;
  }
  EXPECT_GT(tried, 0u);
}

// A run of free pages was found to be longer than any can be, and what was learnt of it was written
// behind the table of such lengths.
TEST_F(HostileHeaps, ASegmentThatCallsItsHeadersPageFreeWasBelieved) {
  unsigned tried = 0;
  for (const std::uint64_t first_page : image_.slabs()) {
    heap_.reset();
    auto* const header = reinterpret_cast<heap_format::SegmentHeader*>(
        heap_.base() + round_down(first_page * kPageBytes, heap_format::kSegmentBytes));
    header->pages[0].kind = heap_format::PageKind::free;
    heap_.seal_all();
    EXPECT_GT(heap_.faults(), 0u);
    const std::uint64_t block = first_page * kPageBytes + sizeof(heap_format::SlabHeader);
    EXPECT_EQ(heap_.free_at(block).error_number(), EUCLEAN);
    tried += 1;
  }
  EXPECT_GT(tried, 0u);
}

TEST_F(HostileHeaps, ManyChangesAtOnceLeadNowhere) {
  run_seeds(kSeedsByDefault, [&](unsigned seed) {
    Random random(seed);
    heap_.reset();
    for (std::uint64_t left = 1 + below(random, kChangesMax); left > 0; --left)
      heap_.change(random_bytes(random, HostileHeap::kChangeBytes));
    if (below(random, 4) != 0) heap_.seal_all();
    if (seed % kFileEvery == 0) {
      ASSERT_EQ(heap_.use_file(random, kStepsByByte), "");
    } else {
      ASSERT_EQ(heap_.use(random, kStepsByChance), "");
    }
  });
}

}  // namespace
}  // namespace pawl::test
