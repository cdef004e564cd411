// What one file brings to a record, and takes from it.

#include <sys/mman.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "journal/record_ranges.h"
#include "mapping/implementation.h"
#include "mapping/page_diff.h"
#include "medium/law.h"
#include "medium/size_limit.h"

namespace pawl {

std::byte* Mapping::Implementation::bytes_now(std::uint64_t page) {
  if (view_.accessible(page)) return view_.bytes(page);
  return outside_.at(page)->bytes.data();
}

// A child must not write into the base, where its parent may have committed more since: there the
// record is laid over a copy.
Result<CommittedImage::Page> Mapping::Implementation::committed_page(std::uint64_t page) {
  const bool is_laid_over = waiting_.bytes != 0 && is_in_child();
  if (!is_laid_over) PAWL_TRY(settle_in_place());
  auto committed = image_.page(page);
  if (!is_laid_over || !committed.ok()) return committed;
  CommittedImage::Page copy = image_.copy(committed.value());
  const std::uint64_t start = page * kPageBytes;
  PAWL_TRY(journal::for_ranges(
      waiting_.record(), [&](std::uint64_t offset, std::span<const std::byte> content) -> Status {
        const std::uint64_t from = std::max(offset, start);
        const std::uint64_t end = std::min(offset + content.size(), start + kPageBytes);
        if (from < end)
          std::memcpy(copy->bytes.data() + (from - start), content.data() + (from - offset),
                      end - from);
        return {};
      }));
  return copy;
}

Result<CommittedImage::Page> Mapping::Implementation::page_before(std::uint64_t page) {
  if (image_is_left_locked()) {
    return Status::failure(EAGAIN, PAWL_ERROR_FORKED_CHILD,
                           medium_->path() +
                               " was being committed when this process was made; read it "
                               "through a mapping, or make the process with fork()");
  }
  auto committed = committed_page(page);
  const std::uint64_t start = page * kPageBytes;
  if (!committed.ok() || lowest_size_ >= image_.size() || lowest_size_ >= start + kPageBytes)
    return committed;
  // The record will cut the file to lowest_size_ first.
  CommittedImage::Page cut = image_.copy(committed.value());
  const std::size_t kept = lowest_size_ > start ? lowest_size_ - start : 0;
  std::memset(cut->bytes.data() + kept, 0, kPageBytes - kept);
  return cut;
}

// Committed bytes that can be loaded where they are: of a page that the base has whole, on a medium
// that is memory, where nothing waits to be applied.
const std::byte* Mapping::Implementation::committed_in_place(std::uint64_t page) const {
  const std::uint64_t end = (page + 1) * kPageBytes;
  if (base_in_place_ == nullptr || end > lowest_size_ || end > image_.size()) return nullptr;
  return base_in_place_ + page * kPageBytes;
}

// Whether marked lines are logged without a comparison: to read the page from the base costs more
// than to log a line that did not change.  A page that waits in the overlay, as one that is stored
// to again and again does, is compared there.
bool Mapping::Implementation::marks_are_enough(std::uint64_t page, std::uint64_t lines) const {
  return lines != kAllLines && (page + 1) * kPageBytes <= lowest_size_ &&
         lowest_size_ <= image_.size() && image_.only_in_base(page);
}

Status Mapping::Implementation::collect_changes(journal::RecordBuilder& record, Keep keep) {
  changes_.clear();
  changed_pages_in_hand_ = 0;
  changed_runs_.clear();
  for (const auto& [page, lines] : *in_hand_) {
    const std::uint64_t start = page * kPageBytes;
    if (start >= size_) continue;
    const std::size_t valid = std::min<std::uint64_t>(kPageBytes, size_ - start);
    CommittedImage::Page copy;
    const std::byte* then = committed_in_place(page);
    const bool in_place = then != nullptr;
    if (in_place) {
      // Even a load may take space there.
      if (!is_broken(Law::space_first)) PAWL_TRY(image_.reserve_space_in_place(start, kPageBytes));
    } else if (!marks_are_enough(page, lines)) {
      auto committed = page_before(page);
      if (!committed.ok()) return committed.status();
      copy = std::move(committed.value());
      then = copy->bytes.data();
    }
    const std::byte* now = bytes_now(page);
    PageBuffer closed_page;
    if (view_.accessible(page) && (view_.protection_at(page) & (PROT_READ | PROT_WRITE)) == 0) {
      PAWL_TRY(load_from_view(page, 0, closed_page.bytes));
      now = closed_page.bytes.data();
    }
    std::uint64_t changed_lines = 0;
    const auto take = [&](std::size_t offset, std::size_t length) {
      changed_lines |= line_bits(offset, length);
      return record.add(range_offset(start + offset), {now + offset, length});
    };
    PAWL_TRY(then == nullptr ? for_lines(lines, valid, take)
                             : for_changed_lines(now, then, valid, lines, take));
    if (changed_lines == 0) continue;
    if (page_check_ && view_.accessible(page)) PAWL_TRY(page_check_(page, changed_lines));
    changed_pages_in_hand_ += 1;
    if (in_place) continue;
    changed_runs_.add(page);
    if (keep == Keep::pages) changes_.push_back({page, std::move(copy)});
  }
  return {};
}

// Law 7, for whole runs: pages that are asked for one by one lie scattered on the disk.
Status Mapping::Implementation::take_space() {
  const std::array ends{lowest_size_, size_};
  PAWL_TRY(image_.check_space_where_shared(
      changed_runs_.runs(), std::span(ends).first(size_is_pending() ? ends.size() : 0)));
  for (const PageRun& run : changed_runs_.runs()) {
    if (is_broken(Law::space_first)) break;
    PAWL_TRY(image_.reserve_space(run.first * kPageBytes, run.count * kPageBytes));
  }
  // A size that no file can have must be refused now, not when the record is applied.
  if (size_ > image_.size()) PAWL_TRY(image_.reserve_space(size_ - 1, 1));
  std::uint64_t written_end = size_ > image_.size() ? size_ : 0;
  if (!changed_runs_.runs().empty())
    written_end = std::max(written_end, changed_runs_.runs().back().end() * kPageBytes);
  return written_end == 0 ? Status{} : check_size_limit(std::min(written_end, size_));
}

// The limit may have changed since the file grew, or since the journal was made.
Status Mapping::Implementation::check_size_limit(std::uint64_t written_end) const {
  const std::uint64_t limit = file_size_limit();
  const bool is_memory = base_in_place_ != nullptr;  // stores need no leave
  if (written_end <= limit && (is_memory || journal_->size_bytes() <= limit)) return {};
  return Status::failure(EFBIG, PAWL_ERROR_FILE_SIZE_LIMIT,
                         "the commit has to write to " + medium_->path() +
                             ", or to its journal, past the " + std::to_string(limit) +
                             " bytes that this process may (RLIMIT_FSIZE); raise the "
                             "limit and call again");
}

// The image takes the bytes from the record, not from memory: what is logged is what is committed.
// Out of memory here, the image is behind the journal: the next open brings it up.
bool Mapping::Implementation::patch_image(std::span<const std::byte> record,
                                          std::uint64_t sequence) {
  try {
    patch_image_with(record, sequence);
    return true;
  } catch (const std::bad_alloc&) {
    note_final(Status::no_memory("no memory for the committed image"));
    return false;
  }
}

void Mapping::Implementation::patch_image_with(std::span<const std::byte> record,
                                               std::uint64_t sequence) {
  if (lowest_size_ < image_.size()) image_.truncate(lowest_size_, sequence);
  image_.set_size(size_, sequence);
  auto change = changes_.begin();
  const Status patched = journal::for_ranges(
      record, [&](std::uint64_t offset, std::span<const std::byte> content) -> Status {
        if (number_ != 0) {
          if (journal::file_number(offset) != number_) return {};
          offset = journal::offset_in_file(offset);
        }
        while (!content.empty()) {
          const std::uint64_t in_page = offset % kPageBytes;
          const std::size_t piece = std::min<std::size_t>(kPageBytes - in_page, content.size());
          while (change != changes_.end() && change->page < offset / kPageBytes) ++change;
          PAWL_ASSERT(change != changes_.end() && change->page == offset / kPageBytes);
          image_.patch(change->page, change->committed, in_page, content.first(piece), sequence);
          content = content.subspan(piece);
          offset += piece;
        }
        return {};
      });
  PAWL_ASSERT(patched.ok());
  changes_.clear();
}

}  // namespace pawl
