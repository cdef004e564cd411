#include "fase/slab.h"

#include <bit>
#include <new>
#include <utility>

#include "medium/status.h"

namespace pawl::fase {

std::unique_ptr<Slab> Slab::make(std::uint8_t size_class) {
  const std::uint32_t words = map_words(kSlabClasses[size_class]);
  std::unique_ptr<Word[]> bits(new (std::nothrow) Word[2 * words]);
  if (bits == nullptr) return nullptr;
  return std::unique_ptr<Slab>(new (std::nothrow) Slab(size_class, std::move(bits)));
}

void Slab::set_taken_bits(std::uint32_t word, std::uint64_t bits) {
  taken_[word].store(bits | bits_behind(of(), word), std::memory_order_relaxed);
  freeing()[word].store(0, std::memory_order_relaxed);
}

std::uint32_t Slab::take() {
  for (std::uint32_t i = 0; i < words_; ++i) {
    const std::uint32_t word = (search_from_ + i) % words_;
    const std::uint64_t taken = taken_[word].load(std::memory_order_relaxed);
    if (taken == ~std::uint64_t{0}) continue;
    const int bit = std::countr_one(taken);
    // Only who has the slab takes, so that the bit is still clear.
    taken_[word].fetch_or(std::uint64_t{1} << bit, std::memory_order_acquire);
    search_from_ = word;
    return 64 * word + static_cast<std::uint32_t>(bit);
  }
  return kNone;
}

void Slab::take_this(std::uint32_t index) {
  taken_[index / 64].fetch_or(std::uint64_t{1} << index % 64, std::memory_order_acquire);
}

// The bit is cleared before it is asked where the slab stands; let_go() says that it stands nowhere
// before it looks for bits: one of them sees the other.
bool Slab::give_back(std::uint32_t index) {
  const std::uint64_t bit = std::uint64_t{1} << index % 64;
  // Not for what was only reserved.
  if (is_being_freed(index)) freeing()[index / 64].fetch_and(~bit, std::memory_order_relaxed);
  taken_[index / 64].fetch_and(~bit, std::memory_order_seq_cst);
  Stands expected = Stands::nowhere;
  return stands_.load(std::memory_order_seq_cst) == Stands::nowhere &&
         stands_.compare_exchange_strong(expected, Stands::listed);
}

bool Slab::let_go() {
  stands_.store(Stands::nowhere, std::memory_order_seq_cst);
  Stands expected = Stands::nowhere;
  return has_room() && stands_.compare_exchange_strong(expected, Stands::listed);
}

bool Slab::begin_free(std::uint32_t index) {
  if (!is_taken(index)) return false;
  const std::uint64_t bit = std::uint64_t{1} << index % 64;
  return (freeing()[index / 64].fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
}

bool Slab::cancel_free(std::uint32_t index) {
  const std::uint64_t bit = std::uint64_t{1} << index % 64;
  return (freeing()[index / 64].fetch_and(~bit, std::memory_order_relaxed) & bit) != 0;
}

bool Slab::has_room() const {
  for (std::uint32_t word = 0; word < words_; ++word)
    if (taken_[word].load(std::memory_order_seq_cst) != ~std::uint64_t{0}) return true;
  return false;
}

bool Slab::is_empty() const {
  for (std::uint32_t word = 0; word < words_; ++word)
    if (taken_bits(word) != bits_behind(of(), word)) return false;
  return true;
}

void SlabList::push(Slab& slab) {
  const std::lock_guard lock(mutex_);
  slab.next_ = first_;
  first_ = &slab;
}

Slab* SlabList::pop() {
  const std::lock_guard lock(mutex_);
  Slab* const slab = first_;
  if (slab == nullptr) return nullptr;
  first_ = slab->next_;
  slab->own();
  return slab;
}

void SlabList::take_empty(const std::function<void(Slab&)>& give) {
  const std::lock_guard lock(mutex_);
  for (Slab** at = &first_; *at != nullptr;) {
    Slab& slab = **at;
    if (!slab.is_empty()) {
      at = &slab.next_;
      continue;
    }
    *at = slab.next_;
    slab.own();
    give(slab);
  }
}

}  // namespace pawl::fase
