// The journal as docs/journal-format.md draws it, read once more from that page alone: nothing of
// Pawl's own reader, format or checksum is used.  Where the two disagree, one of them, or the page,
// is wrong.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "workload/content.h"

namespace pawl::fuzz::document {

using Bytes = std::span<const std::byte>;

inline constexpr std::uint64_t kSlot = 4096;
inline constexpr std::uint64_t kRing = 2 * kSlot;  // where it begins
// A block, of either kind.
inline constexpr std::uint64_t kBlock = 4096;
inline constexpr std::uint64_t kLine = 64;
inline constexpr std::size_t kHeaderBytes = 104;
inline constexpr std::size_t kRecordBytes = 72;
inline constexpr std::size_t kRangeBytes = 16;
inline constexpr std::size_t kListBytesMax = kSlot - kHeaderBytes;
inline constexpr std::uint64_t kGroupFilesMax = 16;
inline constexpr std::uint64_t kNotCut = ~std::uint64_t{0};

std::uint32_t crc32c(Bytes bytes);

std::uint64_t number_at(Bytes bytes, std::size_t at, std::size_t count);
void put_number(std::span<std::byte> bytes, std::size_t at, std::size_t count, std::uint64_t value);
bool magic_at(Bytes bytes, std::size_t at, const char* magic);

// Fields, by their offset.
enum HeaderField : std::size_t {
  kHeaderVersion = 8,
  kHeaderCrc = 12,
  kHeaderGeneration = 16,
  kHeaderId = 24,
  kHeaderEpoch = 40,
  kHeaderInode = 48,
  kHeaderBirth = 56,
  kHeaderTail = 64,
  kHeaderTailSequence = 72,
  kHeaderJournalBytes = 88,
  kHeaderBlockBytes = 96,
};
enum RecordField : std::size_t {
  kRecordCrc = 4,
  kRecordEpoch = 8,
  kRecordSequence = 16,
  kRecordPayload = 24,
  kRecordFileSize = 32,
  kRecordCutTo = 40,
  kRecordPayloadCrc = 56,
  kRecordGeneration = 60,
  kRecordDurable = 64,
};

struct Range {
  std::uint64_t file;    // its number; 0 in the journal of one file
  std::uint64_t offset;  // in the file
  std::uint64_t length;
  std::uint64_t content;  // position of its bytes in the journal
};

struct Size {
  std::uint64_t file;
  std::uint64_t size;
  std::uint64_t cut_to;
};

struct Record {
  std::uint64_t position;
  std::uint64_t bytes;  // that it takes of the ring
  std::uint64_t sequence;
  std::vector<Size> sizes;  // of the files it is about
  std::vector<Range> ranges;
};

// Whose side file it is; the last two are of version 3.
enum class Whose { file, group, member };

struct Listed {
  std::uint64_t number;
  std::string name;
};

struct Journal {
  enum class State { readable, refused, another_version };
  State state = State::refused;
  // Two headers of one generation that differ: the writer makes none, the page does not judge them.
  bool ambiguous = false;
  std::size_t slot = 0;  // that counts
  std::array<std::byte, 16> id{};
  std::uint64_t inode = 0;
  std::uint64_t birth_time_ns = 0;
  std::uint64_t generation = 0;
  std::uint64_t tail_sequence = 0;
  std::uint64_t block_bytes = 0;
  Whose whose = Whose::file;
  std::vector<Listed> listed;
  std::vector<Record> records;
  bool commits_are_lost = false;
};

// With `cut_is_read` one that is shorter than its header says is readable as far as it goes, and
// commits are lost.
Journal read(Bytes journal, bool cut_is_read = false);

// Step 5 of recovery, for the first `count` records; of a group's journal, for the file with this
// number.
void apply(const Journal& journal, Bytes bytes, test::Content& file,
           std::size_t count = ~std::size_t{0}, std::uint64_t number = 0);

}  // namespace pawl::fuzz::document
