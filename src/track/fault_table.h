// The ranges that fault trackers watch, in a fixed table that a signal handler can search, and
// which of their pages are open for stores.
//
// A watched page is armed (not writable) or open (writable, and recorded as perhaps stored to).  A
// store to an armed page raises SIGSEGV and opens it; collecting it arms it again.
#pragma once

#include <pthread.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "medium/inherited_memory.h"
#include "medium/own_process.h"
#include "medium/page_runs.h"
#include "medium/spin_lock.h"
#include "medium/status.h"
#include "track/open_pages.h"
#include "track/tracker.h"

namespace pawl {

// The protection of an armed page, where `protection` is the program's.  What may be written may be
// read, whether the program asked for that or not: only its stores are to fault.
constexpr int armed(int protection) {
  return (protection & PROT_WRITE) == 0 ? protection : (protection & ~PROT_WRITE) | PROT_READ;
}

// Pages opened at once where single ones would use up the process's memory areas.
inline constexpr std::uint64_t kOpenBlockPages = 512;
// System calls that store into watched ranges and are under way at the same time.
inline constexpr std::size_t kKernelStoresMax = 128;

// In a child: has the ranges of this table and InheritedRanges asked for what is to be given back.
void give_back_inherited_memory();

// Functions taking `owner` may be called from any thread, not from a signal handler; the others
// from anywhere.  Pages are addresses divided by kPageBytes.
class FaultTable {
 public:
  static FaultTable& process();

  Status watch(const void* owner, std::uint64_t first, std::uint64_t end, int protection);
  void unwatch(const void* owner, std::uint64_t first, std::uint64_t end);
  void unwatch_all(const void* owner);
  Status protect(const void* owner, std::uint64_t first, std::uint64_t end, int protection);
  // Adds the open pages of [first, end) to `stored` and arms them.  Where arming fails, and where a
  // system call is about to store, pages stay open and are reported again next time.
  void collect(const void* owner, std::uint64_t first, std::uint64_t end, PageRuns& stored);

  // What follows knows the ranges of this memory only.
  // True when the store that faulted at `address` may now be tried again.
  bool open_for_store(const void* address);
  // Opens all watched, writable pages of the range.
  void open_range(std::uint64_t first, std::uint64_t end);
  // In a child, of a piece of other memory; see inherited_memory::GiveBack.
  bool give_back(const inherited_memory::Piece& piece, std::uintptr_t low, std::uintptr_t high);
  // Costs a load, also in a process that never watches anything.
  static bool in_use() { return watched_.load(std::memory_order_relaxed) != 0; }

  // Keeps [first, end) open once it is opened, whoever collects it, until end_kernel_store(ticket).
  // Returns kKernelStoresMax when none of it is watched, or no more can be held: then a collect
  // before the system call stores makes it fail with EFAULT.
  //
  // `holder` is an object on the caller's stack that is there for as long as it holds.  A handler
  // that leaves the system call by siglongjmp() ends nothing: what was held from a part of the
  // stack that is used anew is let go by the next call.
  std::size_t begin_kernel_store(const void* holder, std::uint64_t first, std::uint64_t end);
  void end_kernel_store(const void* holder, std::size_t ticket);

 private:
  struct Slot {
    std::atomic<std::uint64_t> first{0};
    std::atomic<std::uint64_t> end{0};     // the slot is free when both are the same
    ForkSafeLock lock;                     // guards what follows, and the pages' protection
    const void* owner = nullptr;           // changed under table_lock_ only
    std::atomic<std::uint64_t> memory{0};  // the number of that whose range it is
    int protection = 0;                    // the program's
    std::uint64_t origin = 0;              // the page that the bitmap counts from
    std::uint64_t runs = 0;                // of open pages
    OpenPages open;
  };
  struct KernelStore {
    std::atomic<const void*> holder{nullptr};  // null: free
    std::atomic<pthread_t> thread{};           // of the holder
    std::atomic<std::uint64_t> first{0};
    std::atomic<std::uint64_t> end{0};
  };

  FaultTable() = default;

  // With table_lock_ held:
  Slot* find_free();
  Slot* find_left_over();
  Slot* find_left_neighbour(const void* owner, std::uint64_t first, int protection);
  static bool make_room(Slot& slot, std::uint64_t end);
  static Status grow(Slot& slot, std::uint64_t end);
  Status split(Slot& slot, std::uint64_t at);
  Status split_off(const void* owner, std::uint64_t first, std::uint64_t end, int protection);
  // Where memory lacks, parts stay apart.
  void merge_parts(const void* owner, std::uint64_t first, std::uint64_t end);
  void merge(Slot& left, Slot& right);
  void free_slot(Slot& slot);
  template <class Visit>
  void for_each_slot(std::uint64_t first, std::uint64_t end, Visit&& visit);
  // Without table_lock_: a slot may be visited more than once, and none is missed because another
  // was cut in two meanwhile, or two became one.
  template <class Visit>
  void for_each_settled_slot(std::uint64_t first, std::uint64_t end, Visit&& visit);

  static bool is_of_this_memory(const Slot& slot) {
    return slot.memory.load(std::memory_order_relaxed) == number_of_memory();
  }

  // With the slot's lock held:
  bool open_page(Slot& slot, std::uint64_t page);
  bool open_pages(Slot& slot, std::uint64_t first, std::uint64_t end);
  void arm(Slot& slot, const PageRun& run);
  bool kernel_stores_into(const PageRun& run) const;

  // Not inlined: all that is below its frame has been left.
  __attribute__((noinline)) void let_go_of_left_calls(const void* holder);

  // Orders all changes of the table.  What a child finds is enough for it, whoever held this and
  // the slots' locks: its stores only need their pages opened, and a slot's range is valid at every
  // moment.
  // In a child, what is of other memory only tells what to give back, and is no range otherwise.
  ForkSafeLock table_lock_;
  std::array<Slot, kWatchedRangesMax> slots_;
  std::atomic<std::uint64_t> moves_{0};                // of pages to another slot, that are done
  std::atomic<std::size_t> slots_used_{0};             // those from here on were never used
  static constinit std::atomic<std::size_t> watched_;  // slots not free
  std::atomic<std::uint64_t> runs_{0};                 // of open pages, in all slots
  std::uint64_t runs_max_ = 0;                         // above it pages are opened by blocks
  std::array<KernelStore, kKernelStoresMax> kernel_stores_;
  std::atomic<std::size_t> kernel_stores_under_way_{0};  // not fewer than have a holder
};

}  // namespace pawl
