// The persistent side of the block allocator: the area's header, its table of chunks, and the maps
// of its slabs.  Nothing here remembers anything that a crash would take.
//
// Words are read and stored as atomics, whole: after a crash each has its old value or its new one.
// What is said to be flushed is durable behind the next fence.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "fase/blocks_format.h"
#include "fase/direct_memory.h"
#include "medium/status.h"

namespace pawl::fase {

// Where the area is.
struct BlocksArea {
  std::uint64_t address = 0;         // mapped there; a multiple of kChunkBytes
  std::uint64_t size_bytes_max = 0;  // address space that is mapped: whole chunks
  // Sees to it that these bytes of the area can be touched from now on, also after a crash of the
  // system: their space is in the file, durably, on return.  What is new reads as zeros; what is
  // there stays.  Failures, such as ENOSPC, become those of the call that needed it.
  std::function<Status(std::uint64_t offset, std::uint64_t size_bytes)> take_space;
};

// A broken heap, as opposed to a wrong call: EUCLEAN.
Status blocks_damaged(std::string text);

class ChunkTable {
 public:
  // Durable on return.
  static Status make(const BlocksArea& area, DirectMemory& memory);
  // EUCLEAN when the header is not that of such an area.
  static Status check_header(const BlocksArea& area);
  // What of an area has space, as its header says it; the same EUCLEAN.
  struct Space {
    std::uint64_t offset;
    std::uint64_t size_bytes;
  };
  static Result<std::vector<Space>> spaces_of(const AreaHeader& header,
                                              std::uint64_t size_bytes_max);
  // The header must be checked.  The memory must outlive it.
  ChunkTable(BlocksArea area, DirectMemory& memory);

  std::uint32_t first() const { return first_; }  // behind the table
  std::uint32_t count() const { return count_; }  // that there can be
  std::uint32_t end() const { return end_.load(std::memory_order_acquire); }
  std::uint64_t address_of(std::uint32_t chunk) const {
    return area_.address + chunk * kChunkBytes;
  }
  // Gives the chunks before new_end space in the file.  Durable on return.  One caller at a time.
  Status grow(std::uint32_t new_end);

  ChunkWord word(std::uint32_t chunk) const;
  // Flushed.
  void set_word(std::uint32_t chunk, ChunkWord word);
  // Whether the word can stand there.
  bool is_sound(std::uint32_t chunk, ChunkWord word) const;

  // The bits of 64 blocks of a slab.
  std::uint64_t used_bits(std::uint32_t chunk, std::uint32_t map_word) const;
  // Flushed.
  void clear_used_bits(std::uint32_t chunk, const SlabClass& of);

  // A place where a block may begin, by what the table says.
  struct Place {
    std::uint32_t chunk = 0;
    ChunkWord word;
    std::uint32_t index = 0;  // in a slab
  };
  // Nothing when no block can begin there.
  std::optional<Place> find(std::uint64_t address) const;
  std::uint64_t size_bytes(const Place& place) const;
  bool is_used(const Place& place) const;
  // Not flushed.  The other bits of the word belong to other threads and stay as they are.
  void set_used(const Place& place, bool used);
  void flush_used(const Place& place);

  void fence() { memory_.fence(); }

 private:
  std::uint64_t& table_word(std::uint32_t chunk) const;
  std::uint64_t& map_word(std::uint32_t chunk, std::uint32_t word) const;
  // The word that has the bit.
  std::uint64_t& used_word(const Place& place) const;
  // A word that was stored just now.
  void tell_and_flush(const std::uint64_t& word);

  const BlocksArea area_;
  DirectMemory& memory_;
  const std::uint32_t count_;
  const std::uint32_t first_;
  std::atomic<std::uint32_t> end_;
};

}  // namespace pawl::fase
