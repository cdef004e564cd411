// Any bytes as a journal: what the reader believes is consistent, is what the document says, and is
// the same the second time; it reads no more than it must, and never crashes.

#include <algorithm>
#include <cerrno>
#include <optional>

#include "fuzz/byte_file.h"
#include "fuzz/format_by_document.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/require.h"
#include "fuzz/written_journal.h"
#include "journal/reader.h"

namespace pawl::fuzz {

const std::size_t kPrologueBytes = 0;

std::vector<Seed> seeds() {
  std::vector<Seed> seeds;
  for (WrittenJournal& journal : written_journals())
    seeds.push_back({journal.name, std::move(journal.bytes)});
  for (SideFile& side : side_files_of_groups()) seeds.push_back({side.name, std::move(side.bytes)});
  return seeds;
}

namespace {

// All that a reader says of a journal.
struct Told {
  int error_number = 0;
  std::string error;
  std::vector<journal::RecordSummary> records;
  std::vector<std::uint32_t> contents;  // a checksum of what is visited of each
  std::string end_reason;
  std::string evidence;
  journal::Listed listed;

  bool operator==(const Told& other) const {
    return error_number == other.error_number && error == other.error &&
           records.size() == other.records.size() && contents == other.contents &&
           end_reason == other.end_reason && evidence == other.evidence;
  }
};

std::uint32_t visited(journal::Reader& reader, const journal::RecordSummary& record) {
  std::vector<std::byte> seen;
  std::uint64_t bytes = 0;
  const Status status =
      reader.visit(record, [&](std::uint64_t offset, std::span<const std::byte> piece) {
        require(!piece.empty() && piece.size() <= journal::Reader::kVisitBytesMax,
                "pieces are bounded");
        const bool is_of_group = reader.listed().role == journal::Role::group;
        const journal::FileSize* const file =
            record.size_of(is_of_group ? journal::file_number(offset) : 0);
        const std::uint64_t in_file = is_of_group ? journal::offset_in_file(offset) : offset;
        require(file != nullptr && in_file <= file->size_bytes &&
                    piece.size() <= file->size_bytes - in_file,
                "what is visited lies within the file");
        std::array<std::byte, 8> place{};
        document::put_number(place, 0, 8, offset);
        seen.insert(seen.end(), place.begin(), place.end());
        seen.insert(seen.end(), piece.begin(), piece.end());
        bytes += piece.size();
        return Status{};
      });
  require(status.ok(), "a record that was believed can be visited");
  require(bytes == record.changed_bytes, "what is visited is what was counted");
  return document::crc32c(seen);
}

Told read(std::vector<std::byte>& bytes, journal::IfCut if_cut = journal::IfCut::refuse) {
  Told told;
  ByteFile file(bytes);
  auto opened = journal::Reader::open(file, if_cut);
  if (!opened.ok()) {
    told.error_number = opened.status().error_number();
    told.error = opened.status().text();
    require(told.error_number == EBADMSG || told.error_number == ENOTSUP,
            "refusals have two kinds");
    require(!told.error.empty(), "a refusal says why");
    return told;
  }
  journal::Reader& reader = opened.value();
  told.listed = reader.listed();
  if (told.listed.role == journal::Role::member) return told;  // it holds no record
  const std::uint64_t block_bytes = reader.header().block_bytes;
  const std::uint64_t blocks = bytes.size() / document::kBlock;
  std::uint64_t covered = document::kRing;
  for (;;) {
    const auto next = reader.next();
    require(next.ok(), "a medium that never fails gives no failure");
    if (!next.value().has_value()) break;
    const journal::RecordSummary& record = *next.value();
    require(record.header.sequence == reader.header().tail_sequence + told.records.size(),
            "records come in sequence");
    require(record.header.epoch == reader.header().epoch, "records are of the header's epoch");
    require(record.position % block_bytes == 0 && record.position >= document::kRing &&
                record.header.payload_bytes <= bytes.size() - record.position,
            "records lie within the journal");
    covered += journal::record_bytes(record.header.payload_bytes, block_bytes);
    require(covered <= bytes.size(), "records cover the ring once at most");
    told.records.push_back(record);
    told.contents.push_back(visited(reader, record));
  }
  told.end_reason = reader.end_reason();
  auto evidence = reader.evidence_of_loss();
  require(evidence.ok(), "a medium that never fails gives no failure");
  told.evidence = evidence.value().text;
  require(!reader.next().value().has_value(), "the end stays the end");
  require(file.changes() == 0, "a reader changes nothing");
  // Each record is read twice, and looked for in two places; each piece of the journal costs a
  // read.
  require(file.reads() <= 64 + 8 * (blocks + 1), "reads are bounded");
  return told;
}

void compare(const Told& told, const document::Journal& expected, document::Bytes bytes) {
  if (expected.ambiguous) return;
  using State = document::Journal::State;
  const State state = told.error_number == 0         ? State::readable
                      : told.error_number == ENOTSUP ? State::another_version
                                                     : State::refused;
  require(state == expected.state, [&] {
    return "reader and document differ on the header: " +
           (told.error.empty() ? "it was read" : told.error);
  });
  if (state != State::readable) return;
  require(
      static_cast<std::uint32_t>(told.listed.role) == static_cast<std::uint32_t>(expected.whose) &&
          std::equal(told.listed.files.begin(), told.listed.files.end(), expected.listed.begin(),
                     expected.listed.end(),
                     [](const journal::GroupFile& left, const document::Listed& right) {
                       return left.number == right.number && left.name == right.name;
                     }),
      "reader and document differ on the files of a group");
  require(told.records.size() == expected.records.size(), [&] {
    return "the reader finds " + std::to_string(told.records.size()) + " records, the document " +
           std::to_string(expected.records.size()) + "; " + told.end_reason;
  });
  for (std::size_t i = 0; i < told.records.size(); ++i) {
    const document::Record& record = expected.records[i];
    const auto is_the_same = [](const journal::FileSize& left, const document::Size& right) {
      return left.file == right.file && left.size_bytes == right.size &&
             left.truncate_to == right.cut_to;
    };
    require(told.records[i].position == record.position &&
                std::equal(told.records[i].sizes.begin(), told.records[i].sizes.end(),
                           record.sizes.begin(), record.sizes.end(), is_the_same) &&
                told.records[i].range_count == record.ranges.size(),
            "reader and document differ on a record");
    // As long as every range came in one piece.
    std::vector<std::byte> seen;
    for (const document::Range& range : record.ranges) {
      std::array<std::byte, 8> place{};
      document::put_number(place, 0, 8, (range.file << 56) + range.offset);
      seen.insert(seen.end(), place.begin(), place.end());
      const auto content = bytes.subspan(range.content, range.length);
      seen.insert(seen.end(), content.begin(), content.end());
    }
    require(bytes.size() > journal::Reader::kVisitBytesMax ||
                told.contents[i] == document::crc32c(seen),
            "reader and document differ on a record's content");
  }
  require(told.evidence.empty() != expected.commits_are_lost, [&] {
    return "reader and document differ on what is lost: " +
           (told.evidence.empty() ? "nothing" : told.evidence);
  });
}

}  // namespace
}  // namespace pawl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pawl::fuzz;
  const auto* const first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(first, first + size);
  const Told told = read(bytes);
  require(told == read(bytes), "the second reading is the first");
  compare(told, document::read(bytes), bytes);
  const Told left = read(bytes, pawl::journal::IfCut::read_what_is_left);
  require(told.error_number != 0 || told == left, "what is not cut is read as ever");
  compare(left, document::read(bytes, true), bytes);
  return 0;
}
