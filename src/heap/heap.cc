#include "heap/heap.h"

#include <sys/mman.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "heap/address_space.h"
#include "heap/identity.h"
#include "heap/information.h"
#include "heap/open_heaps.h"
#include "heap/sealed.h"
#include "mapping/file_turn.h"
#include "mapping/memory_calls.h"
#include "mapping/open_mappings.h"
#include "medium/fork_guard.h"
#include "track/store_marks.h"

namespace pawl {

using heap_format::Identity;
using heap_format::kSegmentBytes;

namespace {

// For a new heap; each is free but for very bad luck.
constexpr int kAddressesTriedMax = 64;

// Administration, and one segment.
constexpr std::uint64_t kNewHeapBytes = 2 * kSegmentBytes;
static_assert(kNewHeapBytes == PAWL_HEAP_SIZE_MIN);

// The whole of what the heap may grow to, and nowhere else: EEXIST when something is there.
Status map_at(Mapping& mapping, std::uint64_t address, std::uint64_t size_bytes_max) {
  void* const wanted = memory_at(address);
  auto at =
      mapping.map_window(wanted, size_bytes_max, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE, 0);
  if (!at.ok() && at.status().error_number() == ENOMEM)
    return Status::failure(ENOMEM, PAWL_ERROR_NO_ADDRESS_SPACE,
                           at.status().text() + ". A smaller size_bytes_max may do");
  if (!at.ok()) return at.status();
  if (at.value() == wanted) return {};
  // Kernels before 4.17 take the address for a hint.
  PAWL_TRY(mapping.unmap_window(false));
  return Status::failure(EEXIST, PAWL_ERROR_ADDRESS_TAKEN, "the address is taken");
}

std::uint64_t size_max_of(const HeapOptions& options) {
  return options.size_bytes_max == 0 ? PAWL_HEAP_SIZE_DEFAULT
                                     : round_up(options.size_bytes_max, kSegmentBytes);
}

// Maps a new heap where it is asked for, or somewhere.
Result<Identity> place_new_heap(Mapping& mapping, const HeapOptions& options) {
  const std::uint64_t size_bytes_max = size_max_of(options);
  PAWL_TRY(mapping.truncate(kNewHeapBytes));
  Status mapped;
  for (int attempt = 0; attempt < kAddressesTriedMax; ++attempt) {
    const bool is_given = options.address != 0;
    const std::uint64_t address = is_given ? options.address : draw_heap_address(size_bytes_max);
    mapped = map_at(mapping, address, size_bytes_max);
    if (mapped.ok()) return make_identity(address, size_bytes_max, options.layout);
    if (mapped.error_number() != EEXIST) break;
    if (is_given)
      return address_taken(mapping.medium().path(), {address, address + size_bytes_max});
  }
  return mapped;
}

// Maps an existing heap, with as much room to grow as there is: all that it records, or up to what
// is in the way.  Heaps that were made apart then meet only where both have bytes.
Result<std::uint64_t> map_in_its_place(Mapping& mapping, std::uint64_t address,
                                       std::uint64_t size_bytes_max) {
  Status mapped = map_at(mapping, address, size_bytes_max);
  if (mapped.ok()) return size_bytes_max;
  if (mapped.error_number() != EEXIST) return mapped;
  open_heaps::end_before(address);
  const std::uint64_t size_bytes = mapping.size();
  const std::uint64_t room = round_down(free_bytes_at(address, size_bytes_max), kSegmentBytes);
  if (room >= size_bytes) mapped = map_at(mapping, address, room);
  if (mapped.ok()) return room;
  return mapped.error_number() == EEXIST
             ? address_taken(mapping.medium().path(), {address, address + size_bytes})
             : mapped;
}

// A file that no journal speaks for shows by itself whether it is a heap; then nothing is done to
// one that is not.
Status look_first(Medium& medium, const HeapOptions& options) {
  auto size = medium.base().size();
  if (!size.ok()) return size.status();
  if (size.value() == 0) return {};
  auto mark = medium.mark();
  if (!mark.ok()) return mark.status();
  if (mark.value().has_value()) return {};
  auto journal = medium.read_journal();
  if (journal.ok() || journal.status().error_number() != ENOENT) return {};
  Identity identity{};
  PAWL_TRY(medium.base().read(0, std::as_writable_bytes(std::span(&identity, 1))));
  return check_identity(identity, options.layout, medium.path());
}

}  // namespace

Status HeapOptions::validate() const {
  if (size_bytes_max != 0 &&
      (size_bytes_max < PAWL_HEAP_SIZE_MIN || size_bytes_max > PAWL_HEAP_SIZE_MAX))
    return Status::failure(EINVAL, "size_bytes_max must be 0, or from " +
                                       std::to_string(PAWL_HEAP_SIZE_MIN) + " to " +
                                       std::to_string(PAWL_HEAP_SIZE_MAX));
  if (layout.size() >= heap_format::kTextBytes)
    return Status::failure(EINVAL, "the text of layout has at most " +
                                       std::to_string(heap_format::kTextBytes - 1) + " bytes");
  if (address != 0) {
    const std::uint64_t end = heap_format::kAddressMax - size_max_of(*this);
    if (address % kSegmentBytes != 0 || address < heap_format::kAddressMin || address > end)
      return Status::failure(EINVAL, "address must be 0, or a multiple of " +
                                         std::to_string(kSegmentBytes) + " from " +
                                         hexadecimal(heap_format::kAddressMin) + " to " +
                                         hexadecimal(end) + " for a heap with this maximum");
  }
  return mapping.validate();
}

Heap::Heap(std::unique_ptr<Mapping> mapping, const HeapOptions& options, char* base,
           std::uint64_t size_bytes, std::uint64_t size_bytes_max)
    : mapping_(std::move(mapping)),
      verify_(options.verify),
      arena_(base, size_bytes, size_bytes_max,
             [this](std::uint64_t grown_bytes) { return mapping_->truncate(grown_bytes); }),
      allocator_(arena_),
      roots_(arena_),
      parts_{arena_, allocator_, roots_, mapping_->medium().path()} {
  mapping_->check_pages_with([this](std::uint64_t page, std::uint64_t changed_lines) {
    return check_heap_page(parts_, page, changed_lines);
  });
  guard_fork(this, {.before = [] {}, .in_parent = [] {}, .in_child = [this] { forked_ = true; }});
  if (const auto window = mapping_->window()) open_mappings::add_heap(mapping_, *window);
}

Heap::~Heap() {
  if (!forked_.load()) open_mappings::remove_heap(*mapping_);
  forget_fork_guard(this);
}

// Opening moves the mapping into the heap when it succeeds.
Result<std::unique_ptr<Heap>> Heap::open_at(std::unique_ptr<Mapping>& mapping,
                                            const HeapOptions& options) {
  const std::string& path = mapping->medium().path();
  const std::uint64_t size_bytes = mapping->size();
  if (size_bytes == 0) {
    auto placed = place_new_heap(*mapping, options);
    if (!placed.ok()) return placed.status();
    const Identity& identity = placed.value();
    std::unique_ptr<Heap> heap(new Heap(std::move(mapping), options, memory_at(identity.address),
                                        kNewHeapBytes, identity.size_bytes_max));
    heap->arena_.header().identity = identity;
    note_stored(heap->arena_.header().identity);
    heap->arena_.segment_table()[0] = heap_format::kSegmentAdministration;
    note_stored(heap->arena_.segment_table()[0]);
    if (const Status made = heap->sync(); !made.ok()) {
      [[maybe_unused]] const Status closed = heap->close();
      return made;
    }
    return heap;
  }
  Identity identity{};
  auto read = mapping->read(0, std::as_writable_bytes(std::span(&identity, 1)));
  if (!read.ok()) return read.status();
  PAWL_TRY(check_identity(identity, options.layout, path));
  const std::uint64_t wanted =
      std::max(identity.size_bytes_max, options.size_bytes_max == 0 ? 0 : size_max_of(options));
  PAWL_TRY(check_size(identity, size_bytes, path));
  auto room = map_in_its_place(*mapping, identity.address, wanted);
  if (!room.ok()) return room.status();
  std::unique_ptr<Heap> heap(
      new Heap(std::move(mapping), options, memory_at(identity.address), size_bytes, wanted));
  Status brought = heap->arena_.check_end();
  if (room.value() < wanted) heap->arena_.end_at(room.value());
  if (brought.ok()) brought = heap->bring_up_identity(identity, wanted, options.layout);
  if (!brought.ok()) {
    [[maybe_unused]] const Status closed = heap->close();
    return brought;
  }
  return heap;
}

// A larger maximum, and a layout where there was none, are recorded before anything relies on them.
Status Heap::bring_up_identity(const Identity& identity, std::uint64_t size_bytes_max,
                               const std::string& layout) {
  Identity wanted = identity;
  wanted.size_bytes_max = size_bytes_max;
  if (!layout.empty()) set_layout(wanted, layout);
  if (std::memcmp(&wanted, &identity, sizeof wanted) == 0) return {};
  seal(wanted);
  arena_.header().identity = wanted;
  note_stored(arena_.header().identity);
  return sync();
}

Result<std::unique_ptr<Heap>> Heap::open(std::unique_ptr<Medium> medium,
                                         const HeapOptions& options) {
  PAWL_TRY(options.validate());
  const FileTurn turn(FileTurn::To::open_or_close, *medium);
  PAWL_TRY(look_first(*medium, options));
  auto mapping = Mapping::open(std::move(medium), options.mapping);
  if (!mapping.ok()) return mapping.status();
  auto heap = open_at(mapping.value(), options);
  if (!heap.ok() && mapping.value() != nullptr) [[maybe_unused]]
    const Status closed = mapping.value()->close();
  return heap;
}

// In a forked child the locks may be held for ever.
Status Heap::close() {
  PAWL_TRY(usable());
  const FileTurn turn(FileTurn::To::open_or_close, mapping_->medium());
  const std::lock_guard lock(mutex_);
  open_mappings::remove_heap(*mapping_);
  return mapping_->close();
}

Status Heap::unmap_copy() const {
  return memory_calls::unmap_copy(*mapping_, range_of(base(), arena_.size_bytes_max()));
}

Result<std::uint64_t> Heap::end_before(std::uint64_t address, memory::LeftPlace& left) {
  return in_order<Result<std::uint64_t>>([&]() -> Result<std::uint64_t> {
    const std::uint64_t length = address - reinterpret_cast<std::uintptr_t>(base());
    if (length >= arena_.size_bytes() && length < arena_.size_bytes_max()) {
      PAWL_TRY(mapping_->shorten_window(length, left));
      arena_.end_at(length);
      open_mappings::move(*mapping_, {base(), length});
    }
    return arena_.size_bytes_max();
  });
}

Status Heap::statistics(MappingStatistics& statistics) const {
  PAWL_TRY(usable());
  mapping_->statistics(statistics);
  return {};
}

Status Heap::why_not_usable() const {
  return Status::failure(EPERM, PAWL_ERROR_FORKED_CHILD,
                         "this process was forked from the one that opened the heap " +
                             mapping_->medium().path() +
                             "; a child may read its copy and not change the heap");
}

// Keeps the first reason not to commit.
Status Heap::note(Status status) {
  if (!status.ok() && misuse_.ok()) misuse_ = status;
  return status;
}

Result<char*> Heap::allocate(std::size_t size, std::size_t alignment) {
  if (!is_power_of_two(alignment) || alignment > PAWL_HEAP_ALIGNMENT_MAX)
    return Status::failure(
        EINVAL, "an alignment is a power of two up to " + std::to_string(PAWL_HEAP_ALIGNMENT_MAX));
  return in_order<Result<char*>>([&]() -> Result<char*> {
    auto block = allocator_.allocate(size, alignment);
    if (!block.ok() && block.status().code() == PAWL_ERROR_DAMAGED_HEAP)
      return note(block.status());
    return block;
  });
}

// Under the lock, so that no sync finds the block uncleared; and without storing what is zero
// already, which would make pages dirty, and holes be filled.
Result<char*> Heap::allocate_zeroed(std::size_t size) {
  return in_order<Result<char*>>([&]() -> Result<char*> {
    auto block = allocator_.allocate(size);
    if (!block.ok()) {
      if (block.status().code() == PAWL_ERROR_DAMAGED_HEAP) return note(block.status());
      return block;
    }
    static constexpr std::array<char, kPageBytes> kZeros{};
    for (std::size_t done = 0; done < size;) {
      char* const at = block.value() + done;
      const std::size_t piece = std::min<std::size_t>(size - done, kPageBytes);
      if (std::memcmp(at, kZeros.data(), piece) != 0) {
        std::memset(at, 0, piece);
        note_stored(at, piece);
      }
      done += piece;
    }
    return block;
  });
}

Result<char*> Heap::reallocate(char* block, std::size_t size) {
  if (block == nullptr) return allocate(size, heap_format::kBlockAlignment);
  return in_order<Result<char*>>([&]() -> Result<char*> {
    auto present = allocator_.usable_size(block);
    if (!present.ok()) return note(present.status());
    auto in_place = allocator_.resize(block, size);
    if (!in_place.ok()) return note(in_place.status());
    if (in_place.value()) return block;
    auto moved = allocator_.allocate(size);
    if (!moved.ok()) {
      if (moved.status().code() == PAWL_ERROR_DAMAGED_HEAP) return note(moved.status());
      return moved;
    }
    // Damage with right checksums: a segment's header calls pages free that a block lies in.
    if (moved.value() < block + present.value() && block < moved.value() + size)
      return note(heap_damaged("a new block was given bytes of another"));
    const std::size_t kept = std::min(size, present.value());
    std::memcpy(moved.value(), block, kept);
    note_stored(moved.value(), kept);
    if (const Status freed = allocator_.free(block); !freed.ok()) return note(freed);
    return moved;
  });
}

Status Heap::free(char* block) {
  return in_order<Status>([&] { return note(allocator_.free(block)); });
}

Result<std::size_t> Heap::usable_size(const char* block) {
  return in_order<Result<std::size_t>>([&] { return allocator_.usable_size(block); });
}

Result<char*> Heap::root() {
  return in_order<Result<char*>>([&] { return roots_.root(); });
}

Status Heap::set_root(char* address) {
  return in_order<Status>([&] { return roots_.set_root(address); });
}

Result<Roots::Named> Heap::named_root(std::string_view name) {
  return in_order<Result<Roots::Named>>([&] { return roots_.named(name); });
}

Status Heap::set_named_root(std::string_view name, Roots::Named to) {
  return in_order<Status>([&] { return roots_.set_named(name, to); });
}

Status Heap::sync() {
  return in_order<Status>([&]() -> Status {
    if (!misuse_.ok())
      return Status::failure(EUCLEAN, PAWL_ERROR_SYNC_REFUSED,
                             "nothing is synced since the heap was misused: " + misuse_.text() +
                                 ". Roll back to the last sync, or open the heap anew");
    if (verify_) PAWL_TRY(verify_before_sync());
    Status committed = mapping_->commit_all();
    return committed.code() == PAWL_ERROR_DAMAGED_HEAP ? note(std::move(committed)) : committed;
  });
}

Status Heap::roll_back() {
  return in_order<Status>([&]() -> Status {
    // That place belongs to the running process, not to the last sync.
    const auto resource = arena_.header().resource;
    PAWL_TRY(mapping_->roll_back(base(), arena_.size_bytes_max()));
    arena_.set_size(mapping_->size());
    allocator_.forget();
    misuse_ = {};
    if (arena_.header().resource != resource) {
      arena_.header().resource = resource;
      note_stored(arena_.header().resource);
    }
    return {};
  });
}

Result<std::uint64_t> Heap::check(const ReportFault& report) {
  return in_order<Result<std::uint64_t>>([&] { return check_heap(parts_, report); });
}

Status Heap::information(pawl_heap_information& information) {
  return in_order<Status>([&] { return count_heap(parts_, information); });
}

Result<std::uint64_t> Heap::verify(const ReportFault& report) {
  return in_order<Result<std::uint64_t>>([&]() -> Result<std::uint64_t> {
    auto strays = find_stray_pointers(report);
    if (!strays.ok()) return strays;
    auto locks = find_held_locks(report);
    if (!locks.ok()) return locks;
    return strays.value() + locks.value();
  });
}

}  // namespace pawl
