#include "track/fault_table.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "medium/medium.h"
#include "track/inherited_ranges.h"
#include "track/segv_handler.h"

namespace pawl {

namespace {

constexpr std::uint64_t kMapCountDefault = 65530;
constexpr std::size_t kRunsPerLock = 128;  // collected before the lock is let go

// Each run of open pages costs up to two memory areas of the process.  Half of those that the
// kernel allows are left to the program.
std::uint64_t read_runs_max() {
  std::uint64_t areas = kMapCountDefault;
  if (std::FILE* file = std::fopen("/proc/sys/vm/max_map_count", "re")) {
    unsigned long value = 0;
    if (std::fscanf(file, "%lu", &value) == 1) areas = value;
    (void)std::fclose(file);
  }
  return areas / 4;
}

// The system call itself: a program, or the preload face, may have put its own mprotect before
// libc's, and this runs in the signal handler.
bool set_protection(std::uint64_t first, std::uint64_t end, int protection) {
  return syscall(SYS_mprotect, first * kPageBytes, (end - first) * kPageBytes, protection) == 0;
}

// Whether calls have left the part of this thread's stack, below `frame`, where `object` was.
bool was_left(const void* object, const void* frame) {
  const auto at = reinterpret_cast<std::uintptr_t>(object);
  if (at >= reinterpret_cast<std::uintptr_t>(frame)) return false;
  // A handler on a stack of its own may have interrupted a call on another one.
  stack_t handlers{};
  const bool in_handler =
      syscall(SYS_sigaltstack, nullptr, &handlers) != 0 || (handlers.ss_flags & SS_ONSTACK) != 0;
  return !in_handler || at >= reinterpret_cast<std::uintptr_t>(handlers.ss_sp);
}

}  // namespace

void give_back_inherited_memory() {
  inherited_memory::give_back_by(
      [](const inherited_memory::Piece& piece, std::uintptr_t low, std::uintptr_t high) {
        const bool is_opened = InheritedRanges::give_back(piece, low, high);
        return FaultTable::process().give_back(piece, low, high) || is_opened;
      });
}

constinit std::atomic<std::size_t> FaultTable::watched_{0};

FaultTable& FaultTable::process() {
  static FaultTable* const table = [] {
    auto* made = new FaultTable;  // never destroyed: a store may fault until the process ends
    made->runs_max_ = read_runs_max();
    return made;
  }();
  return *table;
}

template <class Visit>
void FaultTable::for_each_slot(std::uint64_t first, std::uint64_t end, Visit&& visit) {
  const std::size_t used = slots_used_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < used; ++i) {
    Slot& slot = slots_[i];
    const std::uint64_t low = std::max(first, slot.first.load(std::memory_order_acquire));
    const std::uint64_t high = std::min(end, slot.end.load(std::memory_order_acquire));
    if (low < high) visit(slot, low, high);
  }
}

// Who comes to a slot after it was cut, and was at the place of its right half before, has met no
// half of the range that it looks for; nor who comes to a slot after its left neighbour took its
// pages, and was at the neighbour before.
template <class Visit>
void FaultTable::for_each_settled_slot(std::uint64_t first, std::uint64_t end, Visit&& visit) {
  std::uint64_t moves_before = 0;
  do {
    moves_before = moves_.load(std::memory_order_acquire);
    for_each_slot(first, end, visit);
  } while (moves_.load(std::memory_order_acquire) != moves_before);
}

FaultTable::Slot* FaultTable::find_free() {
  const std::size_t used = slots_used_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < used; ++i) {
    if (slots_[i].owner == nullptr) return &slots_[i];
  }
  if (used == slots_.size()) return find_left_over();
  slots_used_.store(used + 1, std::memory_order_release);
  return &slots_[used];
}

// A range of other memory that this process has no copy of any more.
FaultTable::Slot* FaultTable::find_left_over() {
  for (Slot& slot : slots_) {
    const std::uint64_t first = slot.first.load(std::memory_order_relaxed);
    const std::uint64_t end = slot.end.load(std::memory_order_relaxed);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it is an address
    const void* const address = reinterpret_cast<const void*>(first * kPageBytes);
    const std::uint64_t memory = slot.memory.load(std::memory_order_relaxed);
    if (slot.owner == nullptr || memory == number_of_memory() ||
        inherited_memory::holds(address, (end - first) * kPageBytes, memory))
      continue;
    free_slot(slot);
    return &slot;
  }
  return nullptr;
}

FaultTable::Slot* FaultTable::find_left_neighbour(const void* owner, std::uint64_t first,
                                                  int protection) {
  const std::size_t used = slots_used_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < used; ++i) {
    Slot& slot = slots_[i];
    if (slot.owner == owner && slot.end.load(std::memory_order_relaxed) == first &&
        slot.protection == protection) {
      return &slot;
    }
  }
  return nullptr;
}

Status FaultTable::watch(const void* owner, std::uint64_t first, std::uint64_t end,
                         int protection) {
  PAWL_ASSERT(first < end);
  const std::lock_guard lock(table_lock_);
  ensure_segv_handler();
  give_back_inherited_memory();
  Slot* slot = find_left_neighbour(owner, first, protection);
  if (slot != nullptr) {
    PAWL_TRY(grow(*slot, end));
  } else {
    slot = find_free();
    if (slot == nullptr)
      return Status::failure(ENOMEM, PAWL_ERROR_TOO_MANY,
                             "too many ranges are watched; unmap some");
    OpenPages open;
    if (!open.allocate(end - first)) return FailedCall{ENOMEM, "no memory to watch a mapping"};
    const SignalSafeGuard guard(slot->lock);
    slot->owner = owner;
    slot->memory.store(number_of_memory(), std::memory_order_relaxed);
    slot->protection = protection;
    slot->origin = first;
    slot->runs = 0;
    slot->open = open;
    slot->first.store(first, std::memory_order_release);
    slot->end.store(end, std::memory_order_release);
    watched_.fetch_add(1, std::memory_order_relaxed);
  }
  if (set_protection(first, end, armed(protection))) return {};

  const int error_number = errno;
  if (slot->first.load(std::memory_order_relaxed) == first) {
    free_slot(*slot);
  } else {
    const SignalSafeGuard guard(slot->lock);
    slot->end.store(first, std::memory_order_release);
  }
  return FailedCall{error_number, "cannot protect a mapping, to watch it"};
}

// False when there is no memory.
bool FaultTable::make_room(Slot& slot, std::uint64_t end) {
  const std::uint64_t needed = end - slot.origin;
  if (needed <= slot.open.capacity()) return true;
  OpenPages larger;
  if (!larger.allocate(std::max(needed, slot.open.capacity() * 2))) return false;
  OpenPages old;
  {
    const SignalSafeGuard guard(slot.lock);
    PageRun run;
    for (std::uint64_t from = 0; slot.open.next_run(from, slot.open.capacity(), run);
         from = run.end()) {
      larger.open(run.first, run.end());
    }
    old = slot.open;
    slot.open = larger;
  }
  old.release();
  return true;
}

Status FaultTable::grow(Slot& slot, std::uint64_t end) {
  if (!make_room(slot, end)) return FailedCall{ENOMEM, "no memory to watch a mapping"};
  const SignalSafeGuard guard(slot.lock);
  slot.end.store(end, std::memory_order_release);
  return {};
}

Status FaultTable::split(Slot& slot, std::uint64_t at) {
  const std::uint64_t end = slot.end.load(std::memory_order_relaxed);
  Slot* right = find_free();
  if (right == nullptr)
    return Status::failure(ENOMEM, PAWL_ERROR_TOO_MANY, "too many ranges are watched; unmap some");
  OpenPages open;
  if (!open.allocate(end - at)) return FailedCall{ENOMEM, "no memory to watch a mapping"};
  const SignalSafeGuard guard(slot.lock);
  // Somebody may have found the right slot when it was another range, and wait for its lock.
  const SignalSafeGuard right_guard(right->lock);
  PageRun run;
  for (std::uint64_t from = at - slot.origin; slot.open.next_run(from, end - slot.origin, run);
       from = run.end()) {
    open.open(run.first + slot.origin - at, run.end() + slot.origin - at);
  }
  right->owner = slot.owner;
  right->memory.store(slot.memory.load(std::memory_order_relaxed), std::memory_order_relaxed);
  right->protection = slot.protection;
  right->origin = at;
  right->open = open;
  const std::uint64_t right_runs = open.count_runs(0, open.capacity());
  right->runs = right_runs;
  // The right slot is there before the left one shrinks, so that a fault always finds one of them.
  right->first.store(at, std::memory_order_release);
  right->end.store(end, std::memory_order_release);
  watched_.fetch_add(1, std::memory_order_relaxed);
  // Before the left slot shrinks: who finds it cut, with the lock or without, finds the number
  // changed.
  moves_.fetch_add(1, std::memory_order_release);
  slot.end.store(at, std::memory_order_release);

  slot.open.close(at - slot.origin, slot.open.capacity());
  const std::uint64_t runs_before = slot.runs;
  slot.runs = slot.open.count_runs(0, at - slot.origin);
  runs_.fetch_add(slot.runs + right_runs - runs_before, std::memory_order_relaxed);
  return {};
}

// What has the protection stays whole.
Status FaultTable::split_off(const void* owner, std::uint64_t first, std::uint64_t end,
                             int protection) {
  Status outcome;
  for_each_slot(first, end, [&](Slot& slot, std::uint64_t low, std::uint64_t high) {
    if (slot.owner != owner || slot.protection == protection || !outcome.ok()) return;
    if (high < slot.end.load(std::memory_order_relaxed)) outcome = split(slot, high);
    if (outcome.ok() && slot.first.load(std::memory_order_relaxed) < low)
      outcome = split(slot, low);
  });
  return outcome;
}

void FaultTable::merge_parts(const void* owner, std::uint64_t first, std::uint64_t end) {
  for_each_slot(first - std::min(first, std::uint64_t{1}), end + 1,
                [&](Slot& slot, std::uint64_t, std::uint64_t) {
                  if (slot.owner != owner) return;
                  Slot* const left = find_left_neighbour(
                      owner, slot.first.load(std::memory_order_relaxed), slot.protection);
                  if (left != nullptr) merge(*left, slot);
                });
}

// The inverse of split().
void FaultTable::merge(Slot& left, Slot& right) {
  const std::uint64_t border = right.first.load(std::memory_order_relaxed);
  const std::uint64_t end = right.end.load(std::memory_order_relaxed);
  if (!make_room(left, end)) return;
  {
    const SignalSafeGuard left_guard(left.lock);
    const SignalSafeGuard right_guard(right.lock);  // who else takes one has no other
    PageRun run;
    for (std::uint64_t from = 0; right.open.next_run(from, end - right.origin, run);
         from = run.end()) {
      left.open.open(run.first + right.origin - left.origin,
                     run.end() + right.origin - left.origin);
    }
    const bool joins_runs =
        left.open.contains(border - 1 - left.origin) && left.open.contains(border - left.origin);
    const std::uint64_t joined = joins_runs ? 1 : 0;
    left.runs += right.runs - joined;
    runs_.fetch_sub(joined, std::memory_order_relaxed);
    right.runs = 0;
    // As in split(): the pages are found in the left slot, then the number is changed, then they
    // are found in the right one no more.
    left.end.store(end, std::memory_order_release);
    moves_.fetch_add(1, std::memory_order_release);
    right.end.store(border, std::memory_order_release);
  }
  free_slot(right);
}

void FaultTable::free_slot(Slot& slot) {
  OpenPages open;
  {
    const SignalSafeGuard guard(slot.lock);
    slot.end.store(slot.first.load(std::memory_order_relaxed), std::memory_order_release);
    open = slot.open;
    slot.open = OpenPages{};
    runs_.fetch_sub(slot.runs, std::memory_order_relaxed);
    slot.runs = 0;
    slot.owner = nullptr;
  }
  open.release();
  watched_.fetch_sub(1, std::memory_order_relaxed);
}

void FaultTable::unwatch(const void* owner, std::uint64_t first, std::uint64_t end) {
  const std::lock_guard lock(table_lock_);
  for_each_slot(first, end, [&](Slot& slot, std::uint64_t low, std::uint64_t high) {
    if (slot.owner != owner) return;
    // A split can only fail with the table full of other mappings; to go on watching memory that is
    // about to become something else would be worse than to stop.
    if (high < slot.end.load(std::memory_order_relaxed)) PAWL_ASSERT(split(slot, high).ok());
    (void)set_protection(low, high, slot.protection);
    if (low == slot.first.load(std::memory_order_relaxed)) return free_slot(slot);
    const SignalSafeGuard guard(slot.lock);
    slot.end.store(low, std::memory_order_release);
    slot.open.close(low - slot.origin, slot.open.capacity());
    const std::uint64_t runs_before = slot.runs;
    slot.runs = slot.open.count_runs(0, low - slot.origin);
    runs_.fetch_sub(runs_before - slot.runs, std::memory_order_relaxed);
  });
}

void FaultTable::unwatch_all(const void* owner) { unwatch(owner, 0, ~std::uint64_t{0}); }

Status FaultTable::protect(const void* owner, std::uint64_t first, std::uint64_t end,
                           int protection) {
  const std::lock_guard lock(table_lock_);
  Status outcome = split_off(owner, first, end, protection);
  for_each_slot(first, end, [&](Slot& slot, std::uint64_t low, std::uint64_t high) {
    if (slot.owner != owner || !outcome.ok()) return;
    const SignalSafeGuard guard(slot.lock);
    // Open pages stay recorded: their next store merely faults once more.
    if (!set_protection(low, high, armed(protection))) {
      outcome = FailedCall{errno, "cannot change the protection of a mapping"};
      return;
    }
    slot.protection = protection;
  });
  merge_parts(owner, first, end);
  return outcome;
}

void FaultTable::collect(const void* owner, std::uint64_t first, std::uint64_t end,
                         PageRuns& stored) {
  const std::lock_guard lock(table_lock_);
  ensure_segv_handler();
  for_each_slot(first, end, [&](Slot& slot, std::uint64_t low, std::uint64_t high) {
    if (slot.owner != owner) return;
    std::array<PageRun, kRunsPerLock> runs;
    std::uint64_t from = low - slot.origin;
    std::size_t count = 0;
    do {
      count = 0;
      // Before pages are armed: what is armed has to be reported.
      stored.make_room(runs.size());
      {
        const SignalSafeGuard guard(slot.lock);
        while (count < runs.size() && slot.open.next_run(from, high - slot.origin, runs[count])) {
          from = runs[count].end();
          arm(slot, runs[count]);
          ++count;
        }
      }
      for (std::size_t i = 0; i < count; ++i)
        stored.add(runs[i].first + slot.origin, runs[i].count);
    } while (count == runs.size());
  });
}

void FaultTable::arm(Slot& slot, const PageRun& run) {
  const PageRun pages{run.first + slot.origin, run.count};
  if (kernel_stores_into(pages)) return;
  if (!set_protection(pages.first, pages.end(), armed(slot.protection))) return;
  const bool open_on_the_left = run.first > 0 && slot.open.contains(run.first - 1);
  const bool open_on_the_right = slot.open.contains(run.end());
  slot.open.close(run.first, run.end());
  const std::uint64_t pieces = std::uint64_t{open_on_the_left} + std::uint64_t{open_on_the_right};
  slot.runs += pieces - 1;
  runs_.fetch_add(pieces - 1, std::memory_order_relaxed);
}

bool FaultTable::open_for_store(const void* address) {
  const std::uint64_t page = reinterpret_cast<std::uint64_t>(address) / kPageBytes;
  bool opened = false;
  for_each_settled_slot(page, page + 1, [&](Slot& slot, std::uint64_t, std::uint64_t) {
    const SignalSafeGuard guard(slot.lock);
    const bool still_here = is_of_this_memory(slot) &&
                            slot.first.load(std::memory_order_relaxed) <= page &&
                            page < slot.end.load(std::memory_order_relaxed);
    if (still_here && (slot.protection & PROT_WRITE) != 0) opened = open_page(slot, page) || opened;
  });
  return opened;
}

void FaultTable::open_range(std::uint64_t first, std::uint64_t end) {
  for_each_settled_slot(first, end, [&](Slot& slot, std::uint64_t, std::uint64_t) {
    if (!is_of_this_memory(slot)) return;
    const SignalSafeGuard guard(slot.lock);
    const std::uint64_t low = std::max(first, slot.first.load(std::memory_order_relaxed));
    const std::uint64_t high = std::min(end, slot.end.load(std::memory_order_relaxed));
    if (low >= high || (slot.protection & PROT_WRITE) == 0) return;
    if (open_pages(slot, low, high)) return;
    for (std::uint64_t page = low; page < high; ++page) (void)open_page(slot, page);
  });
}

// All of the piece at once: nobody asks what the child stores there.
bool FaultTable::give_back(const inherited_memory::Piece& piece, std::uintptr_t low,
                           std::uintptr_t high) {
  bool is_open = false;
  const std::uint64_t piece_end = piece.high / kPageBytes;
  for_each_settled_slot(
      piece.low / kPageBytes, piece_end, [&](Slot& slot, std::uint64_t, std::uint64_t) {
        const SignalSafeGuard guard(slot.lock);
        const std::uint64_t first =
            std::max(piece.low / kPageBytes, slot.first.load(std::memory_order_relaxed));
        const std::uint64_t end = std::min(piece_end, slot.end.load(std::memory_order_relaxed));
        if (slot.memory.load(std::memory_order_relaxed) != piece.memory || first >= end ||
            !set_protection(first, end, slot.protection))
          return;
        const bool is_stored_to =
            std::max(low, first * kPageBytes) < std::min(high, end * kPageBytes);
        is_open = is_open || (is_stored_to && (slot.protection & PROT_WRITE) != 0);
      });
  return is_open;
}

// Always asks the kernel, even if the page is recorded as open: another thread may have opened it
// since the fault, or the program may have taken the right to store away without telling us.
bool FaultTable::open_page(Slot& slot, std::uint64_t page) {
  const std::uint64_t first = slot.first.load(std::memory_order_relaxed);
  const std::uint64_t end = slot.end.load(std::memory_order_relaxed);
  const std::uint64_t runs = runs_.load(std::memory_order_relaxed);
  const std::uint64_t block = page / kOpenBlockPages * kOpenBlockPages;
  if (runs < runs_max_ && open_pages(slot, page, page + 1)) return true;
  if (runs < runs_max_ + runs_max_ / 2 &&
      open_pages(slot, std::max(first, block), std::min(end, block + kOpenBlockPages))) {
    return true;
  }
  return open_pages(slot, first, end);
}

bool FaultTable::open_pages(Slot& slot, std::uint64_t first, std::uint64_t end) {
  if (!set_protection(first, end, slot.protection)) return false;
  const std::uint64_t low = first - slot.origin;
  const std::uint64_t high = end - slot.origin;
  // A forked child may have caught the bitmap as it was replaced; it keeps no record.
  if (high > slot.open.capacity()) return true;
  const std::uint64_t runs_before = slot.open.count_runs(low, high + 1);
  slot.open.open(low, high);
  const std::uint64_t runs_after = slot.open.count_runs(low, high + 1);
  slot.runs += runs_after - runs_before;
  runs_.fetch_add(runs_after - runs_before, std::memory_order_relaxed);
  return true;
}

bool FaultTable::kernel_stores_into(const PageRun& run) const {
  if (kernel_stores_under_way_.load(std::memory_order_acquire) == 0) return false;
  return std::any_of(kernel_stores_.begin(), kernel_stores_.end(), [&](const KernelStore& store) {
    return store.holder.load(std::memory_order_acquire) != nullptr &&
           store.first.load(std::memory_order_relaxed) < run.end() &&
           run.first < store.end.load(std::memory_order_relaxed);
  });
}

// Handlers may come, and leave by siglongjmp(), between any two of these lines.
std::size_t FaultTable::begin_kernel_store(const void* holder, std::uint64_t first,
                                           std::uint64_t end) {
  bool is_watched = false;
  for_each_settled_slot(first, end, [&](const Slot& slot, std::uint64_t, std::uint64_t) {
    is_watched = is_watched || is_of_this_memory(slot);
  });
  if (!is_watched) return kKernelStoresMax;
  if (kernel_stores_under_way_.load(std::memory_order_relaxed) != 0) let_go_of_left_calls(holder);
  kernel_stores_under_way_.fetch_add(1, std::memory_order_release);
  for (std::size_t ticket = 0; ticket < kernel_stores_.size(); ++ticket) {
    KernelStore& store = kernel_stores_[ticket];
    const void* free = nullptr;
    if (!store.holder.compare_exchange_strong(free, holder, std::memory_order_acquire)) continue;
    store.thread.store(pthread_self(), std::memory_order_relaxed);
    store.first.store(first, std::memory_order_relaxed);
    store.end.store(end, std::memory_order_release);
    return ticket;
  }
  kernel_stores_under_way_.fetch_sub(1, std::memory_order_release);
  return kKernelStoresMax;
}

void FaultTable::end_kernel_store(const void* holder, std::size_t ticket) {
  if (ticket == kKernelStoresMax) return;
  KernelStore& store = kernel_stores_[ticket];
  if (store.holder.load(std::memory_order_relaxed) != holder) return;  // was let go
  store.end.store(0, std::memory_order_relaxed);
  store.thread.store({}, std::memory_order_relaxed);  // the next holder's comes after the holder
  if (store.holder.compare_exchange_strong(holder, nullptr, std::memory_order_release))
    kernel_stores_under_way_.fetch_sub(1, std::memory_order_release);
}

// Where the new holder is no other can be; nor is there one of this thread below this frame.
void FaultTable::let_go_of_left_calls(const void* holder) {
  const void* const frame = __builtin_frame_address(0);
  for (std::size_t ticket = 0; ticket < kernel_stores_.size(); ++ticket) {
    const KernelStore& store = kernel_stores_[ticket];
    const void* const other = store.holder.load(std::memory_order_acquire);
    if (other == nullptr) continue;
    const bool is_of_thread = store.thread.load(std::memory_order_relaxed) == pthread_self();
    if (other == holder || (is_of_thread && was_left(other, frame)))
      end_kernel_store(other, ticket);
  }
}

}  // namespace pawl
