// Which addresses are in windows, for a question that takes neither a lock nor memory: a program's
// own malloc() asks it with its lock held, when it gives memory back to the kernel.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "medium/address_range.h"
#include "medium/inherited_memory.h"
#include "medium/own_process.h"

namespace pawl {

class WindowSet {
 public:
  static constexpr std::size_t kWindowsMax = 1536;

  // Of more than kWindowsMax windows it says yes of all that lies between them.  In a child: also
  // of what is left of its parent's (medium/inherited_memory.h), in whatever set they were.
  bool intersects(const AddressRange& range) const {
    return (has_one_in(range) && memory_.load() == number_of_memory()) ||
           inherited_memory::holds(range.start(), range.bytes());
  }

  // By one thread at a time.  `for_each(take)` calls take(window) for each window of this memory
  // that there is from now on.  One that stays keeps its slot, so it is found at every moment.
  template <class ForEach>
  void become(const ForEach& for_each) noexcept {
    memory_.store(number_of_memory());
    std::uintptr_t low = ~std::uintptr_t{0};
    std::uintptr_t high = 0;
    bool is_overfull = false;
    for_each([&](const AddressRange& window) {
      low = std::min(low, window.low);
      high = std::max(high, window.high);
      widen(window);
      if (!add(window)) is_overfull = true;
    });
    if (is_overfull) is_overfull_.store(true);
    drop_all_but(for_each);
    is_overfull_.store(is_overfull);
    low_.store(low);
    high_.store(high);
  }

 private:
  // Its end is 0 while it is empty, and while its start changes.
  struct Slot {
    std::atomic<std::uintptr_t> low{0};
    std::atomic<std::uintptr_t> high{0};
    AddressRange load() const {
      std::uintptr_t end = high.load();
      for (;;) {
        const AddressRange found{low.load(), end};
        end = high.load();
        if (end == found.high) return found;
      }
    }
    void store(const AddressRange& window) {
      low.store(window.low);
      high.store(window.high);
    }
    void clear() { high.store(0); }
    bool is_free() const { return high.load() == 0; }
    bool holds(const AddressRange& window) const {
      return low.load() == window.low && high.load() == window.high;
    }
  };

  bool has_one_in(const AddressRange& range) const {
    if (range.low >= high_.load() || low_.load() >= range.high) return false;
    if (is_overfull_.load()) return true;
    const std::size_t used = used_.load();
    for (std::size_t i = 0; i < used; ++i) {
      if (!slots_[i].load().intersect(range).empty()) return true;
    }
    return false;
  }

  void widen(const AddressRange& window) {
    low_.store(std::min(low_.load(), window.low));
    high_.store(std::max(high_.load(), window.high));
  }

  // False where there is no room.
  bool add(const AddressRange& window) {
    const std::size_t used = used_.load();
    std::size_t place = used;
    for (std::size_t i = used; i-- > 0;) {
      if (slots_[i].holds(window)) return true;
      if (slots_[i].is_free()) place = i;
    }
    if (place == kWindowsMax) return false;
    slots_[place].store(window);
    if (place == used) used_.store(used + 1);
    return true;
  }

  template <class ForEach>
  void drop_all_but(const ForEach& for_each) {
    for (std::size_t i = used_.load(); i-- > 0;) {
      bool is_there = false;
      for_each([&](const AddressRange& window) {
        if (slots_[i].holds(window)) is_there = true;
      });
      if (is_there) continue;
      slots_[i].clear();
      if (i + 1 == used_.load()) used_.store(i);
    }
  }

  std::array<Slot, kWindowsMax> slots_;
  std::atomic<std::size_t> used_{0};  // the slots from here on are free
  std::atomic<bool> is_overfull_{false};
  std::atomic<std::uint64_t> memory_{0};  // the number of that whose windows they are
  std::atomic<std::uintptr_t> low_{~std::uintptr_t{0}};
  std::atomic<std::uintptr_t> high_{0};
};

}  // namespace pawl
