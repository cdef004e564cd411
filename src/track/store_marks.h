// What code says that it stored, for the store tracker: a bit for each cache line of each page.
//
// A mark goes into a table of the thread that makes it (thread_marks.h): no lock, a few loads when
// the line is marked already, and a few plain instructions when it is not.  Tables outlive their
// threads: a thread that has exited leaves its marks behind, and its table to the next thread that
// needs one.  A table that is full is emptied into a map of the mapping's own lines
// (watched_area.h), under a lock; and so are marks of kRunPagesMin pages or more.  So there is no
// bound to what may be stored between two collects, and memory is bounded: about 22 KiB for each
// thread that marks, and for each mapping a 500th of its size, of which only what was needed is
// there.
//
// Who collects takes the marks of his range; those of other ranges he puts aside once, where they
// are (only their place is noted), so that a collect costs what it takes and not what other
// mappings have pending.
//
// A mark is seen by each collect that it happened before.  It may be made while its page is being
// collected: it is then taken or stays, and what was stored before it is seen by whoever takes it.
// (For that a collect that takes another thread's marks has all processors catch up: membarrier(2),
// one or two microseconds.)  Marks of addresses that nobody watches are dropped.
//
// Marks may be made in a signal handler, whatever it interrupted: also another mark, or a collect.
// A forked child begins with nothing watched and no marks.  One that was made past the C library's
// fork handlers (_Fork) must not mark.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "medium/status.h"
#include "track/tracker.h"

namespace pawl {

// From so many pages on a store is marked as a run, not page by page in the thread's table.
inline constexpr std::uint64_t kRunPagesMin = 64;

inline bool in_store_region(const void* address) {
  constexpr unsigned kShift = 40;
  static_assert(kStoreRegionFirst % (std::uint64_t{1} << kShift) == 0 &&
                kStoreRegionEnd % (std::uint64_t{1} << kShift) == 0);
  return (reinterpret_cast<std::uint64_t>(address) >> kShift) - (kStoreRegionFirst >> kShift) <
         (kStoreRegionEnd - kStoreRegionFirst) >> kShift;
}

class StoreMarks {
 public:
  // Any thread may call these three, but no signal handler.  Pages are addresses divided by
  // kPageBytes; `owner` is the tracker for which the range was watched.
  static Status watch(const void* owner, std::uint64_t first, std::uint64_t end);
  // Drops the marks of the range, too.
  static void unwatch(const void* owner, std::uint64_t first, std::uint64_t end);
  // Stores that were made before their mark was taken are seen on success.  No mark is lost by a
  // failure, nor by the std::bad_alloc that this throws: what was taken is in `stored`.
  static Status collect(const void* owner, std::uint64_t first, std::uint64_t end,
                        std::vector<StoredLines>& stored);

  // True while any range is watched.  Costs a load.
  static bool in_use() { return watched_.load(std::memory_order_relaxed) != 0; }
  // pawl_stored() was called while nothing was watched: by hand, for compiled code has nothing to
  // mark before there is a mapping.
  static void note_early_call() noexcept {
    if (!was_called_early()) called_early_.store(true, std::memory_order_relaxed);
  }
  static bool was_called_early() { return called_early_.load(std::memory_order_relaxed); }
  // Async-signal-safe; keeps errno.  Addresses outside of the region may be given.
  static void mark(const void* address, std::size_t length) noexcept;

  // For tests: tables that were ever made in this process.
  static std::size_t tables();

 private:
  friend class StoreRegistry;
  static constinit std::atomic<std::size_t> watched_;  // ranges
  static constinit std::atomic<bool> called_early_;
};

// For Pawl's own code, which no compiler marks: after it stored.
inline void note_stored(const void* address, std::size_t length) {
  if (StoreMarks::in_use()) StoreMarks::mark(address, length);
}
template <class Object>
void note_stored(const Object& object) {
  note_stored(&object, sizeof object);
}

}  // namespace pawl
