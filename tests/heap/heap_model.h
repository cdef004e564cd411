// What a heap must hold: its blocks with their bytes, and its roots.  A program that uses a heap
// keeps one beside it, and asks it whether the heap agrees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "pawl/heap.h"
#include "workload/random.h"

namespace pawl::test {

class HeapModel {
 public:
  struct Block {
    std::size_t size = 0;
    std::uint64_t tag = 0;  // its bytes follow from it
    bool operator==(const Block&) const = default;
  };
  struct Named {
    char* address = nullptr;
    std::uint64_t type_tag = 0;
    bool operator==(const Named&) const = default;
  };
  using Blocks = std::map<char*, Block>;

  // Takes a new block into the model and fills it.  What is wrong with the block: it meets another,
  // is not aligned, or is too short; empty: nothing.
  std::string add(pawl_heap* heap, char* block, std::size_t size, std::size_t alignment);
  void remove(char* block) { blocks_.erase(block); }
  // Other bytes.
  void rewrite(char* block);
  // The block was moved or resized: its old bytes must be there, then it is filled anew.
  std::string resized(pawl_heap* heap, char* before, char* after, std::size_t size);
  void set_root(char* root) { root_ = root; }
  void set_named(const std::string& name, Named to);

  // Whether all blocks, bytes and roots are there, and no block beside them.  Empty: yes.
  std::string compare(pawl_heap* heap) const;
  // Whether the block holds its bytes.
  bool holds(const char* block) const;

  const Blocks& blocks() const { return blocks_; }
  char* root() const { return root_; }
  const std::map<std::string, Named>& named() const { return named_; }
  std::uint64_t bytes() const;
  // A block chosen by chance; there must be one.
  char* any_block(Random& random) const;
  bool operator==(const HeapModel& other) const {
    return blocks_ == other.blocks_ && root_ == other.root_ && named_ == other.named_;
  }

 private:
  std::string find_place(pawl_heap* heap, char* block, std::size_t size) const;

  Blocks blocks_;
  char* root_ = nullptr;
  std::map<std::string, Named> named_;
  std::uint64_t tags_ = 0;
};

// A size as a program may ask for: mostly small, often at an edge between two kinds of blocks.
std::size_t draw_block_size(Random& random);

// The faults that pawl_heap_check finds, one a line; empty: none.
std::string check_text(pawl_heap* heap);

}  // namespace pawl::test
