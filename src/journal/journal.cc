#include "journal/journal.h"

#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "journal/page_buffer.h"
#include "medium/law.h"
#include "medium/random_bytes.h"

namespace pawl::journal {
namespace {

constexpr std::size_t kZeroPieceBytesMax = std::size_t{1} << 20;
static_assert(kZeroPieceBytesMax >= kGrowthPieceBytes);
constexpr std::size_t kZeroPieceBytesMin = std::size_t{64} << 10;
constexpr std::uint64_t kExtendPieceBytesMax = std::uint64_t{64} << 20;

// Nothing was written: the same call may succeed later.
Status cannot_grow(const Status& why) {
  const std::string text = "the journal cannot grow for this commit: " + why.text();
  if (is_want_of_space(why.error_number()))
    return Status::failure(
        why.error_number(), PAWL_ERROR_COMMIT_TOO_LARGE,
        text + (why.advises_to_free_space() ? "" : "; free some space and call again") +
            ", or commit more often");
  return why.with_text(why.error_number() == EFBIG
                           ? text + "; raise the limit and call again, or commit more often"
                           : text);
}

}  // namespace

Result<JournalId> random_journal_id() {
  JournalId id{};
  PAWL_TRY(draw_random(id));
  return id;
}

Journal::Journal(std::unique_ptr<MediumFile> file, const Header& header, std::uint64_t size_bytes)
    : file_(std::move(file)),
      id_(header.journal_id),
      epoch_(header.epoch),
      block_bytes_(header.block_bytes),
      header_(header),
      bytes_max_(size_bytes),
      size_bytes_(size_bytes),
      ring_bytes_(size_bytes),
      written_end_(size_bytes),
      next_sequence_(header.tail_sequence),
      released_sequence_(header.tail_sequence - 1) {}

Result<std::unique_ptr<Journal>> Journal::format(
    std::unique_ptr<MediumFile> file, const JournalId& id, const FileIdentity& identity,
    std::uint64_t generation, std::uint64_t first_sequence, std::uint64_t size_bytes,
    std::uint64_t block_bytes, std::vector<std::byte> list) {
  PAWL_ASSERT(size_bytes % kBlockBytes == 0 && size_bytes > kAreaStart);
  PAWL_ASSERT(is_block_bytes(block_bytes));
  auto present = file->size();
  if (!present.ok()) return present.status();
  auto written = file->written_prefix_bytes();
  if (!written.ok()) return written.status();
  Header header;
  header.generation = generation;
  header.journal_id = id;
  PAWL_TRY(draw_random(std::as_writable_bytes(std::span(&header.epoch, 1))));
  header.file_inode = identity.inode;
  header.file_birth_time_ns = identity.birth_time_ns;
  header.tail_sequence = first_sequence;
  header.writer_process = static_cast<std::uint64_t>(::getpid());
  header.journal_bytes = size_bytes;
  header.block_bytes = block_bytes;
  if (!list.empty()) header.version = kVersionOfGroups;
  std::unique_ptr<Journal> journal(new Journal(std::move(file), header, size_bytes));
  journal->list_ = std::move(list);
  if (present.value() == 0) {
    // Nobody meets it before it has its name, and with that it is durable.
    PAWL_TRY(journal->file_->reserve(0, size_bytes));
    Header first;
    auto blocks = journal->next_header(first, kAreaStart, first_sequence);
    if (!blocks.ok()) return blocks.status();
    PAWL_TRY(journal->write_zeros(0, size_bytes, &blocks.value()));
    journal->is_durable(first);
    return journal;
  }
  // What is there already may have holes, or share its blocks with a copy.
  const std::uint64_t present_end = round_down(std::min(present.value(), size_bytes), kBlockBytes);
  std::uint64_t unwritten = round_down(std::min(written.value(), present_end), kBlockBytes);
  if (unwritten < size_bytes) PAWL_TRY(journal->file_->reserve(unwritten, size_bytes - unwritten));
  PAWL_TRY(journal->take_own_blocks(0, unwritten));
  if (unwritten < present_end && present_end >= kAreaStart) {
    // First no record counts any more: a crash among the zeros would leave some, and not the later.
    journal->header_.journal_bytes = present_end;
    PAWL_TRY(journal->write_header(kAreaStart, first_sequence));
    journal->header_.journal_bytes = size_bytes;
    unwritten = std::max(unwritten, kAreaStart);
  }
  if (unwritten < size_bytes) {
    PAWL_TRY(journal->write_zeros(unwritten, size_bytes));
    // Before the header that says so: it must not become durable without them.
    PAWL_TRY(journal->file_->flush());
  }
  PAWL_TRY(journal->write_header(kAreaStart, first_sequence));
  // Not before: to the header of a longer journal this one was cut.
  if (present.value() > size_bytes) PAWL_TRY(journal->cut(size_bytes));
  return journal;
}

// Every block is written once, so that a commit's flush has no metadata to write.
Status Journal::write_zeros(std::uint64_t offset, std::uint64_t end, HeaderBlocks* header) {
  PAWL_ASSERT(offset < end);
  std::uint64_t piece_max = std::min<std::uint64_t>(kZeroPieceBytesMax, end - offset);
  AlignedBuffer zeros;
  // Smaller pieces take longer, and less memory.
  while (!zeros.grow(piece_max, 0)) {
    if (piece_max <= kZeroPieceBytesMin)
      return Status::failure(ENOMEM, "no memory to write the journal");
    piece_max /= 2;
  }
  std::memset(zeros.data(), 0, piece_max);
  while (offset < end) {
    const std::uint64_t piece = std::min<std::uint64_t>(piece_max, end - offset);
    if (header != nullptr) {
      PAWL_ASSERT(header->offset >= offset && header->offset + header->bytes <= offset + piece);
      std::memcpy(zeros.data() + header->offset - offset, header->memory.data(), header->bytes);
    }
    PAWL_TRY(file_->write(offset, {zeros.data(), piece}));
    if (header != nullptr) std::memset(zeros.data(), 0, piece);
    header = nullptr;
    offset += piece;
  }
  return {};
}

template <class Io>
Status Journal::final_if_it_fails(const Io& io) {
  Status failed;
  if (!has_failed_.load(std::memory_order_acquire)) {
    try {
      failed = io();
      if (failed.ok()) return failed;
      if (failed.error_number() != EIO) {
        if (is_broken(Law::failed_write_is_final)) return failed;
        failed = Status::failure(EIO, failed.text());
      }
    } catch (const std::bad_alloc&) {
      // What succeeds takes no memory: this was the text of a failure, and which is not known.
      failed = Status::failure(EIO, "out of memory");  // so short that it takes none
    }
  }
  const std::lock_guard lock(failure_mutex_);
  if (failure_.ok()) failure_ = std::move(failed);
  has_failed_.store(true, std::memory_order_release);
  return failure_;
}

template <class Io>
Status Journal::flush_once(const Io& io) {
  const std::lock_guard lock(flush_mutex_);
  return final_if_it_fails(io);
}

Result<Journal::HeaderBlocks> Journal::next_header(Header& next, std::uint64_t tail_offset,
                                                   std::uint64_t tail_sequence) const {
  next = header_;
  next.generation += 1;
  next.tail_offset = tail_offset;
  next.tail_sequence = tail_sequence;
  next.crc32c = header_checksum(next, list_);
  HeaderBlocks blocks;
  blocks.bytes = round_up(sizeof next + list_.size(), block_bytes_);
  PAWL_ASSERT(blocks.bytes <= kJournalSlotBytes);
  if (!blocks.memory.grow(blocks.bytes, 0))
    return Status::failure(ENOMEM, "no memory for the journal's header");
  std::memset(blocks.memory.data(), 0, blocks.bytes);
  std::memcpy(blocks.memory.data(), &next, sizeof next);
  if (!list_.empty()) std::memcpy(blocks.memory.data() + sizeof next, list_.data(), list_.size());
  // The slots alternate: a torn write leaves the other one.
  const std::uint64_t slot = is_broken(Law::two_headers) ? 0 : next.generation % kJournalSlots;
  blocks.offset = slot * kJournalSlotBytes;
  return blocks;
}

void Journal::is_durable(const Header& header) {
  header_ = header;
  const std::lock_guard lock(mutex_);
  durable_generation_ = static_cast<std::uint32_t>(header.generation);
}

Status Journal::write_header(std::uint64_t tail_offset, std::uint64_t tail_sequence) {
  Header next;
  auto blocks = next_header(next, tail_offset, tail_sequence);
  if (!blocks.ok()) return blocks.status();
  PAWL_TRY(take_own_blocks(0, kAreaStart));
  // Whatever it counts on is durable already.
  PAWL_TRY(write_durably(blocks.value().offset, blocks.value().span()));
  is_durable(next);
  return {};
}

Status Journal::write_header_with(std::uint64_t journal_bytes, std::uint64_t tail_offset,
                                  std::uint64_t tail_sequence) {
  const std::uint64_t before = std::exchange(header_.journal_bytes, journal_bytes);
  Status written = write_header(tail_offset, tail_sequence);
  if (!written.ok()) header_.journal_bytes = before;
  return written;
}

// Durable before the file grows again: a record there is flushed alone, and must not be cut off by
// what is still on its way.
Status Journal::cut(std::uint64_t size_bytes) {
  PAWL_TRY(file_->resize(size_bytes));
  return flush();
}

Status Journal::change_list(std::vector<std::byte> list) {
  const std::lock_guard lock(header_mutex_);
  PAWL_ASSERT(!list.empty() && !list_.empty());
  list_.swap(list);
  Status written;
  try {
    written = write_header(header_.tail_offset, header_.tail_sequence);
  } catch (const std::bad_alloc&) {
    written = Status::no_memory("no memory for the journal's header");
  }
  // The next header must not tell of a change that failed.
  if (!written.ok()) list_.swap(list);
  return written;
}

void Journal::count_used() {
  if (released_sequence_ + 1 == next_sequence_)
    return used_bytes_.store(0, std::memory_order_relaxed);
  const std::uint64_t tail = records_[released_sequence_ + 1 - records_.front().sequence].offset;
  used_bytes_.store(head_ > tail ? head_ - tail : (round_end_ - tail) + (head_ - kAreaStart),
                    std::memory_order_relaxed);
}

void Journal::ask_for_growth() {
  if (ring_bytes_ < bytes_max_ && !growth_is_refused_)
    wants_growth_.store(true, std::memory_order_relaxed);
}

std::uint64_t Journal::last_sequence() const {
  const std::lock_guard lock(mutex_);
  return next_sequence_ - 1;
}

std::optional<Place> Journal::reserve(std::uint64_t record_bytes) {
  PAWL_ASSERT(record_bytes > 0 && (record_bytes & (block_bytes_ - 1)) == 0);
  const std::lock_guard lock(mutex_);
  const std::uint64_t ring = ring_bytes_;
  std::uint64_t offset = head_;
  if (!goes_round()) {
    // Free: from the head to the end, which a large record may have passed, and from the front to
    // the oldest record.
    if (head_ + record_bytes > ring) {
      const std::uint64_t front_end =
          std::min(ring, records_.empty() ? head_ : records_.front().offset);
      // A ring that goes round cannot grow: for what is held, half of it must be free for that.
      const bool has_room =
          !grows_rather_than_round_ && front_end - kAreaStart >= (ring - kAreaStart) / 2;
      const bool may_go_round = records_.empty() || has_room || !is_held();
      if (front_end - kAreaStart < record_bytes || !may_go_round) {
        ask_for_growth();
        return std::nullopt;
      }
      offset = kAreaStart;
      round_end_ = std::max(ring, head_);
      growth_is_refused_ = false;
    }
  } else if (records_.front().offset - head_ < record_bytes) {
    ask_for_growth();
    return std::nullopt;
  }
  const Place place{offset, record_bytes, next_sequence_};
  records_.push_back({place.sequence, place.offset, place.bytes});
  const bool follows = used_bytes() > 0 && offset == head_;
  head_ = offset + record_bytes;
  next_sequence_ += 1;
  PAWL_ASSERT(head_ <= size_bytes_);
  if (follows)
    used_bytes_.store(used_bytes() + record_bytes, std::memory_order_relaxed);
  else
    count_used();
  if (used_bytes() * 2 > ring - kAreaStart) ask_for_growth();
  return place;
}

void Journal::cancel(const Place& place) {
  const std::lock_guard growth_lock(growth_mutex_);
  const std::lock_guard lock(mutex_);
  is_oversize_in_hand_ = false;
  PAWL_ASSERT(!records_.empty() && records_.back().sequence == place.sequence);
  records_.pop_back();
  next_sequence_ = place.sequence;
  head_ = place.offset;
  // What it was to write behind the ring.
  if (place.offset + place.bytes > ring_bytes_)
    written_end_ = std::max(ring_bytes_.load(), std::min(written_end_, head_));
  count_used();
}

Status Journal::take_own_blocks(const Place& place) {
  PAWL_TRY(file_->check_overwrite(place.bytes));
  return take_own_blocks(place.offset, place.offset + place.bytes);
}

// A copy of the journal (a reflink) shares its blocks from then on: to write there takes new ones.
Status Journal::take_own_blocks(std::uint64_t offset, std::uint64_t end) {
  if (is_broken(Law::space_where_shared)) return {};
  struct {
    std::uint64_t start;
    std::uint64_t end;
  } shared{end, offset};
  for (std::uint64_t looked_to = offset; looked_to < end;) {
    // With one pointer in it the function takes no memory.
    auto next =
        file_->find_shared(looked_to, end, [&shared](std::uint64_t start, std::uint64_t stop) {
          shared = {std::min(shared.start, start), std::max(shared.end, stop)};
        });
    if (!next.ok()) return next.status();
    looked_to = next.value();
  }
  // Nothing else is asked for: XFS refuses on a full disk what has its blocks already.
  const std::uint64_t from = std::max(shared.start, offset);
  const std::uint64_t to = std::min(shared.end, end);
  return from < to ? file_->reserve(from, to - from) : Status{};
}

Status Journal::write(const Place& place, std::uint64_t offset_in_record,
                      std::span<const std::byte> bytes) {
  PAWL_ASSERT(place.offset >= kAreaStart && offset_in_record + bytes.size() <= place.bytes);
  return final_if_it_fails([&] { return file_->write(place.offset + offset_in_record, bytes); });
}

Status Journal::write_durably(const Place& place, std::span<const std::byte> record) {
  PAWL_ASSERT(place.offset >= kAreaStart && record.size() == place.bytes);
  return write_durably(place.offset, record);
}

Status Journal::write_durably(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (is_broken(Law::acknowledge_after_flush)) return file_->write(offset, bytes);
  return flush_once([&] { return file_->write_durably(offset, bytes); });
}

Status Journal::prepare_to_write_behind(FlushBudget& budget) {
  PAWL_ASSERT(used_bytes() == 0);
  file_->use_page_cache();
  return measure_flushes(*file_, kAreaStart, capacity_bytes(), budget);
}

Status Journal::flush() {
  if (is_broken(Law::acknowledge_after_flush)) return {};
  return flush_once([this] { return file_->flush(); });
}

bool Journal::can_grow() const {
  const std::lock_guard lock(mutex_);
  return !goes_round();
}

Result<Place> Journal::reserve_oversize() {
  const std::lock_guard growth_lock(growth_mutex_);
  const std::lock_guard header_lock(header_mutex_);
  std::uint64_t sequence = 0;
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    PAWL_ASSERT(!goes_round());
    sequence = next_sequence_;
    is_first = records_.empty();
  }
  // The reader has to look for it at the front.
  if (is_first) PAWL_TRY(write_header(kAreaStart, sequence));
  const std::lock_guard lock(mutex_);
  // A release meanwhile changes nothing about where it may stand.
  if (is_first) head_ = kAreaStart;
  const Place place{head_, record_bytes(0, block_bytes_), sequence};
  records_.push_back({place.sequence, place.offset, place.bytes});
  head_ += place.bytes;
  next_sequence_ += 1;
  count_used();
  ask_for_growth();
  is_oversize_in_hand_ = true;
  return place;
}

Status Journal::extend(Place& place, std::uint64_t record_bytes) {
  const std::uint64_t wanted = place.offset + record_bytes;
  const std::uint64_t present = size_bytes();
  place.bytes = std::max(place.bytes, record_bytes);
  PAWL_TRY(file_->check_overwrite(record_bytes));
  PAWL_TRY(take_own_blocks(place.offset, std::min(wanted, present)));
  if (wanted <= present) return {};
  if (place.offset != kAreaStart && wanted > kHeldBytesMax) {
    return Status::failure(ENOSPC, PAWL_ERROR_COMMIT_TOO_LARGE,
                           "the journal holds " + std::to_string(kHeldBytesMax) +
                               " bytes for a snapshot, and grows no more for it");
  }
  // Not much more than is needed: a crash leaves it all taken, and perhaps a full disk.
  const std::uint64_t piece = std::min(kExtendPieceBytesMax, present);
  std::uint64_t size = present + round_up(wanted - present, piece);
  if (wanted <= bytes_max_) size = std::min(size, bytes_max_);
  Status grown = file_->reserve(present, size - present);
  if (!grown.ok() && size > wanted) {
    // Less may still fit.
    grown = file_->reserve(present, wanted - present);
    if (grown.ok()) grown = file_->resize(wanted);
    if (grown.ok()) {
      const std::lock_guard lock(mutex_);
      size_bytes_ = wanted;
      return {};
    }
  } else if (grown.ok()) {
    grown = file_->resize(size);
  }
  if (!grown.ok()) {
    // Gives back what was reserved past the end.
    [[maybe_unused]] const Status ignored = file_->resize(present);
    return cannot_grow(grown);
  }
  const std::lock_guard lock(mutex_);
  size_bytes_ = size;
  return {};
}

// In one step for growth, which writes zeros from where the records end: the record, which may be
// written by now, must be counted when growth may begin.
void Journal::settle(const Place& place) {
  std::unique_lock growth_lock(growth_mutex_);
  is_oversize_in_hand_ = false;
  if (is_broken(Law::grow_behind_records)) growth_lock.unlock();
  const std::lock_guard lock(mutex_);
  PAWL_ASSERT(!records_.empty() && records_.back().sequence == place.sequence);
  records_.back().bytes = place.bytes;
  head_ = place.offset + place.bytes;
  PAWL_ASSERT(head_ <= size_bytes_);
  PAWL_ASSERT(place.offset <= written_end_);
  written_end_ = std::max(written_end_, head_);
  count_used();
}

Status Journal::release(std::uint64_t through_sequence, Drop drop) {
  const std::lock_guard header_lock(header_mutex_);
  std::uint64_t tail_offset = 0;
  std::uint64_t tail_sequence = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto kept = std::find_if(records_.begin(), records_.end(), [&](const Record& record) {
      return record.sequence > through_sequence;
    });
    if (kept == records_.begin()) return {};
    tail_offset = kept != records_.end() ? kept->offset : head_;
    tail_sequence = kept != records_.end() ? kept->sequence : next_sequence_;
  }
  if (tail_sequence != header_.tail_sequence) PAWL_TRY(write_header(tail_offset, tail_sequence));
  // Whoever asks from now on finds the new header.  One who asks just before is not seen here, and
  // finds the records gone.
  const std::uint64_t first = first_held();
  const std::lock_guard lock(mutex_);
  released_sequence_ = std::max(released_sequence_, tail_sequence - 1);
  while (!records_.empty() && records_.front().sequence <= through_sequence) {
    if (records_.front().sequence >= first) {
      if (drop == Drop::unless_held) break;
      grows_rather_than_round_ = true;
    }
    records_.pop_front();
  }
  count_used();
  return {};
}

Status Journal::give_growth_back() {
  const std::lock_guard growth_lock(growth_mutex_);
  const std::lock_guard header_lock(header_mutex_);
  std::uint64_t kept = 0;
  {
    const std::lock_guard lock(mutex_);
    kept = std::min(bytes_max_, round_down(written_end_, kBlockBytes));
    if (size_bytes_ <= kept || !records_.empty()) return {};
  }
  const Status has_room = take_own_blocks(0, kAreaStart);
  if (is_want_of_space(has_room.error_number())) return {};
  PAWL_TRY(has_room);
  // The ring starts again at the front, so that its end can be cut off.
  PAWL_TRY(write_header_with(kept, kAreaStart, last_sequence() + 1));
  PAWL_TRY(cut(kept));
  const std::lock_guard lock(mutex_);
  PAWL_ASSERT(records_.empty());
  head_ = kAreaStart;
  size_bytes_ = kept;
  ring_bytes_ = kept;
  written_end_ = kept;
  grows_rather_than_round_ = false;
  return {};
}

Status Journal::give_all_space_back() {
  const std::lock_guard growth_lock(growth_mutex_);
  const std::lock_guard header_lock(header_mutex_);
  PAWL_ASSERT(used_bytes() == 0);
  {
    const std::lock_guard lock(mutex_);
    growth_is_refused_ = true;
    wants_growth_ = false;
  }
  PAWL_TRY(write_header_with(kAreaStart, kAreaStart, last_sequence() + 1));
  return file_->resize(kAreaStart);
}

// ------------------------------------------------------------------------------------- growth

void Journal::may_grow_to(std::uint64_t size_bytes) {
  PAWL_ASSERT(size_bytes % kBlockBytes == 0);
  const std::lock_guard lock(mutex_);
  bytes_max_ = std::max(bytes_max_, size_bytes);
}

std::uint64_t Journal::next_ring_bytes() const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t ring = ring_bytes_;
  // Nor when it was refused, or all space given back, while a step was waited for.
  if (growth_is_refused_) return ring;
  // What large records were written to is there already.
  const std::uint64_t next = ring > bytes_max_ / kGrowthFactor ? bytes_max_ : ring * kGrowthFactor;
  return std::min(bytes_max_, std::max(next, round_up(written_end_, kBlockBytes)));
}

// Takes no memory that it cannot do without, and of the disk nothing that is soon needed.
Status Journal::reserve_growth(std::uint64_t size_bytes) {
  const std::uint64_t present = this->size_bytes();
  if (size_bytes <= present) return {};
  const std::uint64_t more = size_bytes - present;
  if (file_->free_bytes() / kFreePerGrowth < more)
    return Status::failure(ENOSPC, "the disk has no room for the journal to grow");
  Status reserved = file_->reserve(present, more);
  if (reserved.ok()) reserved = file_->resize(size_bytes);
  if (!reserved.ok()) {
    // Gives back what was reserved past the end.
    [[maybe_unused]] const Status ignored = file_->resize(present);
    return reserved;
  }
  const std::lock_guard lock(mutex_);
  size_bytes_ = size_bytes;
  return {};
}

void Journal::let_go_of_file() {
  const std::lock_guard growth_lock(growth_mutex_);
  const std::lock_guard header_lock(header_mutex_);
  PAWL_ASSERT(used_bytes() == 0);
  refuse_growth();
  file_.reset();
}

Result<bool> Journal::grow() {
  const std::lock_guard growth_lock(growth_mutex_);
  // It may need what is behind the ring, or be the last that the disk has room for.
  if (is_oversize_in_hand_) return false;
  const std::uint64_t next = next_ring_bytes();
  if (next <= ring_bytes_) {
    wants_growth_ = false;
    return false;
  }
  // Nothing of a commit is written here, so what fails is no failure of the journal; but a flush
  // is, which may be that of a commit's bytes as well.
  const std::uint64_t from = written_end();
  const std::uint64_t to = std::min(next, from + kGrowthPieceBytes);
  Status written = reserve_growth(next);
  if (written.ok() && from < to) written = write_zeros(from, to);
  if (!written.ok()) {
    refuse_growth();
    return false;
  }
  // Also the size, and so that no commit's flush has more than a piece to wait for.
  if (!is_broken(Law::flush_before_growth)) PAWL_TRY(flush());
  {
    const std::lock_guard lock(mutex_);
    written_end_ = std::max(written_end_, to);
  }
  if (to < next) return true;
  PAWL_TRY(take_grown(next));
  return false;
}

// The header before the first record that may stand there: a reader must notice where the file was
// cut.
Status Journal::take_grown(std::uint64_t ring_bytes) {
  const std::lock_guard header_lock(header_mutex_);
  const Status has_room = take_own_blocks(0, kAreaStart);
  if (is_want_of_space(has_room.error_number())) {
    refuse_growth();
    return {};
  }
  PAWL_TRY(has_room);
  PAWL_TRY(write_header_with(ring_bytes, header_.tail_offset, header_.tail_sequence));
  const std::lock_guard lock(mutex_);
  ring_bytes_ = ring_bytes;
  wants_growth_ = false;
  return {};
}

void Journal::refuse_growth() {
  const std::lock_guard lock(mutex_);
  growth_is_refused_ = true;
  wants_growth_ = false;
}

}  // namespace pawl::journal
