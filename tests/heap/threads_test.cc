// Several threads allocate and free while another syncs.  No thread stores into the heap during a
// sync, as the contract has it; that the allocator does not either is the heap's affair.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "crash/seeds.h"
#include "heap/heap_file.h"
#include "heap/heap_model.h"

namespace pawl::test {
namespace {

constexpr unsigned kSeedsByDefault = 3;
constexpr unsigned kThreads = 4;
constexpr unsigned kSteps = 1'500;
constexpr std::size_t kBlocksMax = 150;  // of a thread
constexpr std::size_t kAlignment = alignof(std::max_align_t);
constexpr std::uint64_t kSizeBytesMax = std::uint64_t{1} << 30;

// Allocation takes no lock of the program's; a store takes `stores` shared, a sync alone.
class Worker {
 public:
  Worker(pawl_heap* heap, unsigned seed, std::shared_mutex& stores)
      : heap_(heap), random_(seed), stores_(stores) {}

  void run() {
    for (unsigned step = 0; step < kSteps && wrong_.empty(); ++step) {
      if (model_.blocks().size() < kBlocksMax && below(random_, 2) == 0)
        take_one();
      else if (!model_.blocks().empty())
        below(random_, 3) == 0 ? resize_one() : free_one();
    }
  }
  const std::string& wrong() const { return wrong_; }
  const HeapModel& model() const { return model_; }

 private:
  void note(const std::string& wrong) {
    if (wrong_.empty()) wrong_ = wrong;
  }

  void take_one() {
    const std::size_t size = draw_block_size(random_);
    const bool zeroed = below(random_, 2) == 0;
    auto* const block = static_cast<char*>(zeroed ? pawl_heap_calloc(heap_, 1, size)
                                                  : pawl_heap_malloc(heap_, size));
    if (block == nullptr) return note(pawl_last_error());
    if (zeroed && !std::all_of(block, block + size, [](char byte) { return byte == 0; }))
      note("calloc gave a block that is not zeroed");
    const std::shared_lock storing(stores_);
    note(model_.add(heap_, block, size, kAlignment));
  }

  void resize_one() {
    char* const block = model_.any_block(random_);
    const std::size_t size = draw_block_size(random_);
    auto* const resized = static_cast<char*>(pawl_heap_realloc(heap_, block, size));
    if (resized == nullptr) return note(pawl_last_error());
    const std::shared_lock storing(stores_);
    note(model_.resized(heap_, block, resized, size));
  }

  void free_one() {
    char* const block = model_.any_block(random_);
    if (!model_.holds(block)) note("a block has other bytes");
    model_.remove(block);
    if (pawl_heap_free(heap_, block) != 0) note(pawl_last_error());
  }

  pawl_heap* const heap_;
  Random random_;
  std::shared_mutex& stores_;
  HeapModel model_;
  std::string wrong_;
};

class Trial {
 public:
  explicit Trial(unsigned seed) : file_(kSizeBytesMax, 16 << 20) {
    file_.open();
    for (unsigned number = 0; number < kThreads; ++number)
      workers_.emplace_back(file_.get(), seed * kThreads + number, stores_);
  }

  void run() {
    std::vector<std::thread> threads;
    std::atomic<unsigned> running{kThreads};
    for (Worker& worker : workers_) {
      threads.emplace_back([&] {
        worker.run();
        running.fetch_sub(1);
      });
    }
    while (running.load() > 0) sync();
    for (std::thread& thread : threads) thread.join();
    for (const Worker& worker : workers_) ASSERT_EQ(worker.wrong(), "");
    EXPECT_GT(syncs_, 0u);
    sync();
    ASSERT_NO_FATAL_FAILURE(file_.close());
    ASSERT_NO_FATAL_FAILURE(file_.open());
    check_all();
  }

 private:
  void sync() {
    {
      const std::unique_lock alone(stores_);
      EXPECT_EQ(pawl_heap_sync(file_.get()), 0) << pawl_last_error();
    }
    EXPECT_EQ(check_text(file_.get()), "");
    syncs_ += 1;
    std::this_thread::yield();
  }

  // Each thread's blocks hold its bytes, and there are no others.
  void check_all() {
    EXPECT_EQ(check_text(file_.get()), "");
    std::uint64_t blocks = 0;
    for (const Worker& worker : workers_) {
      blocks += worker.model().blocks().size();
      for (const auto& [block, of] : worker.model().blocks())
        ASSERT_TRUE(worker.model().holds(block));
    }
    pawl_heap_information information;
    ASSERT_EQ(pawl_heap_info(file_.get(), &information), 0);
    EXPECT_EQ(information.blocks_used, blocks);
  }

  HeapFile file_;
  std::shared_mutex stores_;
  std::vector<Worker> workers_;
  unsigned syncs_ = 0;
};

TEST(HeapThreadsTest, ManyAllocateWhileOneSyncs) {
  run_seeds(kSeedsByDefault, [](unsigned seed) { Trial(seed).run(); });
}

// Calloc cleared its block without the heap's lock: a sync of another thread found the block
// allocated and not cleared, and its bytes changed beneath the commit.
TEST(HeapThreadsTest, ABlockOfCallocIsNeverSyncedUncleared) {
  constexpr std::size_t kSize = 1'500'000;
  constexpr unsigned kRounds = 30;
  HeapFile file(kSizeBytesMax, 16 << 20);
  file.open();
  for (unsigned round = 0; round < kRounds; ++round) {
    auto* const dirty = static_cast<char*>(pawl_heap_malloc(file.get(), kSize));
    ASSERT_NE(dirty, nullptr);
    std::memset(dirty, 'd', kSize);
    ASSERT_EQ(pawl_heap_sync(file.get()), 0) << pawl_last_error();
    ASSERT_EQ(pawl_heap_free(file.get(), dirty), 0);
    std::thread allocating([&] { EXPECT_EQ(pawl_heap_calloc(file.get(), 1, kSize), dirty); });
    while (pawl_heap_usable_size(file.get(), dirty) == 0) std::this_thread::yield();
    EXPECT_EQ(pawl_heap_sync(file.get()), 0) << pawl_last_error();
    allocating.join();
    ASSERT_EQ(pawl_heap_rollback(file.get()), 0);
    ASSERT_TRUE(std::all_of(dirty, dirty + kSize, [](char byte) { return byte == 0; }))
        << "round " << round;
    ASSERT_EQ(pawl_heap_free(file.get(), dirty), 0);
  }
}

}  // namespace
}  // namespace pawl::test
