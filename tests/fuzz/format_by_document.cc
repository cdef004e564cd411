#include "fuzz/format_by_document.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace pawl::fuzz::document {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;
constexpr std::uint64_t kVersionOfFile = 2;
constexpr std::uint64_t kVersionOfGroup = 3;
constexpr std::uint64_t kGroupSizeMax = (std::uint64_t{1} << 56) - 4096;
constexpr std::size_t kSizeBytes = 24;  // of a file, in a record of a group
constexpr std::size_t kListHeaderBytes = 8;
constexpr std::size_t kListEntryBytes = 32;
constexpr std::uint64_t kSizeMax = std::uint64_t{1} << 62;
constexpr std::uint64_t kCounterMax = std::uint64_t{1} << 62;

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit)
      value = (value & 1) != 0 ? value >> 1 ^ kPolynomial : value >> 1;
    table[byte] = value;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

// Of `bytes` with the four at `hole` taken as zeros.
std::uint32_t crc_without(Bytes bytes, std::size_t hole) {
  std::vector<std::byte> copy(bytes.begin(), bytes.end());
  put_number(copy, hole, 4, 0);
  return crc32c(copy);
}

std::uint64_t up(std::uint64_t value, std::uint64_t unit) {
  return value % unit == 0 ? value : value + (unit - value % unit);
}

struct List {
  Whose whose = Whose::file;
  std::vector<Listed> files;
};

// What follows the header of version 3, whose checksum was right; nothing when it is no list.
std::optional<List> list_of(Bytes slot) {
  const std::uint64_t whose = number_at(slot, kHeaderBytes, 4);
  const std::uint64_t end = kHeaderBytes + number_at(slot, kHeaderBytes + 4, 4);
  if (whose != 1 && whose != 2) return std::nullopt;
  List list{whose == 1 ? Whose::group : Whose::member, {}};
  std::uint64_t at = kHeaderBytes + kListHeaderBytes;
  if (at > end) return std::nullopt;
  while (at < end) {
    if (end - at < kListEntryBytes) return std::nullopt;
    const std::uint64_t number = number_at(slot, at, 8);
    const std::uint64_t length = number_at(slot, at + 24, 8);
    at += kListEntryBytes;
    if (number < 1 || number > kGroupFilesMax || length == 0 || length > end - at)
      return std::nullopt;
    for (const Listed& other : list.files)
      if (other.number == number) return std::nullopt;
    std::string name;
    for (std::uint64_t i = 0; i < length; ++i) {
      if (slot[at + i] == std::byte{0}) return std::nullopt;
      name += static_cast<char>(slot[at + i]);
    }
    const std::uint64_t padded = up(length, 8);
    if (padded > end - at) return std::nullopt;
    for (std::uint64_t i = length; i < padded; ++i)
      if (slot[at + i] != std::byte{0}) return std::nullopt;
    at += padded;
    list.files.push_back({number, name});
  }
  if (list.whose == Whose::member && list.files.size() != 1) return std::nullopt;
  return list;
}

bool is_valid_header(Bytes slot) {
  if (!magic_at(slot, 0, "PAWLJRNL")) return false;
  const bool is_of_group = number_at(slot, kHeaderVersion, 4) == kVersionOfGroup;
  std::size_t length = kHeaderBytes;
  if (is_of_group) {
    const std::uint64_t list_bytes = number_at(slot, kHeaderBytes + 4, 4);
    if (list_bytes > kListBytesMax) return false;
    length += list_bytes;
  } else if (number_at(slot, kHeaderVersion, 4) != kVersionOfFile) {
    return false;
  }
  if (number_at(slot, kHeaderCrc, 4) != crc_without(slot.first(length), kHeaderCrc)) return false;
  return !is_of_group || list_of(slot).has_value();
}

bool is_of_version_1(Bytes slot) {
  return slot.size() >= kHeaderBytes && magic_at(slot, 0, "PAWLJRNL") &&
         number_at(slot, kHeaderVersion, 4) == 1 &&
         number_at(slot, kHeaderCrc, 4) == crc_without(slot.first(kHeaderBlockBytes), kHeaderCrc);
}

bool is_record_header(Bytes block) {
  return magic_at(block, 0, "PREC") &&
         number_at(block, kRecordCrc, 4) == crc_without(block.first(kRecordBytes), kRecordCrc);
}

// Of a group's record, its first range: the sizes of the files that it is about.
std::optional<std::vector<Size>> sizes_of(Bytes journal, std::uint64_t from, std::uint64_t length) {
  if (length < kRangeBytes || number_at(journal, from, 8) != 0) return std::nullopt;
  const std::uint64_t bytes = number_at(journal, from + 8, 8);
  if (bytes == 0 || bytes % kSizeBytes != 0 || bytes / kSizeBytes > kGroupFilesMax ||
      bytes > length - kRangeBytes)
    return std::nullopt;
  std::vector<Size> sizes;
  for (std::uint64_t at = from + kRangeBytes; at < from + kRangeBytes + bytes; at += kSizeBytes) {
    const Size size{number_at(journal, at, 8), number_at(journal, at + 8, 8),
                    number_at(journal, at + 16, 8)};
    if (size.file > kGroupFilesMax || size.file <= (sizes.empty() ? 0 : sizes.back().file) ||
        size.size > kGroupSizeMax || (size.cut_to > kGroupSizeMax && size.cut_to != kNotCut))
      return std::nullopt;
    sizes.push_back(size);
  }
  return sizes;
}

// The ranges that fill the payload exactly, or nothing.
std::optional<std::vector<Range>> ranges_of(Bytes journal, std::uint64_t from, std::uint64_t length,
                                            Whose whose, const std::vector<Size>& sizes) {
  std::vector<Range> ranges;
  const std::uint64_t end = from + length;
  while (from < end) {
    if (end - from < kRangeBytes) return std::nullopt;
    const std::uint64_t place = number_at(journal, from, 8);
    const bool is_of_group = whose == Whose::group;
    const Range range{is_of_group ? place >> 56 : 0,
                      is_of_group ? place & ((std::uint64_t{1} << 56) - 1) : place,
                      number_at(journal, from + 8, 8), from + kRangeBytes};
    from += kRangeBytes;
    const auto size = std::find_if(sizes.begin(), sizes.end(),
                                   [&](const Size& one) { return one.file == range.file; });
    if (size == sizes.end() || range.length == 0 || range.length > size->size ||
        range.offset > size->size - range.length || range.length > end - from ||
        up(range.length, 8) > end - from)
      return std::nullopt;
    for (std::uint64_t at = from + range.length; at < from + up(range.length, 8); ++at)
      if (journal[at] != std::byte{0}) return std::nullopt;
    from += up(range.length, 8);
    ranges.push_back(range);
  }
  return ranges;
}

class Ring {
 public:
  Ring(Bytes journal, Whose whose, std::uint64_t epoch, std::uint64_t block)
      : journal_(journal),
        whose_(whose),
        epoch_(epoch),
        block_(block),
        end_(journal.size() / block * block),
        smallest_(up(kRecordBytes, block)) {}

  std::uint64_t end() const { return end_; }

  std::optional<Record> whole_record(std::uint64_t position, std::uint64_t sequence) const {
    if (position > end_ || position + smallest_ > end_) return std::nullopt;
    const Bytes block = journal_.subspan(position, smallest_);
    if (!is_record_header(block) || number_at(block, kRecordEpoch, 8) != epoch_ ||
        number_at(block, kRecordSequence, 8) != sequence)
      return std::nullopt;
    const std::uint64_t payload = number_at(block, kRecordPayload, 8);
    if (payload > end_ - position - kRecordBytes) return std::nullopt;
    Record record{.position = position,
                  .bytes = up(kRecordBytes + payload, block_),
                  .sequence = sequence,
                  .sizes = {},
                  .ranges = {}};
    const Size size{0, number_at(block, kRecordFileSize, 8), number_at(block, kRecordCutTo, 8)};
    if (size.size > kSizeMax || (size.cut_to > kSizeMax && size.cut_to != kNotCut))
      return std::nullopt;
    if (number_at(block, kRecordDurable, 8) >= sequence) return std::nullopt;
    if (crc32c(journal_.subspan(position + kRecordBytes, payload)) !=
        number_at(block, kRecordPayloadCrc, 4))
      return std::nullopt;
    std::uint64_t from = position + kRecordBytes;
    std::uint64_t length = payload;
    record.sizes.push_back(size);
    if (whose_ == Whose::group) {
      // The record's own sizes are not of a file.
      if (size.size != 0 || size.cut_to != kNotCut) return std::nullopt;
      auto sizes = sizes_of(journal_, from, length);
      if (!sizes.has_value()) return std::nullopt;
      record.sizes = std::move(*sizes);
      from += kRangeBytes + record.sizes.size() * kSizeBytes;
      length -= kRangeBytes + record.sizes.size() * kSizeBytes;
    }
    auto ranges = ranges_of(journal_, from, length, whose_, record.sizes);
    if (!ranges.has_value()) return std::nullopt;
    record.ranges = std::move(*ranges);
    return record;
  }

  bool tells_of_loss(std::uint64_t missing, std::uint64_t generation) const {
    const auto epoch_at = [&](std::uint64_t position) {
      return number_at(journal_, position + kRecordEpoch, 8);
    };
    const bool front_is_whole =
        kRing + smallest_ <= end_ && is_record_header(journal_.subspan(kRing, smallest_));
    for (std::uint64_t position = kRing; position + smallest_ <= end_; position += block_) {
      const Bytes block = journal_.subspan(position, smallest_);
      if (!is_record_header(block)) continue;
      if (number_at(block, kRecordEpoch, 8) == epoch_ &&
          number_at(block, kRecordSequence, 8) > missing &&
          number_at(block, kRecordDurable, 8) >= missing)
        return true;
      const bool counts =
          epoch_at(position) == epoch_ || (front_is_whole && epoch_at(position) == epoch_at(kRing));
      if (!counts) continue;
      const auto theirs = static_cast<std::uint32_t>(number_at(block, kRecordGeneration, 4));
      const auto ours = static_cast<std::uint32_t>(generation);
      if (static_cast<std::int32_t>(theirs - ours) > 0) return true;
    }
    return false;
  }

 private:
  Bytes journal_;
  Whose whose_;
  std::uint64_t epoch_;
  std::uint64_t block_;
  std::uint64_t end_;
  std::uint64_t smallest_;  // record
};

}  // namespace

std::uint32_t crc32c(Bytes bytes) {
  std::uint32_t value = ~std::uint32_t{0};
  for (const std::byte byte : bytes)
    value = value >> 8 ^ kTable[(value ^ std::to_integer<std::uint32_t>(byte)) & 0xFF];
  return ~value;
}

std::uint64_t number_at(Bytes bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = count; i-- > 0;)
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[at + i]);
  return value;
}

void put_number(std::span<std::byte> bytes, std::size_t at, std::size_t count,
                std::uint64_t value) {
  for (std::size_t i = 0; i < count; ++i, value >>= 8)
    bytes[at + i] = static_cast<std::byte>(value);
}

bool magic_at(Bytes bytes, std::size_t at, const char* magic) {
  const std::size_t length = std::strlen(magic);
  return at + length <= bytes.size() && std::memcmp(bytes.data() + at, magic, length) == 0;
}

Journal read(Bytes bytes, bool cut_is_read) {
  Journal journal;
  // What lies behind the end of a short file reads as zeros.
  std::vector<std::byte> slots(
      bytes.begin(),
      bytes.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(bytes.size(), kRing)));
  slots.resize(kRing);
  const auto slot = [&](std::size_t number) { return Bytes(slots).subspan(number * kSlot, kSlot); };
  for (std::size_t number = 0; number < 2; ++number) {
    if (magic_at(slot(number), 0, "PAWLJRNL") &&
        number_at(slot(number), kHeaderVersion, 4) > kVersionOfGroup) {
      journal.state = Journal::State::another_version;
      return journal;
    }
  }
  const bool a_counts = is_valid_header(slot(0));
  const bool b_counts = is_valid_header(slot(1));
  if (!a_counts && !b_counts) {
    if (is_of_version_1(slot(0)) || is_of_version_1(slot(1)))
      journal.state = Journal::State::another_version;
    return journal;
  }
  const auto generation = [&](std::size_t number) {
    return number_at(slot(number), kHeaderGeneration, 8);
  };
  journal.slot = a_counts && (!b_counts || generation(0) > generation(1)) ? 0 : 1;
  journal.ambiguous = a_counts && b_counts && generation(0) == generation(1) &&
                      !std::equal(slot(0).begin(), slot(0).end(), slot(1).begin(), slot(1).end());

  const Bytes header = slot(journal.slot);
  std::copy_n(header.begin() + kHeaderId, journal.id.size(), journal.id.begin());
  journal.inode = number_at(header, kHeaderInode, 8);
  journal.birth_time_ns = number_at(header, kHeaderBirth, 8);
  journal.generation = generation(journal.slot);
  journal.tail_sequence = number_at(header, kHeaderTailSequence, 8);
  journal.block_bytes = number_at(header, kHeaderBlockBytes, 8);
  if (number_at(header, kHeaderVersion, 4) == kVersionOfGroup) {
    const List list = *list_of(header);
    journal.whose = list.whose;
    journal.listed = list.files;
  }
  if (journal.block_bytes != kBlock &&
      (journal.block_bytes != kLine || journal.whose != Whose::file))
    return journal;
  const std::uint64_t tail = number_at(header, kHeaderTail, 8);
  if (tail % journal.block_bytes != 0 || tail < kRing || journal.tail_sequence == 0 ||
      journal.tail_sequence > kCounterMax || journal.generation > kCounterMax)
    return journal;
  const bool is_cut =
      tail > bytes.size() || bytes.size() < number_at(header, kHeaderJournalBytes, 8);
  if (is_cut && !cut_is_read) return journal;
  journal.state = Journal::State::readable;

  // The side file of a file in a group holds no record.
  if (journal.whose == Whose::member) return journal;
  const Ring ring(bytes, journal.whose, number_at(header, kHeaderEpoch, 8), journal.block_bytes);
  std::uint64_t position = tail;
  std::uint64_t sequence = journal.tail_sequence;
  std::uint64_t covered = 0;
  const auto fits = [&](const std::optional<Record>& record) {
    return record.has_value() && covered + record->bytes <= ring.end() - kRing;
  };
  for (;;) {
    std::optional<Record> record = ring.whole_record(position, sequence);
    if (!fits(record)) record = ring.whole_record(kRing, sequence);
    if (!fits(record)) break;
    position = record->position + record->bytes;
    covered += record->bytes;
    sequence += 1;
    journal.records.push_back(std::move(*record));
  }
  journal.commits_are_lost = is_cut || ring.tells_of_loss(sequence, journal.generation);
  return journal;
}

void apply(const Journal& journal, Bytes bytes, test::Content& file, std::size_t count,
           std::uint64_t number) {
  for (std::size_t i = 0; i < std::min(count, journal.records.size()); ++i) {
    const Record& record = journal.records[i];
    const auto size = std::find_if(record.sizes.begin(), record.sizes.end(),
                                   [&](const Size& one) { return one.file == number; });
    if (size == record.sizes.end()) continue;
    if (size->cut_to != kNotCut && size->cut_to < file.size()) file.resize(size->cut_to);
    for (const Range& range : record.ranges) {
      if (range.file == number)
        file.write(range.offset, bytes.subspan(range.content, range.length));
    }
    file.resize(size->size);
  }
}

}  // namespace pawl::fuzz::document
