// Memory that tells what is done to it, instruction by instruction, as the processor would do it.
#pragma once

#include <cstddef>
#include <span>

#include "medium/persistent_memory.h"

namespace pawl::test {

// Told before each; what it answers with false does not happen.
class MemoryObserver {
 public:
  MemoryObserver() = default;
  MemoryObserver(const MemoryObserver&) = delete;
  MemoryObserver& operator=(const MemoryObserver&) = delete;
  virtual ~MemoryObserver() = default;

  // Into the cache: a write-back and a fence make it durable.
  virtual bool stores(const std::byte* at, std::span<const std::byte> bytes) = 0;
  // Past it, whole words: a fence makes it durable.
  virtual bool streams(const std::byte* at, std::span<const std::byte> bytes) = 0;
  virtual void writes_back(const std::byte* line) = 0;
  virtual void fences() = 0;
};

class ObservedMemory final : public PersistentMemory {
 public:
  // The observer must outlive it.
  explicit ObservedMemory(MemoryObserver& observer) : observer_(observer) {}

  void copy(std::byte* to, std::span<const std::byte> from) override;
  void flush(const std::byte* at, std::size_t count) override;
  void fence() override { observer_.fences(); }

 private:
  MemoryObserver& observer_;
};

}  // namespace pawl::test
