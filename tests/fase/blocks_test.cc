// The blocks of a direct mapping's heap: against a model, by threads, where space ends, misused,
// and opened again.
#include "fase/blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "blocks_area.h"

namespace pawl::fase::test {
namespace {

constexpr std::uint64_t kAreaBytes = 256 * kChunkBytes;

class Heap {
 public:
  explicit Heap(std::uint64_t size_bytes_max = kAreaBytes) : area_(size_bytes_max) {
    EXPECT_TRUE(Blocks::make(area_.area(), memory_).ok());
    reopen();
  }

  Blocks* operator->() { return blocks_.get(); }
  BlocksMemory& area() { return area_; }
  std::uint64_t base() { return area_.area().address; }
  void close() { blocks_.reset(); }
  void reopen() {
    blocks_.reset();
    auto opened = Blocks::open(area_.area(), memory_);
    ASSERT_TRUE(opened.ok()) << opened.status().text();
    blocks_ = std::move(opened.value());
  }

  std::uint64_t use(std::uint64_t size_bytes, std::uint64_t alignment = 16) {
    auto reserved = blocks_->reserve(size_bytes, alignment);
    EXPECT_TRUE(reserved.ok()) << reserved.status().text();
    if (!reserved.ok()) return 0;
    blocks_->set_used(reserved.value());
    return reserved.value();
  }
  Status free(std::uint64_t address) {
    PAWL_TRY(blocks_->begin_free(address));
    blocks_->set_free(address);
    blocks_->give_back(address);
    return {};
  }
  std::map<std::uint64_t, std::uint64_t> used() {
    std::map<std::uint64_t, std::uint64_t> found;
    EXPECT_TRUE(blocks_
                    ->for_each_used([&](std::uint64_t address, std::uint64_t size_bytes) {
                      EXPECT_TRUE(found.emplace(address, size_bytes).second);
                    })
                    .ok());
    return found;
  }
  void expect_sound() {
    EXPECT_EQ(blocks_->check([](const std::string& text) { ADD_FAILURE() << text; }), 0u);
  }
  // Takes all there is, in blocks of that size, and gives it back.
  std::size_t fill(std::uint64_t size_bytes, int error_number = ENOMEM) {
    std::vector<std::uint64_t> reserved;
    for (;;) {
      auto block = blocks_->reserve(size_bytes);
      if (!block.ok()) {
        EXPECT_EQ(block.status().error_number(), error_number) << block.status().text();
        break;
      }
      reserved.push_back(block.value());
    }
    for (const std::uint64_t block : reserved) blocks_->give_back(block);
    return reserved.size();
  }

 private:
  BlocksMemory area_;
  DirectMemory memory_ = plain_memory();
  std::unique_ptr<Blocks> blocks_;
};

char* bytes_at(std::uint64_t address) {
  return reinterpret_cast<char*>(address);  // NOLINT(performance-no-int-to-ptr): it is one
}

bool holds_only(std::uint64_t address, std::uint64_t size_bytes, char value) {
  const char* const bytes = bytes_at(address);
  return bytes[0] == value && std::memcmp(bytes, bytes + 1, size_bytes - 1) == 0;
}

// Two threads that begin something at once, so far as there are processors.
class TwoThreads {
 public:
  // Each calls with 1, 2, 3, ...
  void meet(int times) {
    arrived_ += 1;
    for (int spins = 0; arrived_.load() < 2 * times; ++spins)
      if (spins % 1000 == 999) std::this_thread::yield();
  }

 private:
  std::atomic<int> arrived_{0};
};

std::uint64_t random_size(std::mt19937_64& random) {
  switch (random() % 8) {
    case 0:
      return random() % (4 * kChunkBytes);
    case 1:
    case 2:
      return random() % (kSmallBytesMax + 100);
    default:
      return random() % 600;
  }
}

// --- sizes ---------------------------------------------------------------------------------------

TEST(Blocks, EverySizeFitsAtEveryAlignment) {
  Heap heap;
  for (std::uint64_t alignment = 1; alignment <= kBlockAlignmentMax; alignment *= 2) {
    for (const std::uint64_t size_bytes :
         {0ul, 1ul, 15ul, 16ul, 17ul, 128ul, 129ul, 4096ul, 7680ul, 7681ul, 8128ul, 8129ul, 21824ul,
          32704ul, 32705ul, 65536ul, 65537ul, 200000ul}) {
      auto reserved = heap->reserve(size_bytes, alignment);
      ASSERT_TRUE(reserved.ok()) << size_bytes << " at " << alignment;
      EXPECT_EQ(reserved.value() % std::max<std::uint64_t>(alignment, 16), 0u);
      auto usable = heap->usable_size(reserved.value());
      ASSERT_TRUE(usable.ok());
      EXPECT_GE(usable.value(), std::max<std::uint64_t>(size_bytes, 1));
      if (size_bytes > 16 && size_bytes <= kSlabBlockMax && alignment <= 16) {
        EXPECT_LE(usable.value(), size_bytes + size_bytes / 8 + 16);
      }
      std::memset(bytes_at(reserved.value()), 0x5a, usable.value());
      heap->give_back(reserved.value());
    }
  }
  heap.expect_sound();
  for (const std::uint64_t alignment : {0ul, 3ul, 24ul, 2 * kBlockAlignmentMax})
    EXPECT_EQ(heap->reserve(16, alignment).status().error_number(), EINVAL);
}

TEST(Blocks, BlocksOfAClassFillTheirSlab) {
  for (std::size_t which = 0; which < kSlabClassCount; ++which) {
    SCOPED_TRACE("blocks of " + std::to_string(kSlabClasses[which].block_bytes));
    const SlabClass& of = kSlabClasses[which];
    EXPECT_LE(of.map_lines * kLineBytes, of.first_offset);
    EXPECT_EQ(of.first_offset + of.capacity * of.block_bytes, kChunkBytes);
    Heap heap(2 * kChunkBytes);
    std::set<std::uint64_t> blocks;
    for (std::uint32_t i = 0; i < of.capacity; ++i) {
      const std::uint64_t block = heap.use(of.block_bytes);
      EXPECT_TRUE(blocks.insert(block).second);
      std::memset(bytes_at(block), 0xff, of.block_bytes);
    }
    EXPECT_EQ(heap->reserve(of.block_bytes).status().error_number(), ENOMEM);
    heap.expect_sound();
    EXPECT_EQ(heap.used().size(), of.capacity);
    heap.reopen();
    EXPECT_EQ(heap->reserve(of.block_bytes).status().error_number(), ENOMEM);
    for (const std::uint64_t block : blocks) EXPECT_TRUE(heap.free(block).ok());
    EXPECT_EQ(heap.fill(of.block_bytes), of.capacity);
  }
}

// --- a model -------------------------------------------------------------------------------------

struct Known {
  std::uint64_t size_bytes = 0;
  char filled_with = 0;
  bool used = false;  // else reserved
  bool being_freed = false;
};

class Model {
 public:
  explicit Model(std::uint64_t seed) : random_(seed) {}

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) step();
    verify();
  }

 private:
  void step() {
    switch (random_() % 16) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
        return reserve();
      case 6:
      case 7:
      case 8:
        return on_block([this](std::uint64_t at, Known& known) {
          if (known.being_freed) return false;
          heap_->set_used(at);
          known.used = true;
          return false;
        });
      case 9:
        return on_block([this](std::uint64_t at, Known& known) {
          if (known.used || known.being_freed) return false;
          heap_->give_back(at);
          return true;
        });
      case 10:
      case 11:
      case 12:
        return on_block([this](std::uint64_t at, Known& known) {
          EXPECT_EQ(heap_->begin_free(at).ok(), !known.being_freed);
          known.being_freed = true;
          return false;
        });
      case 13:
        return on_block([this](std::uint64_t at, Known& known) {
          if (known.being_freed) heap_->cancel_free(at);
          known.being_freed = false;
          return false;
        });
      case 14:
        if (random_() % 8 == 0) strange_address();
        return on_block([this](std::uint64_t at, Known& known) {
          if (!known.being_freed) return false;
          heap_->set_free(at);
          heap_->give_back(at);
          return true;
        });
      default:
        if (random_() % 16 == 0) verify();
        if (random_() % 64 == 0) reopen();
    }
  }

  // The action says whether the block is gone.
  template <class Action>
  void on_block(Action action) {
    if (known_.empty()) return;
    auto block = known_.lower_bound(heap_.base() + random_() % kAreaBytes);
    if (block == known_.end()) block = known_.begin();
    const Known before = block->second;
    EXPECT_TRUE(holds_only(block->first, before.size_bytes, before.filled_with));
    auto usable = heap_->usable_size(block->first);
    EXPECT_EQ(usable.ok(), !before.being_freed);
    if (usable.ok()) {
      EXPECT_EQ(usable.value(), before.size_bytes);
    }
    if (!action(block->first, block->second)) return;
    const std::uint64_t address = block->first;
    known_.erase(block);
    EXPECT_EQ(heap_->usable_size(address).status().error_number(), EINVAL);
    EXPECT_EQ(heap_->begin_free(address).error_number(), EINVAL);
  }

  void reserve() {
    const std::uint64_t size_bytes = random_size(random_);
    const std::uint64_t alignment = std::uint64_t{1} << random_() % 17;
    auto reserved = heap_->reserve(size_bytes, alignment);
    if (!reserved.ok()) {
      EXPECT_EQ(reserved.status().error_number(), ENOMEM);
      // Make some room.
      while (known_.size() > 20 && random_() % 64 != 0) {
        const auto block = known_.begin();
        if (!block->second.being_freed) {
          EXPECT_TRUE(heap_->begin_free(block->first).ok());
        }
        heap_->set_free(block->first);
        heap_->give_back(block->first);
        known_.erase(block);
      }
      return;
    }
    const std::uint64_t address = reserved.value();
    EXPECT_EQ(address % alignment, 0u);
    const std::uint64_t usable = heap_->usable_size(address).value();
    EXPECT_GE(usable, size_bytes);
    const auto after = known_.lower_bound(address);
    if (after != known_.end()) {
      EXPECT_LE(address + usable, after->first);
    }
    if (after != known_.begin()) {
      const auto before = std::prev(after);
      EXPECT_LE(before->first + before->second.size_bytes, address);
    }
    const auto value = static_cast<char>(random_());
    std::memset(bytes_at(address), value, usable);
    known_[address] = {.size_bytes = usable, .filled_with = value};
  }

  void strange_address() {
    const std::uint64_t address = heap_.base() + random_() % (kAreaBytes + 4096) - 2048;
    if (known_.contains(address)) return;
    EXPECT_EQ(heap_->begin_free(address).error_number(), EINVAL);
    EXPECT_EQ(heap_->usable_size(address).status().error_number(), EINVAL);
  }

  void verify() {
    heap_.expect_sound();
    std::map<std::uint64_t, std::uint64_t> expected;
    std::uint64_t bytes = 0;
    for (const auto& [address, known] : known_) {
      if (!known.used) continue;
      expected[address] = known.size_bytes;
      bytes += known.size_bytes;
    }
    EXPECT_EQ(heap_.used(), expected);
    auto information = heap_->information();
    ASSERT_TRUE(information.ok());
    EXPECT_EQ(information.value().blocks_used, expected.size());
    EXPECT_EQ(information.value().bytes_used, bytes);
  }

  void reopen() {
    heap_.reopen();
    for (auto block = known_.begin(); block != known_.end();) {
      block->second.being_freed = false;
      block = block->second.used ? std::next(block) : known_.erase(block);
    }
    verify();
  }

  std::mt19937_64 random_;
  Heap heap_;
  std::map<std::uint64_t, Known> known_;
};

TEST(Blocks, BehaveAsTheModel) {
  for (std::uint64_t seed = 1; seed <= 6 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Model(seed).run(6000);
  }
}

// --- recovery ------------------------------------------------------------------------------------

TEST(Blocks, BitsAreSetAndClearedAnyNumberOfTimesBeforeAnythingIsKnown) {
  for (const std::uint64_t size_bytes : {48ul, 9000ul, 150000ul}) {
    Heap heap;
    const std::uint64_t freed = heap.use(size_bytes);
    const std::uint64_t neighbour = heap.use(size_bytes);
    const std::uint64_t allocated = heap->reserve(size_bytes).value();
    heap.reopen();
    for (int times = 0; times < 3; ++times) {
      heap->set_used(allocated);
      heap->set_free(freed);
    }
    heap.expect_sound();
    const auto used = heap.used();
    EXPECT_TRUE(used.contains(allocated) && used.contains(neighbour) && !used.contains(freed));
    heap->give_back(freed);
    std::set<std::uint64_t> reserved;
    for (int i = 0; i < 3; ++i) reserved.insert(heap->reserve(size_bytes).value());
    EXPECT_TRUE(reserved.contains(freed));
    EXPECT_FALSE(reserved.contains(allocated) || reserved.contains(neighbour));
  }
}

TEST(Blocks, WhatLogsListIsNotHandedOutUntilItIsGivenBack) {
  for (const std::uint64_t size_bytes : {48ul, 9000ul, 150000ul}) {
    Heap heap(16 * kChunkBytes);
    const std::uint64_t freed = heap.use(size_bytes);
    const std::uint64_t allocated = heap->reserve(size_bytes).value();
    heap->set_free(freed);  // its section has not ended
    heap.reopen();
    for (int times = 0; times < 2; ++times) {
      ASSERT_TRUE(heap->keep(freed).ok());
      ASSERT_TRUE(heap->keep(allocated).ok());
    }
    EXPECT_EQ(heap->keep(freed + 8).error_number(), EINVAL);
    EXPECT_EQ(heap->keep(8).error_number(), EINVAL);
    EXPECT_EQ(heap->usable_size(allocated).ok(), true);
    std::set<std::uint64_t> reserved;
    for (auto block = heap->reserve(size_bytes); block.ok(); block = heap->reserve(size_bytes))
      reserved.insert(block.value());
    EXPECT_FALSE(reserved.contains(freed) || reserved.contains(allocated));
    heap->set_used(allocated);
    heap->set_free(freed);
    heap->give_back(freed);
    auto again = heap->reserve(size_bytes);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again.value(), freed);
    heap.expect_sound();
  }
}

TEST(Blocks, ThreadsOfRecoveryPublishSideBySide) {
  Heap heap;
  constexpr std::size_t kThreads = 4;
  std::vector<std::uint64_t> reserved;
  for (int i = 0; i < 600; ++i)
    reserved.push_back(heap->reserve(i > 16 && i % 3 == 0 ? 9000 : 40).value());
  heap.reopen();
  for (const std::uint64_t block : reserved) ASSERT_TRUE(heap->keep(block).ok());
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      // Of one word of one map each thread has its bits.
      for (int times = 0; times < 3000; ++times) {
        for (std::size_t i = thread; i < 16; i += kThreads) {
          heap->set_used(reserved[i]);
          heap->set_free(reserved[i]);
        }
      }
      for (std::size_t i = thread; i < reserved.size(); i += kThreads) {
        heap->set_used(reserved[i]);
        if (i % 5 == 0) heap->set_free(reserved[i]);
        if (i % 5 == 0) heap->give_back(reserved[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  heap.expect_sound();
  const auto used = heap.used();
  for (std::size_t i = 0; i < reserved.size(); ++i)
    EXPECT_EQ(used.contains(reserved[i]), i % 5 != 0);
}

// --- opening -------------------------------------------------------------------------------------

TEST(Blocks, OpeningTouchesNothingButTheHeaderAndASearchLittle) {
  Heap heap(4096 * kChunkBytes);
  constexpr std::uint64_t kUsedChunks = 1000;
  std::vector<std::uint64_t> blocks;
  while (blocks.size() < kUsedChunks * 2) blocks.push_back(heap.use(32704));
  const std::uint64_t end = heap->information().value().size_bytes / kChunkBytes;
  heap.close();
  heap.area().forbid(1, end - 1);
  heap.reopen();
  // What is looked at is full: the block comes from behind the end.
  heap.area().allow(1, kLookAtOnce);
  const std::uint64_t block = heap->reserve(32704).value();
  EXPECT_GE(block, heap.base() + end * kChunkBytes);
  heap.area().allow(1, end - 1);
  heap.expect_sound();
  EXPECT_EQ(heap.used().size(), blocks.size());
}

TEST(Blocks, WhatIsFreeIsFoundAfterAnOpen) {
  Heap heap(1024 * kChunkBytes);
  std::vector<std::uint64_t> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(heap.use(32704));
  for (std::size_t i = 400; i < blocks.size(); ++i) EXPECT_TRUE(heap.free(blocks[i]).ok());
  heap.reopen();
  const std::uint64_t size_bytes = heap->information().value().size_bytes;
  for (std::size_t i = 400; i < 900; ++i) heap.use(32704);
  // It was looked for faster than the file has grown.
  EXPECT_LE(heap->information().value().size_bytes, size_bytes + 4 * kGrowthChunks * kChunkBytes);
}

// A large block behind what was looked at is given back, and a run of free chunks would lead into
// it.
TEST(Blocks, WhatIsGivenBackBeforeItIsLookedAtIsHandedOutOnce) {
  Heap heap(300 * kChunkBytes);
  constexpr std::uint64_t kLarge = 1 + 2 * kLookAtOnce;  // where it begins: the third look would
  const auto chunk_of = [&](std::uint64_t address) {
    return (address - heap.base()) / kChunkBytes;
  };
  std::vector<std::uint64_t> blocks;
  while (blocks.size() + 1 < kLarge) blocks.push_back(heap.use(kChunkBytes));
  const std::uint64_t large = heap.use(3 * kChunkBytes);
  ASSERT_EQ(chunk_of(large), kLarge);
  while (chunk_of(blocks.back()) + 1 < heap->information().value().size_bytes / kChunkBytes)
    blocks.push_back(heap.use(kChunkBytes));
  EXPECT_TRUE(heap.free(blocks[kLarge - 2]).ok());
  heap.reopen();
  std::set<std::uint64_t> taken;
  const auto reserve = [&](std::uint64_t chunks) {
    auto block = heap->reserve(chunks * kChunkBytes);
    if (!block.ok()) return false;
    for (std::uint64_t i = 0; i < chunks; ++i)
      EXPECT_TRUE(taken.insert(chunk_of(block.value()) + i).second) << "chunk of " << chunks;
    return true;
  };
  EXPECT_TRUE(reserve(1));
  EXPECT_TRUE(heap.free(large).ok());
  EXPECT_TRUE(reserve(4));
  while (reserve(1)) continue;
  EXPECT_EQ(taken.size(), 299 - (blocks.size() - 1));
}

TEST(Blocks, AnAreaThatIsNoneIsRefused) {
  BlocksMemory memory(16 * kChunkBytes);
  DirectMemory plain = plain_memory();
  ASSERT_TRUE(memory.take_space(0, kChunkBytes).ok());
  EXPECT_EQ(Blocks::open(memory.area(), plain).status().error_number(), EUCLEAN);
  ASSERT_TRUE(Blocks::make(memory.area(), plain).ok());
  EXPECT_TRUE(Blocks::open(memory.area(), plain).ok());
  for (const std::size_t byte : {0u, 8u, 16u, 31u}) {
    memory.base()[byte] ^= std::byte{1};
    EXPECT_EQ(Blocks::open(memory.area(), plain).status().error_number(), EUCLEAN) << byte;
    memory.base()[byte] ^= std::byte{1};
  }
  BlocksMemory other(32 * kChunkBytes);
  ASSERT_TRUE(other.take_space(0, kChunkBytes).ok());
  std::memcpy(other.base(), memory.base(), sizeof(AreaHeader));
  EXPECT_EQ(Blocks::open(other.area(), plain).status().error_number(), EUCLEAN);
}

// An area written by hand, from the document.
TEST(Blocks, TheFormatIsTheDocuments) {
  const std::uint64_t chunks =
      10000;  // the table goes into the second chunk, and the third is first
  BlocksMemory memory(chunks * kChunkBytes);
  DirectMemory plain = plain_memory();
  ASSERT_TRUE(memory.take_space(0, 8 * kChunkBytes).ok());
  const auto store = [&](std::uint64_t offset, std::uint64_t value) {
    std::memcpy(memory.base() + offset, &value, sizeof value);
  };
  std::memcpy(memory.base(), "PAWLFBLK\1\0\0\0\0\0\0\0", 16);
  store(16, chunks * 65536);
  store(24, 8);
  store(64 + 8 * 2, 0x0201);       // chunk 2: a slab of class 2, blocks of 48 bytes
  store(2 * 65536 + 8, 0x5);       // blocks 64 and 66
  store(64 + 8 * 3, 0x3d01);       // chunk 3: a slab of the last class
  store(3 * 65536, 0x2);           // block 1
  store(64 + 8 * 4, 0x300000102);  // chunks 4 to 6: a large block, used
  store(64 + 8 * 7, 0x100000002);  // chunk 7: another, that is not
  auto blocks = Blocks::open(memory.area(), plain);
  ASSERT_TRUE(blocks.ok());
  std::map<std::uint64_t, std::uint64_t> used;
  ASSERT_TRUE(blocks.value()
                  ->for_each_used([&](std::uint64_t address, std::uint64_t size_bytes) {
                    used[address - memory.area().address] = size_bytes;
                  })
                  .ok());
  const std::map<std::uint64_t, std::uint64_t> expected = {{2 * 65536 + 208 + 64 * 48, 48},
                                                           {2 * 65536 + 208 + 66 * 48, 48},
                                                           {3 * 65536 + 128 + 32704, 32704},
                                                           {4 * 65536, 3 * 65536}};
  EXPECT_EQ(used, expected);
  EXPECT_EQ(blocks.value()->check({}), 0u);
}

TEST(Blocks, OfALargeTableOnlyWhatIsNeededTakesSpace) {
  const std::uint64_t chunks = std::uint64_t{1} << 20;  // 64 GiB, and 8 MiB of table
  Heap heap(chunks * kChunkBytes);
  EXPECT_EQ(heap.area().chunks_taken(), 1u);
  heap.use(100);
  EXPECT_EQ(heap.area().chunks_taken(), 1 + kGrowthChunks);
  // Past what one piece of the table has words for.
  const std::uint64_t large = heap->reserve(10000 * kChunkBytes).value();
  heap->set_used(large);
  EXPECT_TRUE(heap.area().is_taken((64 + 8 * (large / kChunkBytes - heap.base() / kChunkBytes)) /
                                   kChunkBytes));
  heap.reopen();
  heap.use(100);
  EXPECT_EQ(heap.used().size(), 3u);
  heap.expect_sound();
}

// --- where space ends ----------------------------------------------------------------------------

TEST(Blocks, AFullHeapRefusesAndGoesOn) {
  Heap heap(20 * kChunkBytes);
  EXPECT_EQ(heap.fill(1000), heap.fill(1000));
  EXPECT_EQ(heap.fill(kChunkBytes), 19u);
  std::vector<std::uint64_t> blocks;
  for (auto block = heap->reserve(5000); block.ok(); block = heap->reserve(5000)) {
    heap->set_used(block.value());
    blocks.push_back(block.value());
  }
  EXPECT_EQ(heap->reserve(5000).status().error_number(), ENOMEM);
  EXPECT_EQ(heap->reserve(16).status().error_number(), ENOMEM);
  EXPECT_TRUE(heap.free(blocks[17]).ok());
  EXPECT_EQ(heap->reserve(5000).value(), blocks[17]);
  // Not given back yet, a block is not handed out.
  EXPECT_TRUE(heap->begin_free(blocks[18]).ok());
  heap->set_free(blocks[18]);
  EXPECT_EQ(heap->reserve(5000).status().error_number(), ENOMEM);
  heap->give_back(blocks[18]);
  EXPECT_EQ(heap->reserve(5000).value(), blocks[18]);
  heap.expect_sound();
  for (const std::uint64_t size_bytes : {20 * kChunkBytes, ~std::uint64_t{0}})
    EXPECT_EQ(heap->reserve(size_bytes).status().error_number(), ENOMEM);
}

TEST(Blocks, TheLastFreeChunksCountWhereTheFileGrows) {
  Heap heap(20 * kChunkBytes);
  EXPECT_TRUE(heap->reserve(16).ok());  // the file has grown, and has free chunks at its end
  EXPECT_TRUE(heap->reserve(18 * kChunkBytes).ok());
}

TEST(Blocks, EmptySlabsBecomeBlocksOfAnotherSize) {
  Heap heap(20 * kChunkBytes);
  for (const std::uint64_t size_bytes : {16ul, 32704ul, 200ul, 5 * kChunkBytes, 19 * kChunkBytes}) {
    EXPECT_GT(heap.fill(size_bytes), 0u) << size_bytes;
    heap.expect_sound();
  }
  EXPECT_EQ(heap.fill(19 * kChunkBytes), 1u);
  heap.reopen();
  EXPECT_EQ(heap.fill(19 * kChunkBytes), 1u);
  heap.expect_sound();
}

TEST(Blocks, RoomInAnotherThreadsSlabIsFound) {
  Heap heap(2 * kChunkBytes);
  std::thread([&] { heap.use(9000); }).join();
  std::set<std::uint64_t> blocks;
  for (int i = 0; i < 6; ++i) blocks.insert(heap.use(9000));
  EXPECT_EQ(blocks.size(), 6u);
  EXPECT_EQ(heap->reserve(9000).status().error_number(), ENOMEM);
}

TEST(Blocks, AFullDiskRefusesAndGoesOn) {
  Heap heap;
  heap.area().set_chunks_max(10);
  const std::size_t fit = heap.fill(9000, ENOSPC);
  EXPECT_EQ(fit, 9u * 7);
  EXPECT_EQ(heap.fill(4 * kChunkBytes, ENOSPC), 2u);
  EXPECT_EQ(heap->reserve(10 * kChunkBytes).status().error_number(), ENOSPC);
  const std::uint64_t block = heap.use(9 * kChunkBytes);
  EXPECT_EQ(heap->reserve(16).status().error_number(), ENOSPC);
  heap.expect_sound();
  EXPECT_TRUE(heap.free(block).ok());
  heap.use(16);
  heap.area().set_chunks_max(~std::uint64_t{0});
  heap.use(100 * kChunkBytes);
  heap.expect_sound();
}

// --- misuse --------------------------------------------------------------------------------------

TEST(Blocks, ADoubleFreeIsFound) {
  for (const std::uint64_t size_bytes : {16ul, 9000ul, 70000ul}) {
    Heap heap;
    const std::uint64_t block = heap.use(size_bytes);
    heap.use(size_bytes);
    for (int again = 0; again < 2; ++again) {
      EXPECT_TRUE(heap->begin_free(block).ok());
      EXPECT_EQ(heap->begin_free(block).error_number(), EINVAL);
      EXPECT_EQ(heap->usable_size(block).status().error_number(), EINVAL);
      if (again == 0) heap->cancel_free(block);
    }
    heap->set_free(block);
    EXPECT_EQ(heap->begin_free(block).error_number(), EINVAL);
    heap->give_back(block);
    EXPECT_EQ(heap->begin_free(block).error_number(), EINVAL);
    heap.reopen();
    EXPECT_EQ(heap->begin_free(block).error_number(), EINVAL);
    EXPECT_EQ(heap->usable_size(block).status().error_number(), EINVAL);
    // A block that is reserved again can be freed again.
    std::uint64_t reserved = 0;
    for (int i = 0; i < 10 && reserved != block; ++i) reserved = heap->reserve(size_bytes).value();
    EXPECT_EQ(reserved, block);
    EXPECT_TRUE(heap->begin_free(block).ok());
  }
}

TEST(Blocks, OneOfTwoThreadsFrees) {
  constexpr int kRounds = 1500;
  Heap heap;
  std::array<std::uint64_t, 2> blocks{};
  std::atomic<int> freed{0};
  TwoThreads threads;
  const auto free = [&](int round) { freed += heap->begin_free(blocks[round % 2]).ok() ? 1 : 0; };
  for (std::size_t i = 0; i < 2; ++i) blocks[i] = heap.use(i == 0 ? 64 : kChunkBytes);
  int wrong = 0;
  std::thread other([&] {
    for (int round = 0; round < kRounds; ++round) {
      threads.meet(2 * round + 1);
      free(round);
      threads.meet(2 * round + 2);
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    threads.meet(2 * round + 1);
    free(round);
    threads.meet(2 * round + 2);
    wrong += freed.exchange(0) == 1 ? 0 : 1;
    heap->cancel_free(blocks[round % 2]);
  }
  other.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Blocks, WhatIsNoBlockIsRefused) {
  Heap heap;
  const std::uint64_t small = heap.use(48);
  const std::uint64_t large = heap.use(3 * kChunkBytes);
  for (const std::uint64_t address :
       {std::uint64_t{0}, heap.base() - 16, heap.base(), heap.base() + kAreaBytes,
        heap.base() + kAreaBytes - kChunkBytes, small + 8, small + 16, small + 48, small - 48,
        small / kChunkBytes * kChunkBytes, large + 16, large + kChunkBytes, ~std::uint64_t{15}}) {
    EXPECT_EQ(heap->begin_free(address).error_number(), EINVAL) << address - heap.base();
    EXPECT_EQ(heap->usable_size(address).status().error_number(), EINVAL);
  }
}

TEST(Blocks, DamageIsToldOf) {
  Heap heap;
  const std::uint64_t small = heap.use(9000);
  const std::uint64_t large = heap.use(3 * kChunkBytes);
  heap.expect_sound();
  const auto word_of = [&](std::uint64_t address) {
    return heap.base() + kTableOffset + 8 * ((address - heap.base()) / kChunkBytes);
  };
  const auto faults_with = [&](std::uint64_t at, std::uint64_t bits) {
    auto& word = *reinterpret_cast<std::uint64_t*>(bytes_at(at));
    word ^= bits;
    const std::uint64_t faults = heap->check({});
    word ^= bits;
    return faults;
  };
  EXPECT_GT(faults_with(word_of(small), 0x4), 0u);                      // no kind
  EXPECT_GT(faults_with(word_of(small), 0xff00), 0u);                   // no class
  EXPECT_GT(faults_with(word_of(small), 0x100), 0u);                    // another class
  EXPECT_GT(faults_with(word_of(small), 0x10000), 0u);                  // reserved
  EXPECT_GT(faults_with(word_of(large), std::uint64_t{1} << 63), 0u);   // past the end
  EXPECT_GT(faults_with(word_of(large) + 8, 1), 0u);                    // inside of a block
  EXPECT_GT(faults_with(small / kChunkBytes * kChunkBytes, 0x80), 0u);  // no such block
  EXPECT_GT(faults_with(small / kChunkBytes * kChunkBytes + 8, 1), 0u);
  EXPECT_GT(faults_with(small / kChunkBytes * kChunkBytes, 0x40), 0u);  // used, and not taken
  heap.expect_sound();
  // What is found on the way is refused.
  heap.reopen();
  *bytes_at(word_of(small)) = 0x77;
  EXPECT_EQ(heap->reserve(100).status().error_number(), EUCLEAN);
  EXPECT_EQ(heap->information().status().error_number(), EUCLEAN);
}

// --- threads -------------------------------------------------------------------------------------

struct Held {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  char filled_with = 0;
};

// Blocks go from thread to thread: most are freed by another one than took them.
TEST(Blocks, ThreadsReserveAndFreeSideBySide) {
  constexpr int kThreads = 4;
  constexpr int kSteps = 4000;
  Heap heap;
  std::mutex mutex;
  std::vector<Held> held;
  const auto work = [&](int thread) {
    std::mt19937_64 random(static_cast<std::uint64_t>(thread));
    for (int step = 0; step < kSteps; ++step) {
      if (random() % 2 == 0) {
        auto reserved = heap->reserve(random_size(random));
        if (reserved.ok()) {
          Held block{.address = reserved.value(),
                     .size_bytes = heap->usable_size(reserved.value()).value(),
                     .filled_with = static_cast<char>(random())};
          std::memset(bytes_at(block.address), block.filled_with, block.size_bytes);
          if (random() % 8 == 0) {
            heap->give_back(block.address);
            continue;
          }
          heap->set_used(block.address);
          const std::lock_guard lock(mutex);
          held.push_back(block);
          continue;
        }
        EXPECT_EQ(reserved.status().error_number(), ENOMEM);
      }
      Held block;
      {
        const std::lock_guard lock(mutex);
        if (held.empty()) continue;
        std::swap(held[random() % held.size()], held.back());
        block = held.back();
        held.pop_back();
      }
      EXPECT_TRUE(holds_only(block.address, block.size_bytes, block.filled_with));
      EXPECT_TRUE(heap.free(block.address).ok());
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();

  heap.expect_sound();
  const auto used = heap.used();
  EXPECT_EQ(used.size(), held.size());
  for (const Held& block : held) {
    EXPECT_TRUE(used.contains(block.address));
    EXPECT_TRUE(holds_only(block.address, block.size_bytes, block.filled_with));
    EXPECT_TRUE(heap.free(block.address).ok());
  }
  EXPECT_EQ(heap.fill(255 * kChunkBytes), 1u);
}

// Whoever lets go of a full slab, and whoever gives a block of it back meanwhile: one of the two
// must put it into the list, and only one.
TEST(Blocks, ASlabThatFillsUpWhileABlockIsGivenBackIsListedOnce) {
  constexpr int kRounds = 4000;
  const auto slab = Slab::make(static_cast<std::uint8_t>(kSlabClassCount - 1));
  for (std::uint32_t word = 0; word < map_words(slab->of()); ++word)
    slab->set_taken_bits(word, ~0ul);
  TwoThreads threads;
  std::atomic<int> listed{0};
  std::thread other([&] {
    for (int round = 0; round < kRounds; ++round) {
      threads.meet(2 * round + 1);
      listed += slab->give_back(0) ? 1 : 0;
      threads.meet(2 * round + 2);
    }
  });
  int wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    threads.meet(2 * round + 1);
    const int let_go = slab->let_go() ? 1 : 0;
    threads.meet(2 * round + 2);
    wrong += let_go + listed.exchange(0) == 1 ? 0 : 1;
    slab->own();
    slab->take_this(0);
  }
  other.join();
  EXPECT_EQ(wrong, 0);
}

// All of a small heap, again and again: slabs fill up, empty, and change their size.
TEST(Blocks, ThreadsExhaustTheHeapSideBySide) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 60;
  Heap heap(12 * kChunkBytes);
  const auto work = [&](int thread) {
    std::mt19937_64 random(static_cast<std::uint64_t>(thread));
    for (int round = 0; round < kRounds; ++round) {
      std::vector<std::uint64_t> blocks;
      const std::uint64_t size_bytes =
          random() % 4 == 0 ? 2 * kChunkBytes : 3000 + random() % 30000;
      for (;;) {
        auto block = heap->reserve(size_bytes);
        if (!block.ok()) break;
        std::memset(bytes_at(block.value()), thread, size_bytes);
        blocks.push_back(block.value());
      }
      for (const std::uint64_t block : blocks) {
        EXPECT_TRUE(holds_only(block, size_bytes, static_cast<char>(thread)));
        if (random() % 2 == 0) {
          heap->set_used(block);
          EXPECT_TRUE(heap.free(block).ok());
        } else {
          heap->give_back(block);
        }
      }
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 1; thread <= kThreads; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();
  heap.expect_sound();
  EXPECT_EQ(heap.used().size(), 0u);
  EXPECT_EQ(heap.fill(11 * kChunkBytes), 1u);
}

}  // namespace
}  // namespace pawl::fase::test
