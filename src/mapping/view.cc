#include "mapping/view.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "medium/descriptor.h"
#include "medium/inherited_memory.h"
#include "medium/memory_functions.h"
#include "medium/own_descriptors.h"

namespace pawl {
namespace {

constexpr int kDontNeedLocked =
    24;  // MADV_DONTNEED_LOCKED, which the headers of Debian 12 may lack

// A file of no bytes: touching a page of its mapping raises SIGBUS, as past the end of any file.
struct EmptyFile {
  int number;
  dev_t device;
  ino_t inode;
  const EmptyFile* before;  // that the program closed; another thread may still look at it
};

std::atomic<const EmptyFile*> empty_file_now{nullptr};

bool is_open(const EmptyFile& file) {
  struct stat status{};
  return ::fstat(file.number, &status) == 0 && status.st_dev == file.device &&
         status.st_ino == file.inode;
}

// Its descriptor; -1 with errno.  The program may have closed it and been given its number for a
// file of its own, so it is looked at before each use, and made anew.
int empty_file() {
  for (;;) {
    const EmptyFile* known = empty_file_now.load();
    if (known != nullptr && is_open(*known)) return known->number;
    Descriptor made(::memfd_create("pawl-past-end", MFD_CLOEXEC));
    struct stat status{};
    if (!made.valid() || ::fstat(made.get(), &status) != 0) return -1;
    std::unique_ptr<const EmptyFile> file(
        new EmptyFile{made.get(), status.st_dev, status.st_ino, known});
    if (!empty_file_now.compare_exchange_strong(known, file.get())) continue;
    if (known != nullptr) own_descriptors::remove(known->number);
    made.release();
    own_descriptors::add(file.release()->number);
  }
}

Status no_empty_file() {
  return FailedCall{errno, "cannot make an empty memory file (memfd_create)"};
}

// Of a call that was to take addresses.
pawl_error code_of_address(int error_number) {
  switch (error_number) {
    case EEXIST:
      return PAWL_ERROR_ADDRESS_TAKEN;
    case ENOMEM:
      return PAWL_ERROR_NO_ADDRESS_SPACE;
    default:
      return PAWL_ERROR_NONE;  // it follows from the number
  }
}

// The window is not what it was.
Status broken(const Status& why) noexcept try {
  return Status::failure(EIO, PAWL_ERROR_MAPPING_BROKEN, why.text());
} catch (const std::bad_alloc&) {
  return Status::failure(EIO, PAWL_ERROR_MAPPING_BROKEN, {});
}

}  // namespace

std::size_t View::clip(std::uint64_t size_bytes) const {
  const std::uint64_t end = round_up(size_bytes, kPageBytes);
  if (end <= file_offset_) return 0;
  return std::min<std::uint64_t>(end - file_offset_, length_);
}

// What is there, or with MAP_FIXED_NOREPLACE nothing, becomes that.
Status View::map_past_end(std::size_t from, std::size_t to, int fixed) {
  if (from >= to) return {};
  const int flags = MAP_PRIVATE | MAP_NORESERVE | fixed;
  const int empty = empty_file();
  if (empty < 0) return no_empty_file();
  if (memory::map(address_ + from, to - from, protection_, flags, empty, 0) == MAP_FAILED) {
    return FailedCall{errno, "cannot map the pages past the end of " + medium_.path()};
  }
  return {};
}

// msync(2) with MS_ASYNC does nothing but look.
bool View::is_mapped(std::size_t from, std::size_t to) const {
  return memory::synchronise(address_ + from, to - from, MS_ASYNC) == 0 || errno != ENOMEM;
}

// EIO in place of the failure where the kernel, which refused to map something over the range, took
// away what was there.
Status View::unless_lost(std::size_t from, std::size_t to, const Status& failure) const {
  return is_mapped(from, to) ? failure : broken(failure);
}

Status View::map_anonymous(std::size_t from, std::size_t to) {
  if (from >= to) return {};
  const int fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (memory::map(address_ + from, to - from, protection_, fixed, -1, 0) == MAP_FAILED) {
    return FailedCall{errno, "cannot map memory for the growth of " + medium_.path()};
  }
  // A huge page would make one stored byte two changed megabytes.
  memory::advise(address_ + from, to - from, MADV_NOHUGEPAGE);
  return {};
}

Status View::watch_growth(std::size_t from, std::size_t to) try {
  PAWL_TRY(tracker_->watch(address_ + from, to - from, protection_));
  accessible_ = to;
  Status protected_as_asked = protect_parts(from, to);
  if (protected_as_asked.ok()) return {};
  accessible_ = from;
  tracker_->unwatch(address_ + from, to - from);
  return protected_as_asked;
} catch (const std::bad_alloc&) {
  accessible_ = from;
  tracker_->unwatch(address_ + from, to - from);
  return Status::no_memory("no memory to watch the growth of a file; free some and call again");
}

// Of the growth that failed nothing is left: past the end again, or EIO.
Status View::take_back(std::size_t from, std::size_t to, const Status& failure) {
  Status back = map_past_end(from, to, MAP_FIXED);
  if (!back.ok()) {
    // At a limit the kernel has room for it only once the growth is gone.
    memory::unmap(address_ + from, to - from);
    back = map_past_end(from, to, MAP_FIXED_NOREPLACE);
  }
  if (!back.ok()) return broken(back);
  (void)protect_parts(from, to);  // nobody can touch it
  return failure;
}

Status View::map(void* address, std::size_t length, int protection, int flags,
                 std::uint64_t file_offset, std::uint64_t base_bytes, std::uint64_t size_bytes) {
  PAWL_ASSERT(!mapped() && length > 0 && length % kPageBytes == 0 && file_offset % kPageBytes == 0);
  const int empty = empty_file();
  if (empty < 0) return no_empty_file();
  if ((flags & MAP_FIXED) != 0)
    PAWL_TRY(tracker_->check_addresses(static_cast<const char*>(address), length));
  void* const at =
      memory::map(address, length, protection, MAP_PRIVATE | MAP_NORESERVE | flags, empty, 0);
  if (at == MAP_FAILED) {
    const int failure = errno;
    return FailedCall{failure, "cannot find " + std::to_string(length) + " bytes of address space",
                      code_of_address(failure)};
  }
  if (Status added = inherited_memory::add(at, length); !added.ok()) {
    memory::unmap(at, length);
    return added;
  }
  address_ = static_cast<char*>(at);
  length_ = length;
  protection_ = protection;
  file_offset_ = file_offset;
  file_part_ = clip(std::min(base_bytes, size_bytes));
  accessible_ = file_part_;
  Status status;
  if (file_part_ > 0) {
    auto mapped = medium_.map_private(address_, file_part_, protection, MAP_FIXED | MAP_NORESERVE,
                                      file_offset);
    status = mapped.status();
    if (status.ok()) status = watch_file(0);
  }
  const std::size_t end = clip(size_bytes);
  if (status.ok() && end > file_part_) status = map_anonymous(file_part_, end);
  if (status.ok() && end > file_part_) status = watch_growth(file_part_, end);
  if (!status.ok()) unmap();
  return status;
}

// From there to file_part_, where all shows the file.
Status View::watch_file(std::size_t from) {
  PAWL_TRY(tracker_->watch(address_ + from, file_part_ - from, protection_));
  tracker_->note_file_memory(address_ + from, file_part_ - from);
  return {};
}

void View::unmap() {
  if (!mapped()) return;
  char* const address = address_;
  const std::size_t length = length_;
  forget();
  memory::unmap(address, length);
}

// A tracker may have taken the right to store away, to see who does: that is the kernel's business
// again before the tracker goes.
void View::leave() noexcept {
  if (!mapped()) return;
  std::size_t at = 0;
  const auto open_to = [&](std::size_t to, int protection) {
    to = std::min(to, accessible_);
    if (at < to) [[maybe_unused]]
      const int ignored = memory::protect(address_ + at, to - at, protection);
    at = std::max(at, to);
  };
  for (const ProtectedPart& part : parts_) {
    open_to(part.from, protection_);
    open_to(part.to, part.protection);
  }
  open_to(accessible_, protection_);
  forget();
}

void View::forget() noexcept {
  if (accessible_ > 0) tracker_->unwatch(address_, accessible_);
  inherited_memory::remove(address_, length_);
  address_ = nullptr;
  parts_.clear();
  length_ = file_part_ = accessible_ = 0;
}

void View::shorten(std::size_t length, memory::LeftPlace& left) {
  PAWL_ASSERT(mapped() && length % kPageBytes == 0 && length > 0);
  if (length >= length_) return;
  if (accessible_ > length) {
    tracker_->unwatch(address_ + length, accessible_ - length);
    accessible_ = length;
    file_part_ = std::min(file_part_, length);
  }
  inherited_memory::remove(address_ + length, length_ - length);
  left.take(address_ + length, length_ - length);
  length_ = length;
  std::erase_if(parts_, [&](const ProtectedPart& part) { return part.from >= length; });
  if (!parts_.empty()) parts_.back().to = std::min(parts_.back().to, length);
}

void View::take_over(View& other) {
  PAWL_ASSERT(!mapped());
  address_ = std::exchange(other.address_, nullptr);
  length_ = std::exchange(other.length_, 0);
  protection_ = other.protection_;
  parts_ = std::exchange(other.parts_, {});
  file_offset_ = other.file_offset_;
  file_part_ = std::exchange(other.file_part_, 0);
  accessible_ = std::exchange(other.accessible_, 0);
}

// Of the two, the base backs what it backs of the first, or both: of the rest it need not be known.
void View::append(View& behind) {
  PAWL_ASSERT(mapped() && behind.mapped() && behind.address_ == address_ + length_ &&
              (behind.accessible_ == 0 || accessible_ == length_));
  if (file_part_ == length_) file_part_ += behind.file_part_;
  accessible_ += behind.accessible_;
  length_ += behind.length_;
  behind.address_ = nullptr;
  behind.length_ = behind.file_part_ = behind.accessible_ = 0;
}

Status View::set_size(std::uint64_t size_bytes) noexcept {
  const std::size_t wanted = clip(size_bytes);
  const std::size_t before = accessible_;
  if (wanted == before) return {};
  try {
    return resize_accessible(wanted);
  } catch (const std::bad_alloc&) {
    if (accessible_ == wanted) return {};
    return unless_lost(std::min(before, wanted), std::max(before, wanted),
                       Status::no_memory("no memory to change the size of a window"));
  }
}

Status View::resize_accessible(std::size_t wanted) {
  const std::size_t before = accessible_;
  if (wanted > before) {
    const Status mapped = map_anonymous(before, wanted);
    if (!mapped.ok()) return unless_lost(before, wanted, mapped);
    const Status watched = watch_growth(before, wanted);
    return watched.ok() ? watched : take_back(before, wanted, watched);
  }
  // Watched until it is gone: the kernel may refuse.
  const Status cut = map_past_end(wanted, before, MAP_FIXED);
  if (!cut.ok()) return unless_lost(wanted, before, cut);
  accessible_ = wanted;
  file_part_ = std::min(file_part_, wanted);
  tracker_->unwatch(address_ + wanted, before - wanted);
  (void)protect_parts(wanted, before);  // nobody can touch it
  return {};
}

Status View::show_base() {
  if (const std::size_t from = file_part_; from < accessible_) {
    auto mapped = medium_.map_private(address_ + from, accessible_ - from, protection_,
                                      MAP_FIXED | MAP_NORESERVE, file_offset_ + from);
    if (!mapped.ok()) return unless_lost(from, accessible_, mapped.status());
    file_part_ = accessible_;
    PAWL_TRY(watch_anew(from));
  }
  // Where the base is shown already the memory stays, and with it the program's advice and locks.
  if (file_part_ == 0 || memory::advise(address_, file_part_, MADV_DONTNEED) == 0) return {};
  // It is locked.  Of armed pages markers would stay, and no fault gets past those in locked
  // memory.
  tracker_->unwatch(address_, accessible_);
  (void)memory::advise(address_, file_part_, kDontNeedLocked);
  return watch_anew(0);
}

// From there on the memory is as if just mapped; EIO where that cannot be tracked.
Status View::watch_anew(std::size_t from) try {
  tracker_->unwatch(address_ + from, accessible_ - from);
  Status watched = watch_file(from);
  if (watched.ok()) watched = protect_parts(from, accessible_);
  return watched.ok() ? watched : broken(watched);
} catch (const std::bad_alloc&) {
  return broken(Status::no_memory("no memory to watch a mapping"));
}

// Memory that was just mapped has the window's protection.
Status View::protect_parts(std::size_t from, std::size_t to) {
  for (const ProtectedPart& part : parts_) {
    const std::size_t low = std::max(from, part.from);
    const std::size_t high = std::min(to, part.to);
    if (low < high) PAWL_TRY(protect_memory(low, high, part.protection));
  }
  return {};
}

bool View::show_base_pages(std::uint64_t page, std::uint64_t page_count) const {
  PAWL_ASSERT(page >= first_page() && page + page_count <= file_end_page());
  return memory::advise(bytes(page), page_count * kPageBytes, MADV_DONTNEED) == 0;
}

Status View::protect_memory(std::size_t from, std::size_t to, int protection) {
  const std::size_t tracked = std::clamp(accessible_, from, to);
  // First what is past the end: should the second step fail, no page that can be touched has
  // another protection than the one that is recorded.
  if (tracked < to && memory::protect(address_ + tracked, to - tracked, protection) != 0) {
    return FailedCall{errno, "cannot change the protection of a mapping of " + medium_.path()};
  }
  // The tracker protects what it watches itself, so that its armed pages are never open unseen.
  return tracked > from ? tracker_->protect(address_ + from, tracked - from, protection) : Status{};
}

// The kernel may refuse it in the midst of the range: what was protected so before that is
// protected as it was.  EIO where it cannot be, for a commit would load what it cannot.
Status View::protect_or_leave(std::size_t from, std::size_t to, int protection) {
  Status failure = protect_memory(from, to, protection);
  if (failure.ok()) return failure;
  const auto restore = [&](std::size_t low, std::size_t high, int before) {
    return low < high ? protect_memory(low, high, before) : Status{};
  };
  Status restored;
  std::size_t at = from;
  for (const ProtectedPart& part : parts_) {
    const std::size_t low = std::clamp(part.from, at, to);
    const std::size_t high = std::clamp(part.to, at, to);
    if (restored.ok()) restored = restore(at, low, protection_);
    if (restored.ok()) restored = restore(low, high, part.protection);
    at = high;
  }
  if (restored.ok()) restored = restore(at, to, protection_);
  return restored.ok() ? failure : broken(restored);
}

std::vector<ProtectedPart> View::parts_with(const ProtectedPart& added) const {
  std::vector<ProtectedPart> parts;
  const auto append = [&](const ProtectedPart& part) {
    if (part.from >= part.to || part.protection == protection_) return;
    const bool joins = !parts.empty() && parts.back().to == part.from &&
                       parts.back().protection == part.protection;
    if (joins) {
      parts.back().to = part.to;
    } else {
      parts.push_back(part);
    }
  };
  for (const ProtectedPart& part : parts_)
    append({part.from, std::min(part.to, added.from), part.protection});
  append(added);
  for (const ProtectedPart& part : parts_)
    append({std::max(part.from, added.to), part.to, part.protection});
  return parts;
}

Status View::protect(char* address, std::size_t length, int protection) {
  PAWL_ASSERT(address >= address_ && address + length <= address_ + length_);
  const std::size_t from = static_cast<std::size_t>(address - address_);
  const std::size_t to = from + length;
  if (length == length_) {
    PAWL_TRY(protect_or_leave(from, to, protection));
    parts_.clear();
    protection_ = protection;
    return {};
  }
  // What is not recorded must not be done: a commit would load what it cannot.
  std::vector<ProtectedPart> parts = parts_with({from, to, protection});
  if (parts.size() > kProtectedPartsMax) {
    return Status::failure(
        ENOMEM, PAWL_ERROR_TOO_MANY,
        "the mapping of " + medium_.path() + " has too many parts with protections of their own");
  }
  PAWL_TRY(protect_or_leave(from, to, protection));
  parts_ = std::move(parts);
  // Parts may have come to be the whole.
  if (parts_.size() == 1 && parts_.front().from == 0 && parts_.front().to == length_) {
    protection_ = protection;
    parts_.clear();
  }
  return {};
}

Status View::check_mapped(std::uint64_t first_page, std::uint64_t end_page) const {
  if (is_mapped(first_page * kPageBytes - file_offset_, end_page * kPageBytes - file_offset_))
    return {};
  return Status::failure(EFAULT, PAWL_ERROR_MEMORY_UNMAPPED,
                         "a part of the mapping of " + medium_.path() +
                             " is not mapped any more: the program unmapped it past "
                             "libpawl, and what it stored there is lost; unmap the rest "
                             "and map the file again");
}

int View::protection_at(std::uint64_t page) const {
  const std::size_t at = page * kPageBytes - file_offset_;
  const auto part = std::upper_bound(
      parts_.begin(), parts_.end(), at,
      [](std::size_t wanted, const ProtectedPart& one) { return wanted < one.to; });
  return part != parts_.end() && part->from <= at ? part->protection : protection_;
}

}  // namespace pawl
