#include "journal/flush_budget.h"

#include <algorithm>
#include <cstring>

#include "journal/page_buffer.h"

namespace pawl::journal {
namespace {

constexpr double kShareOfHoldUp = 0.5;
// One may be under way when the power fails, and the next one has the rest.
constexpr double kFlushesAfterFailure = 2;

constexpr std::uint64_t kRateBytesMin = std::uint64_t{256} << 10;

constexpr unsigned kSmallFlushes = 8;
constexpr unsigned kLargeFlushes = 3;
constexpr std::uint64_t kLargeFlushBytesMax = std::uint64_t{4} << 20;

Status flush_some(MediumFile& file, std::uint64_t offset, std::span<const std::byte> zeros,
                  FlushBudget& budget) {
  const auto begin = std::chrono::steady_clock::now();
  PAWL_TRY(file.write(offset, zeros));
  PAWL_TRY(file.flush());
  budget.note(zeros.size(), std::chrono::steady_clock::now() - begin);
  return {};
}

}  // namespace

FlushBudget::FlushBudget(std::chrono::milliseconds hold_up, std::uint64_t write_bytes_max)
    : hold_up_(hold_up),
      rate_bytes_min_(
          std::min(kRateBytesMin, std::max<std::uint64_t>(write_bytes_max / 2, kPageBytes + 1))) {
  ++budgets_;
}

FlushBudget::~FlushBudget() { --budgets_; }

void FlushBudget::Worst::add(double value) {
  values_[count_ % values_.size()] = value;
  ++count_;
}

double FlushBudget::Worst::value() const {
  return *std::max_element(values_.begin(), values_.end());
}

void FlushBudget::note(std::uint64_t bytes, std::chrono::nanoseconds taken) {
  const double seconds = std::chrono::duration<double>(taken).count();
  const std::lock_guard lock(mutex_);
  if (bytes < rate_bytes_min_) {
    latency_seconds_.add(seconds);
  } else {
    // With its latency in it: a disk that is slower in small pieces is not overestimated.
    seconds_per_byte_.add(seconds / static_cast<double>(bytes));
  }
  const double per_byte = seconds_per_byte_.value();
  const double latency = latency_seconds_.value();
  double bytes_max = 0;
  if (per_byte > 0 && latency > 0) {
    const double left = std::chrono::duration<double>(hold_up_).count() * kShareOfHoldUp -
                        kFlushesAfterFailure * latency;
    bytes_max = std::max(0.0, left / per_byte);
  }
  bytes_max_.store(static_cast<std::uint64_t>(bytes_max), std::memory_order_release);
}

Status measure_flushes(MediumFile& file, std::uint64_t offset, std::uint64_t bytes_max,
                       FlushBudget& budget) {
  const std::uint64_t large = round_down(std::min(bytes_max, kLargeFlushBytesMax), kPageBytes);
  PAWL_ASSERT(large > kPageBytes);
  AlignedBuffer zeros;
  if (!zeros.grow(large, 0)) return Status::no_memory("no memory to measure the disk with");
  std::memset(zeros.data(), 0, large);
  for (unsigned i = 0; i < kLargeFlushes; ++i)
    PAWL_TRY(flush_some(file, offset, {zeros.data(), large}, budget));
  for (unsigned i = 0; i < kSmallFlushes; ++i)
    PAWL_TRY(flush_some(file, offset, {zeros.data(), kPageBytes}, budget));
  return {};
}

}  // namespace pawl::journal
