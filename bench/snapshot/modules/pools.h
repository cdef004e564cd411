// Where structures get their memory, and how it is committed: one class for each system.  Each has
//   void* allocate(bytes), void release(block), void commit(), MediumUse use() const.
#pragma once

#include <fcntl.h>
#include <pawl/heap.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "common/failure.h"
#include "medium/busy_wait.h"
#include "snapshot/structure.h"

namespace pawl::bench {

// libc's memory: gone with the process.
class NoPool {
 public:
  explicit NoPool(const StructureSetup&) {}
  void* allocate(std::size_t bytes) {
    void* const block = std::malloc(bytes);
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }
  void release(void* block) { std::free(block); }
  void commit() {}
  MediumUse use() const { return {}; }
};

[[noreturn]] inline void fail_with_errno(const char* what) {
  throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

// A file of so many bytes, which must not be there yet, mapped shared.
inline void* map_new_file(const char* path, std::size_t bytes, int more_flags = 0) {
  const int file = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0)
    fail_with_errno("cannot make a file");
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | more_flags, file, 0);
  if (at == MAP_FAILED) fail_with_errno("cannot map a file");
  ::close(file);
  return at;
}

// libc's memory, and the least that a commit can be on memory that keeps: two lines, of which one
// tells of the other, past the caches into a ring, and a fence.  Nothing is recovered from them.
class FencePool {
 public:
  explicit FencePool(const StructureSetup& setup)
      : line_ns_(setup.line_ns), fence_ns_(setup.fence_ns) {
    ring_ = static_cast<char*>(map_new_file(setup.path, kRingBytes, MAP_POPULATE));
  }
  FencePool(const FencePool&) = delete;
  FencePool& operator=(const FencePool&) = delete;
  ~FencePool() { ::munmap(ring_, kRingBytes); }

  void* allocate(std::size_t bytes) { return memory_.allocate(bytes); }
  void release(void* block) { memory_.release(block); }
  void commit() {
    commits_ += 1;
    char* const at = ring_ + commits_ * kRecordBytes % kRingBytes;
    for (std::size_t word = 0; word < kRecordBytes / 8; ++word)
      __builtin_nontemporal_store(commits_, reinterpret_cast<std::uint64_t*>(at) + word);
    __builtin_ia32_sfence();
    const std::uint64_t wait_ns = kRecordBytes / 64 * line_ns_ + fence_ns_;
    if (wait_ns > 0) BusyWait::process().wait_ns(wait_ns);
  }
  MediumUse use() const {
    return {commits_ * kRecordBytes / 64, commits_, commits_ * kRecordBytes};
  }

 private:
  static constexpr std::size_t kRecordBytes = 128;
  static constexpr std::size_t kRingBytes = std::size_t{64} << 20;

  NoPool memory_{{}};
  const std::uint64_t line_ns_;
  const std::uint64_t fence_ns_;
  std::uint64_t commits_ = 0;
  char* ring_ = nullptr;
};

// libc's memory, and as many lines as a record of Pawl's and its bytes in the file have on average,
// past the caches, and a fence: but nobody looked for what changed, no record is made or checked,
// and no book is kept.  What remains is what the lines alone cost.
class LinesPool {
 public:
  explicit LinesPool(const StructureSetup& setup)
      : line_ns_(setup.line_ns),
        fence_ns_(setup.fence_ns),
        usual_(setup.form == Form::tree ? Lines{6, 4} : Lines{4, 3}),
        of_insertion_(setup.form == Form::table ? Lines{10, 6} : usual_),
        next_(usual_) {
    file_ = static_cast<char*>(map_new_file(setup.path, kRingBytes + kFileBytes, MAP_POPULATE));
  }
  LinesPool(const LinesPool&) = delete;
  LinesPool& operator=(const LinesPool&) = delete;
  ~LinesPool() { ::munmap(file_, kRingBytes + kFileBytes); }

  void* allocate(std::size_t bytes) {
    next_ = of_insertion_;
    return memory_.allocate(bytes);
  }
  void release(void* block) { memory_.release(block); }
  void commit() {
    const Lines lines = std::exchange(next_, usual_);
    commits_ += 1;
    lines_ += lines.of_record + lines.in_place;
    logged_bytes_ += lines.of_record * kLineBytes;
    if (ring_used_ + lines.of_record * kLineBytes > kRingBytes) ring_used_ = 0;
    copy_lines(ring_used_, lines.of_record);
    ring_used_ += lines.of_record * kLineBytes;
    // Anywhere: the multiplier spreads the numbers of commits.
    const std::uint64_t spread = commits_ * 0x9e3779b97f4a7c15u >> 32;
    const std::uint64_t line = spread % (kFileBytes / kLineBytes - lines.in_place);
    copy_lines(kRingBytes + line * kLineBytes, lines.in_place);
    __builtin_ia32_sfence();
    const std::uint64_t wait_ns = (lines.of_record + lines.in_place) * line_ns_ + fence_ns_;
    if (wait_ns > 0) BusyWait::process().wait_ns(wait_ns);
  }
  MediumUse use() const { return {lines_, commits_, logged_bytes_}; }

 private:
  struct Lines {
    std::uint64_t of_record;
    std::uint64_t in_place;
  };
  static constexpr std::uint64_t kLineBytes = 64;
  static constexpr std::size_t kRingBytes = std::size_t{32} << 20;  // as Pawl's journal
  static constexpr std::size_t kFileBytes = std::size_t{16} << 20;  // as 100,000 items take

  void copy_lines(std::uint64_t offset, std::uint64_t lines) {
    auto* const at = reinterpret_cast<std::uint64_t*>(file_ + offset);
    for (std::uint64_t word = 0; word < lines * kLineBytes / 8; ++word)
      __builtin_nontemporal_store(commits_, at + word);
  }

  NoPool memory_{{}};
  const std::uint64_t line_ns_;
  const std::uint64_t fence_ns_;
  const Lines usual_;
  const Lines of_insertion_;  // of a table: a value, an entry, what the heap notes of them
  Lines next_;
  std::uint64_t commits_ = 0;
  std::uint64_t lines_ = 0;
  std::uint64_t logged_bytes_ = 0;
  std::size_t ring_used_ = 0;
  char* file_ = nullptr;
};

// A file that is mapped shared, and msync of all of it: what is durable when is up to the kernel,
// and nothing is atomic.  Blocks come from the end of what is used, or from a list for their size.
class MsyncPool {
 public:
  explicit MsyncPool(const StructureSetup& setup)
      : bytes_(kBytesMin + setup.items_max * kBytesPerItem) {
    head_ = static_cast<Head*>(map_new_file(setup.path, bytes_));
    head_->used = sizeof(Head);
  }
  MsyncPool(const MsyncPool&) = delete;
  MsyncPool& operator=(const MsyncPool&) = delete;
  ~MsyncPool() { ::munmap(head_, bytes_); }

  void* allocate(std::size_t bytes) {
    const std::size_t units = (bytes + sizeof(Header) + kUnitBytes - 1) / kUnitBytes;
    Header* block = nullptr;
    if (units < kLists && head_->free[units] != nullptr) {
      block = head_->free[units];
      head_->free[units] = block->next;
    } else {
      const std::uint64_t end = head_->used + units * kUnitBytes;
      if (end > bytes_) throw std::bad_alloc();
      block = reinterpret_cast<Header*>(reinterpret_cast<char*>(head_) + head_->used);
      head_->used = end;
    }
    block->units = units;
    return block + 1;
  }
  void release(void* memory) {
    Header* const block = static_cast<Header*>(memory) - 1;
    if (block->units >= kLists) return;  // no structure frees large blocks
    block->next = head_->free[block->units];
    head_->free[block->units] = block;
  }
  void commit() {
    if (::msync(head_, bytes_, MS_SYNC) != 0) fail_with_errno("msync failed");
  }
  MediumUse use() const { return {}; }

 private:
  static constexpr std::uint64_t kBytesMin = std::uint64_t{16} << 20;
  static constexpr std::uint64_t kBytesPerItem = 512;
  static constexpr std::size_t kUnitBytes = 16;
  static constexpr std::size_t kLists = 64;
  struct Header {
    std::uint64_t units;
    Header* next;  // while it is free
  };
  struct Head {
    std::uint64_t used;
    std::array<Header*, kLists> free;
    std::uint64_t padding;  // to a whole number of units
  };
  static_assert(sizeof(Head) % kUnitBytes == 0);

  const std::uint64_t bytes_;
  Head* head_ = nullptr;
};

// A heap, and a sync of it.
class PawlPool {
 public:
  explicit PawlPool(const StructureSetup& setup) {
    const std::string system = setup.system;
    pawl_heap_options options;
    if (::pawl_heap_options_init(&options) != 0) fail();
    options.size_bytes_max = kHeapBytesMax;
    options.mapping.tracker = system == "pawl-scan" ? PAWL_TRACKER_SCAN : PAWL_TRACKER_STORE;
    options.mapping.medium = system == "pawl-store-block" ? PAWL_MEDIUM_BLOCK : PAWL_MEDIUM_MEMORY;
    heap_ = ::pawl_heap_open(setup.path, &options);
    if (heap_ == nullptr) throw Unavailable(::pawl_last_error());
  }
  PawlPool(const PawlPool&) = delete;
  PawlPool& operator=(const PawlPool&) = delete;
  ~PawlPool() { ::pawl_heap_close(heap_); }

  void* allocate(std::size_t bytes) {
    void* const block = ::pawl_heap_malloc(heap_, bytes);
    if (block == nullptr) fail();
    return block;
  }
  void release(void* block) {
    if (::pawl_heap_free(heap_, block) != 0) fail();
  }
  void commit() {
    if (::pawl_heap_sync(heap_) != 0) fail();
  }
  MediumUse use() const {
    pawl_statistics now;
    if (::pawl_heap_stats(heap_, &now) != 0) fail();
    if (now.medium != PAWL_MEDIUM_MEMORY) return {0, 0, now.bytes_logged};
    // Each record is copied to the journal, and then its bytes into the file, in whole lines.
    return {(now.bytes_logged + now.bytes_changed) / kLineBytes, now.commits, now.bytes_logged};
  }

 private:
  static constexpr std::uint64_t kLineBytes = 64;
  static constexpr std::uint64_t kHeapBytesMax = std::uint64_t{8} << 30;
  [[noreturn]] static void fail() { throw std::runtime_error(::pawl_last_error()); }

  pawl_heap* heap_ = nullptr;
};

}  // namespace pawl::bench
