#include "heap/arena.h"

#include <algorithm>
#include <cerrno>

namespace pawl {

Status heap_damaged(std::string text) {
  return Status::failure(EUCLEAN, PAWL_ERROR_DAMAGED_HEAP,
                         "the heap's bookkeeping is damaged: " + std::move(text));
}

namespace {

// A heap grows by an eighth, so that it seldom has to; what is not used yet takes no disk.
constexpr std::uint64_t kGrowthDivisor = 8;

}  // namespace

Status Arena::check_entries_free(std::uint64_t from, std::uint64_t end) const {
  const std::uint8_t* const table = segment_table();
  const std::uint8_t* const named = std::find_if(table + from, table + end, [](std::uint8_t entry) {
    return entry != heap_format::kSegmentFree;
  });
  if (named == table + end) return {};
  return heap_damaged("the segment table names segment " + std::to_string(named - table) +
                      ", which is not there. Was the file cut?");
}

Status Arena::check_end() const {
  return check_entries_free(segment_count(), size_bytes_max_ / heap_format::kSegmentBytes);
}

Status Arena::grow_by(std::uint32_t segments) {
  const std::uint64_t least = size_bytes_ + segments * heap_format::kSegmentBytes;
  if (least > size_bytes_max_) {
    return Status::failure(ENOMEM, PAWL_ERROR_HEAP_FULL,
                           "the heap is full: it may grow to " + std::to_string(size_bytes_max_) +
                               (has_neighbour_ ? " bytes in this process, which has something else "
                                                 "in memory behind that, such as "
                                                 "another heap. Open it anew without the other"
                                               : " bytes. Open it with a larger size_bytes_max"));
  }
  const std::uint64_t wanted =
      round_down(size_bytes_ + size_bytes_ / kGrowthDivisor, heap_format::kSegmentBytes);
  const std::uint64_t size_bytes = std::clamp(wanted, least, size_bytes_max_);
  PAWL_TRY(check_entries_free(segment_count(), size_bytes / heap_format::kSegmentBytes));
  PAWL_TRY(grow_(size_bytes));
  size_bytes_ = size_bytes;
  return {};
}

}  // namespace pawl
