#include "stm/cut_memory.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "medium/persistent_copy.h"

namespace pawl::test {

CutMemory::CutMemory(std::span<std::byte> bytes, Step step)
    : bytes_(bytes),
      step_(std::move(step)),
      durable_(bytes.begin(), bytes.end()),
      beneath_(*this) {}

bool CutMemory::stores(const std::byte*, std::span<const std::byte>) {
  step_();
  return true;
}

bool CutMemory::streams(const std::byte* at, std::span<const std::byte> bytes) {
  step_();
  pending_.push_back({static_cast<std::size_t>(at - bytes_.data()), {bytes.begin(), bytes.end()}});
  return true;
}

void CutMemory::writes_back(const std::byte* line) {
  step_();
  pending_.push_back(
      {static_cast<std::size_t>(line - bytes_.data()), {line, line + kMemoryLineBytes}});
}

void CutMemory::fences() {
  step_();
  for (const Pending& pending : pending_)
    std::memcpy(durable_.data() + pending.offset, pending.bytes.data(), pending.bytes.size());
  pending_.clear();
}

std::vector<std::byte> CutMemory::image(std::uint64_t seed) const {
  std::mt19937_64 random(seed);
  std::vector<std::byte> image = durable_;
  constexpr std::size_t kPieceBytes = 4096;  // most of which are as they were
  for (std::size_t at = 0; at < bytes_.size(); at += kMemoryWordBytes) {
    const std::size_t piece = std::min(kPieceBytes, bytes_.size() - at);
    if (at % kPieceBytes == 0 && std::memcmp(image.data() + at, bytes_.data() + at, piece) == 0) {
      at += piece - kMemoryWordBytes;
      continue;
    }
    if (std::memcmp(image.data() + at, bytes_.data() + at, kMemoryWordBytes) != 0 &&
        (random() & 1) != 0)
      std::memcpy(image.data() + at, bytes_.data() + at, kMemoryWordBytes);
  }
  return image;
}

}  // namespace pawl::test
