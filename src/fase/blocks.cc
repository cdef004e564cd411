#include "fase/blocks.h"

#include <atomic>
#include <cerrno>

#include "medium/cache_lines.h"
#include "medium/medium.h"

namespace pawl::fase {
namespace {

// Before each block: its size, and whether it is used.
struct alignas(kLineBytes) BlockHeader {
  std::uint64_t size_bytes;  // 0: here is the end
  std::uint64_t used;
};

BlockHeader& header_at(std::uint64_t address) {
  return *reinterpret_cast<BlockHeader*>(address);  // NOLINT(performance-no-int-to-ptr)
}
BlockHeader& header_of(std::uint64_t block) { return header_at(block - sizeof(BlockHeader)); }

}  // namespace

Status Blocks::make(const BlocksArea& area, PersistentMemory& memory) {
  PAWL_TRY(area.take_space(0, kPageBytes));
  memory.fence();
  return {};
}

Result<std::unique_ptr<Blocks>> Blocks::open(const BlocksArea& area, PersistentMemory& memory) {
  std::unique_ptr<Blocks> blocks(new Blocks(area, memory));
  std::uint64_t at = area.address;
  while (header_at(at).size_bytes != 0) {
    const std::uint64_t block = at + sizeof(BlockHeader);
    if (header_at(at).used == 0) blocks->free_.emplace(header_at(at).size_bytes, block);
    at = block + header_at(at).size_bytes;
  }
  blocks->free_.emplace(0, at);
  return blocks;
}

Result<std::uint64_t> Blocks::reserve(std::uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t bytes = round_up(std::max<std::uint64_t>(size_bytes, 1), kLineBytes);
  if (const auto found = free_.find(bytes); found != free_.end()) {
    const std::uint64_t block = found->second;
    free_.erase(found);
    return block;
  }
  const std::uint64_t end = free_.begin()->second;
  const std::uint64_t next = end + sizeof(BlockHeader) + bytes;
  if (next + sizeof(BlockHeader) > area_.address + area_.size_bytes_max)
    return Status::failure(ENOMEM, "the file is full");
  PAWL_TRY(area_.take_space(end - area_.address, next + sizeof(BlockHeader) - end));
  header_at(end).size_bytes = bytes;
  memory_.flush(reinterpret_cast<std::byte*>(&header_at(end)), sizeof(BlockHeader));
  memory_.fence();
  free_.erase(free_.begin());
  free_.emplace(0, next);
  return end + sizeof(BlockHeader);
}

void Blocks::release_reservation(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  free_.emplace(header_of(address).size_bytes, address);
}

void Blocks::set_used(std::uint64_t address) {
  std::atomic_ref(header_of(address).used).store(1);
  memory_.flush(reinterpret_cast<std::byte*>(&header_of(address)), sizeof(BlockHeader));
}

void Blocks::set_free(std::uint64_t address) {
  std::atomic_ref(header_of(address).used).store(0);
  memory_.flush(reinterpret_cast<std::byte*>(&header_of(address)), sizeof(BlockHeader));
}

bool Blocks::is_used(std::uint64_t address) const {
  return std::atomic_ref(header_of(address).used).load() != 0;
}

std::uint64_t Blocks::usable_bytes(std::uint64_t address) const {
  return header_of(address).size_bytes;
}

}  // namespace pawl::fase
