// The heap's memory as its parts see it: where it is, how large, and what stands where.
//
// Everything here may have been overwritten by the program: whoever follows a number read from the
// heap checks it first.
#pragma once

#include <functional>
#include <utility>

#include "heap/format.h"
#include "medium/status.h"

namespace pawl {

// A broken heap, as opposed to a wrong call: EUCLEAN.
Status heap_damaged(std::string text);

class Arena {
 public:
  // `grow` makes the file, and what may be touched, as long as it is told.
  using Grow = std::function<Status(std::uint64_t size_bytes)>;
  Arena(char* base, std::uint64_t size_bytes, std::uint64_t size_bytes_max, Grow grow)
      : base_(base),
        size_bytes_(size_bytes),
        size_bytes_max_(size_bytes_max),
        grow_(std::move(grow)) {}

  char* base() const { return base_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  // How far it can grow where it stands.
  std::uint64_t size_bytes_max() const { return size_bytes_max_; }
  // Something else has the addresses behind that, and the heap records more.
  void end_at(std::uint64_t size_bytes_max) {
    PAWL_ASSERT(size_bytes_max >= size_bytes_);
    size_bytes_max_ = size_bytes_max;
    has_neighbour_ = true;
  }
  std::uint32_t segment_count() const {
    return static_cast<std::uint32_t>(size_bytes_ / heap_format::kSegmentBytes);
  }
  // EUCLEAN when the segment table names segments behind the end.
  Status check_end() const;
  // ENOMEM when the maximum forbids it.
  Status grow_by(std::uint32_t segments);
  // After a rollback.
  void set_size(std::uint64_t size_bytes) { size_bytes_ = size_bytes; }

  bool contains(const void* address) const {
    const char* at = static_cast<const char*>(address);
    return at >= base_ && at < base_ + size_bytes_;
  }
  std::uint64_t offset_of(const void* address) const {
    PAWL_ASSERT(contains(address));
    return static_cast<std::uint64_t>(static_cast<const char*>(address) - base_);
  }

  heap_format::HeaderPage& header() const {
    return *reinterpret_cast<heap_format::HeaderPage*>(base_);
  }
  heap_format::NamedRoot* named_roots() const {
    return reinterpret_cast<heap_format::NamedRoot*>(base_ + heap_format::kNamedRootsOffset);
  }
  std::uint8_t* segment_table() const {
    return reinterpret_cast<std::uint8_t*>(base_ + heap_format::kTableOffset);
  }
  heap_format::SegmentHeader& segment(std::uint32_t index) const {
    PAWL_ASSERT(index < segment_count());
    return *reinterpret_cast<heap_format::SegmentHeader*>(base_ +
                                                          index * heap_format::kSegmentBytes);
  }
  std::uint64_t page_count() const { return size_bytes_ / kPageBytes; }
  char* page(std::uint64_t number) const {
    PAWL_ASSERT(number < page_count());
    return base_ + number * kPageBytes;
  }

 private:
  Status check_entries_free(std::uint64_t from, std::uint64_t end) const;

  char* const base_;
  std::uint64_t size_bytes_;
  std::uint64_t size_bytes_max_;
  bool has_neighbour_ = false;
  const Grow grow_;
};

}  // namespace pawl
