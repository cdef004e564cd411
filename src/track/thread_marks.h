// The pages that one thread marked, each with a bit for every cache line: a table with open
// addressing that only its thread adds pages to.
//
// Pages stay after their marks were taken, so that a page which is stored to again and again is
// found at once.  A page whose marks go from none to some becomes *fresh*; who collects takes the
// fresh pages and either takes their marks or *lists* them with the mapping they belong to.  A page
// with marks is always fresh or listed.
//
// The thread may be interrupted between any two of its steps by a handler that marks too, and may
// even rebuild the table: hence what is looked at again after each step.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace pawl {

class ThreadMarks {
 public:
  static constexpr std::uint32_t kSlots = 1024;
  // Beyond this a search becomes long.
  static constexpr std::uint32_t kUsedMax = kSlots / 4 * 3;

  explicit ThreadMarks(std::uint32_t number) : number_(number) {}
  std::uint32_t number() const { return number_; }

  // Its thread, no lock.  False when the table has no room for the page: then nothing was marked.
  bool mark(std::uint64_t page, std::uint64_t lines) noexcept {
    for (std::uint32_t slot = slot_for(page);; slot = next_slot(slot)) {
      const Slot& at = slots_[slot];
      const std::uint64_t found = at.page.load(std::memory_order_relaxed);
      if (found != page) {
        if (found == 0) return add(page, lines);
        continue;
      }
      if ((at.lines.load(std::memory_order_relaxed) & lines) != lines) return add(page, lines);
      // A handler may have given the slot to another page.
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (at.page.load(std::memory_order_relaxed) == page) return true;
      return add(page, lines);
    }
  }

  // What follows is called with the process's lock held.

  // Calls visit(slot) for each fresh page, which is fresh no more.
  template <class Visit>
  void take_fresh(Visit&& visit) {
    if (fresh_groups_.load() == 0) return;
    for (std::uint64_t groups = fresh_groups_.exchange(0); groups != 0; groups &= groups - 1) {
      const auto group = static_cast<std::uint32_t>(std::countr_zero(groups));
      for (std::uint64_t bits = fresh_[group].exchange(0); bits != 0; bits &= bits - 1)
        visit(group * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
    }
  }
  std::uint64_t page_in(std::uint32_t slot) const {
    return slots_[slot].page.load(std::memory_order_relaxed);
  }
  // The marks of a slot, which has none then.
  std::uint64_t take(std::uint32_t slot) { return slots_[slot].lines.exchange(0); }
  // The same by the page; 0 when it is not here.  It stays fresh or listed.
  std::uint64_t take_page(std::uint64_t page) {
    for (std::uint32_t slot = slot_for(page);; slot = next_slot(slot)) {
      const std::uint64_t found = page_in(slot);
      if (found == 0) return 0;
      if (found != page) continue;
      return slots_[slot].lines.load() == 0 ? 0 : take(slot);
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
  // Pages are few enough after making room that it lasts for a while.
  static constexpr std::uint32_t kKeptMax = kSlots / 2;

  struct Slot {
    std::atomic<std::uint64_t> page{0};  // 0: free
    std::atomic<std::uint64_t> lines{0};
  };

  static std::uint32_t slot_for(std::uint64_t page) {
    constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;
    return static_cast<std::uint32_t>((page * kGoldenRatio) >> (64 - std::countr_zero(kSlots)));
  }
  static std::uint32_t next_slot(std::uint32_t slot) { return (slot + 1) % kSlots; }

  bool is_fresh(std::uint32_t slot) const {
    return (fresh_[slot / 64].load() >> (slot % 64) & 1) != 0 &&
           (fresh_groups_.load() >> (slot / 64) & 1) != 0;
  }
  // In this order: whoever takes the group's bit finds the slot's.  Of a group's bit it is not
  // asked who set it: whoever made another of the group fresh may not have come to that yet.
  void make_fresh(std::uint32_t slot) {
    const std::uint64_t group = std::uint64_t{1} << (slot / 64);
    fresh_[slot / 64].fetch_or(std::uint64_t{1} << (slot % 64));
    if ((fresh_groups_.load() & group) == 0) fresh_groups_.fetch_or(group);
  }

  __attribute__((noinline)) bool add(std::uint64_t page, std::uint64_t lines) noexcept {
    for (;;) {
      const std::uint32_t generation = generation_.load(std::memory_order_relaxed);
      std::uint32_t slot = slot_for(page);
      std::uint64_t found = page_in(slot);
      while (found != page && found != 0) {
        slot = next_slot(slot);
        found = page_in(slot);
      }
      if (found == 0) {
        if (used_.load(std::memory_order_relaxed) >= kUsedMax) return false;
        if (!slots_[slot].page.compare_exchange_strong(found, page)) continue;
        used_.fetch_add(1, std::memory_order_relaxed);
        // The slot may have marks: of a page that it was rebuilt away from while it was marked.
        make_fresh(slot);
        // In a table that was rebuilt this may not be the first free slot on the page's way.
        if (generation_.load(std::memory_order_relaxed) != generation) continue;
      } else if (slots_[slot].lines.load() == 0 && !is_fresh(slot)) {
        // Before the marks, for a handler that finds them and believes them to be fresh.
        make_fresh(slot);
      }
      // And after them: a collect may have come in between.
      if (slots_[slot].lines.fetch_or(lines) == 0 && !is_fresh(slot)) make_fresh(slot);
      if (page_in(slot) == page) return true;
    }
  }

  std::array<Slot, kSlots> slots_;
  std::atomic<std::uint64_t> fresh_groups_{0};  // a bit for each of fresh_ that is not 0
  std::array<std::atomic<std::uint64_t>, kSlots / 64> fresh_{};
  std::atomic<std::uint32_t> used_{0};
  std::atomic<std::uint32_t> generation_{0};  // times that it was rebuilt
  const std::uint32_t number_;
  std::array<std::uint32_t, kSlots> links_{};
};

}  // namespace pawl
