// Which chunks are free and what the others are, as far as it has been looked at: slabs with room
// by class, and runs of free chunks for new slabs and large blocks.
//
// After an open nothing is known.  Each search for a slab or a run looks at some more of the table,
// so that neither the open nor a call takes as long as the heap is large, and what is free is found
// long before the file has grown by as much.
#pragma once

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>

#include "fase/chunk_table.h"
#include "fase/slab.h"

namespace pawl::fase {

inline Status no_memory_of_heap() {
  return Status::no_memory("no memory for what is known of the heap");
}

// What a search looks at, of what was not looked at yet.
inline constexpr std::uint32_t kLookAtOnce = 64;
// By how many chunks the file grows, where there is space.
inline constexpr std::uint32_t kGrowthChunks = 16;

// What is known of a chunk: a word, so that it is read without a lock.
class ChunkState {
 public:
  enum : std::uintptr_t { unknown = 0, no_block = 1, large = 2, large_being_freed = 3 };
  ChunkState() = default;
  ChunkState(std::uintptr_t value) : value_(value) {}  // NOLINT: implicit by design
  ChunkState(Slab* slab) : value_(reinterpret_cast<std::uintptr_t>(slab)) {}  // NOLINT: the same

  bool operator==(const ChunkState&) const = default;
  Slab* slab() const {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it was made from one
    return value_ > large_being_freed ? reinterpret_cast<Slab*>(value_) : nullptr;
  }

 private:
  std::uintptr_t value_ = unknown;
};

// Any thread may call.
class Chunks {
 public:
  // Null: there is no memory.
  static std::unique_ptr<Chunks> make(ChunkTable& table);
  ~Chunks();
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;

  // Both fail where the file cannot grow and nothing is known that would do: a reclaim_empty() may
  // find it.
  //
  // A slab of the class, of the caller's now; durable as an empty one if it is new.
  Result<Slab*> slab_with_room(std::uint8_t size_class);
  // The slab is no longer the caller's.
  void let_go(Slab& slab);
  // As Slab::give_back().
  void give_back(Slab& slab, std::uint32_t index);

  // The first chunk of a large block that is not used yet, durable as such.
  Result<std::uint32_t> take_large(std::uint32_t count);
  void give_back_large(std::uint32_t chunk);

  // What a chunk is in which a block may begin; looks at it if need be.  Of a slab what is found
  // there is taken from now on.
  Result<ChunkState> state(std::uint32_t chunk);
  // Keeps a large block that is not used.
  Status keep_large(std::uint32_t chunk);
  // False: it was not in that state.
  bool change_large(std::uint32_t chunk, ChunkState from, ChunkState to);

  // Looks at all there is, and makes free chunks of the slabs with no block taken, so far as no
  // shard has them.
  Status reclaim_empty();
  // Whether anything was searched for: from then on what is free may be handed out.
  bool has_begun() const { return looked_at_.load(std::memory_order_relaxed) > table_.first(); }

  // For checks; while nobody else calls.
  ChunkState known_state(std::uint32_t chunk) const;
  bool is_free(std::uint32_t chunk) const { return has_free_bit(chunk); }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  template <class T>
  using Zeros = std::unique_ptr<T[], Free>;  // of calloc, so that what is not used takes no memory

  static constexpr std::uint32_t kGroupChunks = 4096;
  struct Group {
    std::array<std::atomic<ChunkState>, kGroupChunks> states;
  };

  explicit Chunks(ChunkTable& table) : table_(table) {}

  // Null: nothing is known of it.
  std::atomic<ChunkState>* find_state(std::uint32_t chunk) const;
  // Null: no memory.  This and all below: the mutex is held.
  std::atomic<ChunkState>* make_state(std::uint32_t chunk);
  Result<ChunkState> look_at(std::uint32_t chunk);
  Result<Slab*> add_slab(std::uint32_t chunk, std::uint8_t size_class);
  Status look_further(std::uint32_t chunks_max);
  Result<std::uint32_t> take(std::uint32_t count);
  std::optional<std::uint32_t> find_run(std::uint32_t count) const;
  Status grow_for(std::uint32_t count);
  Result<Slab*> make_slab(std::uint8_t size_class);

  bool has_free_bit(std::uint32_t chunk) const {
    return (free_[chunk / 64] >> chunk % 64 & 1) != 0;
  }
  void set_free(std::uint32_t chunk, std::uint32_t count);
  void set_taken(std::uint32_t chunk, std::uint32_t count);

  ChunkTable& table_;
  Zeros<std::atomic<Group*>> groups_;
  std::array<SlabList, kSlabClassCount> lists_;

  std::mutex mutex_;
  std::uint32_t end_at_open_ = 0;
  std::atomic<std::uint32_t> looked_at_{0};  // chunks before it are known, and those since the open
  Zeros<std::uint64_t> free_;                // a bit for each chunk that is known to be free
  std::uint32_t search_from_ = 0;            // none is free before it
  std::array<SlabList, kSlabClassCount> spare_;  // without a chunk, for slabs to come
};

}  // namespace pawl::fase
