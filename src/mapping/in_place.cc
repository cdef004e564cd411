// The way of a durable record into a base that is memory.
//
// What is copied past the caches is waited for at the next fence, and by each locked instruction
// before that.  So that a commit waits once, its bytes go into the base when the next commit copies
// its own record, and share that record's fence.  Until then the record waits here.

#include "journal/record_ranges.h"
#include "mapping/implementation.h"
#include "medium/law.h"

namespace pawl {

// One write and one flush (law 2) of the record; of the one that waited, durable long since, the
// bytes are in the base then, too.
Status Mapping::Implementation::log_in_place(const journal::Place& place,
                                             std::span<const std::byte> record) {
  if (is_broken(Law::apply_after_flush)) {
    PAWL_TRY(settle_in_place());
    PAWL_TRY(apply_in_place(record, place.sequence));
  }
  if (waiting_.bytes == 0) return journal_->write_durably(place, record);
  PAWL_TRY(journal_->write_durably(place, record, [this] {
    return journal::for_ranges(waiting_.record(),
                               [this](std::uint64_t offset, std::span<const std::byte> content) {
                                 medium_->base().write_in_place(offset, content);
                                 return Status{};
                               });
  }));
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
    std::swap(record_memory_, waiting_.memory);
    waiting_.bytes = record.block().size();
    waiting_.sequence = place.sequence;
    waiting_.memory = record.take_buffer();
    return;
  }
  if (const Status applied = apply_in_place(record.block(), place.sequence); !applied.ok())
    note_final(applied);  // the next open completes it
  record_memory_ = record.take_buffer();
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
