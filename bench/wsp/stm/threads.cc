#include "stm/threads.h"

#include <sched.h>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "stm/region.h"

namespace pawl::bench::stm {
namespace {

constexpr std::uint64_t kIdle = ~std::uint64_t{0};

struct alignas(64) ThreadState {
  std::atomic<bool> is_taken{false};
  std::atomic<std::uint64_t> active_since{kIdle};
};
std::array<ThreadState, kThreadsMax> the_threads;
std::atomic<std::size_t> threads_ever{0};  // no index above was ever taken

}  // namespace

std::size_t take_thread_index() {
  for (std::size_t index = 0; index < kThreadsMax; ++index) {
    if (the_threads[index].is_taken.exchange(true)) continue;
    std::size_t ever = threads_ever.load();
    while (ever <= index && !threads_ever.compare_exchange_weak(ever, index + 1)) {
    }
    return index;
  }
  std::fprintf(stderr, "stm: more than %zu threads have transactions\n", kThreadsMax);
  std::abort();
}

void give_back_thread_index(std::size_t index) { the_threads[index].is_taken.store(false); }

void begin_being_active(std::size_t index, std::uint64_t since) {
  // Before the transaction reads anything.
  the_threads[index].active_since.store(since, std::memory_order_seq_cst);
}

void end_being_active(std::size_t index) {
  the_threads[index].active_since.store(kIdle, std::memory_order_release);
}

void wait_for_older(std::uint64_t time) {
  const std::size_t ever = threads_ever.load(std::memory_order_acquire);
  for (std::size_t index = 0; index < ever; ++index) {
    while (the_threads[index].active_since.load(std::memory_order_seq_cst) < time) ::sched_yield();
  }
}

}  // namespace pawl::bench::stm
