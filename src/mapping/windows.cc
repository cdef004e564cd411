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
  PAWL_TRY(map_view(view_, address, length, protection, flags, file_offset));
  std::erase_if(outside_, [&](const auto& entry) { return view_.accessible(entry.first); });
  private_pages_ = 0;
  return view_.address();
}

// What is pending in the view's pages is in it, and stays in outside_ until nothing can fail any
// more.  On failure the view is not mapped.
Status Mapping::Implementation::map_view(View& view, void* address, std::size_t length,
                                         int protection, int flags, std::uint64_t file_offset) try {
  PAWL_TRY(medium_->base().check_open());
  // What stands only in the overlay must show in the new view: it goes into the base first.
  PAWL_TRY(apply_all());
  PAWL_ASSERT(image_.waiting_pages() == 0);
  const std::uint64_t shown = std::min({size_, lowest_size_, image_.size()});
  if (tracker_->knows_lines() && (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == 0) {
    PAWL_TRY(map_where_marked(view, address, length, protection, file_offset, shown));
  } else {
    PAWL_TRY(view.map(address, length, protection, flags, file_offset, shown, size_));
  }
  Status complete = show_what_is_pending(view, shown);
  if (!complete.ok()) view.unmap();
  return complete;
} catch (const std::bad_alloc&) {
  view.unmap();
  return Status::no_memory("no memory to map a file; free some and call again");
}

Status Mapping::Implementation::show_what_is_pending(View& view, std::uint64_t base_bytes) {
  // Where a pending shrink cut a page, the base still has the rest of it.
  const std::uint64_t cut_page = base_bytes / kPageBytes;
  const std::size_t kept = base_bytes % kPageBytes;
  if (base_bytes < image_.size() && kept != 0 && view.accessible(cut_page)) {
    static constexpr std::array<std::byte, kPageBytes> kZeros{};
    PAWL_TRY(store_in(view, base_bytes, std::span(kZeros).first(kPageBytes - kept)));
  }
  for (const auto& [page, written] : outside_) {
    if (view.accessible(page)) PAWL_TRY(store_in(view, page * kPageBytes, written->bytes));
  }
  return {};
}

// Compiled marks see stores into one region only; where in it, if not at the program's hint, is
// drawn at random, so that the mappings of a process seldom meet.
Status Mapping::Implementation::map_where_marked(View& view, void* hint, std::size_t length,
                                                 int protection, std::uint64_t file_offset,
                                                 std::uint64_t base_bytes) const {
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
    mapped = view.map(reinterpret_cast<void*>(at), length, protection, MAP_FIXED_NOREPLACE,
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
  if (keep) PAWL_TRY(take_outside(view_.first_page(), view_.accessible_end_page(), taken));
  forget_pages();
  view_.unmap();
  return {};
}

// What the pages of the window have pending is in outside_, too.  Failing, nothing is.
Status Mapping::Implementation::take_outside(std::uint64_t first_page, std::uint64_t end_page,
                                             TakenPages& taken) {
  PAWL_TRY(take_pages(first_page, end_page, taken));
  Status kept;
  try {
    kept = keep_outside(taken);
  } catch (const std::bad_alloc&) {
    kept = Status::no_memory("no memory for what is not committed; free some and call again");
  }
  if (!kept.ok()) leave_in_window(taken);
  return kept;
}

// As if take_outside() had not been called.
void Mapping::Implementation::leave_in_window(const TakenPages& taken) noexcept {
  std::erase_if(outside_, [&](const auto& entry) { return view_.accessible(entry.first); });
  keep_pages(taken);
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
  const std::size_t length = view_.length();
  if (fixed_address != nullptr) {
    PAWL_TRY(move_window(new_length, fixed_address, left));
  } else if (new_length < length) {
    PAWL_TRY(shorten_window(new_length, left));
  } else if (new_length > length) {
    // At no moment another thread is given the addresses that it grows into.
    char* const end = view_.address() + length;
    const std::size_t added = new_length - length;
    if (reserve(end, added)) {
      const Status lengthened = lengthen_window(added);
      if (!lengthened.ok()) memory::unmap(end, added);
      PAWL_TRY(lengthened);
    } else if (may_move) {
      PAWL_TRY(move_window(new_length, nullptr, left));
    } else {
      return Status::failure(ENOMEM, PAWL_ERROR_NO_ADDRESS_SPACE,
                             "the mapping of " + medium_->path() +
                                 " cannot grow where it stands; allow it to move (MREMAP_MAYMOVE)");
    }
  }
  return view_.address();
}

// What the window has stays as it is: the kernel may refuse what comes behind it.
Status Mapping::Implementation::lengthen_window(std::size_t added) {
  char* const end = view_.address() + view_.length();
  const memory::Spared spared(end, added);
  View behind(*medium_, tracker_);
  PAWL_TRY(map_view(behind, end, added, view_.protection(), MAP_FIXED, view_.file_end_offset()));
  view_.append(behind);
  std::erase_if(outside_, [&](const auto& entry) { return view_.accessible(entry.first); });
  return {};
}

Status Mapping::Implementation::shorten_window(std::size_t new_length, memory::LeftPlace& left) {
  const std::uint64_t end_page = view_.first_page() + new_length / kPageBytes;
  TakenPages taken;
  PAWL_TRY(take_outside(end_page, view_.accessible_end_page(), taken));
  view_.shorten(new_length, left);
  return {};
}

// To an address of the kernel's choosing where none is given.  The window stands, and has what it
// had, until the new one does: at a limit there may be room for none.
Status Mapping::Implementation::move_window(std::size_t new_length, void* address,
                                            memory::LeftPlace& left) {
  // Another's memory stays taken there, and the caller gives it back.
  const memory::Spared spared(address, address != nullptr ? new_length : 0);
  // For want of space this fails, and before any page is in hand.
  PAWL_TRY(apply_all());
  TakenPages taken;
  PAWL_TRY(take_outside(view_.first_page(), view_.accessible_end_page(), taken));
  View moved(*medium_, tracker_);
  Status mapped = map_view(moved, address, new_length, view_.protection(),
                           address != nullptr ? MAP_FIXED : 0, view_.file_offset());
  if (!mapped.ok()) {
    leave_in_window(taken);
    return mapped;
  }
  char* const old_address = view_.address();
  const std::size_t old_length = view_.length();
  {
    const memory::Spared old(old_address, old_length);
    view_.unmap();
  }
  left.take(old_address, old_length);
  forget_pages();
  view_.take_over(moved);
  std::erase_if(outside_, [&](const auto& entry) { return view_.accessible(entry.first); });
  private_pages_ = 0;
  return {};
}

}  // namespace pawl
