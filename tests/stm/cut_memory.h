// Persistent memory whose power may fail at each step that is asked of it: it knows what is
// certainly durable, and what of the rest may be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "medium/persistent_memory.h"
#include "support/observed_memory.h"

namespace pawl::test {

class CutMemory final : public PersistentMemory, private MemoryObserver {
 public:
  // Called before each step.
  using Step = std::function<void()>;

  // Of these bytes, which are all durable now.
  CutMemory(std::span<std::byte> bytes, Step step);

  void copy(std::byte* to, std::span<const std::byte> from) override { beneath_.copy(to, from); }
  void flush(const std::byte* at, std::size_t count) override { beneath_.flush(at, count); }
  void fence() override { beneath_.fence(); }

  // What could be left if the power failed now: what is durable, and of the words that are not,
  // each or not, as the seed has it.
  std::vector<std::byte> image(std::uint64_t seed) const;

 private:
  bool stores(const std::byte* at, std::span<const std::byte> bytes) override;
  bool streams(const std::byte* at, std::span<const std::byte> bytes) override;
  void writes_back(const std::byte* line) override;
  void fences() override;

  struct Pending {
    std::size_t offset;
    std::vector<std::byte> bytes;
  };

  const std::span<std::byte> bytes_;
  const Step step_;
  std::vector<std::byte> durable_;
  std::vector<Pending> pending_;  // a fence makes them durable
  ObservedMemory beneath_;
};

}  // namespace pawl::test
