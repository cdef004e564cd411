// madvise(2) on a window.  To the kernel the window is private memory; the program takes it for a
// shared mapping of its file, and means that.

#include <sys/mman.h>
#include <algorithm>
#include <array>
#include <cerrno>

#include "mapping/implementation.h"
#include "medium/law.h"
#include "medium/memory_functions.h"

namespace pawl {
namespace {

// What the headers of Debian 12 may lack.
constexpr int kPopulateRead = 22;
constexpr int kPopulateWrite = 23;
constexpr int kDontNeedLocked = 24;

}  // namespace

Status Mapping::Implementation::advise_kernel(std::uint64_t first_page, std::uint64_t end_page,
                                              int advice) const {
  if (memory::advise(view_.bytes(first_page), (end_page - first_page) * kPageBytes, advice) == 0)
    return {};
  return FailedCall{errno, "madvise of the mapping of " + medium_->path()};
}

Status Mapping::Implementation::clear_markers_locked(std::uint64_t first_page,
                                                     std::uint64_t end_page) const {
  const std::uint64_t end = std::min(end_page, view_.accessible_end_page());
  if (first_page >= end) return {};
  return tracker_->clear_markers(reinterpret_cast<char*>(view_.bytes(first_page)),
                                 (end - first_page) * kPageBytes);
}

// Locked first, without a page fault: what the kernel reclaims before that leaves a marker, and
// from then on it reclaims nothing.  The rest is read in behind that.
Status Mapping::Implementation::lock_memory_locked(std::uint64_t first_page, std::uint64_t end_page,
                                                   unsigned flags) const {
  const auto lock = [&](unsigned how) -> Status {
    if (memory::lock(view_.bytes(first_page), (end_page - first_page) * kPageBytes, how) == 0)
      return {};
    return FailedCall{errno, "cannot lock the mapping of " + medium_->path() + " in memory"};
  };
  if (!tracker_->leaves_markers()) return lock(flags);
  // Before, too, though another thread that meets one in locked memory only tries until it is gone.
  PAWL_TRY(clear_markers_locked(first_page, end_page));
  PAWL_TRY(lock(flags | MLOCK_ONFAULT));
  PAWL_TRY(clear_markers_locked(first_page, end_page));
  if ((flags & MLOCK_ONFAULT) != 0) return {};
  Status present = advise_kernel(first_page, end_page, kPopulateRead);
  if (present.ok() || present.error_number() != EFAULT) return present;
  return Status::failure(ENOMEM, "a part of the mapping of " + medium_->path() +
                                     " cannot be read, or is past the end of the file; what can "
                                     "be is locked in memory");
}

// A hole punched through memory: the bytes become zeros, with the next commit.
Status Mapping::Implementation::punch(std::uint64_t first_page, std::uint64_t end_page) {
  static constexpr std::array<std::byte, kPageBytes> kZeros{};
  const std::uint64_t end = std::min(end_page, view_.accessible_end_page());
  for (std::uint64_t page = first_page; page < end; ++page)
    PAWL_TRY(store_in_view(page * kPageBytes, kZeros));
  return {};
}

Status Mapping::Implementation::advise_locked(std::uint64_t first_page, std::uint64_t end_page,
                                              int advice) {
  if (is_broken(Law::advice_keeps_stores)) return advise_kernel(first_page, end_page, advice);
  switch (advice) {
    case MADV_DONTNEED:
    case kDontNeedLocked:
      // A shared mapping keeps its stores in the page cache.  Private memory would lose them, and
      // show a base that lags behind the commits.
    case MADV_MERGEABLE:
    case MADV_UNMERGEABLE:
    case MADV_KEEPONFORK:
      // These do nothing to shared mappings.
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
      // A wish, which is not granted: one huge page would be tracked as one page.
      return {};
    case MADV_REMOVE:
      return punch(first_page, end_page);
    case kPopulateWrite:
      // To write to all of them would make them all pages that changed.
      return advise_kernel(first_page, end_page, kPopulateRead);
    case MADV_NORMAL:
    case MADV_RANDOM:
    case MADV_SEQUENTIAL:
    case MADV_WILLNEED:
    case MADV_DONTFORK:
    case MADV_DOFORK:
    case MADV_DONTDUMP:
    case MADV_DODUMP:
    case MADV_COLD:
    case MADV_PAGEOUT:
    case kPopulateRead:
      return advise_kernel(first_page, end_page, advice);
    default:
      return Status::failure(EINVAL, "advice " + std::to_string(advice) +
                                         " is not one that the atomic mapping of " +
                                         medium_->path() + " can take");
  }
}

}  // namespace pawl
