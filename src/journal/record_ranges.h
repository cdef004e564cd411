// The content of a record that stands whole in memory.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "journal/format.h"

namespace pawl::journal {

inline RecordHeader header_of(std::span<const std::byte> record) {
  RecordHeader header;
  PAWL_ASSERT(record.size() >= sizeof header);
  std::memcpy(&header, record.data(), sizeof header);
  return header;
}

inline std::uint64_t payload_bytes_of(std::span<const std::byte> record) {
  std::uint64_t bytes = 0;
  PAWL_ASSERT(record.size() >= sizeof(RecordHeader));
  std::memcpy(&bytes, record.data() + offsetof(RecordHeader, payload_bytes), sizeof bytes);
  return bytes;
}

// Calls visit(offset, bytes) for each range, in order; stops at, and returns, the first failure.
template <class Visit>
Status for_ranges(std::span<const std::byte> record, Visit visit) {
  std::size_t position = sizeof(RecordHeader);
  const std::size_t end = position + payload_bytes_of(record);
  while (position < end) {
    RangeHeader range;
    std::memcpy(&range, record.data() + position, sizeof range);
    position += sizeof range;
    PAWL_TRY(visit(range.offset, record.subspan(position, range.length_bytes)));
    position += round_up(range.length_bytes, 8);
  }
  PAWL_ASSERT(position == end);
  return {};
}

}  // namespace pawl::journal
