// Whether all changes of a kind were flushed, where changes and flushes come from any thread.
//
// A flag that the next flush takes down does not do: another thread's flush may take it down before
// the change is made, or flush for longer than the one that then finds it down.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace pawl {

class UnflushedChanges {
 public:
  // Behind each change, and behind one that failed: it may have been made.
  void note() { made_.fetch_add(1); }

  // Before a flush: so many changes were made.
  std::uint64_t made() const { return made_.load(); }
  // Some of these are not flushed, as far as is known.
  bool any(std::uint64_t made) const { return flushed_.load() < made; }
  // A flush of them, which began after they were made, succeeded.
  void flushed(std::uint64_t made) {
    std::uint64_t known = flushed_.load();
    while (known < made && !flushed_.compare_exchange_weak(known, made)) {
    }
  }

 private:
  std::atomic<std::uint64_t> made_{0};
  std::atomic<std::uint64_t> flushed_{0};
};

}  // namespace pawl
