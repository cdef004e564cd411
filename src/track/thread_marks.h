// The pages that one thread marked, each with a bit for every cache line: a table with open
// addressing that only its thread adds pages to.
//
// Pages stay after their marks were taken, so that a page which is stored to again and again is
// found at once.  A page whose marks go from none to some becomes *fresh*; who collects takes the
// fresh pages and either takes their marks or *lists* them with the mapping they belong to.  A page
// with marks is always fresh, listed or under way.
//
// Only its thread sets bits in the table, each time with one instruction, which no handler divides
// but other processors may.  Who collects clears whole words, atomically, and in the opposite
// order: what of it comes in between such an instruction is seen twice, and nothing not at all.
//
// The thread may be interrupted between any two of its instructions by a handler that marks too,
// and may even rebuild the table: hence what is looked at again after each step.  The handler may
// also leave by siglongjmp(), or have another thread collect meanwhile: hence the slot *under way*,
// which may have lines and not be fresh yet.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "track/own_word.h"

namespace pawl {

class ThreadMarks {
 public:
  static constexpr std::uint32_t kSlots = 1024;
  // Beyond this a search becomes long.
  static constexpr std::uint32_t kUsedMax = kSlots / 4 * 3;

  explicit ThreadMarks(std::uint32_t number) : number_(number) {}
  std::uint32_t number() const { return number_; }

  // These two: its thread, no lock.
  // Marks lines of a page that has its slot, as most have.  False when it is to be added.
  bool mark(std::uint64_t page, std::uint64_t lines) noexcept {
    std::uint32_t slot = slot_for(page);
    for (std::uint64_t found = page_in(slot); found != page; found = page_in(slot)) {
      if (found == 0) return false;
      slot = next_slot(slot);
    }
    const std::uint64_t marked = slots_[slot].lines.load(std::memory_order_relaxed);
    if ((marked & lines) != lines) set_lines(slot, lines);
    // A handler may have given the slot to another page.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return page_in(slot) == page;
  }
  // The same of any page.  False when the table has no room for it: then nothing was marked.
  bool add(std::uint64_t page, std::uint64_t lines) noexcept {
    for (;;) {
      const std::uint64_t generation = generation_.load(std::memory_order_relaxed);
      std::uint32_t slot = slot_for(page);
      std::uint64_t found = page_in(slot);
      while (found != page && found != 0) {
        slot = next_slot(slot);
        found = page_in(slot);
      }
      if (found == 0) {
        if (used_.load(std::memory_order_relaxed) >= kUsedMax) return false;
        if (!compare_and_set(slots_[slot].page, found, page)) continue;
        increment(used_);
        // The slot may have marks: of a page that it was rebuilt away from while it was marked.
        // And in a table that was rebuilt it may not be the first free one on the page's way.
        if (generation_.load(std::memory_order_relaxed) != generation) {
          set_lines(slot, 0);
          continue;
        }
      }
      set_lines(slot, lines);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (page_in(slot) == page) return true;
    }
  }

  // What follows is called with the process's lock held, by `caller`'s thread or another.
  enum class Caller { its_thread, other_thread };

  // Calls visit(slot) for each fresh page, which is fresh no more.
  template <class Visit>
  void take_fresh(Caller caller, Visit&& visit) {
    // First: a slot that is under way no more is fresh.
    if (const std::uint32_t slot = under_way_.load(); slot != kNoSlot) visit(slot);
    if (fresh_groups_.load() == 0) return;
    for (std::uint64_t groups = take(fresh_groups_, caller); groups != 0; groups &= groups - 1) {
      const auto group = static_cast<std::uint32_t>(std::countr_zero(groups));
      for (std::uint64_t bits = take(fresh_[group], caller); bits != 0; bits &= bits - 1)
        visit(group * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
    }
  }
  std::uint64_t page_in(std::uint32_t slot) const {
    return slots_[slot].page.load(std::memory_order_relaxed);
  }
  // The marks of a slot, which has none then.
  std::uint64_t take(std::uint32_t slot, Caller caller) { return take(slots_[slot].lines, caller); }
  // The same by the page; 0 when it is not here.  It stays fresh or listed.
  std::uint64_t take_page(std::uint64_t page, Caller caller) {
    for (std::uint32_t slot = slot_for(page);; slot = next_slot(slot)) {
      const std::uint64_t found = page_in(slot);
      if (found == 0) return 0;
      if (found != page) continue;
      return slots_[slot].lines.load() == 0 ? 0 : take(slot, caller);
    }
  }
  // The links of lists of slots, of all threads' tables; 0 where the slot is in none.
  std::uint32_t& link(std::uint32_t slot) { return links_[slot]; }

  // Only its thread, while handlers cannot reach the table, and with no slot listed: makes room.
  // Pages with marks stay, as fresh ones, in the slots of `scratch` meanwhile; or if they are too
  // many, all are given to spill(page, lines).
  using Scratch = std::array<std::array<std::uint64_t, 2>, kSlots>;
  template <class Spill>
  void make_room(Scratch& scratch, Spill&& spill) {
    std::uint32_t kept = 0;
    for (Slot& slot : slots_) {
      const std::uint64_t page = slot.page.load(std::memory_order_relaxed);
      const std::uint64_t lines = slot.lines.exchange(0);
      slot.page.store(0, std::memory_order_relaxed);
      if (page != 0 && lines != 0) scratch[kept++] = {page, lines};
    }
    fresh_groups_.store(0);
    for (auto& bits : fresh_) bits.store(0);
    used_.store(0, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_relaxed);
    const bool stays = kept <= kKeptMax;
    for (std::uint32_t i = 0; i < kept; ++i) {
      const auto [page, lines] = scratch[i];
      if (stays)
        (void)add(page, lines);
      else
        spill(page, lines);
    }
  }

 private:
  static constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};
  // Pages are few enough after making room that it lasts for a while.
  static constexpr std::uint32_t kKeptMax = kSlots / 2;

  struct Slot {
    std::atomic<std::uint64_t> page{0};  // 0: free
    std::atomic<std::uint64_t> lines{0};
  };

  // An exchange waits until all that its thread stored has left the processor: not for one's own.
  static std::uint64_t take(std::atomic<std::uint64_t>& word, Caller caller) {
    return caller == Caller::its_thread ? clear(word) : word.exchange(0);
  }

  static std::uint32_t slot_for(std::uint64_t page) {
    constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;
    return static_cast<std::uint32_t>((page * kGoldenRatio) >> (64 - std::countr_zero(kSlots)));
  }
  static std::uint32_t next_slot(std::uint32_t slot) { return (slot + 1) % kSlots; }

  // In this order: whoever finds the group's bit finds the slot's.
  void make_fresh(std::uint32_t slot) {
    set_bits(fresh_[slot / 64], std::uint64_t{1} << (slot % 64));
    set_bits(fresh_groups_, std::uint64_t{1} << (slot / 64));
  }
  // Lines first: whoever finds the slot fresh finds them.
  void set_lines(std::uint32_t slot, std::uint64_t lines) {
    const std::uint32_t interrupted = under_way_.load(std::memory_order_relaxed);
    if (interrupted != kNoSlot) make_fresh(interrupted);
    under_way_.store(slot, std::memory_order_release);
    set_bits(slots_[slot].lines, lines);
    make_fresh(slot);
    under_way_.store(interrupted, std::memory_order_release);
  }

  std::array<Slot, kSlots> slots_;
  std::atomic<std::uint64_t> fresh_groups_{0};  // a bit for each of fresh_ that is not 0
  std::atomic<std::uint32_t> under_way_{kNoSlot};
  std::array<std::atomic<std::uint64_t>, kSlots / 64> fresh_{};
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> generation_{0};  // times that it was rebuilt
  const std::uint32_t number_;
  std::array<std::uint32_t, kSlots> links_{};
};

}  // namespace pawl
