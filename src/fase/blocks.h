// The blocks of a direct mapping's heap: which are used, and which may be handed out.
//
// A block is used or free by one bit of one word in the file, which is all that a crash leaves.
// Beside it a volatile bit says that the block is taken; a block that is taken and not used is
// reserved, and after a crash it is free.  So a FASE (docs/fase-design.md) goes this way:
//
//   allocates   reserve()
//   frees       begin_free()
//   ends        set_used() for what it allocated, and a fence; then it logs its end with what it
//               frees, and a fence; then mark_free() for that, with a fence in the next FASE, and
//               give_back() when the end is no more
//   publishes   set_used() and set_free() for all of its list, and a fence; then it logs a frame,
//               and a fence; then give_back() for what it freed
//   never armed give_back() for what it reserved, cancel_free() for what it was to free
//
// A FASE that is finished by recovery repeats its list, in whole or in part: set_used() and
// set_free() have the same outcome any number of times.  *So a block must not be handed out again
// while the FASE that freed it may be repeated: give_back() comes behind the fence that made the
// FASE's end durable, not behind that which made the bits durable.*  For the same reason recovery
// calls keep() for all blocks of all lists that it will repeat, before anybody reserves.
//
// What is durable when: what reserve() needs (a slab's class, a large block's size) is on return,
// by fences of its own, which come once for each slab and each large block.  set_used() and
// set_free() flush one line; the caller's next fence makes it durable.  Nothing else is stored into
// the file.
//
// A crash at any point leaves each block as its bit says, before or after the change, and every
// chunk what its word says.  What is lost is nothing: slabs of which no block is used stay slabs of
// their size, until space runs out, and chunks of no block are free.
//
// Threads: any may call, unless it is said otherwise; for one block there is one caller at a time,
// but that of begin_free(), which finds out.  To reserve takes a lock that is seldom another
// thread's; all else takes none while the block's slab is known and stays known.  The callback for
// space is called by one thread at a time.
//
// The program can overwrite all of this: it is in its memory.  What is read is checked before it is
// followed: EUCLEAN from a call that finds damage, and an assertion where there is no way back.
//
// The idea of reserving in volatile memory and publishing one word is that of libpmemobj
// (pmemobj_reserve, pmemobj_publish); slabs with maps of bits are Bonwick's and those of many
// since.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "fase/chunk_table.h"
#include "fase/chunks.h"

namespace pawl::fase {

inline constexpr std::uint64_t kBlockAlignmentMax = kChunkBytes;
// Threads beyond so many share what they allocate from.
inline constexpr std::uint32_t kShardsMax = 64;

struct BlocksInformation {
  std::uint64_t size_bytes = 0;  // what has space in the file, administration included
  std::uint64_t size_bytes_max = 0;
  std::uint64_t blocks_used = 0;
  std::uint64_t bytes_used = 0;  // what those blocks can hold
  std::uint64_t large_blocks_used = 0;
  std::uint64_t large_bytes_used = 0;
  std::uint64_t slabs = 0;
  std::uint64_t chunks_free = 0;
};

class Blocks {
 public:
  // Formats an area that was never used: wherever there is space it reads as zeros.  Durable on
  // return.  May be repeated until something has been reserved.
  static Status make(const BlocksArea& area, DirectMemory& memory);
  // The area that was made, with the same maximum; its header has space.  Stores nothing, and takes
  // no longer when the heap is larger.  The memory must outlive it.  EUCLEAN: no such area; ENOMEM.
  static Result<std::unique_ptr<Blocks>> open(BlocksArea area, DirectMemory& memory);
  ~Blocks();
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  // A block for so many bytes (0: a block of its own, too) at a multiple of `alignment`, reserved.
  // What it holds is anything.  EINVAL: the alignment is no power of two up to kBlockAlignmentMax;
  // ENOMEM: the maximum forbids it; EUCLEAN; what the callback for space says.  After a failure
  // everything is as before, and a later call may succeed.
  Result<std::uint64_t> reserve(std::uint64_t size_bytes,
                                std::uint64_t alignment = heap_format::kBlockAlignment);

  // Recovery, for a block that a log lists as allocated or freed: it is not handed out until
  // give_back().  Before the first reserve().  Again for the same block is nothing more.  EINVAL:
  // no block can begin there, so the log is damaged; ENOMEM.
  Status keep(std::uint64_t address);

  // What the block can hold.  EINVAL: it is not taken, or is being freed; EUCLEAN; ENOMEM.
  Result<std::uint64_t> usable_size(std::uint64_t address);

  // The block, used or reserved, is going to be freed by the caller's FASE.  EINVAL when no block
  // begins there, or it is free, or was freed before, also by a FASE that has not ended; EUCLEAN;
  // ENOMEM.
  Status begin_free(std::uint64_t address);
  // It is not.
  void cancel_free(std::uint64_t address);

  // Flushed, not fenced.  The block is one that was reserved, or that a log lists; nothing volatile
  // is read or changed, so that recovery can call before anything is known of the heap.
  void set_used(std::uint64_t address);
  void set_free(std::uint64_t address);
  // The same in two steps: to write a line back and to change another is to wait for the first.
  void mark_used(std::uint64_t address);
  void mark_free(std::uint64_t address);
  void flush_mark(std::uint64_t address);

  // The block, whose bit is clear for good, may be handed out.
  void give_back(std::uint64_t address);

  // Calls visit for each block that is used, by address.  EUCLEAN.  Both are exact while nobody
  // else calls.
  using VisitBlock = std::function<void(std::uint64_t address, std::uint64_t size_bytes)>;
  Status for_each_used(const VisitBlock& visit) const;
  Result<BlocksInformation> information() const;

  // Verifies all bookkeeping, that in the file and, against it, what is known of it, while nobody
  // else calls.  Returns the number of faults; each is told to `report`, which may be empty.
  using ReportFault = std::function<void(const std::string& text)>;
  std::uint64_t check(const ReportFault& report) const;

 private:
  // A thread's slabs; one line each, for neighbours are other threads' or other sizes'.
  struct alignas(kLineBytes) Slot {
    std::mutex mutex;
    Slab* slab = nullptr;
  };
  struct Shard {
    std::array<Slot, kSlabClassCount> slots;
  };

  Blocks(BlocksArea area, DirectMemory& memory);

  ChunkTable::Place place_of(std::uint64_t address) const;
  Result<Shard*> shard();
  Result<std::uint64_t> reserve_small(std::uint8_t size_class);
  Result<std::uint64_t> reserve_large(std::uint64_t size_bytes);
  // Takes the slabs from all shards and makes free chunks of those that are empty.
  Status gather();

  ChunkTable table_;
  std::unique_ptr<Chunks> chunks_;
  std::array<std::atomic<Shard*>, kShardsMax> shards_{};
};

}  // namespace pawl::fase
