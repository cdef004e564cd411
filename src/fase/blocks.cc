#include "fase/blocks.h"

#include <bit>
#include <cerrno>
#include <new>
#include <utility>

namespace pawl::fase {
namespace {

// Threads are spread over the shards as they come.
std::uint32_t shard_of_thread() {
  static std::atomic<std::uint32_t> threads{0};
  thread_local const std::uint32_t shard =
      threads.fetch_add(1, std::memory_order_relaxed) % kShardsMax;
  return shard;
}

Status no_block(std::uint64_t address) {
  return Status::failure(EINVAL, PAWL_ERROR_WRONG_BLOCK,
                         "at address " + std::to_string(address) +
                             " there is no allocated block of this heap: it was never "
                             "allocated, or it was freed already");
}

}  // namespace

Status Blocks::make(const BlocksArea& area, DirectMemory& memory) {
  return ChunkTable::make(area, memory);
}

Result<std::unique_ptr<Blocks>> Blocks::open(BlocksArea area, DirectMemory& memory) {
  PAWL_TRY(ChunkTable::check_header(area));
  std::unique_ptr<Blocks> blocks(new (std::nothrow) Blocks(std::move(area), memory));
  if (blocks == nullptr) return no_memory_of_heap();
  blocks->chunks_ = Chunks::make(blocks->table_);
  if (blocks->chunks_ == nullptr) return no_memory_of_heap();
  return blocks;
}

Blocks::Blocks(BlocksArea area, DirectMemory& memory) : table_(std::move(area), memory) {}

Blocks::~Blocks() {
  for (const std::atomic<Shard*>& shard : shards_) delete shard.load();
}

// --- reserving -----------------------------------------------------------------------------------

Result<std::uint64_t> Blocks::reserve(std::uint64_t size_bytes, std::uint64_t alignment) {
  if (!std::has_single_bit(alignment) || alignment > kBlockAlignmentMax) {
    return Status::failure(EINVAL, "an alignment of " + std::to_string(alignment) +
                                       " bytes: it must be a power of two up to " +
                                       std::to_string(kBlockAlignmentMax));
  }
  const std::uint64_t bytes_max = (table_.count() - table_.first()) * kChunkBytes;
  if (size_bytes > bytes_max) {
    return Status::failure(ENOMEM, PAWL_ERROR_TOO_LARGE,
                           "a block of " + std::to_string(size_bytes) +
                               " bytes: the heap can have " + std::to_string(bytes_max));
  }
  const std::size_t size_class =
      size_bytes <= kSmallBytesMax
          ? slab_class_for(std::max<std::uint64_t>(size_bytes, 1), alignment)
          : kSlabClassCount;
  const auto once = [&] {
    return size_class < kSlabClassCount ? reserve_small(static_cast<std::uint8_t>(size_class))
                                        : reserve_large(size_bytes);
  };
  auto reserved = once();
  if (reserved.ok() || reserved.status().code() == PAWL_ERROR_DAMAGED_SECTIONS) return reserved;
  // What is free may be a slab of another size, or another thread's.
  PAWL_TRY(gather());
  return once();
}

Result<Blocks::Shard*> Blocks::shard() {
  std::atomic<Shard*>& place = shards_[shard_of_thread()];
  Shard* shard = place.load(std::memory_order_acquire);
  if (shard != nullptr) return shard;
  std::unique_ptr<Shard> made(new (std::nothrow) Shard);
  if (made == nullptr) return no_memory_of_heap();
  // Two threads may have the same place.
  if (place.compare_exchange_strong(shard, made.get())) return made.release();
  return shard;
}

Result<std::uint64_t> Blocks::reserve_small(std::uint8_t size_class) {
  auto shard = this->shard();
  if (!shard.ok()) return shard.status();
  Slot& slot = shard.value()->slots[size_class];
  const std::lock_guard lock(slot.mutex);
  for (;;) {
    if (slot.slab != nullptr) {
      if (const std::uint32_t index = slot.slab->take(); index != Slab::kNone) {
        const SlabClass& of = kSlabClasses[size_class];
        return table_.address_of(slot.slab->chunk()) + of.first_offset + index * of.block_bytes;
      }
      chunks_->let_go(*std::exchange(slot.slab, nullptr));
    }
    auto slab = chunks_->slab_with_room(size_class);
    if (!slab.ok()) return slab.status();
    slot.slab = slab.value();
  }
}

Result<std::uint64_t> Blocks::reserve_large(std::uint64_t size_bytes) {
  auto chunk = chunks_->take_large(std::max(chunks_of(size_bytes), std::uint32_t{1}));
  if (!chunk.ok()) return chunk.status();
  return table_.address_of(chunk.value());
}

Status Blocks::gather() {
  for (const std::atomic<Shard*>& place : shards_) {
    Shard* const shard = place.load(std::memory_order_acquire);
    if (shard == nullptr) continue;
    for (Slot& slot : shard->slots) {
      const std::lock_guard lock(slot.mutex);
      if (slot.slab != nullptr) chunks_->let_go(*std::exchange(slot.slab, nullptr));
    }
  }
  return chunks_->reclaim_empty();
}

Status Blocks::keep(std::uint64_t address) {
  PAWL_ASSERT(!chunks_->has_begun());
  const auto place = table_.find(address);
  if (!place.has_value()) return no_block(address);
  if (place->word.kind == ChunkKind::large) return chunks_->keep_large(place->chunk);
  auto state = chunks_->state(place->chunk);
  if (!state.ok()) return state.status();
  state.value().slab()->take_this(place->index);
  return {};
}

// --- blocks that are taken -----------------------------------------------------------------------

Result<std::uint64_t> Blocks::usable_size(std::uint64_t address) {
  const auto place = table_.find(address);
  if (!place.has_value()) return no_block(address);
  auto state = chunks_->state(place->chunk);
  if (!state.ok()) return state.status();
  const Slab* const slab = state.value().slab();
  const bool taken = slab != nullptr
                         ? slab->is_taken(place->index) && !slab->is_being_freed(place->index)
                         : state.value() == ChunkState::large;
  if (!taken) return no_block(address);
  return table_.size_bytes(*place);
}

Status Blocks::begin_free(std::uint64_t address) {
  const auto place = table_.find(address);
  if (!place.has_value()) return no_block(address);
  auto state = chunks_->state(place->chunk);
  if (!state.ok()) return state.status();
  Slab* const slab = state.value().slab();
  const bool begun = slab != nullptr ? slab->begin_free(place->index)
                                     : chunks_->change_large(place->chunk, ChunkState::large,
                                                             ChunkState::large_being_freed);
  return begun ? Status{} : no_block(address);
}

void Blocks::cancel_free(std::uint64_t address) {
  const auto place = table_.find(address);
  PAWL_ASSERT(place.has_value());
  Slab* const slab = chunks_->known_state(place->chunk).slab();
  const bool cancelled =
      slab != nullptr
          ? slab->cancel_free(place->index)
          : chunks_->change_large(place->chunk, ChunkState::large_being_freed, ChunkState::large);
  PAWL_ASSERT(cancelled);
}

ChunkTable::Place Blocks::place_of(std::uint64_t address) const {
  const auto place = table_.find(address);
  PAWL_ASSERT(place.has_value());
  return *place;
}

void Blocks::mark_used(std::uint64_t address) { table_.set_used(place_of(address), true); }
void Blocks::mark_free(std::uint64_t address) { table_.set_used(place_of(address), false); }
void Blocks::flush_mark(std::uint64_t address) { table_.flush_used(place_of(address)); }

void Blocks::set_used(std::uint64_t address) {
  mark_used(address);
  flush_mark(address);
}

void Blocks::set_free(std::uint64_t address) {
  mark_free(address);
  flush_mark(address);
}

void Blocks::give_back(std::uint64_t address) {
  const auto place = table_.find(address);
  PAWL_ASSERT(place.has_value() && !table_.is_used(*place));
  if (place->word.kind == ChunkKind::large) return chunks_->give_back_large(place->chunk);
  // What is not known, for lack of memory too, will be found to be free.
  auto state = chunks_->state(place->chunk);
  if (state.ok()) chunks_->give_back(*state.value().slab(), place->index);
}

}  // namespace pawl::fase
