#include "journal/record_builder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace pawl::journal {

namespace {
constexpr std::size_t kFirstCapacity = 2 * kBlockBytes;
// A spill keeps so much of the record's start, and writes multiples of it: whole blocks of either
// size, and the header in the first.
constexpr std::size_t kSpillUnitBytes = kBlockBytes;
static_assert(kSpillUnitBytes % kLineBytes == 0 && kSpillUnitBytes >= sizeof(RecordHeader));
}  // namespace

RecordBuilder::RecordBuilder(std::uint64_t block_bytes, Spill spill, AlignedBuffer buffer)
    : block_bytes_(block_bytes), spill_(std::move(spill)), buffer_(std::move(buffer)) {
  PAWL_ASSERT(is_block_bytes(block_bytes));
}

void RecordBuilder::begin_anew() {
  PAWL_ASSERT(spilled_bytes_ == 0);
  used_ = checked_ = sizeof(RecordHeader);
  crc32c_ = 0;
  content_bytes_ = 0;
  continues_at_ = kNowhere;
  finished_ = nullptr;
  finished_bytes_ = 0;
}

Status RecordBuilder::make_room(std::size_t bytes) {
  const std::size_t wanted = round_up_to_block(used_ + bytes, block_bytes_);
  if (wanted > kRecordBufferMax) {
    PAWL_ASSERT(spill_ != nullptr);
    PAWL_TRY(spill());
    PAWL_ASSERT(round_up_to_block(used_ + bytes, block_bytes_) <= buffer_.capacity());
    return {};
  }
  const std::size_t capacity =
      std::min(std::max({wanted, 2 * buffer_.capacity(), kFirstCapacity}), kRecordBufferMax);
  if (!buffer_.grow(capacity, used_))
    return Status::failure(ENOMEM,
                           "no memory for a record of " + std::to_string(capacity) + " bytes");
  return {};
}

void RecordBuilder::checksum_up_to(std::size_t end) {
  crc32c_ = checksum(buffer_.data() + checked_, end - checked_, crc32c_);
  checked_ = end;
}

// Writes out all whole units; what is left of the last one moves to the front.
Status RecordBuilder::spill() {
  const std::size_t whole = round_down(used_, kSpillUnitBytes);
  PAWL_ASSERT(whole >= 2 * kSpillUnitBytes);
  checksum_up_to(used_);
  std::size_t from = 0;
  if (spilled_bytes_ == 0) {
    if (!start_.grow(kSpillUnitBytes, 0)) return Status::failure(ENOMEM, "no memory for a block");
    std::memcpy(start_.data(), buffer_.data(), kSpillUnitBytes);
    from = kSpillUnitBytes;
  }
  PAWL_TRY(spill_(spilled_bytes_ + from, {buffer_.data() + from, whole - from}));
  std::memmove(buffer_.data(), buffer_.data() + whole, used_ - whole);
  spilled_bytes_ += whole;
  used_ -= whole;
  checked_ = used_;
  continues_at_ = kNowhere;
  return {};
}

Status RecordBuilder::finish(RecordHeader header) {
  PAWL_ASSERT(header.file_size <= kFileSizeMax);  // or no reader would believe it
  if (!has_room(0)) PAWL_TRY(make_room(0));
  checksum_up_to(used_);
  header.payload_bytes = payload_bytes();
  header.payload_crc32c = crc32c_;
  header.header_crc32c = 0;
  header.header_crc32c = checksum(&header, sizeof header);
  const std::size_t padded = round_up_to_block(used_, block_bytes_);
  if (padded > used_) std::memset(buffer_.data() + used_, 0, padded - used_);
  if (spilled_bytes_ == 0) {
    std::memcpy(buffer_.data(), &header, sizeof header);
    finished_ = buffer_.data();
    finished_bytes_ = padded;
    return {};
  }
  if (padded > 0) PAWL_TRY(spill_(spilled_bytes_, {buffer_.data(), padded}));
  std::memcpy(start_.data(), &header, sizeof header);
  finished_ = start_.data();
  finished_bytes_ = kSpillUnitBytes;
  return {};
}

}  // namespace pawl::journal
