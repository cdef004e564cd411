// The way of a durable record into a base that is memory.
//
// What is copied past the caches is waited for at the next fence, and by each locked instruction
// before that.  So that a commit waits once, its bytes go into the base when the next commit copies
// its own record, and share that record's fence.  Until then the record waits here.

#include <sys/mman.h>
#include <algorithm>
#include <cerrno>

#include "journal/record_ranges.h"
#include "mapping/implementation.h"
#include "mapping/place_in_hand.h"
#include "medium/cache_lines.h"
#include "medium/law.h"

namespace pawl {

// Of pages that the base has whole, and whose size does not change.
bool Mapping::Implementation::lines_are_enough(const TakenPages& pages) const {
  if (base_in_place_ == nullptr || !tracker_->knows_lines() || pages.empty()) return false;
  if (size_is_pending() || (pages.back().page + 1) * kPageBytes > size_) return false;
  if (pages.size() > kStagedPagesMax) return false;
  return std::all_of(pages.begin(), pages.end(), [this](const StoredLines& stored) {
    return view_.accessible(stored.page) &&
           (view_.protection_at(stored.page) & (PROT_READ | PROT_WRITE)) != 0;
  });
}

// No page is read, compared or kept: to load a committed line from slow memory costs more than to
// log one that did not change.
Status Mapping::Implementation::commit_lines(const TakenPages& pages) {
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
  return commit_in_place(lines_record_);
}

// Where a commit waits for no device there is nothing to queue for.
Status Mapping::Implementation::commit_in_place(journal::RecordBuilder& record) {
  auto place = place_for(record.record_bytes());
  if (!place.ok()) return place.status();
  PlaceInHand in_hand(*journal_, place.value());
  PAWL_TRY(record.finish(header_for(place.value())));
  PAWL_ASSERT(record.block().size() == place.value().bytes);
  if (Status logged = log_in_place(place.value(), record.block()); !logged.ok()) {
    if (logged.error_number() != EIO) return logged;
    in_hand.keep();
    note_final(logged);
    return usable();
  }
  in_hand.keep();
  log_->set_durable(place.value().sequence);
  let_wait_in_place(place.value(), record);
  Implementation* const own = this;
  count({&own, 1}, place.value());
  return {};
}

// One write and one flush (law 2) of the record; of the one that waited, durable long since, the
// bytes are in the base then, too.
Status Mapping::Implementation::log_in_place(const journal::Place& place,
                                             std::span<const std::byte> record) {
  if (is_broken(Law::apply_after_flush)) {
    PAWL_TRY(settle_in_place());
    PAWL_TRY(apply_in_place(record, place.sequence));
  }
  PAWL_TRY(journal_->write(place, 0, record));
  if (waiting_.bytes == 0) return journal_->flush();
  PAWL_TRY(journal::for_ranges(waiting_.record(),
                               [this](std::uint64_t offset, std::span<const std::byte> content) {
                                 medium_->base().write_in_place(offset, content);
                                 return Status{};
                               }));
  PAWL_TRY(journal_->flush());
  image_.applied_in_place(waiting_.sequence);
  waiting_.bytes = 0;
  return {};
}

// After log_in_place() of it.  One that changes the file's size goes into the base at once.
void Mapping::Implementation::let_wait_in_place(const journal::Place& place,
                                                journal::RecordBuilder& record) {
  if (is_broken(Law::apply_after_flush)) return;
  const journal::RecordHeader header = journal::header_of(record.block());
  if (header.truncate_to == journal::kNoTruncation && header.file_size == image_.size()) {
    PAWL_ASSERT(waiting_.bytes == 0);
    waiting_.bytes = record.block().size();
    waiting_.sequence = place.sequence;
    record.swap_buffer(waiting_.memory);
    return;
  }
  if (const Status applied = apply_in_place(record.block(), place.sequence); !applied.ok())
    note_final(applied);  // the next open completes it
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
  const journal::RecordHeader header = journal::header_of(record);
  PAWL_TRY(image_.begin_direct(header.truncate_to, header.file_size, sequence));
  PAWL_TRY(
      journal::for_ranges(record, [&](std::uint64_t offset, std::span<const std::byte> content) {
        return image_.direct(offset, content);
      }));
  return image_.end_direct(sequence);
}

}  // namespace pawl
