#include "journal/reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "journal/advice.h"
#include "medium/law.h"

namespace pawl::journal {

namespace {

constexpr std::size_t kBufferBytes = Reader::kVisitBytesMax;
static_assert(kBufferBytes % kBlockBytes == 0 && kBufferBytes >= kAreaStart);

// Version 1 had a shorter header, and was never released.
constexpr std::uint32_t kVersionWithoutBlocks = 1;
constexpr std::size_t kHeaderBytesWithoutBlocks = 96;

enum class Slot { empty, valid, foreign, damaged, older, newer };

bool is_whole_in_version_1(Header header) {
  const std::uint32_t sum = std::exchange(header.crc32c, 0);
  return header.version == kVersionWithoutBlocks &&
         sum == checksum(&header, kHeaderBytesWithoutBlocks);
}

Slot judge_slot(std::span<const std::byte> bytes, Header& header, Listed& listed) {
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kJournalMagic) {
    const bool zeros = std::all_of(bytes.begin(), bytes.end(),
                                   [](std::byte byte) { return byte == std::byte{0}; });
    return zeros ? Slot::empty : Slot::foreign;
  }
  // A newer version may place its checksum elsewhere, so the version is believed without it: the
  // worst that this can do is to refuse.
  if (header.version > kVersionOfGroups) return Slot::newer;
  if (is_whole_in_version_1(header)) return Slot::older;
  listed = {};
  if (header.version == kVersionOfGroups) {
    const auto list = bytes.subspan(sizeof header);
    ListHeader list_header;
    std::memcpy(&list_header, list.data(), sizeof list_header);
    const bool is_whole = list_header.bytes <= list.size() &&
                          header.crc32c == header_checksum(header, list.first(list_header.bytes));
    return is_whole && decode(list, listed) ? Slot::valid : Slot::damaged;
  }
  if (header.version != kVersion || header.crc32c != header_checksum(header)) return Slot::damaged;
  return Slot::valid;
}

Status not_usable(Slot slot_a, Slot slot_b) {
  if (slot_a == Slot::older || slot_b == Slot::older) {
    return Status::failure(
        ENOTSUP, PAWL_ERROR_UNSUPPORTED_VERSION,
        "the journal has version " + std::to_string(kVersionWithoutBlocks) +
            ", which was never released and which this Pawl does not read; nothing was "
            "changed. Recover with the Pawl that wrote it");
  }
  if (slot_a == Slot::damaged || slot_b == Slot::damaged) {
    return Status::failure(EBADMSG, PAWL_ERROR_DAMAGED_HEADER,
                           "the journal's header is damaged in both places; nothing was changed. " +
                               restore_or_accept_loss());
  }
  if (slot_a == Slot::empty && slot_b == Slot::empty) {
    return Status::failure(
        EBADMSG, PAWL_ERROR_NOT_A_JOURNAL,
        "the journal holds no header: something emptied it; nothing was changed. " +
            restore_or_accept_loss());
  }
  return Status::failure(
      EBADMSG, PAWL_ERROR_NOT_A_JOURNAL,
      "this is no Pawl journal, or both of its headers are damaged; nothing was "
      "changed. If another program put it there, move it away; else restore file "
      "and journal from a backup");
}

// True when what stands there was meant to be the record looked for, though its header fails.
bool resembles(const RecordHeader& header, std::uint64_t epoch, std::uint64_t sequence) {
  const int signs = static_cast<int>(header.magic == kRecordMagic) +
                    static_cast<int>(header.epoch == epoch) +
                    static_cast<int>(header.sequence == sequence);
  return signs >= 2;
}

}  // namespace

bool is_no_journal(const Status& status) {
  return status.error_number() == EBADMSG || status.error_number() == ENOTSUP;
}

Result<Reader> Reader::open(MediumFile& file, IfCut if_cut) {
  Result<std::uint64_t> size = file.size();
  if (!size.ok()) return size.status();

  Reader reader(file, Header{}, std::max(size.value(), kAreaStart));
  Result<std::span<const std::byte>> slots = reader.look_at(0);
  if (!slots.ok()) return slots.status();
  PAWL_ASSERT(slots.value().size() >= kAreaStart);

  Header header_a;
  Header header_b;
  Listed listed_a;
  Listed listed_b;
  const Slot slot_a = judge_slot(slots.value().subspan(0, kJournalSlotBytes), header_a, listed_a);
  const Slot slot_b =
      judge_slot(slots.value().subspan(kJournalSlotBytes, kJournalSlotBytes), header_b, listed_b);

  if (slot_a == Slot::newer || slot_b == Slot::newer) {
    const std::uint32_t theirs = slot_a == Slot::newer ? header_a.version : header_b.version;
    return Status::failure(ENOTSUP, PAWL_ERROR_UNSUPPORTED_VERSION,
                           "the journal has version " + std::to_string(theirs) +
                               ", this Pawl reads versions up to " +
                               std::to_string(kVersionOfGroups) +
                               "; nothing was changed. Recover with the newer Pawl that "
                               "wrote it");
  }
  if (slot_a != Slot::valid && slot_b != Slot::valid) return not_usable(slot_a, slot_b);
  const bool take_a =
      slot_a == Slot::valid && (slot_b != Slot::valid || header_a.generation > header_b.generation);
  const Header& header = take_a ? header_a : header_b;

  if (!is_block_bytes(header.block_bytes) ||
      (header.version == kVersionOfGroups && header.block_bytes != kBlockBytes)) {
    return Status::failure(EBADMSG, PAWL_ERROR_DAMAGED_HEADER,
                           "the journal's header tells of blocks of " +
                               std::to_string(header.block_bytes) +
                               " bytes, which no journal has; nothing was changed");
  }
  if (header.tail_offset < kAreaStart || header.tail_offset % header.block_bytes != 0 ||
      header.tail_sequence == 0) {
    return Status::failure(EBADMSG, PAWL_ERROR_DAMAGED_HEADER,
                           "the journal's header points to byte " +
                               std::to_string(header.tail_offset) +
                               ", where no record can stand; nothing was changed");
  }
  if (header.generation > kCounterMax || header.tail_sequence > kCounterMax) {
    return Status::failure(EBADMSG, PAWL_ERROR_DAMAGED_HEADER,
                           "the journal's header counts further than any journal comes; nothing "
                           "was changed. " +
                               restore_or_accept_loss());
  }
  const std::uint64_t expected_bytes = std::max(header.tail_offset, header.journal_bytes);
  // Its writer may have made it longer since, and told so in the header.
  if (size.value() < expected_bytes) size = file.size();
  if (!size.ok()) return size.status();
  if (size.value() < expected_bytes) {
    reader.cut_ = "the journal was cut short: it had at least " + std::to_string(expected_bytes) +
                  " bytes, and has " + std::to_string(size.value());
    if (if_cut == IfCut::refuse) {
      return Status::failure(EBADMSG, PAWL_ERROR_CUT_JOURNAL,
                             reader.cut_ + "; nothing was changed. " + restore_or_accept_loss());
    }
  }
  const Slot other = take_a ? slot_b : slot_a;
  reader.other_slot_damaged_ = other != Slot::valid && other != Slot::empty;
  reader.header_ = header;
  reader.listed_ = std::move(take_a ? listed_a : listed_b);
  reader.size_bytes_ = size.value();
  reader.position_ = header.tail_offset;
  reader.sequence_ = header.tail_sequence;
  return reader;
}

Result<std::span<const std::byte>> Reader::look_at(std::uint64_t position, std::size_t bytes_min) {
  PAWL_ASSERT(position < size_bytes_ && bytes_min > 0 && bytes_min <= kBlockBytes);
  if (!is_buffered(position, bytes_min)) {
    if (buffer_ == nullptr) {
      buffer_.reset(static_cast<std::byte*>(
          ::operator new(kBufferBytes, std::align_val_t{kBlockBytes}, std::nothrow)));
      if (buffer_ == nullptr) {
        return FailedCall{ENOMEM, "a buffer of 1 MiB to read the journal"};
      }
    }
    const std::uint64_t first = round_down(position, kBlockBytes);
    const std::uint64_t wanted = std::min<std::uint64_t>(
        kBufferBytes, round_up(std::max(size_bytes_, position + bytes_min) - first, kBlockBytes));
    buffered_bytes_ = 0;
    Status status = file_->read(first, {buffer_.get(), static_cast<std::size_t>(wanted)});
    if (!status.ok()) return status;
    buffered_position_ = first;
    buffered_bytes_ = static_cast<std::size_t>(wanted);
  }
  const auto skipped = static_cast<std::size_t>(position - buffered_position_);
  return std::span<const std::byte>(buffer_.get() + skipped, buffered_bytes_ - skipped);
}

Result<RecordHeader> Reader::header_at(std::uint64_t position) {
  RecordHeader header;
  Result<std::span<const std::byte>> bytes = look_at(position, sizeof header);
  if (!bytes.ok()) return bytes.status();
  std::memcpy(&header, bytes.value().data(), sizeof header);
  return header;
}

std::uint64_t Reader::behind_hole(std::uint64_t position) {
  if (position >= end() || is_buffered(position, sizeof(RecordHeader))) return position;
  const std::uint64_t data = round_down(file_->find_data(position), header_.block_bytes);
  return std::min(std::max(position, data), end());
}

class Reader::Payload {
 public:
  Payload(Reader& reader, const RecordSummary& record)
      : reader_(reader),
        position_(record.position + sizeof(RecordHeader)),
        left_bytes_(record.header.payload_bytes) {}

  std::uint64_t left_bytes() const { return left_bytes_; }
  std::uint32_t checksum_so_far() const { return checksum_; }

  // The next bytes, at least one and at most `bytes_max`; valid until the next call.
  Result<std::span<const std::byte>> take(std::uint64_t bytes_max) {
    PAWL_ASSERT(bytes_max > 0 && bytes_max <= left_bytes_);
    Result<std::span<const std::byte>> seen = reader_.look_at(position_);
    if (!seen.ok()) return seen;
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes_max, seen.value().size()));
    const std::span<const std::byte> piece = seen.value().first(count);
    checksum_ = checksum(piece.data(), piece.size(), checksum_);
    position_ += count;
    left_bytes_ -= count;
    return piece;
  }

  Status take_exactly(std::span<std::byte> into) {
    while (!into.empty()) {
      Result<std::span<const std::byte>> piece = take(into.size());
      if (!piece.ok()) return piece.status();
      std::memcpy(into.data(), piece.value().data(), piece.value().size());
      into = into.subspan(piece.value().size());
    }
    return {};
  }

 private:
  Reader& reader_;
  std::uint64_t position_;
  std::uint64_t left_bytes_;
  std::uint32_t checksum_ = 0;
};

const FileSize* RecordSummary::size_of(std::uint64_t file) const {
  const auto found = std::find_if(sizes.begin(), sizes.end(),
                                  [file](const FileSize& size) { return size.file == file; });
  return found == sizes.end() ? nullptr : &*found;
}

Status Reader::walk_sizes(Payload& payload, const RangeHeader& range, std::vector<FileSize>& sizes,
                          std::string& problem) const {
  if (range.offset != 0 || range.length_bytes % sizeof(FileSize) != 0 || range.length_bytes == 0 ||
      range.length_bytes > kGroupFilesMax * sizeof(FileSize) ||
      range.length_bytes > payload.left_bytes()) {
    problem = "it does not begin with the sizes of the group's files";
    return {};
  }
  sizes.resize(range.length_bytes / sizeof(FileSize));
  PAWL_TRY(payload.take_exactly(std::as_writable_bytes(std::span(sizes))));
  std::uint64_t last_file = 0;
  for (const FileSize& size : sizes) {
    if (size.file <= last_file || size.file > kGroupFilesMax ||
        size.size_bytes > kGroupFileSizeMax ||
        (size.truncate_to > kGroupFileSizeMax && size.truncate_to != kNoTruncation))
      problem = "it tells of a size that no file of a group has";
    last_file = size.file;
  }
  return {};
}

Status Reader::walk(RecordSummary& record, const Visit* visit, std::string& problem) {
  Payload payload(*this, record);
  const bool is_of_group = listed_.role == Role::group;
  record.range_count = 0;
  record.changed_bytes = 0;
  record.sizes.clear();
  if (!is_of_group) record.sizes.push_back({0, record.header.file_size, record.header.truncate_to});
  while (payload.left_bytes() > 0 && problem.empty()) {
    RangeHeader range;
    if (payload.left_bytes() < sizeof(range)) {
      problem = "its payload ends within a range";
      break;
    }
    Status status = payload.take_exactly(std::as_writable_bytes(std::span(&range, 1)));
    if (!status.ok()) return status;
    if (is_of_group && record.sizes.empty()) {
      PAWL_TRY(walk_sizes(payload, range, record.sizes, problem));
      continue;
    }
    const FileSize* const file = record.size_of(is_of_group ? file_number(range.offset) : 0);
    const std::uint64_t offset = is_of_group ? offset_in_file(range.offset) : range.offset;
    if (range.length_bytes == 0) {
      problem = "it holds an empty range";
    } else if (file == nullptr) {
      problem = "it holds a range of a file that it does not name";
    } else if ((range.length_bytes > file->size_bytes ||
                offset > file->size_bytes - range.length_bytes) &&
               !is_broken(Law::ranges_within_the_file)) {
      problem = "it holds a range past the end of the file";
    } else if (round_up(range.length_bytes, 8) > payload.left_bytes()) {
      problem = "its payload ends within a range";
    }
    if (!problem.empty()) break;

    for (std::uint64_t done = 0; done < range.length_bytes;) {
      Result<std::span<const std::byte>> piece = payload.take(range.length_bytes - done);
      if (!piece.ok()) return piece.status();
      if (visit != nullptr) {
        status = (*visit)(range.offset + done, piece.value());
        if (!status.ok()) return status;
      }
      done += piece.value().size();
    }

    std::array<std::byte, 8> padding{};
    status = payload.take_exactly(std::span(padding).first(
        static_cast<std::size_t>(round_up(range.length_bytes, 8) - range.length_bytes)));
    if (!status.ok()) return status;
    if (padding != std::array<std::byte, 8>{}) problem = "the padding of a range is not zero";
    record.range_count += 1;
    record.changed_bytes += range.length_bytes;
  }
  if (record.sizes.empty() && problem.empty())
    problem = "it does not tell the sizes of the group's files";

  // The checksum decides what to call it: torn bytes have no meaningful ranges.
  while (payload.left_bytes() > 0) {
    Result<std::span<const std::byte>> rest = payload.take(payload.left_bytes());
    if (!rest.ok()) return rest.status();
  }
  if (payload.checksum_so_far() != record.header.payload_crc32c &&
      !is_broken(Law::check_the_checksum)) {
    problem = "the checksum of its payload does not match";
  }
  return {};
}

Result<std::optional<RecordSummary>> Reader::record_at(std::uint64_t position,
                                                       std::string& reason) {
  const std::optional<RecordSummary> nothing;
  if (position >= end() || end() - position < record_bytes(0, header_.block_bytes)) return nothing;

  Result<RecordHeader> found = header_at(position);
  if (!found.ok()) return found.status();
  RecordSummary record;
  record.position = position;
  record.header = found.value();
  const RecordHeader& header = record.header;

  const std::string what =
      "record " + std::to_string(sequence_) + " at byte " + std::to_string(position);
  if (header.magic != kRecordMagic || header.header_crc32c != record_header_checksum(header)) {
    if (resembles(header, header_.epoch, sequence_)) {
      reason = what + " is torn or damaged: the checksum of its header does not match";
    }
    return nothing;
  }
  const bool of_this_life = header.epoch == header_.epoch || is_broken(Law::one_epoch);
  if (!of_this_life || header.sequence != sequence_) return nothing;

  // From here on the record looked for stands here; whatever is wrong with it is worth a sentence.
  if (header.payload_bytes > end() - position - sizeof(header)) {
    reason = what + " is longer than the journal: the journal was cut short, or is damaged";
    return nothing;
  }
  if (header.file_size > kFileSizeMax || header.durable_sequence >= header.sequence ||
      (header.truncate_to > kFileSizeMax && header.truncate_to != kNoTruncation)) {
    reason = what + " is damaged: its header says what cannot be";
    return nothing;
  }
  if (listed_.role == Role::group &&
      (header.file_size != 0 || header.truncate_to != kNoTruncation)) {
    reason = what + " is damaged: it tells of a size, and not of which file of the group";
    return nothing;
  }
  record.bytes = record_bytes(header.payload_bytes, header_.block_bytes);
  if (passed_bytes_ + record.bytes > size_bytes_ - kAreaStart) {
    reason = what + " is damaged: the journal has no room for as many records";
    return nothing;
  }
  std::string problem;
  Status status = walk(record, nullptr, problem);
  if (!status.ok()) return status;
  if (!problem.empty()) {
    reason = what + " is torn or damaged: " + problem;
    return nothing;
  }
  return std::optional<RecordSummary>(record);
}

Result<std::optional<RecordSummary>> Reader::next() {
  end_reason_.clear();
  std::string reason_here;
  Result<std::optional<RecordSummary>> record = record_at(position_, reason_here);
  if (!record.ok()) return record;
  std::string reason_wrapped;
  if (!record.value().has_value() && position_ != kAreaStart) {
    record = record_at(kAreaStart, reason_wrapped);
    if (!record.ok()) return record;
  }
  if (!record.value().has_value()) {
    end_reason_ = reason_here.empty() ? reason_wrapped : reason_here;
    return record;
  }
  const RecordSummary& found = *record.value();  // NOLINT(bugprone-unchecked-optional-access)
  position_ = found.position + found.bytes;
  if (position_ >= end()) position_ = kAreaStart;
  passed_bytes_ += found.bytes;
  sequence_ += 1;
  return record;
}

Result<Loss> Reader::evidence_of_loss() {
  if (!cut_.empty()) return Loss{PAWL_ERROR_CUT_JOURNAL, cut_};
  // Each epoch begins at the front, so the last one that has any record has one there; and never
  // does content: a file may hold what looks like a record, but nobody guesses an epoch.
  std::uint64_t epoch_at_front = header_.epoch;
  const std::uint64_t smallest = record_bytes(0, header_.block_bytes);
  for (std::uint64_t position = behind_hole(kAreaStart); position + smallest <= end();
       position = behind_hole(position + header_.block_bytes)) {
    Result<RecordHeader> found = header_at(position);
    if (!found.ok()) return found.status();
    const RecordHeader& header = found.value();
    const bool whole =
        header.magic == kRecordMagic && header.header_crc32c == record_header_checksum(header);
    if (!whole) continue;
    if (position == kAreaStart) epoch_at_front = header.epoch;
    if (header.epoch != header_.epoch && header.epoch != epoch_at_front) continue;
    // Its writer knew that the record which is missing here was durable.
    if (header.epoch == header_.epoch && header.sequence > sequence_ &&
        header.durable_sequence >= sequence_) {
      return Loss{PAWL_ERROR_DAMAGED_RECORD,
                  "record " + std::to_string(sequence_) +
                      " was durable once and is not whole now, while record " +
                      std::to_string(header.sequence) + " after it is"};
    }
    // Its writer knew a later header, which is gone: what that pointed to is not known.  The slot
    // may be damaged, empty, or hold an older header, as when a write was lost.  The later header
    // may have begun another epoch; generations go on through all of them.
    const auto ahead = static_cast<std::int32_t>(header.header_generation -
                                                 static_cast<std::uint32_t>(header_.generation));
    if (ahead > 0) {
      return Loss{PAWL_ERROR_DAMAGED_HEADER,
                  "a newer header was durable once and is lost or damaged now (record " +
                      std::to_string(header.sequence) + " tells)"};
    }
  }
  return Loss{};
}

Status Reader::visit(const RecordSummary& record, const Visit& visit) {
  RecordSummary seen;
  seen.position = record.position;
  seen.header = record.header;
  std::string problem;
  Status status = walk(seen, &visit, problem);
  if (!status.ok() || problem.empty()) return status;
  return Status::failure(EBADMSG, PAWL_ERROR_JOURNAL_CHANGED,
                         "record " + std::to_string(record.header.sequence) +
                             " changed while it was read: " + problem);
}

}  // namespace pawl::journal
