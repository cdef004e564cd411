#include "journal/reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace pawl::journal {
namespace {

constexpr std::uint64_t kEpoch = 0x1122334455667788;
constexpr std::uint64_t kFileSize = 1 << 20;

// A journal in memory that insists on what O_DIRECT insists on, and refuses every change.
class MemoryFile : public MediumFile {
 public:
  explicit MemoryFile(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  Status read(std::uint64_t offset, std::span<std::byte> into) override {
    EXPECT_EQ(offset % kBlockBytes, 0u);
    EXPECT_EQ(into.size() % kBlockBytes, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(into.data()) % kBlockBytes, 0u);
    reads_ += 1;
    if (reads_ == failing_read) return Status::failure(EIO, "made up");
    std::fill(into.begin(), into.end(), std::byte{0});
    if (offset < bytes_.size()) {
      const std::size_t count = std::min<std::size_t>(into.size(), bytes_.size() - offset);
      std::memcpy(into.data(), bytes_.data() + offset, count);
    }
    return {};
  }
  Status write(std::uint64_t, std::span<const std::byte>) override { return refuse(); }
  Status flush() override { return refuse(); }
  Result<std::uint64_t> size() override { return std::uint64_t{bytes_.size()}; }
  Status resize(std::uint64_t) override { return refuse(); }
  Status reserve(std::uint64_t, std::uint64_t) override { return refuse(); }
  Status punch(std::uint64_t, std::uint64_t) override { return refuse(); }
  Status zero(std::uint64_t, std::uint64_t) override { return refuse(); }
  Result<std::uint64_t> allocated_prefix_bytes() override { return std::uint64_t{bytes_.size()}; }

  int failing_read = 0;  // the n-th read fails; 0: none

 private:
  static Status refuse() {
    ADD_FAILURE() << "a reader changes nothing";
    return Status::failure(EROFS, "a reader changes nothing");
  }
  std::vector<std::byte> bytes_;
  int reads_ = 0;
};

using Ranges = std::vector<std::pair<std::uint64_t, std::string>>;

void append(std::string& to, const void* bytes, std::size_t count) {
  to.append(static_cast<const char*>(bytes), count);
}

std::string payload_of(const Ranges& ranges) {
  std::string payload;
  for (const auto& [offset, content] : ranges) {
    const RangeHeader header{offset, content.size()};
    append(payload, &header, sizeof(header));
    payload += content;
    payload.resize(round_up(payload.size(), 8));
  }
  return payload;
}

RecordHeader record_header(std::uint64_t sequence, const std::string& payload) {
  RecordHeader header;
  header.epoch = kEpoch;
  header.sequence = sequence;
  header.durable_sequence = sequence - 1;
  header.header_generation = 1;
  header.payload_bytes = payload.size();
  header.file_size = kFileSize;
  header.payload_crc32c = checksum(payload.data(), payload.size());
  return header;
}

// A journal under construction; every checksum right unless a test says otherwise.
class Journal {
 public:
  explicit Journal(std::uint64_t size_bytes = 1 << 20, std::uint64_t block_bytes = kBlockBytes)
      : bytes_(size_bytes) {
    header_.block_bytes = block_bytes;
    header_.epoch = kEpoch;
    header_.generation = 1;
    put_header(0, header_);
  }

  Header& header() { return header_; }
  void put_header(std::uint64_t slot, Header header) {
    header.crc32c = header_checksum(header);
    put(slot * kJournalSlotBytes, &header, sizeof(header));
  }
  void put(std::uint64_t position, const void* bytes, std::size_t count) {
    ASSERT_LE(position + count, bytes_.size());
    std::memcpy(bytes_.data() + position, bytes, count);
  }
  // Returns the position after it.
  std::uint64_t put_record(std::uint64_t position, RecordHeader header,
                           const std::string& payload) {
    header.header_crc32c = record_header_checksum(header);
    put(position, &header, sizeof(header));
    put(position + sizeof(header), payload.data(), payload.size());
    return position + record_bytes(payload.size(), header_.block_bytes);
  }
  std::uint64_t put_record(std::uint64_t position, std::uint64_t sequence, const Ranges& ranges) {
    const std::string payload = payload_of(ranges);
    return put_record(position, record_header(sequence, payload), payload);
  }
  void flip(std::uint64_t position) { bytes_.at(position) ^= std::byte{0x10}; }
  std::vector<std::byte>& bytes() { return bytes_; }
  MemoryFile file() const { return MemoryFile(bytes_); }

 private:
  Header header_;
  std::vector<std::byte> bytes_;
};

struct Seen {
  std::vector<std::uint64_t> sequences;
  std::vector<std::uint64_t> positions;
  std::map<std::uint64_t, std::string> contents;  // by offset; later records win
  std::string end_reason;
};

Seen read_all(MediumFile& file) {
  Seen seen;
  Result<Reader> opened = Reader::open(file);
  EXPECT_TRUE(opened.ok()) << opened.status().text();
  if (!opened.ok()) return seen;
  Reader& reader = opened.value();
  for (;;) {
    Result<std::optional<RecordSummary>> record = reader.next();
    EXPECT_TRUE(record.ok()) << record.status().text();
    if (!record.ok() || !record.value().has_value()) break;
    seen.sequences.push_back(record.value()->header.sequence);
    seen.positions.push_back(record.value()->position);
    std::uint64_t changed_bytes = 0;
    Status status = reader.visit(*record.value(), [&](std::uint64_t offset, auto bytes) {
      EXPECT_LE(bytes.size(), Reader::kVisitBytesMax);
      seen.contents[offset] =
          std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      changed_bytes += bytes.size();
      return Status{};
    });
    EXPECT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(changed_bytes, record.value()->changed_bytes);
  }
  seen.end_reason = reader.end_reason();
  return seen;
}

Seen read_all(const Journal& journal) {
  MemoryFile file = journal.file();
  return read_all(file);
}

Status open_failure(const Journal& journal) {
  MemoryFile file = journal.file();
  return Reader::open(file).status();
}

using Sequences = std::vector<std::uint64_t>;

TEST(Reader, ReadsNothingFromAnEmptyRing) {
  const Seen seen = read_all(Journal());
  EXPECT_TRUE(seen.sequences.empty());
  EXPECT_EQ(seen.end_reason, "");
}

TEST(Reader, ReadsRecordsInOrderWithTheirContents) {
  Journal journal;
  std::uint64_t end =
      journal.put_record(kAreaStart, 1, {{0, "hello"}, {4096, std::string(64, 'x')}});
  end = journal.put_record(end, 2, {});  // a change of size alone
  end = journal.put_record(end, 3, {{8192, std::string(10000, 'y')}});
  const Seen seen = read_all(journal);
  EXPECT_EQ(seen.sequences, (Sequences{1, 2, 3}));
  EXPECT_EQ(seen.positions, (Sequences{8192, 12288, 16384}));
  EXPECT_EQ(seen.contents.at(0), "hello");
  EXPECT_EQ(seen.contents.at(4096), std::string(64, 'x'));
  EXPECT_EQ(seen.contents.at(8192), std::string(10000, 'y'));
  EXPECT_EQ(seen.end_reason, "");
}

TEST(Reader, VisitsALargeRecordInPieces) {
  Journal journal(8 << 20);
  std::string content(5 << 20, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 31 >> 5);
  const std::string payload = payload_of({{4096, content}});
  RecordHeader header = record_header(1, payload);
  header.file_size = 6 << 20;
  journal.put_record(kAreaStart, header, payload);
  MemoryFile file = journal.file();
  Result<Reader> reader = Reader::open(file);
  ASSERT_TRUE(reader.ok());
  Result<std::optional<RecordSummary>> record = reader.value().next();
  ASSERT_TRUE(record.ok());
  ASSERT_TRUE(record.value().has_value());
  EXPECT_EQ(record.value()->range_count, 1u);
  std::string back;
  Status status = reader.value().visit(*record.value(), [&](std::uint64_t offset, auto bytes) {
    EXPECT_EQ(offset, 4096 + back.size());
    EXPECT_LE(bytes.size(), Reader::kVisitBytesMax);
    append(back, bytes.data(), bytes.size());
    return Status{};
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(back, content);
}

TEST(Reader, StartsAtTheTail) {
  Journal journal;
  journal.header().tail_offset = kAreaStart + 2 * kBlockBytes;
  journal.header().tail_sequence = 7;
  journal.put_header(0, journal.header());
  journal.put_record(kAreaStart, 6, {{0, "old"}});
  const std::uint64_t end = journal.put_record(kAreaStart + 2 * kBlockBytes, 7, {{0, "new"}});
  journal.put_record(end, 8, {{8, "newer"}});
  EXPECT_EQ(read_all(journal).sequences, (Sequences{7, 8}));
}

TEST(Reader, WrapsWhereTheNextRecordDidNotFit) {
  Journal journal(kAreaStart + 4 * kBlockBytes);
  journal.header().tail_offset = kAreaStart + 2 * kBlockBytes;
  journal.header().tail_sequence = 5;
  journal.put_header(0, journal.header());
  journal.put_record(kAreaStart + 2 * kBlockBytes, 5, {{0, "a"}});
  journal.put_record(kAreaStart, 6,
                     {{0, std::string(5000, 'b')}});  // two blocks: not in the last one
  const Seen seen = read_all(journal);
  EXPECT_EQ(seen.sequences, (Sequences{5, 6}));
  EXPECT_EQ(seen.positions, (Sequences{kAreaStart + 2 * kBlockBytes, kAreaStart}));
}

TEST(Reader, WrapsAtTheExactEnd) {
  Journal journal(kAreaStart + 2 * kBlockBytes);
  journal.header().tail_offset = kAreaStart + kBlockBytes;
  journal.put_header(0, journal.header());
  journal.put_record(kAreaStart + kBlockBytes, 1, {{0, "a"}});
  journal.put_record(kAreaStart, 2, {{0, "b"}});
  EXPECT_EQ(read_all(journal).sequences, (Sequences{1, 2}));
  journal.header().tail_offset = kAreaStart + 2 * kBlockBytes;  // the end itself
  journal.header().tail_sequence = 2;
  journal.put_header(0, journal.header());
  EXPECT_EQ(read_all(journal).sequences, (Sequences{2}));
}

TEST(Reader, TakesTheValidSlotOfTheHigherGeneration) {
  Journal journal;
  journal.put_record(kAreaStart, 1, {{0, "one"}});
  journal.put_record(kAreaStart + kBlockBytes, 2, {{0, "two"}});
  Header newer = journal.header();
  newer.generation = 2;
  newer.tail_offset += kBlockBytes;
  newer.tail_sequence = 2;
  journal.put_header(1, newer);
  EXPECT_EQ(read_all(journal).sequences, (Sequences{2}));
  journal.flip(kBlockBytes + 20);  // the newer slot was torn: the older one counts
  EXPECT_EQ(read_all(journal).sequences, (Sequences{1, 2}));
}

TEST(Reader, RefusesWhatIsNoJournal) {
  for (const std::uint64_t size : {0, 1, 4096, 8191, 8192, 20000}) {
    Journal journal;
    journal.bytes().assign(size, std::byte{0});
    EXPECT_EQ(open_failure(journal).error_number(), EBADMSG) << size;
    journal.bytes().assign(size, std::byte{'z'});
    const Status status = open_failure(journal);
    EXPECT_EQ(status.error_number(), EBADMSG) << size;
    if (size > 0) {
      EXPECT_NE(status.text().find("no Pawl journal"), std::string::npos);
    }
  }
}

TEST(Reader, RefusesADamagedHeaderWhicheverBitFlips) {
  for (std::uint64_t byte = 0; byte < sizeof(Header); ++byte) {
    Journal journal;
    journal.flip(byte);
    const Status status = open_failure(journal);
    const bool in_version = byte >= 8 && byte < 12;
    EXPECT_EQ(status.error_number(), in_version ? ENOTSUP : EBADMSG) << byte;
  }
}

TEST(Reader, RefusesANewerVersionInAnySlotAndNamesIt) {
  for (const std::uint64_t slot : {0, 1}) {
    Journal journal;
    Header newer = journal.header();
    newer.version = 7;
    newer.generation = 0;
    journal.put_header(slot, newer);
    const Status status = open_failure(journal);
    EXPECT_EQ(status.error_number(), ENOTSUP);
    EXPECT_NE(status.text().find("version 7"), std::string::npos) << status.text();
    EXPECT_NE(status.text().find("up to 3"), std::string::npos) << status.text();
  }
}

TEST(Reader, RefusesATailWhereNoRecordCanStand) {
  for (const std::uint64_t tail : {std::uint64_t{0}, std::uint64_t{4096}, std::uint64_t{8193},
                                   std::uint64_t{2} << 20, ~std::uint64_t{4095}}) {
    Journal journal;
    journal.header().tail_offset = tail;
    journal.put_header(0, journal.header());
    EXPECT_EQ(open_failure(journal).error_number(), EBADMSG) << tail;
  }
}

TEST(Reader, RefusesCountersThatWouldWrap) {
  for (const std::uint64_t number : {kCounterMax + 1, ~std::uint64_t{0}}) {
    Journal journal;
    Header hostile = journal.header();
    hostile.generation = number;
    journal.put_header(0, hostile);
    EXPECT_EQ(open_failure(journal).error_number(), EBADMSG) << number;
    hostile = journal.header();
    hostile.tail_sequence = number;
    journal.put_header(0, hostile);
    EXPECT_EQ(open_failure(journal).error_number(), EBADMSG) << number;
  }
}

TEST(Reader, StopsSilentlyAtStaleRecords) {
  Journal journal;
  std::uint64_t end = journal.put_record(kAreaStart, 1, {{0, "a"}});
  const std::string payload = payload_of({{0, "b"}});
  RecordHeader other_epoch = record_header(2, payload);
  other_epoch.epoch += 1;
  journal.put_record(end, other_epoch, payload);
  EXPECT_EQ(read_all(journal).sequences, (Sequences{1}));
  EXPECT_EQ(read_all(journal).end_reason, "");
  for (const std::uint64_t sequence : {1, 3}) {
    journal.put_record(end, sequence, {{0, "b"}});
    EXPECT_EQ(read_all(journal).sequences, (Sequences{1}));
    EXPECT_EQ(read_all(journal).end_reason, "");
  }
}

TEST(Reader, NeverBelievesARecordWithAFlippedBit) {
  Journal good;
  const std::uint64_t second = good.put_record(kAreaStart, 1, {{0, "first"}});
  good.put_record(second, 2, {{100, "second"}, {300, std::string(64, 'q')}});
  const std::uint64_t payload_bytes =
      payload_of({{100, "second"}, {300, std::string(64, 'q')}}).size();
  for (std::uint64_t byte = 0; byte < sizeof(RecordHeader) + payload_bytes; ++byte) {
    Journal journal = good;
    journal.flip(second + byte);
    const Seen seen = read_all(journal);
    EXPECT_EQ(seen.sequences, (Sequences{1})) << byte;
    EXPECT_NE(seen.end_reason.find("record 2"), std::string::npos) << byte << seen.end_reason;
  }
}

TEST(Reader, SaysThatATornPayloadIsTorn) {
  Journal journal(1 << 20);
  journal.put_record(kAreaStart, 1, {{0, std::string(20000, 'x')}});
  std::fill(journal.bytes().begin() + kAreaStart + 2 * kBlockBytes, journal.bytes().end(),
            std::byte{0});
  const Seen seen = read_all(journal);
  EXPECT_TRUE(seen.sequences.empty());
  EXPECT_NE(seen.end_reason.find("checksum of its payload"), std::string::npos) << seen.end_reason;
}

TEST(Reader, RefusesAJournalThatWasCutShort) {
  Journal journal(1 << 20);
  journal.header().journal_bytes = 1 << 20;
  journal.put_header(0, journal.header());
  journal.put_record(kAreaStart, 1, {{0, "x"}});
  EXPECT_EQ(read_all(journal).sequences, (Sequences{1}));
  for (const std::uint64_t size : {(1 << 20) - 1, 12288, 8192, 4096, 104}) {
    journal.bytes().resize(size);
    const Status status = open_failure(journal);
    EXPECT_EQ(status.error_number(), EBADMSG) << size;
    EXPECT_NE(status.text().find("cut short"), std::string::npos) << status.text();
  }
}

TEST(Reader, ReadsWhatACutJournalHasLeftWhenAsked) {
  Journal journal(1 << 20);
  journal.header().journal_bytes = 1 << 20;
  journal.put_header(0, journal.header());
  const std::uint64_t second = journal.put_record(kAreaStart, 1, {{0, "x"}});
  // It ends in zeros, as a cut journal seems to.
  const std::uint64_t third = journal.put_record(second, 2, {{0, std::string(20000, '\0')}});
  journal.put_record(third, 3, {{0, "z"}});
  const auto sequences_of = [&](std::uint64_t size) {
    Journal shorter = journal;
    shorter.bytes().resize(size);
    MemoryFile file = shorter.file();
    Result<Reader> reader = Reader::open(file, IfCut::read_what_is_left);
    EXPECT_TRUE(reader.ok()) << size << ": " << reader.status().text();
    Sequences sequences;
    while (reader.ok()) {
      Result<std::optional<RecordSummary>> record = reader.value().next();
      EXPECT_TRUE(record.ok()) << record.status().text();
      if (!record.ok() || !record.value().has_value()) break;
      sequences.push_back(record.value()->header.sequence);
    }
    const bool is_cut = size < (1 << 20);
    EXPECT_EQ(reader.value().cut().empty(), !is_cut);
    EXPECT_EQ(reader.value().evidence_of_loss().value().any(), is_cut);
    return sequences;
  };
  EXPECT_EQ(sequences_of(1 << 20), (Sequences{1, 2, 3}));
  EXPECT_EQ(sequences_of((1 << 20) - 4096), (Sequences{1, 2, 3}));
  EXPECT_EQ(sequences_of(third + kBlockBytes), (Sequences{1, 2, 3}));
  EXPECT_EQ(sequences_of(third + kBlockBytes - 1), (Sequences{1, 2}));
  EXPECT_EQ(sequences_of(third), (Sequences{1, 2}));
  for (const std::uint64_t size : {third - 1, third - kBlockBytes, second + kBlockBytes, second})
    EXPECT_EQ(sequences_of(size), (Sequences{1})) << size;
  for (const std::uint64_t size : {second - 1, kAreaStart, kAreaStart - 1, std::uint64_t{104}})
    EXPECT_EQ(sequences_of(size), Sequences{}) << size;
  // A record that is damaged is believed no more than without the cut.
  journal.flip(second + 100);
  EXPECT_EQ(sequences_of((1 << 20) - 4096), (Sequences{1}));
}

// Behind the cut stands what comes first: what had come to stand in front of it is not its
// successor.
TEST(Reader, ReadsNothingOfACutRingWhoseTailIsBehindTheCut) {
  Journal journal(kAreaStart + 4 * kBlockBytes);
  journal.header().journal_bytes = journal.bytes().size();
  journal.header().tail_offset = kAreaStart + 3 * kBlockBytes;
  journal.header().tail_sequence = 5;
  journal.put_header(0, journal.header());
  journal.put_record(kAreaStart + 3 * kBlockBytes, 5, {{0, "a"}});
  journal.put_record(kAreaStart, 6, {{0, "b"}});
  journal.bytes().resize(kAreaStart + 3 * kBlockBytes);
  MemoryFile file = journal.file();
  Result<Reader> reader = Reader::open(file, IfCut::read_what_is_left);
  ASSERT_TRUE(reader.ok());
  EXPECT_FALSE(reader.value().next().value().has_value());
}

TEST(Reader, EndsWhereAGrownJournalWasCutShort) {
  Journal journal(1 << 20);
  const std::uint64_t end = journal.put_record(kAreaStart, 1, {{0, "x"}});
  journal.put_record(end, 2, {{0, std::string(20000, 'x')}});
  for (std::uint64_t size = end + 1; size < end + record_bytes(20016, kBlockBytes); size += 1000) {
    Journal shorter = journal;
    shorter.bytes().resize(size);
    const Seen seen = read_all(shorter);
    EXPECT_EQ(seen.sequences, (Sequences{1})) << size;
    if (size >= end + kBlockBytes) {
      EXPECT_NE(seen.end_reason, "") << size;
    }
  }
}

// What only a hostile writer makes: right checksums over wrong contents.
struct Hostile {
  const char* name;
  std::function<void(RecordHeader&, std::string&)> spoil;
};

std::string raw_range(std::uint64_t offset, std::uint64_t length, const std::string& rest) {
  const RangeHeader header{offset, length};
  std::string payload;
  append(payload, &header, sizeof(header));
  return payload + rest;
}

TEST(Reader, RefusesHostileRecordsWithRightChecksums) {
  const std::uint64_t all = ~std::uint64_t{0};
  const std::vector<Hostile> cases = {
      {"empty range", [](auto&, auto& p) { p = raw_range(0, 0, ""); }},
      {"range past the end", [](auto&, auto& p) { p = raw_range(kFileSize - 7, 8, "12345678"); }},
      {"offset overflows", [=](auto&, auto& p) { p = raw_range(all - 3, 8, "12345678"); }},
      {"length overflows", [=](auto&, auto& p) { p = raw_range(8, all, "12345678"); }},
      {"length rounds to zero", [=](auto&, auto& p) { p = raw_range(0, all - 6, "12345678"); }},
      {"length past the payload", [](auto&, auto& p) { p = raw_range(0, 9, "12345678"); }},
      {"half a range header", [](auto&, auto& p) { p = "12345678"; }},
      {"bytes left over", [](auto&, auto& p) { p = raw_range(0, 8, "12345678abc"); }},
      {"padding not zero", [](auto&, auto& p) { p = raw_range(0, 5, "12345678"); }},
      {"padding missing", [](auto&, auto& p) { p = raw_range(0, 5, "12345"); }},
      {"file too large", [](auto& h, auto&) { h.file_size = kFileSizeMax + 1; }},
      {"cut to too much", [](auto& h, auto&) { h.truncate_to = kFileSizeMax + 1; }},
      {"knows itself durable", [](auto& h, auto&) { h.durable_sequence = h.sequence; }},
      {"file shorter than a range", [](auto& h, auto&) { h.file_size = 3; }},
  };
  for (const Hostile& hostile : cases) {
    Journal journal;
    std::string payload = payload_of({{0, "12345678"}});
    RecordHeader header = record_header(1, payload);
    hostile.spoil(header, payload);
    header.payload_bytes = payload.size();
    header.payload_crc32c = checksum(payload.data(), payload.size());
    journal.put_record(kAreaStart, header, payload);
    const Seen seen = read_all(journal);
    EXPECT_TRUE(seen.sequences.empty()) << hostile.name;
    EXPECT_NE(seen.end_reason, "") << hostile.name;
  }
  // The same record unspoilt is taken, so that each case above fails for its own reason.
  Journal journal;
  journal.put_record(kAreaStart, 1, {{0, "12345678"}});
  EXPECT_EQ(read_all(journal).sequences, (Sequences{1}));
}

TEST(Reader, RefusesAPayloadLongerThanTheJournal) {
  for (const std::uint64_t length :
       {std::uint64_t{1} << 20, ~std::uint64_t{0}, ~std::uint64_t{63}, ~std::uint64_t{0} - 4159}) {
    Journal journal;
    RecordHeader header = record_header(1, "");
    header.payload_bytes = length;
    journal.put_record(kAreaStart, header, "");
    EXPECT_TRUE(read_all(journal).sequences.empty()) << length;
    EXPECT_NE(read_all(journal).end_reason, "") << length;
  }
}

TEST(Reader, DoesNotLoopInAHostileRing) {
  // A record around a record: the ring seems to hold more than it has room for.
  Journal journal(kAreaStart + 4 * kBlockBytes);
  journal.header().tail_offset = kAreaStart + 3 * kBlockBytes;
  journal.put_header(0, journal.header());
  journal.put_record(kAreaStart + 3 * kBlockBytes, 1, {{0, "a"}});
  // Record 2 covers the whole area, record 1 included.
  std::string content(4 * kBlockBytes - sizeof(RecordHeader) - sizeof(RangeHeader), '\0');
  const std::uint64_t first_content = kAreaStart + sizeof(RecordHeader) + sizeof(RangeHeader);
  std::memcpy(content.data(), journal.bytes().data() + first_content, content.size());
  journal.put_record(kAreaStart, 2, {{0, content}});
  const Seen seen = read_all(journal);
  EXPECT_EQ(seen.sequences, (Sequences{1}));
  EXPECT_NE(seen.end_reason.find("no room"), std::string::npos) << seen.end_reason;
}

std::string evidence_in(const Journal& journal) {
  MemoryFile file = journal.file();
  Result<Reader> reader = Reader::open(file);
  EXPECT_TRUE(reader.ok());
  while (reader.value().next().value().has_value()) continue;
  return reader.value().evidence_of_loss().value().text;
}

TEST(Reader, TellsDamageFromATornEnd) {
  Journal journal;
  std::uint64_t end = journal.put_record(kAreaStart, 1, {{0, "a"}});
  const std::uint64_t second = end;
  end = journal.put_record(end, 2, {{0, "b"}});
  const auto evidence = [&journal] { return evidence_in(journal); };
  EXPECT_EQ(evidence(), "");
  journal.flip(second + sizeof(RecordHeader) + 3);
  EXPECT_EQ(evidence(), "");  // a torn last record
  // A later record that was written before the torn one was durable: a queue of batches was cut
  // off.
  RecordHeader queued = record_header(3, payload_of({{0, "c"}}));
  queued.durable_sequence = 1;
  journal.put_record(end, queued, payload_of({{0, "c"}}));
  EXPECT_EQ(evidence(), "");
  // A later record whose writer had seen it durable: it was whole once.
  journal.put_record(end, 3, {{0, "c"}});
  EXPECT_NE(evidence().find("record 2"), std::string::npos) << evidence();
}

// A journal, then nothing for very long, and a block of it again.
class SparseFile final : public MemoryFile {
 public:
  static constexpr std::uint64_t kIslandAt = std::uint64_t{1} << 49;
  static constexpr std::uint64_t kSizeBytes = std::uint64_t{1} << 50;
  SparseFile(Journal& journal, std::vector<std::byte> island)
      : MemoryFile(journal.bytes()), bytes_(journal.bytes().size()), island_(std::move(island)) {
    constexpr int kReadsMax = 100;
    failing_read = kReadsMax;
  }

  Status read(std::uint64_t offset, std::span<std::byte> into) override {
    PAWL_TRY(MemoryFile::read(offset, into));
    if (offset == kIslandAt) std::copy(island_.begin(), island_.end(), into.begin());
    return {};
  }
  Result<std::uint64_t> size() override { return kSizeBytes; }
  std::uint64_t find_data(std::uint64_t offset) override {
    if (offset < bytes_) return offset;
    if (offset < kIslandAt) return kIslandAt;
    return offset < kIslandAt + island_.size() ? offset : kNoData;
  }

 private:
  const std::uint64_t bytes_;
  const std::vector<std::byte> island_;
};

TEST(Reader, ReadsNoHolesForEvidence) {
  Journal journal;
  const std::uint64_t end = journal.put_record(kAreaStart, 1, {{0, "a"}});
  const auto evidence = [&](std::vector<std::byte> island) {
    SparseFile file(journal, std::move(island));
    Result<Reader> reader = Reader::open(file);
    EXPECT_TRUE(reader.ok());
    while (reader.value().next().value().has_value()) continue;
    const Result<Loss> found = reader.value().evidence_of_loss();
    return found.ok() ? found.value().text : found.status().text();
  };
  EXPECT_EQ(evidence({}), "");
  // What stands behind the hole is seen.
  Journal other;
  other.put_record(end, 3, {{0, "c"}});
  const auto record = other.bytes().begin() + static_cast<std::ptrdiff_t>(end);
  EXPECT_NE(evidence({record, record + kBlockBytes}).find("record 2"), std::string::npos);
}

TEST(Reader, TellsThatTheNewerHeaderWasLost) {
  Journal journal;
  Header newer = journal.header();
  newer.generation = 2;
  newer.tail_sequence = 5;
  newer.tail_offset = kAreaStart + 4 * kBlockBytes;
  journal.put_header(1, newer);
  const auto evidence = [&journal] { return evidence_in(journal); };
  journal.flip(kBlockBytes + 30);
  EXPECT_EQ(evidence(), "");  // torn while it was written: nothing knew it yet
  RecordHeader later = record_header(5, payload_of({{0, "e"}}));
  later.header_generation = 2;
  journal.put_record(newer.tail_offset, later, payload_of({{0, "e"}}));
  EXPECT_NE(evidence(), "");
  // The same when the lost header had begun an epoch of its own.
  later.epoch = kEpoch + 1;
  journal.flip(newer.tail_offset);
  EXPECT_EQ(evidence(), "");
  journal.put_record(kAreaStart, later, payload_of({{0, "e"}}));
  EXPECT_NE(evidence(), "");
  // The same when nothing is left of it, and when an older header stands in its place.
  const std::vector<std::byte> zeros(kBlockBytes);
  journal.put(kBlockBytes, zeros.data(), zeros.size());
  EXPECT_NE(evidence(), "");
  Header older = journal.header();
  older.generation = 0;
  journal.put_header(1, older);
  EXPECT_NE(evidence(), "");
  // With the header that the record knew, all is well.
  journal.put_header(1, newer);
  EXPECT_EQ(evidence(), "");
}

// A file may hold journals, or what someone made to look like them: in a record's payload that
// stands at the start of blocks.
TEST(Reader, TakesNoContentForARecord) {
  RecordHeader made_up = record_header(7, "");
  made_up.epoch = kEpoch + 1;
  made_up.header_generation = 1000;
  made_up.header_crc32c = record_header_checksum(made_up);
  std::string content(3 * kBlockBytes, 'x');
  const std::size_t block = kBlockBytes - sizeof(RecordHeader) - sizeof(RangeHeader);
  std::memcpy(content.data() + block, &made_up, sizeof(made_up));
  Journal journal;
  journal.put_record(kAreaStart, 1, {{0, content}});
  const auto evidence = [&journal] { return evidence_in(journal); };
  EXPECT_EQ(evidence(), "");
  // The same when it is what a shorter record left of a longer one.
  journal.put_record(kAreaStart, 1, {{0, "a"}});
  EXPECT_EQ(evidence(), "");
}

TEST(Reader, TellsOfADamagedOtherSlot) {
  Journal journal;
  MemoryFile whole = journal.file();
  EXPECT_FALSE(Reader::open(whole).value().other_slot_damaged());
  journal.put_header(1, journal.header());
  MemoryFile both = journal.file();
  EXPECT_FALSE(Reader::open(both).value().other_slot_damaged());
  journal.flip(kBlockBytes + 30);
  MemoryFile damaged = journal.file();
  EXPECT_TRUE(Reader::open(damaged).value().other_slot_damaged());
}

TEST(Reader, PassesOnAFailureOfTheMedium) {
  Journal journal(8 << 20);
  journal.put_record(kAreaStart, 1, {{0, std::string(1 << 20, 'x')}});
  MemoryFile first = journal.file();
  first.failing_read = 1;
  EXPECT_EQ(Reader::open(first).status().error_number(), EIO);
  MemoryFile later = journal.file();
  later.failing_read = 2;
  Result<Reader> reader = Reader::open(later);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader.value().next().status().error_number(), EIO);
}

TEST(Reader, StopsVisitingWhenTheVisitorFails) {
  Journal journal;
  journal.put_record(kAreaStart, 1, {{0, "a"}, {8, "b"}});
  MemoryFile file = journal.file();
  Result<Reader> reader = Reader::open(file);
  ASSERT_TRUE(reader.ok());
  Result<std::optional<RecordSummary>> record = reader.value().next();
  ASSERT_TRUE(record.ok() && record.value().has_value());
  int visits = 0;
  const Status status = reader.value().visit(*record.value(), [&](std::uint64_t, auto) {
    visits += 1;
    return Status::failure(ENOSPC, "made up");
  });
  EXPECT_EQ(status.error_number(), ENOSPC);
  EXPECT_EQ(visits, 1);
}

// ------------------------------------------------------------------------ blocks of 64 bytes

TEST(ReaderOfLines, ReadsRecordsThatStandLineBehindLine) {
  Journal journal(1 << 20, kLineBytes);
  std::uint64_t end = journal.put_record(kAreaStart, 1, {});
  EXPECT_EQ(end, kAreaStart + 2 * kLineBytes);
  end = journal.put_record(end, 2, {{64, std::string(64, 'x')}});
  EXPECT_EQ(end, kAreaStart + 5 * kLineBytes);
  journal.put_record(end, 3, {{4096, "y"}});
  const Seen seen = read_all(journal);
  EXPECT_EQ(seen.sequences, (Sequences{1, 2, 3}));
  EXPECT_EQ(seen.contents.at(64), std::string(64, 'x'));
  EXPECT_EQ(seen.contents.at(4096), "y");
  EXPECT_EQ(seen.end_reason, "");
}

// A record's header takes more than a line, so it may lie across the end of what was read at once.
TEST(ReaderOfLines, ReadsAHeaderAcrossTheBorderOfItsBuffer) {
  for (const std::uint64_t before : {64, 128, 192}) {
    Journal journal(4 << 20, kLineBytes);
    const std::uint64_t position = Reader::kVisitBytesMax - before;
    journal.header().tail_offset = position;
    journal.put_header(0, journal.header());
    const std::uint64_t end = journal.put_record(position, 1, {{0, std::string(500, 'x')}});
    journal.put_record(end, 2, {{500, "y"}});
    EXPECT_EQ(read_all(journal).sequences, (Sequences{1, 2})) << before;
  }
}

TEST(ReaderOfLines, WrapsWhereNoRecordFits) {
  const std::uint64_t size = kAreaStart + 7 * kLineBytes;
  Journal journal(size, kLineBytes);
  // Less than the smallest record is left behind the first.
  const std::uint64_t position = kAreaStart + 4 * kLineBytes;
  journal.header().tail_offset = position;
  journal.put_header(0, journal.header());
  EXPECT_EQ(journal.put_record(position, 1, {}), size - kLineBytes);
  journal.put_record(kAreaStart, 2, {{0, "b"}});
  const Seen seen = read_all(journal);
  EXPECT_EQ(seen.positions, (Sequences{position, kAreaStart}));
}

TEST(ReaderOfLines, RefusesBlocksThatNoJournalHas) {
  for (const std::uint64_t block_bytes : {0, 1, 63, 128, 512, 8192}) {
    Journal journal;
    journal.header().block_bytes = block_bytes;
    journal.put_header(0, journal.header());
    EXPECT_EQ(open_failure(journal).error_number(), EBADMSG) << block_bytes;
    EXPECT_NE(open_failure(journal).text().find("blocks of"), std::string::npos);
  }
}

// Memory keeps or loses each 8 bytes for itself, and what it loses shows what stood there: here a
// record of the same epoch and shape.
TEST(ReaderOfLines, BelievesNoRecordThatLacksAWord) {
  Journal journal(1 << 16, kLineBytes);
  const Ranges before = {{0, std::string(64, 'a')}, {128, std::string(40, 'b')}};
  const Ranges after = {{64, std::string(64, 'c')}, {256, std::string(40, 'd')}};
  const std::uint64_t end = journal.put_record(kAreaStart, 1, before);
  const std::vector<std::byte> old_bytes = journal.bytes();
  journal.header().tail_sequence = 2;
  journal.put_header(0, journal.header());
  journal.put_record(kAreaStart, 2, after);
  EXPECT_EQ(read_all(journal).sequences, (Sequences{2}));
  const std::vector<std::byte> new_bytes = journal.bytes();
  std::vector<std::size_t> words;  // in which they differ
  for (std::size_t at = kAreaStart; at < end; at += 8)
    if (std::memcmp(&old_bytes[at], &new_bytes[at], 8) != 0) words.push_back(at);
  ASSERT_GT(words.size(), 10u);
  std::mt19937_64 random(20130415);
  for (std::size_t round = 0; round < 20000; ++round) {
    std::uint64_t lost = random();
    if (round < words.size())
      lost = std::uint64_t{1} << round;  // one alone
    else if (round < 2 * words.size())
      lost = ~(std::uint64_t{1} << (round - words.size()));
    bool any = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if ((lost >> i & 1) == 0) continue;
      any = true;
      std::memcpy(&journal.bytes()[words[i]], &old_bytes[words[i]], 8);
    }
    MemoryFile file = journal.file();
    Result<Reader> reader = Reader::open(file);
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(reader.value().next().value().has_value(), !any) << lost;
    EXPECT_EQ(reader.value().evidence_of_loss().value().text, "") << lost;
    journal.bytes() = new_bytes;
  }
}

TEST(ReaderOfLines, TellsDamageFromATornEnd) {
  Journal journal(1 << 16, kLineBytes);
  std::uint64_t end = journal.put_record(kAreaStart, 1, {{0, "a"}});
  const std::uint64_t second = end;
  end = journal.put_record(end, 2, {{0, "b"}});
  const auto evidence = [&journal] { return evidence_in(journal); };
  journal.flip(second + sizeof(RecordHeader) + 3);
  EXPECT_EQ(evidence(), "");
  RecordHeader queued = record_header(3, payload_of({{0, "c"}}));
  queued.durable_sequence = 1;
  journal.put_record(end, queued, payload_of({{0, "c"}}));
  EXPECT_EQ(evidence(), "");
  journal.put_record(end, 3, {{0, "c"}});
  EXPECT_NE(evidence().find("record 2"), std::string::npos) << evidence();
}

TEST(Reader, SurvivesRandomBytes) {
  std::mt19937_64 random(20130415);
  for (int round = 0; round < 300; ++round) {
    Journal journal(kAreaStart + 8 * kBlockBytes);
    std::uint64_t end = kAreaStart;
    for (std::uint64_t sequence = 1; sequence <= 4; ++sequence) {
      end = journal.put_record(end, sequence, {{sequence, std::string(sequence * 700, 'r')}});
    }
    for (int flips = 0; flips < 3; ++flips) {
      journal.flip(kAreaStart + random() % (end - kAreaStart));
    }
    const Seen seen = read_all(journal);
    for (std::size_t i = 0; i < seen.sequences.size(); ++i) EXPECT_EQ(seen.sequences[i], i + 1);
    for (const auto& [offset, content] : seen.contents) {
      EXPECT_EQ(content, std::string(offset * 700, 'r'));
    }
  }
}

}  // namespace
}  // namespace pawl::journal
