#include "heap/speed.h"

#include <chrono>
#include <cstdlib>
#include <functional>
#include <random>
#include <stdexcept>

#include "common/percentile.h"
#include "pawl/heap.h"

namespace pawl::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBlocks = 10'000;
constexpr int kRounds = 51;
constexpr int kOperationsPerRound = 20'000;
constexpr int kOpenings = 15;

[[noreturn]] void fail() { throw std::runtime_error(pawl_last_error()); }

double elapsed_ns(Clock::time_point since) {
  return std::chrono::duration<double, std::nano>(Clock::now() - since).count();
}

class OpenHeap {
 public:
  explicit OpenHeap(const std::string& path) : heap_(pawl_heap_open(path.c_str(), nullptr)) {
    if (heap_ == nullptr) fail();
  }
  OpenHeap(const OpenHeap&) = delete;
  OpenHeap& operator=(const OpenHeap&) = delete;
  ~OpenHeap() { pawl_heap_close(heap_); }
  pawl_heap* get() const { return heap_; }

 private:
  pawl_heap* heap_;
};

struct Functions {
  std::string name;
  std::function<void*(std::size_t)> allocate;
  std::function<void(void*)> free;
};

double time_of(const Functions& functions, std::size_t block_bytes, std::vector<void*>& blocks,
               std::mt19937& random) {
  const auto start = Clock::now();
  for (int i = 0; i < kOperationsPerRound; ++i) {
    void*& block = blocks[random() % kBlocks];
    functions.free(block);
    block = functions.allocate(block_bytes);
    if (block == nullptr) fail();
  }
  return elapsed_ns(start) / kOperationsPerRound;
}

}  // namespace

std::vector<AllocationSpeed> measure_allocation(const std::string& directory) {
  const OpenHeap heap(directory + "/allocation.heap");
  const Functions all[] = {
      {"pawl", [&](std::size_t size) { return pawl_heap_malloc(heap.get(), size); },
       [&](void* block) { pawl_heap_free(heap.get(), block); }},
      {"malloc", [](std::size_t size) { return std::malloc(size); },
       [](void* block) { std::free(block); }},
  };
  std::vector<AllocationSpeed> rows;
  for (const std::uint32_t block_bytes : {64u, 1024u, 16384u}) {
    std::vector<void*> blocks[std::size(all)];
    std::vector<double> times[std::size(all)];
    std::mt19937 random(1);
    for (std::vector<void*>& of : blocks) of.assign(kBlocks, nullptr);
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t which = 0; which < std::size(all); ++which)
        times[which].push_back(time_of(all[which], block_bytes, blocks[which], random));
    }
    for (std::size_t which = 0; which < std::size(all); ++which) {
      for (void* const block : blocks[which]) all[which].free(block);
      rows.push_back({all[which].name, block_bytes, percentile(times[which], 0.5)});
    }
  }
  return rows;
}

std::vector<OpeningTime> measure_opening(const std::string& directory) {
  std::vector<OpeningTime> rows;
  const std::string path = directory + "/opening.heap";
  std::uint64_t used_bytes = 0;
  for (const std::uint64_t wanted : {std::uint64_t{1} << 20, std::uint64_t{64} << 20,
                                     std::uint64_t{1} << 30, std::uint64_t{4} << 30}) {
    {
      const OpenHeap heap(path);
      std::uint64_t since_sync = 0;
      for (; used_bytes < wanted; used_bytes += 1024) {
        char* const block = static_cast<char*>(pawl_heap_malloc(heap.get(), 1024));
        if (block == nullptr) fail();
        for (int at = 0; at < 1024; at += 64) block[at] = static_cast<char>(used_bytes >> 10);
        since_sync += 1024;
        if (since_sync < (std::uint64_t{64} << 20)) continue;
        if (pawl_heap_sync(heap.get()) != 0) fail();
        since_sync = 0;
      }
      if (pawl_heap_sync(heap.get()) != 0) fail();
    }
    std::vector<double> times;
    for (int i = 0; i < kOpenings; ++i) {
      const auto start = Clock::now();
      const OpenHeap heap(path);
      times.push_back(elapsed_ns(start) / 1000);
    }
    rows.push_back({used_bytes, percentile(times, 0.5)});
  }
  return rows;
}

}  // namespace pawl::bench
