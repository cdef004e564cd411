// The journal's bytes.  docs/journal-format.md draws them; a test reads a journal written by hand
// from that page.  All integers are little-endian.
//
//   0       header slot A          4096 bytes
//   4096    header slot B          4096 bytes
//   8192    records, each padded to whole blocks, in a ring up to the end of the file
//
// A journal of a group holds records about several files, which its header lists; the side file of
// such a file holds no record (journal/group_files.h).
//
// A block is 4096 bytes, or 64 where the medium is memory: the header says which.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "medium/cache_lines.h"
#include "medium/checksum.h"
#include "medium/journal_name.h"
#include "medium/medium.h"

namespace pawl::journal {

static_assert(std::endian::native == std::endian::little, "the journal is little-endian");

inline constexpr std::uint64_t kAreaStart = kJournalSlots * kJournalSlotBytes;
// What records are padded to and stand at multiples of.
inline constexpr std::uint64_t kBlockBytes = 4096;
constexpr bool is_block_bytes(std::uint64_t bytes) {
  return bytes == kBlockBytes || bytes == kLineBytes;
}
inline constexpr std::uint32_t kVersion = 2;          // of a journal of one file
inline constexpr std::uint32_t kVersionOfGroups = 3;  // its header is followed by a list of files
inline constexpr std::array<char, 4> kRecordMagic = {'P', 'R', 'E', 'C'};
inline constexpr std::uint64_t kNoTruncation = ~std::uint64_t{0};
inline constexpr std::uint64_t kFileSizeMax = std::uint64_t{1} << 62;
// Of a header's generation and sequence number: what follows them never wraps to 0.
inline constexpr std::uint64_t kCounterMax = std::uint64_t{1} << 62;

// Records of a group name a file by its number, in the high bits of a range's offset.
inline constexpr std::uint64_t kGroupFilesMax = 16;
inline constexpr unsigned kFileNumberShift = 56;
inline constexpr std::uint64_t kGroupFileSizeMax =
    (std::uint64_t{1} << kFileNumberShift) - kPageBytes;
constexpr std::uint64_t file_number(std::uint64_t range_offset) {
  return range_offset >> kFileNumberShift;
}
constexpr std::uint64_t offset_in_file(std::uint64_t range_offset) {
  return range_offset & ((std::uint64_t{1} << kFileNumberShift) - 1);
}

// Of the two slots, the valid one with the higher generation counts.
struct Header {
  std::array<char, 8> magic = kJournalMagic;
  std::uint32_t version = kVersion;
  std::uint32_t crc32c = 0;  // of this struct with this field zero
  std::uint64_t generation = 0;
  JournalId journal_id{};
  std::uint64_t epoch = 0;  // random; records of another epoch are stale
  std::uint64_t file_inode = 0;
  std::uint64_t file_birth_time_ns = 0;
  std::uint64_t tail_offset = kAreaStart;  // where the first record to replay may stand
  std::uint64_t tail_sequence = 1;         // and its sequence number
  std::uint64_t writer_process = 0;        // a hint for messages
  std::uint64_t journal_bytes = 0;         // a journal shorter than this was cut
  std::uint64_t block_bytes = kBlockBytes;
};
static_assert(sizeof(Header) == 104);

// Behind a header of kVersionOfGroups, and in its checksum: followed by the list.
struct ListHeader {
  std::uint32_t role = 0;
  std::uint32_t bytes = 0;  // with this struct
};
static_assert(sizeof(ListHeader) == 8);
inline constexpr std::size_t kListBytesMax = kJournalSlotBytes - sizeof(Header);

// Followed by payload_bytes of ranges, then zeros up to a whole block.
struct RecordHeader {
  std::array<char, 4> magic = kRecordMagic;
  std::uint32_t header_crc32c = 0;  // of this struct with this field zero
  std::uint64_t epoch = 0;
  std::uint64_t sequence = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t file_size = 0;                // of the file after this commit
  std::uint64_t truncate_to = kNoTruncation;  // the file was first cut to this many bytes
  std::uint64_t time_ns = 0;                  // CLOCK_REALTIME
  std::uint32_t payload_crc32c = 0;
  std::uint32_t header_generation = 0;  // low 32 bits, of the header that was durable by then
  std::uint64_t durable_sequence = 0;   // the last record that was durable when this was written
};
static_assert(sizeof(RecordHeader) == 72);

// Followed by length_bytes of content, then zeros up to a multiple of 8.
struct RangeHeader {
  std::uint64_t offset = 0;
  std::uint64_t length_bytes = 0;  // never 0
};
static_assert(sizeof(RangeHeader) == 16);

// In a group's journal the first range of each record, at offset 0, holds one of these for each
// file that was open, in ascending order; file_size and truncate_to of the record's header are not
// used.
struct FileSize {
  std::uint64_t file = 0;  // its number
  std::uint64_t size_bytes = 0;
  std::uint64_t truncate_to = kNoTruncation;
};
static_assert(sizeof(FileSize) == 24);

constexpr std::uint64_t range_bytes(std::uint64_t length) {
  return sizeof(RangeHeader) + round_up(length, 8);
}
// Blocks are powers of two, and to divide by one that is not a constant costs more than the rest.
constexpr std::uint64_t round_up_to_block(std::uint64_t bytes, std::uint64_t block_bytes) {
  return (bytes + block_bytes - 1) & ~(block_bytes - 1);
}
static_assert(std::has_single_bit(kBlockBytes) && std::has_single_bit(std::uint64_t{kLineBytes}));
constexpr std::uint64_t record_bytes(std::uint64_t payload_bytes, std::uint64_t block_bytes) {
  return round_up_to_block(sizeof(RecordHeader) + payload_bytes, block_bytes);
}

// `list`: what follows a header of kVersionOfGroups.
std::uint32_t header_checksum(Header header, std::span<const std::byte> list = {});
std::uint32_t record_header_checksum(RecordHeader header);

}  // namespace pawl::journal
