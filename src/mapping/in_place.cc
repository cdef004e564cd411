// The way of a durable record into a base that is memory.
//
// What is copied past the caches is waited for at the next fence, and by each locked instruction
// before that.  So that a commit waits once, its bytes go into the base when the next commit
// begins, and share the fence of that one's record.  Until then the record waits here.

#include <sys/mman.h>
#include <algorithm>
#include <cerrno>
#include <new>

#include "journal/record_ranges.h"
#include "mapping/implementation.h"
#include "mapping/place_in_hand.h"
#include "medium/cache_lines.h"
#include "medium/law.h"

namespace pawl {

// Of pages that the base has whole, and whose size does not change.
bool Mapping::Implementation::lines_are_enough(const TakenPages& pages) const {
  if (base_in_place_ == nullptr || pages.empty() || !tracker_->knows_lines()) return false;
  // What was written elsewhere is committed, too; and what had no mark.
  if (!outside_.empty() || options_.verify) return false;
  if (size_is_pending() || (pages.back().page + 1) * kPageBytes > size_) return false;
  if (pages.size() > kStagedPagesMax) return false;
  // They are in order.
  if (!view_.mapped() || pages.front().page < view_.first_page() ||
      pages.back().page >= view_.accessible_end_page())
    return false;
  const auto is_open = [](int protection) { return (protection & (PROT_READ | PROT_WRITE)) != 0; };
  if (view_.has_one_protection()) return is_open(view_.protection());
  return std::all_of(pages.begin(), pages.end(), [&](const StoredLines& stored) {
    return is_open(view_.protection_at(stored.page));
  });
}

// No page is read, compared or kept: to load a committed line from slow memory costs more than to
// log one that did not change.
Status Mapping::Implementation::record_lines(const TakenPages& pages) {
  lines_record_.begin_anew();
  for (const auto& [page, lines] : pages) {
    const std::uint64_t start = page * kPageBytes;
    if (!is_broken(Law::space_first)) PAWL_TRY(image_.reserve_space_in_place(start, kPageBytes));
    const std::byte* const now = view_.bytes(page);
    PAWL_TRY(for_lines(lines, kPageBytes, [&](std::size_t offset, std::size_t length) {
      return lines_record_.add(start + offset, {now + offset, length});
    }));
    if (page_check_) PAWL_TRY(page_check_(page, lines));
  }
  changed_pages_in_hand_ = pages.size();
  bytes_changed_in_hand_ = lines_record_.content_bytes();
  return {};
}

// A whole commit of taken_, of which lines_are_enough().  Behind its fence nearly nothing is left
// to do: a processor goes on behind one that it still waits for, until it has more to store than it
// can hold back.  What the program does next is then done meanwhile.
Status Mapping::Implementation::commit_lines(std::uint64_t first_page, std::uint64_t end_page) {
  dirty_pages_ += taken_.size();
  // First, so that it is under way while the record is made.
  write_waiting();
  std::uint64_t sequence = 0;
  Status status;
  try {
    status = record_lines(taken_);
    if (status.ok()) status = write_in_place(lines_record_, sequence);
  } catch (const std::bad_alloc&) {
    status = Status::no_memory("no memory for the commit; free some and call again");
  }
  if (!status.ok()) {
    if (!is_broken(Law::keep_what_failed)) keep_pages(taken_);
    return status;
  }
  private_pages_ += taken_.size();
  let_wait(sequence, lines_record_);
  PAWL_TRY(flush_in_place(sequence));
  if (has_more_to_do()) {
    Implementation* const own = this;
    end_commit({&own, 1}, first_page, end_page);
  }
  return {};
}

// Where a commit waits for no device there is nothing to queue for.
Status Mapping::Implementation::commit_in_place(journal::RecordBuilder& record) {
  const bool is_resized = size_is_pending();
  std::uint64_t sequence = 0;
  write_waiting();
  PAWL_TRY(write_in_place(record, sequence));
  if (!is_resized) let_wait(sequence, record);
  PAWL_TRY(flush_in_place(sequence));
  if (is_resized && !is_broken(Law::apply_after_flush)) {
    if (const Status applied = apply_in_place(record.block(), sequence); !applied.ok())
      note_final(applied);  // the next open completes it
  }
  return {};
}

// All of a commit but its fence.
Status Mapping::Implementation::write_in_place(journal::RecordBuilder& record,
                                               std::uint64_t& sequence) {
  auto place = journal_->reserve(record.record_bytes());
  if (!place) {
    auto waited = place_for(record.record_bytes());
    if (!waited.ok()) return waited.status();
    place = waited.value();
  }
  sequence = place->sequence;
  PlaceInHand in_hand(*journal_, *place);
  PAWL_TRY(record.finish(header_for(*place)));
  PAWL_ASSERT(record.block().size() == place->bytes);
  if (is_broken(Law::apply_after_flush)) {
    PAWL_TRY(settle_in_place());
    PAWL_TRY(apply_in_place(record.block(), sequence));
  }
  if (const Status written = journal_->write(*place, 0, record.block()); !written.ok())
    return could_not_write(written, in_hand);
  in_hand.keep();
  Implementation* const own = this;
  count({&own, 1}, *place);
  return {};
}

// One write and one flush (law 2), which the record that waited before shares.
Status Mapping::Implementation::flush_in_place(std::uint64_t sequence) {
  if (Status flushed = journal_->flush(); !flushed.ok()) {
    // It must not reach the base: nobody knows whether it is durable.
    waiting_.bytes = 0;
    note_final(flushed);
    return usable();
  }
  log_->set_durable(sequence);
  return {};
}

// The bytes of the record that waits, durable long since, into the base; they are there behind the
// next fence.
void Mapping::Implementation::write_waiting() {
  if (waiting_.bytes == 0) return;
  PAWL_ASSERT(owner_.has_this_memory());  // the record is an old one in a child
  MediumFile& base = medium_->base();
  const Status written = journal::for_ranges(
      waiting_.record(), [&base](std::uint64_t offset, std::span<const std::byte> content) {
        base.write_in_place(offset, content);
        return Status{};
      });
  PAWL_ASSERT(written.ok());
}

// Takes the place of the one that write_waiting() has written.
void Mapping::Implementation::let_wait(std::uint64_t sequence, journal::RecordBuilder& record) {
  if (is_broken(Law::apply_after_flush)) return;
  if (waiting_.bytes != 0) image_.applied_in_place(waiting_.sequence);
  waiting_.bytes = record.block().size();
  waiting_.sequence = sequence;
  record.swap_buffer(waiting_.memory);
}

// What reads the base, or lets go of records, comes here first.
Status Mapping::Implementation::settle_in_place() {
  if (waiting_.bytes == 0) return {};
  const Status applied = apply_in_place(waiting_.record(), waiting_.sequence);
  waiting_.bytes = 0;
  if (!applied.ok()) note_final(applied);  // the next open completes it
  return applied;
}

Status Mapping::Implementation::apply_in_place(std::span<const std::byte> record,
                                               std::uint64_t sequence) {
  PAWL_ASSERT(owner_.has_this_memory());
  const journal::RecordHeader header = journal::header_of(record);
  Implementation* const own = this;
  const BaseCut cut({&own, 1});
  PAWL_TRY(image_.begin_direct(header.truncate_to, header.file_size, sequence));
  PAWL_TRY(
      journal::for_ranges(record, [&](std::uint64_t offset, std::span<const std::byte> content) {
        return image_.direct(offset, content);
      }));
  return image_.end_direct(sequence);
}

}  // namespace pawl
