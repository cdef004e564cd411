#include "track/stated_stores.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "medium/medium.h"
#include "medium/spin_lock.h"
#include "track/tracker.h"

namespace pawl {

constinit std::atomic<std::size_t> StatedStores::watched_{0};
constinit std::atomic<std::uint64_t> StatedStores::first_byte_{~std::uint64_t{0}};
constinit std::atomic<std::uint64_t> StatedStores::end_byte_{0};

namespace {

constexpr std::size_t kStatedRunsMax = 4;  // of a range; with more, the last covers what is between

struct StatedRange {
  const void* owner = nullptr;  // null: free
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::size_t run_count = 0;
  std::array<PageRun, kStatedRunsMax> runs;

  void add(std::uint64_t low, std::uint64_t high) {
    if (run_count != 0) {
      PageRun& last = runs[run_count - 1];
      const bool touches = low <= last.end() && last.first <= high;
      if (touches || run_count == kStatedRunsMax) {
        const std::uint64_t last_end = std::max(last.end(), high);
        last.first = std::min(last.first, low);
        last.count = last_end - last.first;
        return;
      }
    }
    runs[run_count++] = {low, high - low};
  }
};

struct StatedRanges {
  ForkSafeLock lock;
  std::uint64_t memory = 0;  // the number of that whose ranges they are
  std::size_t used = 0;      // no slot behind so many is taken
  std::array<StatedRange, kWatchedRangesMax> slots;

  // A file that grows again and again takes one slot: by its neighbour, or what is left of it.
  bool extend(const void* owner, std::uint64_t first, std::uint64_t end) {
    const auto range =
        std::find_if(slots.begin(), slots.begin() + used, [&](const StatedRange& candidate) {
          return candidate.owner == owner && candidate.first <= end && first <= candidate.end;
        });
    if (range == slots.begin() + used) return false;
    range->first = std::min(range->first, first);
    range->end = std::max(range->end, end);
    return true;
  }
};
constinit StatedRanges stated_ranges;

}  // namespace

// The ranges, in hand.
class StatedStores::Held {
 public:
  Held() : guard_(stated_ranges.lock) {
    if (stated_ranges.memory != number_of_memory()) start_anew();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  // In a child: one may be half written, and all are of its parent's mappings.
  static void start_anew() {
    stated_ranges.memory = number_of_memory();
    for (StatedRange& range : stated_ranges.slots) range.owner = nullptr;
    stated_ranges.used = 0;
    watched_.store(0, std::memory_order_relaxed);
  }
  const SignalSafeGuard guard_;
};

Status StatedStores::watch(const void* owner, std::uint64_t first, std::uint64_t end) {
  const Held held;
  if (!stated_ranges.extend(owner, first, end)) {
    const auto slot = std::find_if(stated_ranges.slots.begin(), stated_ranges.slots.end(),
                                   [](const StatedRange& range) { return range.owner == nullptr; });
    if (slot == stated_ranges.slots.end())
      return Status::failure(ENOMEM, PAWL_ERROR_TOO_MANY,
                             "too many ranges are watched; unmap some");
    *slot = {owner, first, end, 0, {}};
    const auto number = static_cast<std::size_t>(slot - stated_ranges.slots.begin());
    stated_ranges.used = std::max(stated_ranges.used, number + 1);
    watched_.fetch_add(1, std::memory_order_relaxed);
  }
  if (first * kPageBytes < first_byte_.load()) first_byte_.store(first * kPageBytes);
  if (end * kPageBytes > end_byte_.load()) end_byte_.store(end * kPageBytes);
  return {};
}

void StatedStores::unwatch(const void* owner, std::uint64_t first, std::uint64_t end) {
  const Held held;
  for (std::size_t i = 0; i < stated_ranges.used; ++i) {
    StatedRange& range = stated_ranges.slots[i];
    if (range.owner != owner || range.end <= first || end <= range.first) continue;
    const bool keeps_start = range.first < first;
    const bool keeps_end = end < range.end;
    if (keeps_start && keeps_end) continue;  // its owner knows what lies between
    if (keeps_start) {
      range.end = first;
    } else if (keeps_end) {
      range.first = end;
    } else {
      range.owner = nullptr;
      watched_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
}

void StatedStores::note_watched(const void* address, std::size_t length) noexcept {
  if (length == 0 || !in_use()) return;
  const auto first_byte = reinterpret_cast<std::uint64_t>(address);
  if (first_byte + length - 1 < first_byte) return;  // past the end of the address space
  const std::uint64_t first = first_byte / kPageBytes;
  const std::uint64_t end = (first_byte + length - 1) / kPageBytes + 1;
  const Held held;
  for (std::size_t i = 0; i < stated_ranges.used; ++i) {
    StatedRange& range = stated_ranges.slots[i];
    const std::uint64_t low = std::max(first, range.first);
    const std::uint64_t high = std::min(end, range.end);
    if (range.owner != nullptr && low < high) range.add(low, high);
  }
}

void StatedStores::take(const void* owner, PageRuns& pages) {
  for (std::size_t i = 0; i < kWatchedRangesMax; ++i) {
    pages.make_room(kStatedRunsMax);
    const Held held;
    // To those without anything there is no reason to come back.
    while (i < stated_ranges.used &&
           (stated_ranges.slots[i].owner != owner || stated_ranges.slots[i].run_count == 0))
      ++i;
    if (i >= stated_ranges.used) return;
    StatedRange& range = stated_ranges.slots[i];
    for (std::size_t run = 0; run < range.run_count; ++run)
      pages.add(range.runs[run].first, range.runs[run].count);
    range.run_count = 0;
  }
}

}  // namespace pawl
