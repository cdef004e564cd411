#include "blocks_area.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace pawl::fase::test {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

BlocksMemory::BlocksMemory(std::uint64_t size_bytes_max)
    : mapped_bytes_(size_bytes_max + kChunkBytes), taken_(size_bytes_max / kChunkBytes) {
  void* const mapped =
      ::mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(mapped != MAP_FAILED);
  mapped_ = static_cast<std::byte*>(mapped);
  base_ = mapped_ + (kChunkBytes - reinterpret_cast<std::uintptr_t>(mapped_) % kChunkBytes);
}

BlocksMemory::~BlocksMemory() { ::munmap(mapped_, mapped_bytes_); }

BlocksArea BlocksMemory::area() {
  return {.address = reinterpret_cast<std::uintptr_t>(base_),
          .size_bytes_max = taken_.size() * kChunkBytes,
          .take_space = [this](std::uint64_t offset, std::uint64_t size_bytes) {
            return take_space(offset, size_bytes);
          }};
}

Status BlocksMemory::take_space(std::uint64_t offset, std::uint64_t size_bytes) {
  require(offset % kChunkBytes == 0 && size_bytes % kChunkBytes == 0 && size_bytes > 0);
  const std::uint64_t first = offset / kChunkBytes;
  const std::uint64_t end = first + size_bytes / kChunkBytes;
  require(end <= taken_.size());
  const auto more = std::count(taken_.begin() + first, taken_.begin() + end, false);
  if (taken_count_ + more > chunks_max_) return Status::failure(ENOSPC, "no space");
  std::fill(taken_.begin() + first, taken_.begin() + end, true);
  taken_count_ += more;
  allow(first, end - first);
  return {};
}

void BlocksMemory::forbid(std::uint64_t chunk, std::uint64_t count) {
  require(::mprotect(base_ + chunk * kChunkBytes, count * kChunkBytes, PROT_NONE) == 0);
}

void BlocksMemory::allow(std::uint64_t chunk, std::uint64_t count) {
  require(::mprotect(base_ + chunk * kChunkBytes, count * kChunkBytes, PROT_READ | PROT_WRITE) ==
          0);
}

void PlainMemory::copy(std::byte* to, std::span<const std::byte> from) {
  std::memcpy(to, from.data(), from.size());
}

ShadowedMemory::ShadowedMemory(BlocksMemory& memory) : memory_(memory) {
  for (std::uint64_t chunk = 0; chunk < memory_.chunk_count(); ++chunk) {
    const std::byte* const from = memory_.base() + chunk * kChunkBytes;
    if (memory_.is_taken(chunk)) durable_[chunk].assign(from, from + kChunkBytes);
  }
}

ShadowedMemory::Line ShadowedMemory::durable(std::uint64_t line) const {
  Line content{};
  const auto chunk = durable_.find(line * kLine / kChunkBytes);
  if (chunk != durable_.end())
    std::memcpy(content.data(), chunk->second.data() + line * kLine % kChunkBytes, kLine);
  return content;
}

void ShadowedMemory::flushed(const std::byte* at, std::size_t count) {
  const auto offset = static_cast<std::uint64_t>(at - memory_.base());
  for (std::uint64_t line = offset / kLine; line <= (offset + count - 1) / kLine; ++line)
    std::memcpy(flushed_[line].data(), memory_.base() + line * kLine, kLine);
  observe();
}

void ShadowedMemory::fenced() {
  for (const auto& [line, content] : flushed_) {
    std::vector<std::byte>& chunk = durable_[line * kLine / kChunkBytes];
    chunk.resize(kChunkBytes);
    std::memcpy(chunk.data() + line * kLine % kChunkBytes, content.data(), kLine);
  }
  flushed_.clear();
  observe();
}

std::unique_ptr<BlocksMemory> ShadowedMemory::crash(Lines lines, std::mt19937_64& random) const {
  auto left = std::make_unique<BlocksMemory>(memory_.chunk_count() * kChunkBytes);
  for (std::uint64_t chunk = 0; chunk < memory_.chunk_count(); ++chunk) {
    if (!memory_.is_taken(chunk)) continue;
    require(left->take_space(chunk * kChunkBytes, kChunkBytes).ok());
    for (std::uint64_t line = chunk * kChunkBytes / kLine; line < (chunk + 1) * kChunkBytes / kLine;
         ++line) {
      const std::byte* const now = memory_.base() + line * kLine;
      Line content = durable(line);
      if (std::memcmp(content.data(), now, kLine) != 0) {
        const auto flushed = flushed_.find(line);
        const std::uint64_t draw = lines == Lines::random ? random() % 3 : 0;
        if (lines == Lines::newest || draw == 1)
          std::memcpy(content.data(), now, kLine);
        else if (draw == 2 && flushed != flushed_.end())
          content = flushed->second;
      }
      // Pages that stay zeros need not be made.
      if (static constexpr Line kZeros{}; content != kZeros)
        std::memcpy(left->base() + line * kLine, content.data(), kLine);
    }
  }
  return left;
}

}  // namespace pawl::fase::test
