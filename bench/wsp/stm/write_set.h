// What a transaction has stored and nobody else sees yet: words, and which of their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pawl::bench::stm {

struct WrittenWord {
  std::uint64_t address = 0;  // a multiple of 8
  std::uint64_t value = 0;
  std::uint64_t mask = 0;  // bits that were stored
};

class WriteSet {
 public:
  WriteSet() : slots_(kSlotsFirst) {}

  bool empty() const { return words_.empty(); }
  const std::vector<WrittenWord>& words() const { return words_; }

  // Null: nothing was stored there.
  const WrittenWord* find(std::uint64_t address) const {
    const Slot& slot = slots_[slot_of(address)];
    return slot.turn == turn_ ? &words_[slot.index] : nullptr;
  }
  void put(std::uint64_t address, std::uint64_t value, std::uint64_t mask) {
    Slot& slot = slots_[slot_of(address)];
    if (slot.turn == turn_) {
      WrittenWord& word = words_[slot.index];
      word.value = (word.value & ~mask) | (value & mask);
      word.mask |= mask;
      return;
    }
    slot = {address, turn_, words_.size()};
    words_.push_back({address, value & mask, mask});
    if (words_.size() * 2 > slots_.size()) grow();
  }
  void clear() {
    words_.clear();
    ++turn_;
  }

 private:
  static constexpr std::size_t kSlotsFirst = 256;  // always a power of two

  struct Slot {
    std::uint64_t address = 0;
    std::uint64_t turn = 0;  // a slot of an earlier turn is free
    std::size_t index = 0;
  };

  // The address's slot, or the free one where it would come.
  std::size_t slot_of(std::uint64_t address) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = (address / 8 * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (slots_[at].turn == turn_ && slots_[at].address != address) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    slots_.assign(slots_.size() * 2, {});
    turn_ = 1;
    for (std::size_t i = 0; i < words_.size(); ++i)
      slots_[slot_of(words_[i].address)] = {words_[i].address, turn_, i};
  }

  std::vector<WrittenWord> words_;
  std::vector<Slot> slots_;
  std::uint64_t turn_ = 1;
};

}  // namespace pawl::bench::stm
