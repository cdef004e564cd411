#include "medium/inherited_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <string>

#include "medium/address_range.h"
#include "medium/medium.h"
#include "medium/own_process.h"
#include "medium/spin_lock.h"

namespace pawl::inherited_memory {
namespace {

// Free while `high` is 0.  Valid at every moment: a child may be made between any two stores.
struct Slot {
  std::atomic<std::uintptr_t> low{0};
  std::atomic<std::uintptr_t> high{0};
  std::atomic<std::uint64_t> memory{0};
  std::atomic<bool> gives_back{false};
};

constexpr std::uint64_t kNone = 0;

// Changed with the lock held.
constinit ForkSafeLock table_lock;
constinit std::array<Slot, kPiecesMax> slots;
constinit std::atomic<std::size_t> slots_used{0};  // those from here on are free
constinit std::atomic<std::uint64_t> memory_now{kNone};
constinit std::atomic<bool> is_any_inherited{false};
constinit std::atomic<GiveBack> give_back_now{nullptr};

Piece piece_of(const Slot& slot) {
  return {slot.low.load(), slot.high.load(), slot.memory.load(), slot.gives_back.load()};
}

AddressRange common_of(const Slot& slot, const AddressRange& range) {
  return AddressRange{slot.low.load(), slot.high.load()}.intersect(range);
}

bool is_taken(const Slot& slot) { return slot.high.load() != 0; }
bool is_inherited(const Slot& slot, std::uint64_t now) {
  return is_taken(slot) && slot.memory.load() != now;
}

Slot* put(const AddressRange& range, std::uint64_t memory, bool gives_back) {
  const std::size_t used = slots_used.load();
  std::size_t place = 0;
  while (place < used && is_taken(slots[place])) ++place;
  if (place == slots.size()) return nullptr;
  Slot& slot = slots[place];
  slot.low.store(range.low);
  slot.memory.store(memory);
  slot.gives_back.store(gives_back);
  slot.high.store(range.high);
  if (place == used) slots_used.store(used + 1);
  return &slot;
}

// The slot that ends where the range begins, if there is one: a window that grows again and again
// takes no more of them.
bool lengthen(const AddressRange& range) {
  const std::uint64_t now = number_of_memory();
  for (std::size_t i = 0; i < slots_used.load(); ++i) {
    Slot& slot = slots[i];
    if (slot.high.load() != range.low || slot.memory.load() != now || !slot.gives_back.load())
      continue;
    slot.high.store(range.high);
    return true;
  }
  return false;
}

// What lies from `at` on, as a slot of its own; null where there is no room for it.
Slot* split(Slot& slot, std::uintptr_t at) {
  Slot* const right = put({at, slot.high.load()}, slot.memory.load(), slot.gives_back.load());
  if (right != nullptr) slot.high.store(at);
  return right;
}

// What the slot has of the range, as a slot of its own.  Without room for it, the slot that has it;
// is_exact is false then.
Slot& isolate(Slot& slot, const AddressRange& range, bool& is_exact) {
  const AddressRange common = common_of(slot, range);
  Slot* part = &slot;
  is_exact = true;
  if (common.low > slot.low.load()) {
    Slot* const right = split(slot, common.low);
    if (right != nullptr) part = right;
    is_exact = right != nullptr;
  }
  if (common.high < part->high.load()) is_exact = split(*part, common.high) != nullptr && is_exact;
  return *part;
}

template <class Visit>
void for_each_part(const AddressRange& range, bool of_other_memory, const Visit& visit) {
  const std::uint64_t now = number_of_memory();
  for (std::size_t i = 0; i < slots_used.load(); ++i) {
    Slot& slot = slots[i];
    if (!is_taken(slot) || (slot.memory.load() != now) != of_other_memory) continue;
    const AddressRange common = common_of(slot, range);
    if (common.empty()) continue;
    bool is_exact = false;
    Slot& part = isolate(slot, range, is_exact);
    visit(part, is_exact);
  }
}

void drop(const AddressRange& range, bool of_other_memory) {
  for_each_part(range, of_other_memory, [](Slot& part, bool is_exact) {
    // What cannot be told apart goes on to refuse commits.
    if (is_exact)
      part.high.store(0);
    else
      part.gives_back.store(false);
  });
}

bool give_back_in(const Slot& slot, const AddressRange& stored) {
  const GiveBack give_back = give_back_now.load();
  return give_back != nullptr && give_back(piece_of(slot), stored.low, stored.high);
}

long call_on(long number, const AddressRange& range, int argument) {
  return ::syscall(number, range.low, range.bytes(), argument);
}

enum class Present { all, nothing, some, unknown };

// By system calls that change nothing.
Present look(const AddressRange& range) {
  if (call_on(SYS_msync, range, MS_ASYNC) == 0) return Present::all;
  if (errno != ENOMEM) return Present::unknown;
  const long taken =
      ::syscall(SYS_mmap, range.low, range.bytes(), PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (taken == -1) return errno == EEXIST ? Present::some : Present::unknown;
  ::syscall(SYS_munmap, taken, range.bytes());
  // Kernels before 4.17 take the address for a hint.
  return static_cast<std::uintptr_t>(taken) == range.low ? Present::nothing : Present::some;
}

// What of the range the child has no copy of is dropped, half by half.
void drop_what_is_missing(const AddressRange& range) {
  const Present present = look(range);
  if (present == Present::all) return;
  if (present == Present::nothing) return drop(range, true);
  const std::uintptr_t pages = range.bytes() / kPageBytes;
  if (present == Present::some && pages > 1) {
    const std::uintptr_t middle = range.low + pages / 2 * kPageBytes;
    drop_what_is_missing({range.low, middle});
    drop_what_is_missing({middle, range.high});
    return;
  }
  for_each_part(range, true, [](Slot& part, bool) { part.gives_back.store(false); });
}

void note_whether_any() {
  const std::uint64_t now = number_of_memory();
  const auto end = slots.begin() + static_cast<std::ptrdiff_t>(slots_used.load());
  is_any_inherited.store(
      std::any_of(slots.begin(), end, [now](const Slot& slot) { return is_inherited(slot, now); }));
}

}  // namespace

Status add(const void* address, std::size_t length) {
  come();
  const SignalSafeGuard guard(table_lock);
  const AddressRange range = range_of(address, length);
  if (lengthen(range) || put(range, number_of_memory(), true) != nullptr) return {};
  return Status::failure(ENOMEM, PAWL_ERROR_TOO_MANY,
                         "this process has " + std::to_string(kPiecesMax) +
                             " atomic mappings, and parts of those it inherited; unmap some");
}

void remove(const void* address, std::size_t length) {
  const SignalSafeGuard guard(table_lock);
  drop(range_of(address, length), false);
}

void come() {
  const std::uint64_t now = number_of_memory();
  if (memory_now.load(std::memory_order_acquire) == now) return;
  const int error_number = errno;
  {
    const SignalSafeGuard guard(table_lock);
    if (memory_now.load() == now) return;
    for (std::size_t i = 0; i < slots_used.load(); ++i) {
      if (is_inherited(slots[i], now))
        drop_what_is_missing({slots[i].low.load(), slots[i].high.load()});
    }
    note_whether_any();
    memory_now.store(now, std::memory_order_release);
  }
  errno = error_number;
}

bool any() {
  if (slots_used.load(std::memory_order_relaxed) == 0) return false;
  come();
  return is_any_inherited.load(std::memory_order_relaxed);
}

namespace {

// Of the inherited slots that have a part of the range, until one of which visit(slot, part) is
// true.
template <class Visit>
bool is_one_inherited(const AddressRange& range, const Visit& visit) {
  if (!any()) return false;
  const std::uint64_t now = number_of_memory();
  const SignalSafeGuard guard(table_lock);
  for (std::size_t i = 0; i < slots_used.load(); ++i) {
    const Slot& slot = slots[i];
    const AddressRange common = common_of(slot, range);
    if (!common.empty() && is_inherited(slot, now) && visit(slot, common)) return true;
  }
  return false;
}

}  // namespace

bool holds(const void* address, std::size_t length) {
  return is_one_inherited(range_of(address, length),
                          [](const Slot&, const AddressRange&) { return true; });
}

bool holds(const void* address, std::size_t length, std::uint64_t memory) {
  return is_one_inherited(
      range_of(address, length),
      [memory](const Slot& slot, const AddressRange&) { return slot.memory.load() == memory; });
}

bool next(std::size_t& place, Piece& piece) {
  if (!any()) return false;
  const std::uint64_t now = number_of_memory();
  const SignalSafeGuard guard(table_lock);
  for (; place < slots_used.load(); ++place) {
    const Slot& slot = slots[place];
    if (!is_inherited(slot, now)) continue;
    piece = piece_of(slot);
    ++place;
    return true;
  }
  return false;
}

void let_go(const void* address, std::size_t length) {
  const SignalSafeGuard guard(table_lock);
  for_each_part(range_of(address, length), true, [](Slot& part, bool) {
    if (part.gives_back.load()) [[maybe_unused]]
      const bool is_given = give_back_in(part, {});
    part.gives_back.store(false);
  });
}

void forget(const void* address, std::size_t length) {
  const SignalSafeGuard guard(table_lock);
  drop(range_of(address, length), true);
  note_whether_any();
}

void give_back_by(GiveBack give_back) { give_back_now.store(give_back); }

// Also where another thread was first, and all is given back: this one's store faulted before.
bool open_for_store(const void* address) {
  return is_one_inherited(range_of(address, 1), [](const Slot& slot, const AddressRange& stored) {
    return slot.gives_back.load() && give_back_in(slot, stored);
  });
}

void open_range(const void* address, std::size_t length) {
  if (length == 0) return;
  const int error_number = errno;
  is_one_inherited(range_of(address, length), [](const Slot& slot, const AddressRange& stored) {
    if (slot.gives_back.load()) [[maybe_unused]]
      const bool is_given = give_back_in(slot, stored);
    return false;
  });
  errno = error_number;
}

}  // namespace pawl::inherited_memory
