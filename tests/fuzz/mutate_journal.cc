// How a fuzzer changes a journal: field by field, record by record, and then mostly with right
// checksums, without which it would never get past them.

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "fuzz/format_by_document.h"
#include "fuzz/fuzz_target.h"
#include "workload/random.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t size_max);

namespace pawl::fuzz {
namespace {

using test::below;
using test::Random;

constexpr std::size_t kJournalBytesMax = 96 * document::kBlock;

class Mutation {
 public:
  Mutation(std::vector<std::byte>& bytes, std::size_t bytes_max, Random& random)
      : bytes_(bytes), bytes_max_(std::min(bytes_max, kJournalBytesMax)), random_(random) {}

  void mutate() {
    if (bytes_.size() < document::kRing + document::kBlock) return change_size();
    block_ = document::number_at(bytes_, document::kHeaderBlockBytes, 8) == document::kLine
                 ? document::kLine
                 : document::kBlock;
    switch (below(random_, 10)) {
      case 0:
        return change_header();
      case 1:
      case 2:
        return change_record();
      case 3:
      case 4:
        return change_range();
      case 5:
        return change_blocks();
      case 6:
        return append_record();
      case 7:
        return below(random_, 4) == 0 ? change_size() : change_window();
      default:
        return change_window();
    }
  }

  void mend() {
    if (below(random_, 8) != 0) {
      for (const std::size_t slot : {std::size_t{0}, document::kSlot}) mend_header(slot);
    }
    if (below(random_, 8) == 0) return;
    const bool pad = below(random_, 4) != 0;
    for (const std::size_t at : records()) mend_record(at, pad);
  }

 private:
  // A number that lies at the edge of something.
  std::uint64_t number(std::uint64_t present) {
    constexpr std::uint64_t kOne = 1;
    const std::uint64_t edges[] = {0,
                                   1,
                                   document::kLine,
                                   document::kBlock,
                                   document::kRing,
                                   bytes_.size(),
                                   bytes_.size() - document::kRing,
                                   kOne << 31,
                                   kOne << 32,
                                   kOne << 62,
                                   kOne << 63,
                                   ~std::uint64_t{0},
                                   below(random_, 8) * document::kBlock,
                                   document::kRing + below(random_, 64) * document::kLine,
                                   below(random_, 64),
                                   below(random_, 40000),
                                   present,
                                   present,
                                   present};
    const std::uint64_t steps[] = {0,
                                   0,
                                   1,
                                   ~std::uint64_t{0},
                                   7,
                                   8,
                                   document::kBlock,
                                   ~std::uint64_t{0} - document::kBlock + 1};
    return edges[below(random_, std::size(edges))] + steps[below(random_, std::size(steps))];
  }
  void change_number(std::size_t at, std::size_t count) {
    if (at + count > bytes_.size()) return;
    const std::uint64_t present = document::number_at(bytes_, at, count);
    document::put_number(bytes_, at, count, number(present));
  }

  void change_header() {
    constexpr std::pair<std::size_t, std::size_t> kFields[] = {
        {document::kHeaderVersion, 4},
        {document::kHeaderGeneration, 8},
        {document::kHeaderGeneration, 8},
        {document::kHeaderId, 8},
        {document::kHeaderEpoch, 8},
        {document::kHeaderInode, 8},
        {document::kHeaderBirth, 8},
        {document::kHeaderTail, 8},
        {document::kHeaderTail, 8},
        {document::kHeaderTailSequence, 8},
        {document::kHeaderTailSequence, 8},
        {document::kHeaderJournalBytes, 8},
        {document::kHeaderBlockBytes, 8},
        // Of a group's list: whose it is, its length, and the first file's number and name's
        // length.
        {document::kHeaderBytes, 4},
        {document::kHeaderBytes + 4, 4},
        {document::kHeaderBytes + 8, 8},
        {document::kHeaderBytes + 32, 8}};
    const std::size_t slot = below(random_, 2) * document::kSlot;
    switch (below(random_, 8)) {
      case 0:  // the one becomes the other
        return copy(slot, document::kSlot - slot, document::kSlot);
      case 1:
        return fill(slot, document::kSlot, std::byte(below(random_, 2) * 255));
      default: {
        const auto [at, count] = kFields[below(random_, std::size(kFields))];
        return change_number(slot + at, count);
      }
    }
  }

  // Where something stands that calls itself a record.
  std::vector<std::size_t> records() const {
    std::vector<std::size_t> found;
    for (std::size_t at = document::kRing; at + document::kRecordBytes <= bytes_.size();
         at += document::kLine) {
      if (document::magic_at(bytes_, at, "PREC")) found.push_back(at);
    }
    return found;
  }
  std::size_t any_record() {
    const auto found = records();
    if (found.empty()) return document::kRing;
    return found[below(random_, found.size())];
  }

  void change_record() {
    constexpr std::pair<std::size_t, std::size_t> kFields[] = {
        {document::kRecordEpoch, 8},      {document::kRecordSequence, 8},
        {document::kRecordPayload, 8},    {document::kRecordPayload, 8},
        {document::kRecordFileSize, 8},   {document::kRecordFileSize, 8},
        {document::kRecordCutTo, 8},      {document::kRecordPayloadCrc, 4},
        {document::kRecordGeneration, 4}, {document::kRecordDurable, 8}};
    const auto [at, count] = kFields[below(random_, std::size(kFields))];
    change_number(any_record() + at, count);
  }

  void change_range() {
    const std::size_t record = any_record();
    const std::uint64_t payload = document::number_at(bytes_, record + document::kRecordPayload, 8);
    std::uint64_t at = record + document::kRecordBytes;
    const std::uint64_t end = std::min<std::uint64_t>(
        bytes_.size(), payload > bytes_.size() ? bytes_.size() : at + payload);
    std::vector<std::uint64_t> ranges;
    while (at + document::kRangeBytes <= end) {
      ranges.push_back(at);
      const std::uint64_t length = document::number_at(bytes_, at + 8, 8);
      if (length > end) break;
      at += document::kRangeBytes + (length + 7) / 8 * 8;
    }
    if (ranges.empty()) return;
    change_number(ranges[below(random_, ranges.size())] + 8 * below(random_, 2), 8);
  }

  void change_blocks() {
    const std::size_t first = document::kRing / block_;
    const std::size_t blocks = bytes_.size() / block_;
    const std::size_t to = first + below(random_, blocks - first);
    const std::size_t from = first + below(random_, blocks - first);
    switch (below(random_, 4)) {
      case 0:
        return fill(to * block_, block_, std::byte{0});
      case 1:
        return fill(to * block_ + block_ / 8 * below(random_, 8), block_ / 8, std::byte{0});
      default:
        return copy(from * block_, to * block_, block_);
    }
  }

  void append_record() {
    const document::Journal journal = document::read(bytes_);
    if (journal.state != document::Journal::State::readable) return change_header();
    const std::size_t header = journal.slot * document::kSlot;
    std::uint64_t position = document::number_at(bytes_, header + document::kHeaderTail, 8);
    if (!journal.records.empty())
      position = journal.records.back().position + journal.records.back().bytes;
    const std::uint64_t file_size = below(random_, 40000);
    std::vector<std::byte> record(document::kRecordBytes);
    for (std::uint64_t count = below(random_, 4); count > 0 && file_size > 0; --count) {
      const std::uint64_t offset = below(random_, file_size);
      const std::uint64_t length =
          1 + below(random_, std::min<std::uint64_t>(300, file_size - offset));
      const std::size_t range = record.size();
      record.resize(range + document::kRangeBytes + (length + 7) / 8 * 8);
      document::put_number(record, range, 8, offset);
      document::put_number(record, range + 8, 8, length);
      const auto content = test::random_bytes(random_, length);
      std::copy(content.begin(), content.end(),
                record.begin() + static_cast<std::ptrdiff_t>(range + document::kRangeBytes));
    }
    const std::uint64_t sequence = journal.tail_sequence + journal.records.size();
    std::memcpy(record.data(), "PREC", 4);
    document::put_number(record, document::kRecordEpoch, 8,
                         document::number_at(bytes_, header + document::kHeaderEpoch, 8));
    document::put_number(record, document::kRecordSequence, 8, sequence);
    document::put_number(record, document::kRecordPayload, 8,
                         record.size() - document::kRecordBytes);
    document::put_number(record, document::kRecordFileSize, 8, file_size);
    document::put_number(record, document::kRecordCutTo, 8,
                         below(random_, 3) == 0 ? below(random_, 40000) : document::kNotCut);
    document::put_number(record, document::kRecordGeneration, 4, journal.generation);
    document::put_number(record, document::kRecordDurable, 8, sequence - 1);
    if (position + record.size() > bytes_.size() || below(random_, 4) == 0)
      position = document::kRing;
    if (position + record.size() > bytes_.size()) return;
    std::copy(record.begin(), record.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(position));
  }

  void change_size() {
    const std::size_t present = bytes_.size();
    std::size_t size = below(random_, 16) * document::kBlock;
    if (below(random_, 2) == 0) size = present + document::kBlock;
    if (below(random_, 4) == 0) size = below(random_, present + 1);
    if (below(random_, 4) == 0) size += below(random_, 9);
    bytes_.resize(std::min(size, bytes_max_));
  }

  // libFuzzer's own ways, where they can do something.
  void change_window() {
    const std::size_t record = any_record();
    const std::size_t starts[] = {0, document::kSlot, record, record + document::kRecordBytes,
                                  static_cast<std::size_t>(below(random_, bytes_.size()))};
    const std::size_t at = std::min(starts[below(random_, std::size(starts))], bytes_.size() - 1);
    const std::size_t length = std::min<std::size_t>(1 + below(random_, 128), bytes_.size() - at);
    auto* const data = reinterpret_cast<std::uint8_t*>(bytes_.data() + at);
    // In place: what it makes longer or shorter stays within the window.
    LLVMFuzzerMutate(data, length, length);
  }

  void mend_header(std::size_t slot) {
    if (slot + document::kHeaderBytes > bytes_.size()) return;
    if (!document::magic_at(bytes_, slot, "PAWLJRNL")) return;
    std::size_t length = document::kHeaderBytes;
    if (document::number_at(bytes_, slot + document::kHeaderVersion, 4) == 3 &&
        slot + document::kSlot <= bytes_.size()) {
      length += std::min<std::uint64_t>(document::number_at(bytes_, slot + length + 4, 4),
                                        document::kListBytesMax);
    }
    const std::span<std::byte> header = std::span(bytes_).subspan(slot, length);
    document::put_number(header, document::kHeaderCrc, 4, 0);
    document::put_number(header, document::kHeaderCrc, 4, document::crc32c(header));
  }

  void mend_record(std::size_t at, bool pad) {
    const std::uint64_t payload = document::number_at(bytes_, at + document::kRecordPayload, 8);
    const std::size_t start = at + document::kRecordBytes;
    if (payload <= bytes_.size() - start) {
      if (pad) mend_padding(start, start + payload);
      document::put_number(bytes_, at + document::kRecordPayloadCrc, 4,
                           document::crc32c(std::span(bytes_).subspan(start, payload)));
    }
    const std::span<std::byte> header = std::span(bytes_).subspan(at, document::kRecordBytes);
    document::put_number(header, document::kRecordCrc, 4, 0);
    document::put_number(header, document::kRecordCrc, 4, document::crc32c(header));
  }
  void mend_padding(std::uint64_t at, std::uint64_t end) {
    while (at + document::kRangeBytes <= end) {
      const std::uint64_t length = document::number_at(bytes_, at + 8, 8);
      at += document::kRangeBytes;
      if (length > end - at) return;
      const std::uint64_t stop = at + (length + 7) / 8 * 8;
      if (stop > end) return;
      fill(at + length, stop - at - length, std::byte{0});
      at = stop;
    }
  }

  void copy(std::size_t from, std::size_t to, std::size_t count) {
    std::memmove(bytes_.data() + to, bytes_.data() + from, count);
  }
  void fill(std::size_t at, std::size_t count, std::byte value) {
    std::fill_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at), count, value);
  }

  std::vector<std::byte>& bytes_;
  const std::size_t bytes_max_;
  std::size_t block_ = document::kBlock;
  Random& random_;
};

}  // namespace
}  // namespace pawl::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t size_max, unsigned seed) {
  using namespace pawl::fuzz;
  pawl::test::Random random(seed);
  if (size <= kPrologueBytes || size_max <= kPrologueBytes || random() % 64 == 0)
    return LLVMFuzzerMutate(data, size, size_max);
  if (kPrologueBytes > 0 && random() % 6 == 0) {
    LLVMFuzzerMutate(data, kPrologueBytes, kPrologueBytes);
    return size;
  }
  const auto* const first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> journal(first + kPrologueBytes, first + size);
  Mutation mutation(journal, size_max - kPrologueBytes, random);
  for (std::uint64_t count = 1 + random() % 3; count > 0; --count) mutation.mutate();
  mutation.mend();
  std::memcpy(data + kPrologueBytes, journal.data(), journal.size());
  return kPrologueBytes + journal.size();
}
