#include "fuzz/written_journal.h"

#include <algorithm>
#include <cstring>

#include "fuzz/byte_file.h"
#include "fuzz/format_by_document.h"
#include "journal/group_files.h"
#include "journal/journal.h"
#include "journal/record_builder.h"
#include "workload/random.h"

namespace pawl::fuzz {
namespace {

constexpr std::uint64_t kSmall = 8 * journal::kBlockBytes;  // two slots and a ring of six blocks
constexpr std::uint64_t kMiddle = 12 * journal::kBlockBytes;
constexpr std::uint64_t kEpochFirst = 0x1111111111111101;
constexpr FileIdentity kIdentity{.inode = 1, .birth_time_ns = 1};  // of a MemoryDisk's file
constexpr std::uint64_t kProcess = 4711;
constexpr std::uint64_t kTimeNs = 1'700'000'000'000'000'000;

JournalId fixed_id() {
  JournalId id;
  for (std::size_t i = 0; i < id.size(); ++i) id[i] = static_cast<std::byte>(0xA0 + i);
  return id;
}

struct Edit {
  std::uint64_t offset;
  std::size_t length;
};

// Ids and epochs are random: they are replaced, each by one of our own, with the checksums.
void make_repeatable(std::vector<std::byte>& bytes, const std::vector<std::uint64_t>& epochs) {
  const auto replace_epoch = [&](std::span<std::byte> at, std::size_t field) {
    const auto found = std::find(epochs.begin(), epochs.end(), document::number_at(at, field, 8));
    if (found == epochs.end()) return;
    document::put_number(at, field, 8,
                         kEpochFirst + static_cast<std::uint64_t>(found - epochs.begin()));
  };
  // The contents are random, so that nothing in them is taken for a record.
  for (std::size_t block = 0; block + 2 * kLineBytes <= bytes.size(); block += kLineBytes) {
    const std::span<std::byte> at = std::span(bytes).subspan(block, 2 * kLineBytes);
    std::size_t length = 0;
    std::size_t sum = 0;
    if (block < journal::kAreaStart && document::magic_at(at, 0, "PAWLJRNL")) {
      length = document::kHeaderBytes;
      sum = document::kHeaderCrc;
      replace_epoch(at, document::kHeaderEpoch);
      document::put_number(at, 80, 8, kProcess);
      if (document::number_at(at, document::kHeaderVersion, 4) == journal::kVersionOfGroups)
        length += document::number_at(at, document::kHeaderBytes + 4, 4);
    } else if (block >= journal::kAreaStart && document::magic_at(at, 0, "PREC")) {
      length = document::kRecordBytes;
      sum = document::kRecordCrc;
      replace_epoch(at, document::kRecordEpoch);
    } else {
      continue;
    }
    document::put_number(at, sum, 4, 0);
    document::put_number(at, sum, 4, document::crc32c(std::span(bytes).subspan(block, length)));
  }
}

class Writer {
 public:
  Writer(std::string name, std::uint64_t journal_bytes, std::uint64_t file_bytes,
         std::uint64_t block_bytes = journal::kBlockBytes)
      : journal_bytes_(journal_bytes), block_bytes_(block_bytes) {
    written_.name = std::move(name);
    written_.base.write(0, test::random_bytes(random_, file_bytes));
    last_ = written_.base;
    begin();
  }

  // What the previous commits made of the file is applied and flushed, and Pawl opens it anew.
  void reopen() { reopen(block_bytes_); }
  void reopen(std::uint64_t block_bytes) {
    block_bytes_ = block_bytes;
    written_.base = last_;
    written_.records.clear();
    begin();
  }

  struct Size {
    std::uint64_t cut_to = journal::kNoTruncation;
    std::uint64_t size = journal::kNoTruncation;  // none: as the edits leave it
  };
  void commit(const std::vector<Edit>& edits) { commit(edits, Size{}); }
  void commit(const std::vector<Edit>& edits, Size size) { write(edits, size, true); }
  // One of a batch that shares a flush with the next.
  void queue(const std::vector<Edit>& edits) { write(edits, Size{}, false); }

  // Record number `sequence` and all before it are in the file.
  void release(std::uint64_t sequence) {
    insist(journal_->release(sequence));
    auto& records = written_.records;
    while (!records.empty() && records.front().sequence <= sequence) {
      written_.base = records.front().after;
      records.erase(records.begin());
    }
  }

  // To twice its size.
  void grow() {
    journal_->may_grow_to(2 * journal_bytes_);
    insist(journal_->grow().status());
    require(journal_->size_bytes() == 2 * journal_bytes_, "the ring grows");
  }

  // Larger than the ring, for which the journal grows.
  void commit_oversize(const std::vector<Edit>& edits) {
    journal::RecordBuilder record(block_bytes_);
    const test::Content after = build(record, edits, {});
    journal::Place place = journal_->reserve_oversize().value();
    insist(journal_->extend(place, record.record_bytes()));
    journal_->settle(place);
    finish(record, place, after);
    durable_sequence_ = place.sequence;
  }

  WrittenJournal finish() {
    journal_.reset();
    WrittenJournal result = std::move(written_);
    result.bytes = std::move(bytes_);
    make_repeatable(result.bytes, epochs_);
    for (auto& earlier : result.earlier) make_repeatable(earlier, epochs_);
    const document::Journal read = document::read(result.bytes);
    require(read.state == document::Journal::State::readable && !read.commits_are_lost &&
                read.records.size() == result.records.size(),
            "a journal that Pawl wrote is whole");
    result.newest_slot = read.slot;
    result.generation = read.generation;
    result.block_bytes = read.block_bytes;
    result.has_older_header =
        document::magic_at(result.bytes, (1 - read.slot) * kJournalSlotBytes, "PAWLJRNL");
    return result;
  }

 private:
  static void insist(const Status& status) {
    require(status.ok(), [&] { return "a journal in memory: " + status.text(); });
  }

  void begin() {
    if (journal_ != nullptr) generation_ = journal_->header_generation();
    journal_.reset();
    auto file = std::make_unique<ByteFile>(bytes_, 4 * journal_bytes_);
    file->write_unit = block_bytes_;
    file->before_change = [this] {
      if (!bytes_.empty()) written_.earlier.push_back(bytes_);
    };
    auto made = journal::Journal::format(std::move(file), fixed_id(), kIdentity, generation_,
                                         sequence_, journal_bytes_, block_bytes_);
    insist(made.status());
    journal_ = std::move(made.value());
    epochs_.push_back(journal_->epoch());
    durable_sequence_ = sequence_ - 1;
  }

  test::Content build(journal::RecordBuilder& record, const std::vector<Edit>& edits, Size size) {
    test::Content after = last_;
    if (size.cut_to != journal::kNoTruncation) after.resize(size.cut_to);
    for (const Edit& edit : edits) {
      const auto bytes = test::random_bytes(random_, edit.length);
      insist(record.add(edit.offset, bytes));
      after.write(edit.offset, bytes);
    }
    if (size.size != journal::kNoTruncation) after.resize(size.size);
    size_ = size;
    return after;
  }

  void write(const std::vector<Edit>& edits, Size size, bool flush) {
    journal::RecordBuilder record(block_bytes_);
    const test::Content after = build(record, edits, size);
    const auto place = journal_->reserve(record.record_bytes());
    require(place.has_value(), "the ring has room for the record");
    finish(record, *place, after);
    if (flush) durable_sequence_ = place->sequence;
  }

  void finish(journal::RecordBuilder& record, const journal::Place& place,
              const test::Content& after) {
    journal::RecordHeader header;
    header.epoch = journal_->epoch();
    header.sequence = place.sequence;
    header.file_size = after.size();
    header.truncate_to = size_.cut_to;
    header.time_ns = kTimeNs + place.sequence;
    header.header_generation = journal_->header_generation();
    header.durable_sequence = durable_sequence_;
    insist(record.finish(header));
    insist(journal_->write_durably(place, record.block()));
    written_.records.push_back({.position = place.offset,
                                .bytes = sizeof(journal::RecordHeader) + record.payload_bytes(),
                                .sequence = place.sequence,
                                .durable_sequence = durable_sequence_,
                                .generation = header.header_generation,
                                .after = after});
    last_ = after;
    sequence_ = place.sequence + 1;
  }

  const std::uint64_t journal_bytes_;
  std::uint64_t block_bytes_;
  test::Random random_{20130415};
  WrittenJournal written_;
  std::vector<std::byte> bytes_;
  std::vector<std::uint64_t> epochs_;
  std::unique_ptr<journal::Journal> journal_;
  test::Content last_;
  Size size_;
  std::uint64_t generation_ = 0;
  std::uint64_t sequence_ = 1;
  std::uint64_t durable_sequence_ = 0;
};

WrittenJournal first_commits() {
  Writer writer("first_commits", kSmall, 9000);
  writer.commit({{0, 64}});
  writer.commit({{128, 64}, {4096, 192}, {8192, 100}});
  writer.commit({{64, 5000}});
  return writer.finish();
}

WrittenJournal sizes() {
  Writer writer("sizes", kMiddle, 6000);
  writer.commit({{9000, 77}});                               // grows
  writer.commit({{0, 64}}, {.cut_to = 5000, .size = 5000});  // shrinks
  writer.commit({}, {.cut_to = 100, .size = 8192});          // there and back
  writer.commit({{4096, 64}, {12288, 13}}, {.cut_to = 0, .size = 20000});
  writer.commit({}, {.cut_to = 12300, .size = 12300});
  writer.commit({{12288, 12}}, {.cut_to = journal::kNoTruncation, .size = 12300});
  return writer.finish();
}

// Until a record stands before older ones.
void go_round(Writer& writer) {
  writer.commit({{0, 64}});
  writer.commit({{64, 4400}});
  writer.commit({{4096, 64}});
  writer.commit({{5000, 128}});
  writer.release(2);
  writer.commit({{0, 4500}});  // does not fit behind the last
}

// Both slots hold headers, and the ring has gone round: stale records lie between the live ones.
WrittenJournal wrapped() {
  Writer writer("wrapped", kSmall, 12000);
  go_round(writer);
  writer.release(3);
  writer.commit({{8192, 64}, {11000, 10}});
  return writer.finish();
}

// The ring grew while it went round, and the last record stands across its earlier end.
WrittenJournal grown() {
  Writer writer("grown", kSmall, 12000);
  go_round(writer);
  writer.grow();
  writer.release(4);
  writer.commit({{0, 9000}});
  writer.commit({{64, 9000}});
  return writer.finish();
}

// A second life of the journal, over the records of the first.
WrittenJournal reopened() {
  Writer writer("reopened", kSmall, 5000);
  writer.commit({{0, 64}});
  writer.reopen();
  writer.commit({{64, 64}});
  writer.commit({{128, 64}, {4096, 64}});
  return writer.finish();
}

// The same over so many that most are left, and nothing new but one record.
WrittenJournal reopened_over_many() {
  Writer writer("reopened_over_many", kSmall, 5000);
  for (std::uint64_t i = 0; i < 5; ++i) writer.commit({{64 * i, 64}});
  writer.release(2);
  writer.reopen();
  writer.commit({{1000, 64}});
  return writer.finish();
}

// Batches of MS_ASYNC that were on their way together.
WrittenJournal queued() {
  Writer writer("queued", kMiddle, 5000);
  writer.commit({{0, 64}});
  writer.queue({{64, 64}});
  writer.queue({{128, 64}});
  writer.commit({{0, 64}, {4096, 64}});
  writer.queue({{64, 200}});
  writer.queue({{4900, 200}});
  return writer.finish();
}

WrittenJournal oversize() {
  Writer writer("oversize", kSmall, 30000);
  writer.commit({{0, 64}});
  writer.release(1);
  writer.commit_oversize({{0, 29000}});
  return writer.finish();
}

WrittenJournal emptied() {
  Writer writer("emptied", kSmall, 5000);
  writer.commit({{0, 64}});
  writer.commit({{64, 64}});
  writer.release(2);
  return writer.finish();
}

// Journals of a medium that is memory: what stands in few lines wraps soon enough in a ring that a
// header tells to be short.
WrittenJournal lines() {
  Writer writer("lines", kSmall, 5000, kLineBytes);
  writer.commit({{0, 64}});
  writer.commit({{128, 64}, {4096, 192}, {4900, 100}});
  writer.commit({{64, 8}}, {.cut_to = 4000, .size = 4000});
  writer.queue({{64, 64}});
  writer.queue({{128, 64}});
  writer.commit({}, {.cut_to = 100, .size = 8192});
  return writer.finish();
}

WrittenJournal lines_wrapped() {
  Writer writer("lines_wrapped", kSmall, 12000, kLineBytes);
  writer.commit({{0, 10000}});
  writer.commit({{64, 10000}});
  writer.commit({{4096, 3500}});
  writer.release(2);
  writer.commit({{0, 4500}});  // does not fit behind the last
  writer.commit({{8192, 64}, {11000, 10}});
  writer.release(3);
  writer.commit({{1, 1}});
  return writer.finish();
}

// The file came onto another medium.
WrittenJournal lines_over_blocks() {
  Writer writer("lines_over_blocks", kSmall, 5000);
  for (std::uint64_t i = 0; i < 5; ++i) writer.commit({{64 * i, 64}});
  writer.release(2);
  writer.reopen(kLineBytes);
  writer.commit({{1000, 64}});
  writer.commit({{2000, 64}});
  return writer.finish();
}

WrittenJournal blocks_over_lines() {
  Writer writer("blocks_over_lines", kSmall, 5000, kLineBytes);
  for (std::uint64_t i = 0; i < 50; ++i) writer.commit({{64 * i, 64}});
  writer.reopen(journal::kBlockBytes);
  writer.commit({{1000, 64}});
  return writer.finish();
}

// Of files 1 and 3: what both commit, then one of them, then a cut of the other.
std::vector<std::byte> journal_of_group() {
  struct Commit {
    std::vector<journal::FileSize> sizes;
    std::vector<std::pair<std::uint64_t, Edit>> edits;  // with the file's number
  };
  const std::vector<Commit> commits = {
      {{{1, 5000, journal::kNoTruncation}, {3, 9000, journal::kNoTruncation}},
       {{1, {0, 64}}, {1, {4990, 10}}, {3, {0, 3}}, {3, {8192, 800}}}},
      {{{3, 9000, journal::kNoTruncation}}, {{3, {64, 128}}}},
      {{{1, 4096, 100}, {3, 9001, journal::kNoTruncation}}, {{1, {50, 100}}}}};
  std::vector<std::byte> bytes;
  auto list =
      journal::encode({journal::Role::group, {{1, kIdentity, "first"}, {3, kIdentity, "d/3"}}});
  auto made =
      journal::Journal::format(std::make_unique<ByteFile>(bytes, 4 * kSmall), fixed_id(), kIdentity,
                               0, 1, kSmall, journal::kBlockBytes, std::move(list.value()));
  require(made.ok(), "a journal in memory");
  journal::Journal& journal = *made.value();
  const std::vector<std::uint64_t> epochs{journal.epoch()};
  test::Random random(20130416);
  for (const Commit& commit : commits) {
    journal::RecordBuilder record(journal::kBlockBytes);
    require(record.add(0, std::as_bytes(std::span(commit.sizes))).ok(), "a record in memory");
    for (const auto& [file, edit] : commit.edits) {
      require(record
                  .add((file << journal::kFileNumberShift) + edit.offset,
                       test::random_bytes(random, edit.length))
                  .ok(),
              "a record in memory");
    }
    const auto place = journal.reserve(record.record_bytes());
    journal::RecordHeader header;
    header.epoch = journal.epoch();
    header.sequence = place->sequence;
    header.time_ns = kTimeNs + place->sequence;
    header.header_generation = journal.header_generation();
    header.durable_sequence = place->sequence - 1;
    require(record.finish(header).ok() && journal.write_durably(*place, record.block()).ok(),
            "a record in memory");
  }
  made.value().reset();
  make_repeatable(bytes, epochs);
  const document::Journal read = document::read(bytes);
  require(read.whose == document::Whose::group && read.listed.size() == 2 &&
              read.records.size() == commits.size() && !read.commits_are_lost,
          "a group's journal that Pawl wrote is whole");
  return bytes;
}

std::vector<std::byte> side_file_of_member(std::size_t steps) {
  std::vector<std::byte> bytes;
  auto side = journal::MemberSide::make(std::make_unique<ByteFile>(bytes, journal::kAreaStart),
                                        fixed_id(), kIdentity, {3, kIdentity, "../group"});
  require(side.ok(), "a side file in memory");
  if (steps > 0) require(side.value().enter().ok(), "a side file in memory is written");
  if (steps > 1) require(side.value().leave().ok(), "a side file in memory is written");
  const document::Journal read = document::read(bytes);
  require(steps == 1
              ? read.whose == document::Whose::member && read.listed.front().name == "../group"
              : read.whose == document::Whose::file && read.records.empty(),
          "a side file that Pawl wrote is whole");
  return bytes;
}

}  // namespace

std::vector<SideFile> side_files_of_groups() {
  return {{"group", journal_of_group()},
          {"joining", side_file_of_member(0)},
          {"member", side_file_of_member(1)},
          {"left", side_file_of_member(2)}};
}

test::Content content_of(std::span<const std::byte> bytes) {
  test::Content content;
  content.write(0, bytes);
  return content;
}

std::vector<std::byte> bytes_of(const test::Content& content) {
  std::vector<std::byte> bytes(content.size());
  content.read(0, bytes);
  return bytes;
}

test::StoredDisk WrittenJournal::disk() const {
  return {
      .base = base, .mark = Mark{fixed_id(), "/memory/file.pawl"}, .journal = content_of(bytes)};
}

std::vector<WrittenJournal> written_journals() {
  return {first_commits(),    sizes(),    wrapped(), grown(), reopened(),      reopened_over_many(),
          queued(),           oversize(), emptied(), lines(), lines_wrapped(), lines_over_blocks(),
          blocks_over_lines()};
}

}  // namespace pawl::fuzz
