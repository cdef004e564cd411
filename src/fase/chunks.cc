#include "fase/chunks.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>
#include <string>

namespace pawl::fase {
std::unique_ptr<Chunks> Chunks::make(ChunkTable& table) {
  std::unique_ptr<Chunks> made(new (std::nothrow) Chunks(table));
  if (made == nullptr) return nullptr;
  const std::size_t groups = (table.count() + kGroupChunks - 1) / kGroupChunks;
  const std::size_t words = (table.count() + 63) / 64;
  made->groups_.reset(
      static_cast<std::atomic<Group*>*>(std::calloc(groups, sizeof(std::atomic<Group*>))));
  made->free_.reset(static_cast<std::uint64_t*>(std::calloc(words, sizeof(std::uint64_t))));
  if (made->groups_ == nullptr || made->free_ == nullptr) return nullptr;
  made->end_at_open_ = table.end();
  made->looked_at_ = table.first();
  made->search_from_ = table.first();
  return made;
}

Chunks::~Chunks() {
  for (SlabList& spare : spare_)
    while (const Slab* const slab = spare.pop()) delete slab;
  if (groups_ == nullptr) return;
  const std::size_t groups = (table_.count() + kGroupChunks - 1) / kGroupChunks;
  for (std::size_t i = 0; i < groups; ++i) {
    const std::unique_ptr<Group> group(groups_[i].load());
    if (group == nullptr) continue;
    for (const std::atomic<ChunkState>& state : group->states) delete state.load().slab();
  }
}

// --- states --------------------------------------------------------------------------------------

std::atomic<ChunkState>* Chunks::find_state(std::uint32_t chunk) const {
  Group* const group = groups_[chunk / kGroupChunks].load(std::memory_order_acquire);
  return group == nullptr ? nullptr : &group->states[chunk % kGroupChunks];
}

std::atomic<ChunkState>* Chunks::make_state(std::uint32_t chunk) {
  std::atomic<Group*>& group = groups_[chunk / kGroupChunks];
  if (group.load(std::memory_order_relaxed) == nullptr) {
    auto* const made = new (std::nothrow) Group();
    if (made == nullptr) return nullptr;
    group.store(made, std::memory_order_release);
  }
  return &group.load(std::memory_order_relaxed)->states[chunk % kGroupChunks];
}

ChunkState Chunks::known_state(std::uint32_t chunk) const {
  const std::atomic<ChunkState>* const state = find_state(chunk);
  return state == nullptr ? ChunkState() : state->load(std::memory_order_acquire);
}

Result<ChunkState> Chunks::state(std::uint32_t chunk) {
  if (const ChunkState known = known_state(chunk); known != ChunkState()) return known;
  const std::lock_guard lock(mutex_);
  return look_at(chunk);
}

// Free chunks are left as they are: whether this one is free, only the words before it tell.
Result<ChunkState> Chunks::look_at(std::uint32_t chunk) {
  if (const ChunkState known = known_state(chunk); known != ChunkState()) return known;
  const ChunkWord word = table_.word(chunk);
  if (!table_.is_sound(chunk, word)) {
    return blocks_damaged("the heap's table was overwritten where it says what the 64 KiB at " +
                          std::to_string(table_.address_of(chunk)) + " are");
  }
  if (word.kind == ChunkKind::slab) {
    auto slab = add_slab(chunk, word.detail);
    if (!slab.ok()) return slab.status();
    return ChunkState(slab.value());
  }
  if (word.kind == ChunkKind::large && word.detail != 0) {
    std::atomic<ChunkState>* const state = make_state(chunk);
    if (state == nullptr) return no_memory_of_heap();
    state->store(ChunkState::large, std::memory_order_release);
    return ChunkState(ChunkState::large);
  }
  return ChunkState(ChunkState::no_block);
}

Result<Slab*> Chunks::add_slab(std::uint32_t chunk, std::uint8_t size_class) {
  std::atomic<ChunkState>* const state = make_state(chunk);
  std::unique_ptr<Slab> slab = Slab::make(size_class);
  if (state == nullptr || slab == nullptr) return no_memory_of_heap();
  slab->set_chunk(chunk);
  for (std::uint32_t word = 0; word < map_words(slab->of()); ++word)
    slab->set_taken_bits(word, table_.used_bits(chunk, word));
  state->store(slab.get(), std::memory_order_release);
  let_go(*slab);
  return slab.release();
}

Status Chunks::keep_large(std::uint32_t chunk) {
  const std::lock_guard lock(mutex_);
  std::atomic<ChunkState>* const state = make_state(chunk);
  if (state == nullptr) return no_memory_of_heap();
  state->store(ChunkState::large, std::memory_order_release);
  return {};
}

bool Chunks::change_large(std::uint32_t chunk, ChunkState from, ChunkState to) {
  std::atomic<ChunkState>* const state = find_state(chunk);
  return state != nullptr && state->compare_exchange_strong(from, to);
}

// --- looking -------------------------------------------------------------------------------------

Status Chunks::look_further(std::uint32_t chunks_max) {
  std::uint32_t chunk = looked_at_.load(std::memory_order_relaxed);
  for (; chunks_max > 0 && chunk < end_at_open_; --chunks_max) {
    auto state = look_at(chunk);
    if (!state.ok()) return state.status();
    if (state.value() == ChunkState(ChunkState::no_block)) {
      set_free(chunk, 1);
      chunk += 1;
    } else {
      chunk += state.value().slab() != nullptr ? 1 : table_.word(chunk).chunks;
    }
    looked_at_.store(chunk, std::memory_order_relaxed);
  }
  return {};
}

void Chunks::set_free(std::uint32_t chunk, std::uint32_t count) {
  for (std::uint32_t i = chunk; i < chunk + count; ++i) free_[i / 64] |= std::uint64_t{1} << i % 64;
  search_from_ = std::min(search_from_, chunk);
}

void Chunks::set_taken(std::uint32_t chunk, std::uint32_t count) {
  for (std::uint32_t i = chunk; i < chunk + count; ++i)
    free_[i / 64] &= ~(std::uint64_t{1} << i % 64);
  if (search_from_ == chunk) search_from_ = chunk + count;
}

std::optional<std::uint32_t> Chunks::find_run(std::uint32_t count) const {
  std::uint32_t found = 0;
  for (std::uint32_t chunk = search_from_; chunk < table_.end();) {
    const std::uint64_t rest = free_[chunk / 64] >> chunk % 64;
    if (rest == 0) {
      chunk += 64 - chunk % 64;
      found = 0;
    } else if ((rest & 1) == 0) {
      chunk += static_cast<std::uint32_t>(std::countr_zero(rest));
      found = 0;
    } else {
      // Shifted, its upper bits are clear: the count ends where the word does.
      const auto here = static_cast<std::uint32_t>(std::countr_one(rest));
      if (found + here >= count) return chunk - found;
      found += here;
      chunk += here;
    }
  }
  return std::nullopt;
}

Status Chunks::grow_for(std::uint32_t count) {
  const std::uint32_t end = table_.end();
  std::uint32_t tail = 0;
  while (tail < count && end - tail > table_.first() && has_free_bit(end - tail - 1)) ++tail;
  PAWL_ASSERT(tail < count);
  const std::uint32_t needed = count - tail;
  if (needed > table_.count() - end) {
    return Status::failure(ENOMEM, PAWL_ERROR_HEAP_FULL,
                           "the heap has its maximum of " +
                               std::to_string(table_.count() * kChunkBytes) +
                               " bytes and no room for the block");
  }
  const std::uint32_t wanted = std::min(std::max(needed, kGrowthChunks), table_.count() - end);
  Status grown = table_.grow(end + wanted);
  if (!grown.ok() && wanted > needed) grown = table_.grow(end + needed);
  PAWL_TRY(std::move(grown));
  set_free(end, table_.end() - end);
  return {};
}

// --- taking and giving back ----------------------------------------------------------------------

Result<std::uint32_t> Chunks::take(std::uint32_t count) {
  auto found = find_run(count);
  if (!found.has_value()) {
    PAWL_TRY(grow_for(count));
    found = find_run(count);
  }
  PAWL_ASSERT(found.has_value());
  set_taken(*found, count);
  return *found;
}

Result<Slab*> Chunks::slab_with_room(std::uint8_t size_class) {
  SlabList& list = lists_[size_class];
  if (Slab* const slab = list.pop()) return slab;
  const std::lock_guard lock(mutex_);
  PAWL_TRY(look_further(kLookAtOnce));
  if (Slab* const slab = list.pop()) return slab;
  return make_slab(size_class);
}

Result<Slab*> Chunks::make_slab(std::uint8_t size_class) {
  auto chunk = take(1);
  if (!chunk.ok()) return chunk.status();
  Slab* slab = spare_[size_class].pop();
  if (slab == nullptr) slab = Slab::make(size_class).release();
  std::atomic<ChunkState>* const state = make_state(chunk.value());
  if (slab == nullptr || state == nullptr) {
    if (slab != nullptr) spare_[size_class].push(*slab);
    set_free(chunk.value(), 1);
    return no_memory_of_heap();
  }
  slab->set_chunk(chunk.value());
  for (std::uint32_t word = 0; word < map_words(slab->of()); ++word) slab->set_taken_bits(word, 0);
  // Whoever finds the class finds an empty map.
  table_.clear_used_bits(chunk.value(), slab->of());
  table_.fence();
  table_.set_word(chunk.value(), {.kind = ChunkKind::slab, .detail = size_class});
  table_.fence();
  state->store(slab, std::memory_order_release);
  return slab;
}

void Chunks::let_go(Slab& slab) {
  if (slab.let_go()) lists_[slab.size_class()].push(slab);
}

void Chunks::give_back(Slab& slab, std::uint32_t index) {
  if (slab.give_back(index)) lists_[slab.size_class()].push(slab);
}

Result<std::uint32_t> Chunks::take_large(std::uint32_t count) {
  const std::lock_guard lock(mutex_);
  PAWL_TRY(look_further(kLookAtOnce));
  auto taken = take(count);
  if (!taken.ok()) return taken;
  const std::uint32_t first = taken.value();
  std::atomic<ChunkState>* const state = make_state(first);
  if (state == nullptr) {
    set_free(first, count);
    return no_memory_of_heap();
  }
  // What the chunks were before must not be found inside of the block.  Until it is used all of
  // this may be durable in any order.
  for (std::uint32_t chunk = first; chunk < first + count; ++chunk) {
    const ChunkWord was = table_.word(chunk);
    PAWL_ASSERT(was.kind != ChunkKind::large || was.detail == 0);
    if (was.kind != ChunkKind::free) table_.set_word(chunk, {});
  }
  table_.set_word(first, {.kind = ChunkKind::large, .chunks = count});
  table_.fence();
  state->store(ChunkState::large, std::memory_order_release);
  return first;
}

void Chunks::give_back_large(std::uint32_t chunk) {
  const std::lock_guard lock(mutex_);
  const ChunkState known = known_state(chunk);
  if (known == ChunkState()) return;  // it will be looked at
  PAWL_ASSERT(known == ChunkState::large || known == ChunkState::large_being_freed);
  const bool found_later =
      chunk >= looked_at_.load(std::memory_order_relaxed) && chunk < end_at_open_;
  make_state(chunk)->store(found_later ? ChunkState::unknown : ChunkState::no_block,
                           std::memory_order_release);
  if (!found_later) set_free(chunk, table_.word(chunk).chunks);
}

Status Chunks::reclaim_empty() {
  const std::lock_guard lock(mutex_);
  PAWL_TRY(look_further(table_.count()));
  for (SlabList& list : lists_) {
    list.take_empty([this](Slab& slab) {
      make_state(slab.chunk())->store(ChunkState::no_block, std::memory_order_release);
      set_free(slab.chunk(), 1);
      spare_[slab.size_class()].push(slab);
    });
  }
  return {};
}

}  // namespace pawl::fase
