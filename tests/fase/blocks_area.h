// Memory for a heap of blocks: what has no space in it cannot be touched, and a crash takes what no
// fence has reached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "fase/blocks.h"
#include "fase/direct_memory.h"

namespace pawl::fase::test {

// Address space, mapped piece by piece as space is taken.
class BlocksMemory {
 public:
  explicit BlocksMemory(std::uint64_t size_bytes_max);
  ~BlocksMemory();
  BlocksMemory(const BlocksMemory&) = delete;
  BlocksMemory& operator=(const BlocksMemory&) = delete;

  // As long as this lives.
  BlocksArea area();
  std::byte* base() const { return base_; }
  // Whole chunks.  Taking more of them fails with ENOSPC; those that are taken stay.
  void set_chunks_max(std::uint64_t chunks) { chunks_max_ = chunks; }
  std::uint64_t chunks_taken() const { return taken_count_; }
  bool is_taken(std::uint64_t chunk) const { return taken_[chunk]; }
  std::uint64_t chunk_count() const { return taken_.size(); }
  // What is touched ends the process, or is as ever.
  void forbid(std::uint64_t chunk, std::uint64_t count);
  void allow(std::uint64_t chunk, std::uint64_t count);

  Status take_space(std::uint64_t offset, std::uint64_t size_bytes);

 private:
  const std::uint64_t mapped_bytes_;
  std::byte* mapped_ = nullptr;
  std::byte* base_ = nullptr;
  std::vector<bool> taken_;
  std::uint64_t taken_count_ = 0;
  std::uint64_t chunks_max_ = ~std::uint64_t{0};
};

// Copies, flushes and fences, all at once and without instructions.
class PlainMemory final : public PersistentMemory {
 public:
  void copy(std::byte* to, std::span<const std::byte> from) override;
  void flush(const std::byte*, std::size_t) override {}
  void fence() override {}
};

inline DirectMemory plain_memory() {
  return DirectMemory(std::make_unique<PlainMemory>(), /*observer=*/nullptr);
}

// What of the memory a crash leaves.  One thread at a time.
class ShadowedMemory final : private Observer {
 public:
  // What the memory holds is durable.
  explicit ShadowedMemory(BlocksMemory& memory);

  // What the heap stores through.
  DirectMemory& direct() { return direct_; }
  // Called after each store that is told of, copy, flush and fence.
  void set_observer(std::function<void()> observer) { observer_ = std::move(observer); }
  // Memory as a crash at this moment could leave it: of each line that has not become durable as it
  // is one of the contents that it may have, drawn at random; or all of them the oldest or newest.
  enum class Lines { oldest, newest, random };
  std::unique_ptr<BlocksMemory> crash(Lines lines, std::mt19937_64& random) const;

 private:
  static constexpr std::size_t kLine = 64;
  using Line = std::array<std::byte, kLine>;

  void stored(const std::byte*, std::size_t) override { observe(); }
  void word_stored(const std::uint64_t*, std::uint64_t) override { observe(); }
  void flushed(const std::byte* at, std::size_t count) override;
  void fenced() override;
  void observe() const {
    if (observer_) observer_();
  }
  Line durable(std::uint64_t line) const;

  BlocksMemory& memory_;
  DirectMemory direct_{std::make_unique<PlainMemory>(), this};
  std::map<std::uint64_t, std::vector<std::byte>> durable_;  // by chunk; others are zeros
  std::map<std::uint64_t, Line> flushed_;                    // by line, since the last fence
  std::function<void()> observer_;
};

}  // namespace pawl::fase::test
