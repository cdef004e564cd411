// How many bytes of the journal may be written and not yet flushed, where a battery keeps the
// machine running for a while after the power has failed: no more than the disk can take in that
// time.
//
// All budgets of the process share the time, each as much as any other: a disk takes one after
// another.
//
// What a flush takes is a latency, and the bytes at a rate.  Of both the worst of the last ones
// count, and of the time one half: the other is for whatever else is written then.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "medium/medium.h"

namespace pawl::journal {

inline constexpr std::size_t kFlushesRemembered = 64;  // of each kind

class FlushBudget {
 public:
  // For how long machine and disk go on; and the largest write that there will be.
  FlushBudget(std::chrono::milliseconds hold_up, std::uint64_t write_bytes_max);
  FlushBudget(const FlushBudget&) = delete;
  FlushBudget& operator=(const FlushBudget&) = delete;
  ~FlushBudget();

  // So many bytes were written, if they had not been, and flushed, in so long.  In any thread.
  void note(std::uint64_t bytes, std::chrono::nanoseconds taken);

  // 0 while no flush of each kind is known.  In any thread.
  std::uint64_t bytes_max() const {
    return bytes_max_.load(std::memory_order_acquire) / budgets_.load(std::memory_order_acquire);
  }

 private:
  class Worst {
   public:
    void add(double value);
    double value() const;  // the largest of the last ones; 0: there is none

   private:
    std::array<double, kFlushesRemembered> values_{};
    std::size_t count_ = 0;
  };

  inline static std::atomic<std::uint64_t> budgets_{0};  // of the process

  const std::chrono::milliseconds hold_up_;
  // A flush of less tells the latency, one of more the rate.
  const std::uint64_t rate_bytes_min_;
  std::mutex mutex_;
  Worst latency_seconds_;
  Worst seconds_per_byte_;
  std::atomic<std::uint64_t> bytes_max_{0};
};

// Writes zeros to the file from the offset on, and flushes them, some times: few bytes, and up to
// bytes_max.
Status measure_flushes(MediumFile& file, std::uint64_t offset, std::uint64_t bytes_max,
                       FlushBudget& budget);

}  // namespace pawl::journal
