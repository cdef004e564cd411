// Which transactions may have changed a piece of memory since another began: a clock that counts
// commits, and for each stripe of memory the time of the last commit that changed it (Dice, Shalev,
// Shavit: "Transactional Locking II", DISC 2006).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pawl::bench::stm {

// A stripe's version: a time, shifted by one; odd while a commit has it.
using Version = std::atomic<std::uint64_t>;
inline constexpr std::uint64_t kTaken = 1;

class Versions {
 public:
  Version& of(std::uint64_t address) { return stripes_[address / kStripeBytes % kStripes]; }
  std::uint64_t now() const { return clock_.load(std::memory_order_acquire); }
  std::uint64_t next() { return clock_.fetch_add(1, std::memory_order_acq_rel) + 1; }

 private:
  // As libitm's.
  static constexpr std::size_t kStripeBytes = 32;
  static constexpr std::size_t kStripes = std::size_t{1} << 19;

  alignas(64) std::atomic<std::uint64_t> clock_{0};
  alignas(64) std::array<Version, kStripes> stripes_{};
};

Versions& versions();

}  // namespace pawl::bench::stm
