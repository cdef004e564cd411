#include "heap/arena.h"

#include <algorithm>
#include <cerrno>

namespace pawl {

Status heap_damaged(std::string text) {
  return Status::failure(EUCLEAN, "the heap's bookkeeping is damaged: " + std::move(text));
}

namespace {

// A heap grows by an eighth, so that it seldom has to; what is not used yet takes no disk.
constexpr std::uint64_t kGrowthDivisor = 8;

}  // namespace

Status Arena::grow_by(std::uint32_t segments) {
  const std::uint64_t least = size_bytes_ + segments * heap_format::kSegmentBytes;
  if (least > size_bytes_max_) {
    return Status::failure(ENOMEM, "the heap is full: it may grow to " +
                                       std::to_string(size_bytes_max_) +
                                       " bytes. Open it with a larger size_bytes_max");
  }
  const std::uint64_t wanted =
      round_down(size_bytes_ + size_bytes_ / kGrowthDivisor, heap_format::kSegmentBytes);
  const std::uint64_t size_bytes = std::clamp(wanted, least, size_bytes_max_);
  const std::uint8_t* const entries = segment_table();
  if (std::any_of(entries + segment_count(), entries + size_bytes / heap_format::kSegmentBytes,
                  [](std::uint8_t entry) { return entry != heap_format::kSegmentFree; }))
    return heap_damaged("the segment table names segments that were not there yet");
  PAWL_TRY(grow_(size_bytes));
  size_bytes_ = size_bytes;
  return {};
}

}  // namespace pawl
