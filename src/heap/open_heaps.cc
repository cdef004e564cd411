#include "heap/open_heaps.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>

#include "medium/fork_guard.h"
#include "medium/fork_safe_lock.h"
#include "medium/inherited_memory.h"
#include "medium/memory_functions.h"
#include "medium/own_process.h"

namespace pawl::open_heaps {
namespace {

// A slot is free while its handle is null.  The range is written before the handle and stays until
// the slot is taken anew: whoever sees the handle sees its range.
struct Slot {
  std::atomic<std::uintptr_t> start{0};
  std::atomic<std::uintptr_t> end{0};
  std::atomic<std::uint64_t> memory{0};  // the number of that whose heap it is
  std::atomic<pawl_heap*> handle{nullptr};
  std::uint64_t order = 0;  // of opening; guarded by the mutex
};

struct Table {
  // So that no child finds it half changed.
  Table() {
    guard_fork(this, {.before = [this] { mutex.lock(); },
                      .in_parent = [this] { mutex.unlock(); },
                      .in_child = [this] { mutex.unlock(); }});
  }

  ForkSafeLock mutex;  // of the slots; no call on a heap is made under it
  std::array<Slot, PAWL_HEAPS_MAX> slots;
  std::atomic<std::size_t> slots_in_use{0};  // no slot from here on is taken
  std::atomic<pawl_heap*> default_heap{nullptr};
  std::uint64_t opened = 0;
};

// Never destroyed: static objects may free into a heap while the process ends.
Table& table() {
  static Table* const made = new Table;
  return *made;
}

bool is_of_other_memory(const Slot& slot) { return slot.memory.load() != number_of_memory(); }

// In a child, of a heap that it inherited: whether there is something left of the copy.
bool is_left(const Slot& slot, const Addresses& where) {
  const std::uint64_t start = std::max<std::uint64_t>(slot.start.load(), where.start);
  const std::uint64_t end = std::min<std::uint64_t>(slot.end.load(), where.end);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is an address
  const void* const address = reinterpret_cast<const void*>(start);
  return start < end && inherited_memory::holds(address, end - start, slot.memory.load());
}

bool meets(const Slot& slot, const Addresses& where) {
  return slot.handle.load() != nullptr && slot.start.load() < where.end &&
         slot.end.load() > where.start && (!is_of_other_memory(slot) || is_left(slot, where));
}

void forget(Table& all, const pawl_heap* heap) {
  const Slot* first = nullptr;
  for (Slot& slot : all.slots) {
    if (slot.handle.load() == heap) slot.handle.store(nullptr);
    if (slot.handle.load() != nullptr && (first == nullptr || slot.order < first->order))
      first = &slot;
  }
  if (all.default_heap.load() == heap)
    all.default_heap.store(first == nullptr ? nullptr : first->handle.load());
}

// Those of other memory that the child unmapped past pawl_heap_close().
void forget_left_over(Table& all) {
  for (const Slot& slot : all.slots) {
    const pawl_heap* const handle = slot.handle.load();
    if (handle != nullptr && !meets(slot, {slot.start.load(), slot.end.load()}))
      forget(all, handle);
  }
}

}  // namespace

Status add(pawl_heap* heap) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  forget_left_over(all);
  for (std::size_t i = 0; i < all.slots.size(); ++i) {
    Slot& slot = all.slots[i];
    if (slot.handle.load() != nullptr) continue;
    const auto start = reinterpret_cast<std::uintptr_t>(heap->heap->base());
    slot.start.store(start);
    slot.end.store(start + heap->heap->size_bytes_max());
    slot.memory.store(number_of_memory());
    slot.order = ++all.opened;
    slot.handle.store(heap, std::memory_order_release);
    if (i >= all.slots_in_use.load()) all.slots_in_use.store(i + 1);
    if (all.default_heap.load() == nullptr) all.default_heap.store(heap);
    return {};
  }
  return Status::failure(ENFILE, PAWL_ERROR_TOO_MANY,
                         "this process has " + std::to_string(PAWL_HEAPS_MAX) +
                             " open heaps, and that is the limit; close one first");
}

void remove(const pawl_heap* heap) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  forget(all, heap);
}

pawl_heap* find(const void* address) {
  Table& all = table();
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::size_t slots = all.slots_in_use.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < slots; ++i) {
    const Slot& slot = all.slots[i];
    pawl_heap* const handle = slot.handle.load(std::memory_order_acquire);
    if (handle != nullptr && at >= slot.start.load(std::memory_order_relaxed) &&
        at < slot.end.load(std::memory_order_relaxed) &&
        (!is_of_other_memory(slot) || is_left(slot, {at, at + 1})))
      return handle;
  }
  return nullptr;
}

std::optional<Found> find_in(const Addresses& where) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  for (const Slot& slot : all.slots)
    if (meets(slot, where))
      return Found{slot.handle.load()->heap->path(),
                   {slot.start.load(), slot.end.load()},
                   is_of_other_memory(slot)};
  return std::nullopt;
}

// The heap may be closed meanwhile by another thread, which then lets go of it later.
void end_before(std::uint64_t address) {
  Table& all = table();
  std::shared_ptr<Heap> heap;
  {
    const std::lock_guard lock(all.mutex);
    for (const Slot& slot : all.slots)
      if (meets(slot, {address, address + 1})) heap = slot.handle.load()->heap;
  }
  if (heap == nullptr) return;
  memory::LeftPlace left;
  const auto size_bytes_max = heap->end_before(address, left);
  if (!size_bytes_max.ok()) return;
  const std::lock_guard lock(all.mutex);
  for (Slot& slot : all.slots)
    if (slot.handle.load() != nullptr && slot.handle.load()->heap == heap)
      slot.end.store(std::min(slot.end.load(), slot.start.load() + size_bytes_max.value()));
}

pawl_heap* default_heap() { return table().default_heap.load(); }

void set_default(pawl_heap* heap) { table().default_heap.store(heap); }

}  // namespace pawl::open_heaps
