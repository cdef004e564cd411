// Stands in for the block allocator until that is here: blocks of whole lines, one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "medium/persistent_memory.h"
#include "medium/status.h"

namespace pawl::fase {

struct BlocksArea {
  std::uint64_t address = 0;
  std::uint64_t size_bytes_max = 0;
  std::function<Status(std::uint64_t offset, std::uint64_t size_bytes)> take_space;
};

class Blocks {
 public:
  static Status make(const BlocksArea& area, PersistentMemory& memory);
  static Result<std::unique_ptr<Blocks>> open(const BlocksArea& area, PersistentMemory& memory);

  Result<std::uint64_t> reserve(std::uint64_t size_bytes);
  void release_reservation(std::uint64_t address);
  void set_used(std::uint64_t address);
  void set_free(std::uint64_t address);
  bool is_used(std::uint64_t address) const;
  std::uint64_t usable_bytes(std::uint64_t address) const;

 private:
  Blocks(BlocksArea area, PersistentMemory& memory) : area_(std::move(area)), memory_(memory) {}

  const BlocksArea area_;
  PersistentMemory& memory_;
  mutable std::mutex mutex_;
  std::multimap<std::uint64_t, std::uint64_t> free_;
};

}  // namespace pawl::fase
