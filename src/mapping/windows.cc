// The window: what of the file is in memory, and where.

#include <sys/mman.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <random>

#include "mapping/implementation.h"
#include "medium/memory_functions.h"

namespace pawl {
namespace {

// Address space that nothing is in yet.
bool reserve(char* address, std::size_t length) {
  constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  return memory::map(address, length, PROT_NONE, kReserve, -1, 0) != MAP_FAILED;
}

}  // namespace

Result<char*> Mapping::Implementation::map_window_locked(void* address, std::size_t length,
                                                         int protection, int flags,
                                                         std::uint64_t file_offset) {
  if (view_.mapped())
    return Status::failure(
        EBUSY, PAWL_ERROR_IN_USE,
        medium_->path() + " is mapped already; a file has one mapping. Unmap it first");
  PAWL_TRY(medium_->base().check_open());
  // What stands only in the overlay must show in the new view: it goes into the base first.
  PAWL_TRY(apply_all());
  PAWL_ASSERT(image_.waiting_pages() == 0);
  const std::uint64_t shown = std::min({size_, lowest_size_, image_.size()});
  if (tracker_->knows_lines() && (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == 0) {
    PAWL_TRY(map_where_marked(address, length, protection, file_offset, shown));
  } else {
    PAWL_TRY(view_.map(address, length, protection, flags, file_offset, shown, size_));
  }
  private_pages_ = 0;

  // Where a pending shrink cut a page, the base still has the rest of it.
  const std::uint64_t cut_page = shown / kPageBytes;
  if (shown < image_.size() && shown % kPageBytes != 0 && view_.accessible(cut_page)) {
    static constexpr std::array<std::byte, kPageBytes> kZeros{};
    PAWL_TRY(store_in_view(shown, std::span(kZeros).first(kPageBytes - shown % kPageBytes)));
  }
  for (auto entry = outside_.begin(); entry != outside_.end();) {
    if (!view_.accessible(entry->first)) {
      ++entry;
      continue;
    }
    PAWL_TRY(store_in_view(entry->first * kPageBytes, entry->second->bytes));
    entry = outside_.erase(entry);
  }
  return view_.address();
}

// Compiled marks see stores into one region only; where in it, if not at the program's hint, is
// drawn at random, so that the mappings of a process seldom meet.
Status Mapping::Implementation::map_where_marked(void* hint, std::size_t length, int protection,
                                                 std::uint64_t file_offset,
                                                 std::uint64_t base_bytes) {
  constexpr std::uint64_t kAlignment = std::uint64_t{1} << 30;
  constexpr int kAttemptsMax = 16;
  const std::uint64_t room = kStoreMappingsEnd - kStoreRegionFirst;
  if (length > room)
    return Status::failure(
        ENOMEM, PAWL_ERROR_TOO_LARGE,
        "a mapping tracked by its stores has at most " + std::to_string(room) + " bytes");
  std::random_device random;
  std::uniform_int_distribution<std::uint64_t> places(0, (room - length) / kAlignment);
  Status mapped;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    const auto wished = round_down(reinterpret_cast<std::uintptr_t>(hint), kPageBytes);
    const bool is_wish = attempt == 0 && wished >= kStoreRegionFirst &&
                         wished < kStoreMappingsEnd && length <= kStoreMappingsEnd - wished;
    const std::uint64_t at = is_wish ? wished : kStoreRegionFirst + places(random) * kAlignment;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it is an address
    mapped = view_.map(reinterpret_cast<void*>(at), length, protection, MAP_FIXED_NOREPLACE,
                       file_offset, base_bytes, size_);
    if (mapped.ok() || mapped.error_number() != EEXIST) return mapped;
  }
  // No address was asked for.
  return Status::failure(ENOMEM, PAWL_ERROR_NO_ADDRESS_SPACE, mapped.text());
}

Status Mapping::Implementation::unmap_window_locked(bool keep) {
  if (!view_.mapped())
    return Status::failure(EINVAL, PAWL_ERROR_NOT_MAPPED, medium_->path() + " is not mapped");
  TakenPages taken;
  if (keep) {
    PAWL_TRY(take_pages(view_.first_page(), view_.accessible_end_page(), taken));
    Status kept;
    try {
      kept = keep_outside(taken);
    } catch (const std::bad_alloc&) {
      kept = Status::no_memory("no memory for what is not committed; free some and call again");
    }
    if (!kept.ok()) {
      std::erase_if(outside_, [&](const auto& entry) { return view_.accessible(entry.first); });
      keep_pages(taken);
      return kept;
    }
  }
  forget_pages();
  view_.unmap();
  return {};
}

Status Mapping::Implementation::keep_outside(const TakenPages& taken) {
  for (const auto& [page, lines] : taken) {
    auto committed = page_before(page);
    if (!committed.ok()) return committed.status();
    auto copy = std::make_unique<PageBuffer>();
    PAWL_TRY(load_from_view(page, 0, copy->bytes));
    if (copy->bytes == committed.value()->bytes) continue;
    outside_[page] = std::move(copy);
  }
  return {};
}

Result<char*> Mapping::Implementation::remap_window_locked(std::size_t new_length, bool may_move,
                                                           void* fixed_address,
                                                           memory::LeftPlace& left) {
  if (!view_.mapped())
    return Status::failure(EINVAL, PAWL_ERROR_NOT_MAPPED, medium_->path() + " is not mapped");
  if (new_length == 0 || new_length % kPageBytes != 0)
    return Status::failure(EINVAL, "a mapping's length is a multiple of the page size and not 0");
  // While the window stands.
  PAWL_TRY(medium_->base().check_open());
  // As mremap(2) of what are several mappings to the kernel.
  if (!view_.has_one_protection())
    return Status::failure(EFAULT, "parts of the mapping of " + medium_->path() +
                                       " have protections of their own; make them one first");
  const Window old{view_.address(), view_.length(), view_.file_offset(), view_.protection()};
  if (fixed_address == nullptr && new_length == old.length) return old.address;
  // Its place is left by nobody until it is sure that the window does not come back, and what it
  // grows into is taken first: at no moment another thread is given the addresses.
  char* const end = old.address + old.length;
  const std::size_t added = new_length > old.length ? new_length - old.length : 0;
  const bool is_in_place = fixed_address == nullptr && (added == 0 || reserve(end, added));
  if (fixed_address == nullptr && !is_in_place && !may_move) {
    return Status::failure(ENOMEM, PAWL_ERROR_NO_ADDRESS_SPACE,
                           "the mapping of " + medium_->path() +
                               " cannot grow where it stands; allow it to move (MREMAP_MAYMOVE)");
  }
  auto moved = move_window(old, new_length, is_in_place ? old.address : fixed_address);
  if (moved.ok() && !is_in_place) left.take(old.address, old.length);
  if (moved.ok() && new_length < old.length && is_in_place)
    left.take(old.address + new_length, old.length - new_length);
  if (!moved.ok() && is_in_place && added > 0) memory::unmap(end, added);
  return moved;
}

// To an address of the kernel's choosing where none is given.  The old place stays taken, and on
// failure the window is there again.
Result<char*> Mapping::Implementation::move_window(const Window& old, std::size_t new_length,
                                                   void* address) {
  const memory::Spared spared(old.address,
                              std::max(old.length, address == old.address ? new_length : 0));
  // For want of space this fails, and while the window stands.
  PAWL_TRY(apply_all());
  PAWL_TRY(unmap_window_locked(true));
  auto moved = map_window_locked(address, new_length, old.protection,
                                 address != nullptr ? MAP_FIXED : 0, old.file_offset);
  if (moved.ok()) return moved;
  const Status back =
      map_window_locked(old.address, old.length, old.protection, MAP_FIXED, old.file_offset)
          .status();
  if (back.ok()) return moved;
  // What is pending stays so.  Nothing is to be stored where no window is.
  memory::protect(old.address, old.length, PROT_NONE);
  return back;
}

}  // namespace pawl
