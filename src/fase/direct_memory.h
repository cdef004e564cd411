// A direct mapping's memory: the one way in which the run-time stores, flushes and fences, so that
// a test sees all of it, in order.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "medium/persistent_memory.h"

namespace pawl::fase {

// Told after each, by the thread that did it.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  // By the program, or by the run-time in its place.
  virtual void stored(const std::byte* at, std::size_t count) = 0;
  // A word of the run-time's own: of a log, or of the header.
  virtual void word_stored(const std::uint64_t* at, std::uint64_t value) = 0;
  virtual void flushed(const std::byte* at, std::size_t count) = 0;
  virtual void fenced() = 0;
};

// Of all files that are opened from now on; null: nobody.  For tests, while no other thread is
// here.
void observe(Observer* observer);
Observer* observer();

class DirectMemory final : public PersistentMemory {
 public:
  DirectMemory(std::unique_ptr<PersistentMemory> memory, Observer* observer)
      : memory_(std::move(memory)), observer_(observer) {}

  // One store, that a crash leaves undone or done.  No other of these goes past it.
  void store_word(std::uint64_t& at, std::uint64_t value) {
    std::atomic_ref(at).store(value, std::memory_order_release);
    if (observer_ != nullptr) observer_->word_stored(&at, value);
  }
  // Tells of stores that were made otherwise.
  void tell_stored(const void* at, std::size_t count) {
    if (observer_ != nullptr) observer_->stored(static_cast<const std::byte*>(at), count);
  }

  void copy(std::byte* to, std::span<const std::byte> from) override;
  void flush(const std::byte* at, std::size_t count) override {
    // The compiler, too, keeps stores before it.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    memory_->flush(at, count);
    if (observer_ != nullptr) observer_->flushed(at, count);
  }
  void fence() override {
    memory_->fence();
    if (observer_ != nullptr) observer_->fenced();
  }

 private:
  const std::unique_ptr<PersistentMemory> memory_;
  Observer* const observer_;
};

}  // namespace pawl::fase
