// Builds one record: ranges of changed bytes, gathered in memory.  A record that outgrows
// kRecordBufferMax is spilled piece by piece to where it will stand, all but its start, whose
// header can only be written when the checksum is known.
#pragma once

#include <cstring>
#include <functional>

#include "journal/format.h"
#include "journal/page_buffer.h"

namespace pawl::journal {

inline constexpr std::size_t kRecordBufferMax = std::size_t{9} << 20;

class RecordBuilder {
 public:
  // Writes `bytes` (whole blocks of the journal) at `offset` within the record.
  using Spill = std::function<Status(std::uint64_t offset, std::span<const std::byte> bytes)>;

  // For a journal of such blocks.  Without a spill function, a record over kRecordBufferMax is a
  // broken invariant.  `buffer` is memory to start with; take_buffer() gives it back for the next
  // record.
  explicit RecordBuilder(std::uint64_t block_bytes, Spill spill = {}, AlignedBuffer buffer = {});
  AlignedBuffer take_buffer() { return std::move(buffer_); }
  // Gives the record away, in its memory, for other memory.
  void swap_buffer(AlignedBuffer& other) { std::swap(buffer_, other); }
  // Begins another record.  Not after a spill.
  void begin_anew();

  // Adds changed content.  Neighbouring ranges become one.
  Status add(std::uint64_t offset, std::span<const std::byte> content) {
    PAWL_ASSERT(!content.empty());
    const std::size_t bytes = range_bytes(content.size());
    if (!has_room(bytes)) PAWL_TRY(make_room(bytes));
    append(offset, content);
    return {};
  }

  bool empty() const { return content_bytes_ == 0; }
  std::uint64_t content_bytes() const { return content_bytes_; }
  // With header and padding, as it stands now.
  std::uint64_t record_bytes() const {
    return journal::record_bytes(payload_bytes(), block_bytes_);
  }

  // Completes the record.  Of `header` the caller fills epoch, sequence, file_size, truncate_to,
  // time_ns and what was durable; this fills in the rest.  Afterwards block() holds the whole
  // record, or, after a spill, its start.
  Status finish(RecordHeader header);
  std::span<const std::byte> block() const { return {finished_, finished_bytes_}; }

  std::uint64_t payload_bytes() const { return spilled_bytes_ + used_ - sizeof(RecordHeader); }

 private:
  // Room for padding to a whole block is always kept.
  bool has_room(std::size_t bytes) const {
    return round_up_to_block(used_ + bytes, block_bytes_) <= buffer_.capacity();
  }
  void append(std::uint64_t offset, std::span<const std::byte> content);
  Status make_room(std::size_t bytes);
  Status spill();
  void checksum_up_to(std::size_t end);

  const std::uint64_t block_bytes_;
  Spill spill_;
  AlignedBuffer buffer_;
  AlignedBuffer start_;                      // of a record that was spilled
  std::uint64_t spilled_bytes_ = 0;          // before buffer_
  std::size_t used_ = sizeof(RecordHeader);  // in buffer_
  std::size_t checked_ = sizeof(RecordHeader);
  std::uint32_t crc32c_ = 0;
  std::uint64_t content_bytes_ = 0;
  std::size_t last_range_ = 0;  // position of the last RangeHeader in buffer_, 0 for none
  // Content that begins here continues the last range; kNowhere when none can.
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
  std::uint64_t continues_at_ = kNowhere;
  const std::byte* finished_ = nullptr;
  std::size_t finished_bytes_ = 0;
};

inline void RecordBuilder::append(std::uint64_t offset, std::span<const std::byte> content) {
  std::byte* const data = buffer_.data();
  RangeHeader range{offset, content.size()};
  if (offset == continues_at_) {
    // The checksum covers a range header that is about to change.
    PAWL_ASSERT(checked_ <= last_range_);
    std::memcpy(&range, data + last_range_, sizeof range);
    range.length_bytes += content.size();
  } else {
    last_range_ = used_;
    used_ += sizeof range;
  }
  std::memcpy(data + last_range_, &range, sizeof range);
  std::memcpy(data + used_, content.data(), content.size());
  used_ += content.size();
  content_bytes_ += content.size();
  continues_at_ = content.size() % 8 == 0 ? offset + content.size() : kNowhere;
  while (used_ % 8 != 0) data[used_++] = std::byte{0};
}

}  // namespace pawl::journal
