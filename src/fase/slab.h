// The volatile side of a slab: which of its blocks are taken, that is used, or reserved by a FASE
// that has not ended.  Where it and the map in the file differ, the block is reserved, or freed by
// a FASE that has not ended.
//
// A slab with room is either some shard's, who takes blocks of it, or in its class's list; a full
// one is nowhere, until a block of it is given back.  Only the shard's lock is held to take blocks;
// anybody gives them back.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "fase/blocks_format.h"

namespace pawl::fase {

class Slab {
 public:
  // All taken, and belonging to nobody.  Null: no memory.
  static std::unique_ptr<Slab> make(std::uint8_t size_class);

  std::uint8_t size_class() const { return size_class_; }
  const SlabClass& of() const { return kSlabClasses[size_class_]; }
  std::uint32_t chunk() const { return chunk_; }
  // Before anybody else sees it: what it is, from the map in the file.
  void set_chunk(std::uint32_t chunk) { chunk_ = chunk; }
  void set_taken_bits(std::uint32_t word, std::uint64_t bits);

  // Of the shard that has it: the index of a block that was free, or none.
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::uint32_t take();
  void take_this(std::uint32_t index);
  // True: the slab is the caller's to put into the list of its class.
  [[nodiscard]] bool give_back(std::uint32_t index);
  // Of the shard that has it, and has it no longer.  As give_back().
  [[nodiscard]] bool let_go();
  // Of whoever took it out of the list.
  void own() { stands_.store(Stands::owned, std::memory_order_relaxed); }

  bool is_taken(std::uint32_t index) const { return has(taken_[index / 64], index); }
  // False: it is not taken, or somebody frees it already.
  bool begin_free(std::uint32_t index);
  // False: nobody began to free it.
  bool cancel_free(std::uint32_t index);
  bool is_being_freed(std::uint32_t index) const { return has(freeing()[index / 64], index); }

  bool has_room() const;
  bool is_empty() const;
  std::uint64_t taken_bits(std::uint32_t word) const {
    return taken_[word].load(std::memory_order_acquire);
  }

 private:
  friend class SlabList;
  enum class Stands : std::uint8_t { owned, listed, nowhere };
  using Word = std::atomic<std::uint64_t>;

  Slab(std::uint8_t size_class, std::unique_ptr<Word[]> words)
      : size_class_(size_class),
        words_(map_words(kSlabClasses[size_class])),
        taken_(std::move(words)) {}

  static bool has(const Word& word, std::uint32_t index) {
    return (word.load(std::memory_order_acquire) >> index % 64 & 1) != 0;
  }
  Word* freeing() const { return taken_.get() + words_; }

  const std::uint8_t size_class_;
  std::atomic<Stands> stands_{Stands::owned};
  const std::uint32_t words_;
  std::uint32_t chunk_ = 0;
  std::uint32_t search_from_ = 0;  // a word: who has the slab looks there first
  Slab* next_ = nullptr;           // in the list
  // Bits that stand for no block are taken for ever.  As many words follow for the blocks that are
  // being freed.
  const std::unique_ptr<Word[]> taken_;
};

// Slabs of one class that have room.  Any thread may call.
class SlabList {
 public:
  void push(Slab& slab);
  // Null: there is none.  The slab is the caller's.
  Slab* pop();
  // Takes out those of which no block is taken.
  void take_empty(const std::function<void(Slab&)>& give);

 private:
  std::mutex mutex_;
  Slab* first_ = nullptr;
};

}  // namespace pawl::fase
