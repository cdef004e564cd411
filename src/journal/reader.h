// Reads a journal without changing it: for recovery, and for `pawl log`, `verify` and `info`.
// Nothing in a journal is believed before its checksum and its bounds have been checked.
#pragma once

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "journal/format.h"
#include "journal/group_files.h"

namespace pawl::journal {

struct RecordSummary {
  std::uint64_t position = 0;  // in the journal file
  RecordHeader header;
  std::uint64_t bytes = 0;  // that it takes of the ring
  std::uint64_t range_count = 0;
  std::uint64_t changed_bytes = 0;  // content bytes in all ranges
  // Of the files it is about: of one alone, number 0; of a group's, those that were open.
  std::vector<FileSize> sizes;

  // Null: it is not about this file.
  const FileSize* size_of(std::uint64_t file) const;
};

// What becomes of a journal that is shorter than its header says.
enum class IfCut { refuse, read_what_is_left };

// What Reader::open() has read and found to be no journal, or one of another version.  Any other
// failure leaves unknown what the file is, and nothing may follow from it.
bool is_no_journal(const Status& status);

// How it is known that durable records are missing: the condition, and a sentence.
struct Loss {
  pawl_error code = PAWL_ERROR_NONE;
  std::string text;

  bool any() const { return code != PAWL_ERROR_NONE; }
};

class Reader {
 public:
  // Reads the header.  Fails with EBADMSG for what is no journal or a damaged one, and ENOTSUP for
  // another version's.
  static Result<Reader> open(MediumFile& file, IfCut if_cut = IfCut::refuse);

  const Header& header() const { return header_; }
  const Listed& listed() const { return listed_; }
  std::uint64_t size_bytes() const { return size_bytes_; }

  // From now on next() begins here instead: with this record, which stands at `position` or, as
  // after a wrap, at the front.
  void begin_at(std::uint64_t position, std::uint64_t sequence) {
    position_ = position;
    sequence_ = sequence;
    passed_bytes_ = 0;
  }

  // The next whole record, in order of sequence, or nothing after the last.  The checksum of header
  // and payload and the bounds of every range were checked.  A failure is one of the medium.
  Result<std::optional<RecordSummary>> next();

  // Empty when the journal has the bytes that its header says, else a sentence.  No record that
  // reaches past the end is read.
  const std::string& cut() const { return cut_; }

  // Why next() found nothing: empty when the journal simply ends there, else a sentence (a torn or
  // damaged record stands where the next one would).
  const std::string& end_reason() const { return end_reason_; }

  // True when the header's other slot holds something that is no valid header.  A crash while it
  // was written leaves that, and then every record from this header's tail on is still there.
  bool other_slot_damaged() const { return other_slot_damaged_; }

  // After next() found nothing: none when the ring simply ends there or its last records are torn,
  // as after a crash; else how it is known that durable records are missing (each record names the
  // last one, and the header, that were durable when it was written), or what cut() says.  Reads
  // the whole journal, but for its holes: a record has been written.
  Result<Loss> evidence_of_loss();

  // Calls visit(offset, bytes) for the content of each range of a record that next() returned, in
  // order, in pieces of at most kVisitBytesMax.  In a group's journal the offset has the file's
  // number.  Checks the payload's checksum again as it goes.
  using Visit = std::function<Status(std::uint64_t offset, std::span<const std::byte> bytes)>;
  Status visit(const RecordSummary& record, const Visit& visit);

  static constexpr std::size_t kVisitBytesMax = std::size_t{1} << 20;

 private:
  Reader(MediumFile& file, const Header& header, std::uint64_t size_bytes)
      : file_(&file),
        header_(header),
        size_bytes_(size_bytes),
        position_(header.tail_offset),
        sequence_(header.tail_sequence) {}

  struct Release {
    void operator()(std::byte* bytes) const {
      ::operator delete(bytes, std::align_val_t{kBlockBytes});
    }
  };
  using Buffer = std::unique_ptr<std::byte, Release>;
  class Payload;  // a record's payload, read in pieces and summed on the way

  // The bytes from `position` on: at least `bytes_min`, at most as many as the buffer holds; zeros
  // behind the end of the journal.
  Result<std::span<const std::byte>> look_at(std::uint64_t position, std::size_t bytes_min = 1);
  // The header of a record that may stand at `position`: it need not be one.
  Result<RecordHeader> header_at(std::uint64_t position);
  // The first block from `position` on, or the end of the ring, before which only holes are: a side
  // file may have been made far longer than any journal is.
  std::uint64_t behind_hole(std::uint64_t position);
  bool is_buffered(std::uint64_t position, std::size_t bytes) const {
    return position >= buffered_position_ &&
           position + bytes <= buffered_position_ + buffered_bytes_;
  }
  // The end of the ring.
  std::uint64_t end() const { return round_down(size_bytes_, header_.block_bytes); }
  // Fails only for the medium; a record that must not be believed is nothing, and a `reason` if it
  // stands where the next one would.
  Result<std::optional<RecordSummary>> record_at(std::uint64_t position, std::string& reason);
  // Walks the ranges of a record whose header was checked, and fills in what they tell of it.
  // `problem` says what is wrong with them.
  Status walk(RecordSummary& record, const Visit* visit, std::string& problem);
  // The first range of a group's record, `length_bytes` of which follow.
  Status walk_sizes(Payload& payload, const RangeHeader& range, std::vector<FileSize>& sizes,
                    std::string& problem) const;

  MediumFile* file_;
  Header header_;
  Listed listed_;
  std::uint64_t size_bytes_;
  std::uint64_t position_;
  std::uint64_t sequence_;
  std::uint64_t passed_bytes_ = 0;  // of the ring, by the records read: at most all of it
  std::string end_reason_;
  std::string cut_;
  bool other_slot_damaged_ = false;

  // A piece of the journal: aligned, for a medium that reads past the page cache.
  Buffer buffer_;
  std::uint64_t buffered_position_ = 0;
  std::size_t buffered_bytes_ = 0;
};

}  // namespace pawl::journal
