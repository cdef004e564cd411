// The file as read, write and ftruncate see it, coherent with the window.

#include <sys/mman.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "mapping/implementation.h"
#include "medium/law.h"
#include "medium/memory_functions.h"
#include "medium/size_limit.h"

namespace pawl {

// A load of a hole, and a store to one, take space in a file system that is memory, and where it is
// full they raise SIGBUS.  What Pawl does in the program's name must not: it asks first.  False:
// the page of the base cannot be had.
Result<bool> Mapping::Implementation::can_be_touched(const View& view, std::uint64_t page) const {
  if (!image_is_left_locked() && image_.has_space(page * kPageBytes, kPageBytes)) return true;
  // Kernels before 5.14 do not know the advice.
  while (memory::advise(view.bytes(page), kPageBytes, MADV_POPULATE_READ) != 0 && errno != EINVAL) {
    if (errno == EFAULT) return false;
    if (errno != EINTR && errno != EAGAIN)
      return FailedCall{errno, "cannot load a page of " + medium_->path()};
  }
  return true;
}

// What the program may not store to or load from, Pawl opens for the moment.
Status Mapping::Implementation::store_in(View& view, std::uint64_t offset,
                                         std::span<const std::byte> from) const {
  while (!from.empty()) {
    const std::uint64_t page = offset / kPageBytes;
    const std::size_t in_page = offset % kPageBytes;
    const std::size_t piece = std::min(from.size(), kPageBytes - in_page);
    const int protection = view.protection_at(page);
    const bool closed = (protection & PROT_WRITE) == 0;
    char* const start = reinterpret_cast<char*>(view.bytes(page));
    if (closed) PAWL_TRY(view.open_page(page, PROT_READ | PROT_WRITE));
    auto touched = can_be_touched(view, page);
    if (touched.ok() && touched.value()) {
      std::memmove(start + in_page, from.data(), piece);
      tracker_->note_store(start + in_page, piece);
    }
    if (closed) PAWL_TRY(view.open_page(page, protection));
    if (!touched.ok()) return touched.status();
    if (!touched.value()) {
      return FailedCall{ENOSPC, "cannot store to a hole of " + medium_->path() +
                                    ", which takes space in its file system"};
    }
    from = from.subspan(piece);
    offset += piece;
  }
  return {};
}

Status Mapping::Implementation::load_from_view(std::uint64_t page, std::size_t in_page,
                                               std::span<std::byte> into) {
  PAWL_ASSERT(in_page + into.size() <= kPageBytes);
  const int protection = view_.protection_at(page);
  const bool closed = (protection & (PROT_READ | PROT_WRITE)) == 0;
  if (closed) PAWL_TRY(view_.open_page(page, PROT_READ));
  auto touched = can_be_touched(view_, page);
  if (touched.ok() && touched.value())
    std::memmove(into.data(), view_.bytes(page) + in_page, into.size());
  if (closed) PAWL_TRY(view_.open_page(page, protection));
  if (!touched.ok()) return touched.status();
  if (touched.value()) return {};
  // Nothing was stored to it: to store takes the page of the base, too.
  auto committed = page_outside(page);
  if (!committed.ok()) return committed.status();
  std::memcpy(into.data(), committed.value()->bytes.data() + in_page, into.size());
  return {};
}

// As page_before(), for a call that has not asked yet whether the base's number is still its own. A
// child has not the lock, without which nothing is written.
Result<CommittedImage::Page> Mapping::Implementation::page_outside(std::uint64_t page) {
  if (!is_in_child()) PAWL_TRY(medium_->base().check_open());
  return page_before(page);
}

Status Mapping::Implementation::truncate_locked(std::uint64_t size_bytes) {
  if (size_bytes == size_) return {};
  PAWL_TRY(medium_->base().check_open());
  if (size_bytes < size_ && is_broken(Law::shrink_with_the_commit))
    PAWL_TRY(medium_->base().resize(size_bytes));
  const bool is_possible = size_bytes <= size_bytes_max();
  if (!is_possible || (size_bytes > size_ && size_bytes > file_size_limit())) {
    return Status::failure(EFBIG, is_possible ? PAWL_ERROR_FILE_SIZE_LIMIT : PAWL_ERROR_TOO_LARGE,
                           medium_->path() + " cannot grow to " + std::to_string(size_bytes) +
                               " bytes: more than a file or this process's limit allows");
  }
  if (size_bytes > size_) PAWL_TRY(medium_->base().check_size(size_bytes));
  // The page in which the smaller of the two sizes lies reads as zeros behind it.
  const std::uint64_t cut = std::min(size_bytes, size_);
  const std::uint64_t cut_page = cut / kPageBytes;
  const std::size_t kept = cut % kPageBytes;
  static constexpr std::array<std::byte, kPageBytes> kZeros{};
  std::vector<std::byte> rest;
  if (kept != 0 && view_.accessible(cut_page)) {
    rest.resize(kPageBytes - kept);
    PAWL_TRY(load_from_view(cut_page, kept, rest));
    // What is zero already is not stored: it would make the page dirty.
    if (std::memcmp(rest.data(), kZeros.data(), rest.size()) == 0) rest.clear();
    PAWL_TRY(store_in_view(cut, std::span(kZeros).first(rest.size())));
  }
  if (view_.mapped()) {
    Status changed = view_.set_size(size_bytes);
    if (!changed.ok()) {
      const Status restored = store_in_view(cut, rest);
      if (!restored.ok())
        changed = Status::failure(EIO, PAWL_ERROR_MAPPING_BROKEN, restored.text());
      // Part of the view may be lost then.
      if (changed.error_number() == EIO) note_final(changed);
      return changed;
    }
  }
  if (const auto written = outside_.find(cut_page); written != outside_.end() && kept != 0)
    std::memset(written->second->bytes.data() + kept, 0, kPageBytes - kept);
  if (size_bytes < size_) {
    lowest_size_ = std::min(lowest_size_, size_bytes);
    const std::uint64_t end_page = round_up(size_bytes, kPageBytes) / kPageBytes;
    outside_.erase(outside_.lower_bound(end_page), outside_.end());
    pending_.drop(end_page, ~std::uint64_t{0});  // takes no memory
  }
  size_ = size_bytes;
  return {};
}

Result<std::size_t> Mapping::Implementation::read_locked(std::uint64_t offset,
                                                         std::span<std::byte> into) {
  if (offset >= size_) return std::size_t{0};
  const std::size_t count = std::min<std::uint64_t>(into.size(), size_ - offset);
  for (std::size_t done = 0; done < count;) {
    const std::uint64_t page = (offset + done) / kPageBytes;
    const std::size_t in_page = (offset + done) % kPageBytes;
    const std::size_t piece = std::min(count - done, kPageBytes - in_page);
    if (view_.accessible(page)) {
      PAWL_TRY(load_from_view(page, in_page, into.subspan(done, piece)));
    } else if (const auto written = outside_.find(page); written != outside_.end()) {
      std::memcpy(into.data() + done, written->second->bytes.data() + in_page, piece);
    } else {
      auto committed = page_outside(page);
      if (!committed.ok()) return committed.status();
      std::memcpy(into.data() + done, committed.value()->bytes.data() + in_page, piece);
    }
    done += piece;
  }
  return count;
}

Status Mapping::Implementation::write_locked(std::uint64_t offset,
                                             std::span<const std::byte> from) {
  if (from.empty()) return {};
  if (offset > size_bytes_max() - from.size())
    return Status::failure(EFBIG, PAWL_ERROR_TOO_LARGE,
                           "a write to " + medium_->path() + " ends past what a file can hold");
  const std::uint64_t end = offset + from.size();
  PAWL_TRY(have_outside(offset / kPageBytes, round_up(end, kPageBytes) / kPageBytes));
  const std::uint64_t size_before = size_;
  if (end > size_) PAWL_TRY(truncate_locked(end));
  const Status put = put_locked(offset, from);
  if (!put.ok() && size_ > size_before) {
    [[maybe_unused]] const Status cut = truncate_locked(size_before);
  }
  return put;
}

// Buffers for the pages that lie outside of the window: all, or none.
Status Mapping::Implementation::have_outside(std::uint64_t first_page, std::uint64_t end_page) {
  decltype(outside_) added;
  for (std::uint64_t page = first_page; page < end_page; ++page) {
    if (view_.covers(page) || outside_.contains(page)) continue;
    auto committed = page_outside(page);
    if (!committed.ok()) return committed.status();
    added.emplace(page, std::make_unique<PageBuffer>(*committed.value()));
  }
  outside_.merge(added);
  return {};
}

Status Mapping::Implementation::put_locked(std::uint64_t offset, std::span<const std::byte> from) {
  while (!from.empty()) {
    const std::uint64_t page = offset / kPageBytes;
    const std::size_t in_page = offset % kPageBytes;
    std::size_t piece = std::min(from.size(), kPageBytes - in_page);
    if (view_.accessible(page)) {
      piece =
          std::min<std::uint64_t>(from.size(), view_.accessible_end_page() * kPageBytes - offset);
      PAWL_TRY(store_in_view(offset, from.first(piece)));
    } else {
      std::memcpy(outside_.at(page)->bytes.data() + in_page, from.data(), piece);
    }
    from = from.subspan(piece);
    offset += piece;
  }
  return {};
}

}  // namespace pawl
