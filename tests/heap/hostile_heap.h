// Heaps whose bookkeeping somebody has changed, with or without making its checksums right again,
// and what must hold of them: nothing leaves the heap, nothing runs for ever, and a heap in which
// pawl_heap_check finds nothing works.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heap/allocator.h"
#include "heap/roots.h"
#include "medium/descriptor.h"
#include "support/memory_medium.h"
#include "workload/content.h"
#include "workload/random.h"

namespace pawl::test {

// A heap with all there can be in one: slabs full and with room, runs, huge blocks, free segments,
// roots.  Always the same but for its identity's random bytes.
class HeapImage {
 public:
  HeapImage();

  const Content& content() const { return content_; }
  int descriptor() const { return file_.get(); }
  std::uint64_t size_bytes() const { return size_bytes_; }
  // Pages with a slab's header, and pages with a segment's.
  const std::vector<std::uint64_t>& slabs() const { return slabs_; }
  const std::vector<std::uint32_t>& segments() const { return segments_; }

 private:
  Content content_;
  Descriptor file_;
  std::uint64_t size_bytes_ = 0;
  std::vector<std::uint64_t> slabs_;
  std::vector<std::uint32_t> segments_;
};

// The image in memory, at its address, between guards that nobody may touch.
class HostileHeap {
 public:
  explicit HostileHeap(const HeapImage& image);
  ~HostileHeap();
  HostileHeap(const HostileHeap&) = delete;
  HostileHeap& operator=(const HostileHeap&) = delete;

  // As the image has it.
  void reset();
  // Changes one thing: what and how follow from the eight bytes.
  static constexpr std::size_t kChangeBytes = 8;
  void change(std::span<const std::byte> how);
  void change_byte(std::uint64_t offset, std::uint8_t to) {
    base()[offset] = static_cast<char>(to);
  }
  // Makes all checksums right.
  void seal_all();

  std::uint64_t faults();
  Status free_at(std::uint64_t offset) { return allocator_->free(base() + offset); }
  // Uses it as chance will have it; what went wrong.  Empty: nothing.
  std::string use(Random& random, unsigned steps);
  // As a file: opened, looked at, used, synced, rolled back and closed, by all of Pawl.
  std::string use_file(Random& random, unsigned steps) {
    return use_disk({.base = content(), .mark = {}, .journal = {}}, random, steps);
  }
  // The same, of what somebody made of the file.
  std::string use_disk(const StoredDisk& stored, Random& random, unsigned steps);
  Content content() const;

  char* base() const;

 private:
  std::string walk(std::uint64_t faults);
  // Leaves its address to a heap that is opened there; reset() takes it again.
  void make_room();

  const HeapImage& image_;
  std::uint64_t size_bytes_;
  Arena arena_;
  std::optional<Allocator> allocator_;  // anew with each reset: nothing that went wrong stays
  Roots roots_{arena_};
};

}  // namespace pawl::test
