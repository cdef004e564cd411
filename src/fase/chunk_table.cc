#include "fase/chunk_table.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string>
#include <utility>

namespace pawl::fase {
namespace {

std::byte* memory_at(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr): it is one
}

AreaHeader& header_of(const BlocksArea& area) {
  return *reinterpret_cast<AreaHeader*>(memory_at(area.address));
}

std::uint32_t table_piece(std::uint32_t chunk) {
  return static_cast<std::uint32_t>((kTableOffset + chunk * sizeof(std::uint64_t)) / kChunkBytes);
}

Status check(const AreaHeader& header, std::uint64_t size_bytes_max) {
  const std::uint32_t count = chunks_of(size_bytes_max);
  if (header.magic != kAreaMagic || header.version != kAreaVersion ||
      header.size_bytes_max != size_bytes_max || header.chunks_end < first_chunk_of(count) ||
      header.chunks_end > count)
    return blocks_damaged("the header of the heap was overwritten");
  return {};
}

}  // namespace

Status blocks_damaged(std::string text) {
  return Status::failure(EUCLEAN, PAWL_ERROR_DAMAGED_SECTIONS, std::move(text));
}

Status ChunkTable::make(const BlocksArea& area, DirectMemory& memory) {
  PAWL_ASSERT(area.address % kChunkBytes == 0);
  PAWL_ASSERT(area.size_bytes_max % kChunkBytes == 0 && area.size_bytes_max >= kAreaBytesMin &&
              area.size_bytes_max <= kAreaBytesMax);
  PAWL_TRY(area.take_space(0, kChunkBytes));
  AreaHeader& header = header_of(area);
  header = {};
  header.version = kAreaVersion;
  header.size_bytes_max = area.size_bytes_max;
  header.chunks_end = first_chunk_of(chunks_of(area.size_bytes_max));
  memory.tell_stored(&header, sizeof header);
  // A line moves as a whole, with what it has by then: whoever sees the magic sees the rest.
  memory.store_word(header.magic, kAreaMagic);
  memory.flush(memory_at(area.address), sizeof header);
  memory.fence();
  return {};
}

Status ChunkTable::check_header(const BlocksArea& area) {
  return check(header_of(area), area.size_bytes_max);
}

Result<std::vector<ChunkTable::Space>> ChunkTable::spaces_of(const AreaHeader& header,
                                                             std::uint64_t size_bytes_max) {
  PAWL_TRY(check(header, size_bytes_max));
  std::vector<Space> spaces{{0, kChunkBytes}};
  const std::uint32_t first = first_chunk_of(chunks_of(size_bytes_max));
  const auto end = static_cast<std::uint32_t>(header.chunks_end);
  if (end == first) return spaces;
  const auto add = [&](std::uint32_t from, std::uint32_t to) {
    if (from < to) spaces.push_back({from * kChunkBytes, (to - from) * kChunkBytes});
  };
  add(std::max(table_piece(first), 1u), table_piece(end - 1) + 1);
  add(first, end);
  return spaces;
}

ChunkTable::ChunkTable(BlocksArea area, DirectMemory& memory)
    : area_(std::move(area)),
      memory_(memory),
      count_(chunks_of(area_.size_bytes_max)),
      first_(first_chunk_of(count_)),
      end_(static_cast<std::uint32_t>(header_of(area_).chunks_end)) {
  PAWL_ASSERT(check_header(area_).ok());
}

Status ChunkTable::grow(std::uint32_t new_end) {
  const std::uint32_t end = this->end();
  PAWL_ASSERT(new_end > end && new_end <= count_);
  // Of the table only what has words of chunks takes space.
  const std::uint32_t piece = end == first_ ? table_piece(end) : table_piece(end - 1) + 1;
  if (const std::uint32_t piece_end = table_piece(new_end - 1) + 1; piece < piece_end)
    PAWL_TRY(area_.take_space(piece * kChunkBytes, (piece_end - piece) * kChunkBytes));
  PAWL_TRY(area_.take_space(end * kChunkBytes, (new_end - end) * kChunkBytes));
  std::uint64_t& stored = header_of(area_).chunks_end;
  std::atomic_ref(stored).store(new_end, std::memory_order_relaxed);
  tell_and_flush(stored);
  memory_.fence();
  end_.store(new_end, std::memory_order_release);
  return {};
}

std::uint64_t& ChunkTable::table_word(std::uint32_t chunk) const {
  PAWL_ASSERT(chunk >= first_ && chunk < end());
  return *reinterpret_cast<std::uint64_t*>(
      memory_at(area_.address + kTableOffset + chunk * sizeof(std::uint64_t)));
}

std::uint64_t& ChunkTable::map_word(std::uint32_t chunk, std::uint32_t word) const {
  return *reinterpret_cast<std::uint64_t*>(
      memory_at(address_of(chunk) + word * sizeof(std::uint64_t)));
}

void ChunkTable::tell_and_flush(const std::uint64_t& word) {
  memory_.tell_stored(&word, sizeof word);
  memory_.flush(reinterpret_cast<const std::byte*>(&word), sizeof word);
}

ChunkWord ChunkTable::word(std::uint32_t chunk) const {
  return std::bit_cast<ChunkWord>(
      std::atomic_ref(table_word(chunk)).load(std::memory_order_acquire));
}

void ChunkTable::set_word(std::uint32_t chunk, ChunkWord word) {
  PAWL_ASSERT(is_sound(chunk, word));
  std::uint64_t& stored = table_word(chunk);
  std::atomic_ref(stored).store(std::bit_cast<std::uint64_t>(word), std::memory_order_release);
  tell_and_flush(stored);
}

bool ChunkTable::is_sound(std::uint32_t chunk, ChunkWord word) const {
  if (word.reserved != 0) return false;
  switch (word.kind) {
    case ChunkKind::free:
      return word.detail == 0 && word.chunks == 0;
    case ChunkKind::slab:
      return word.detail < kSlabClassCount && word.chunks == 0;
    case ChunkKind::large:
      return word.detail <= 1 && word.chunks > 0 && word.chunks <= end() - chunk;
  }
  return false;
}

std::uint64_t ChunkTable::used_bits(std::uint32_t chunk, std::uint32_t map_word) const {
  return std::atomic_ref(this->map_word(chunk, map_word)).load(std::memory_order_acquire);
}

void ChunkTable::clear_used_bits(std::uint32_t chunk, const SlabClass& of) {
  memory_.zero(memory_at(address_of(chunk)), of.map_lines * kLineBytes);
}

std::optional<ChunkTable::Place> ChunkTable::find(std::uint64_t address) const {
  const std::uint64_t offset = address - area_.address;
  if (offset < first_ * kChunkBytes || offset >= end() * kChunkBytes) return std::nullopt;
  Place place{.chunk = static_cast<std::uint32_t>(offset / kChunkBytes), .word = {}};
  place.word = word(place.chunk);
  if (!is_sound(place.chunk, place.word)) return std::nullopt;
  const auto into_chunk = static_cast<std::uint32_t>(offset % kChunkBytes);
  if (place.word.kind == ChunkKind::large)
    return into_chunk == 0 ? std::optional(place) : std::nullopt;
  if (place.word.kind != ChunkKind::slab) return std::nullopt;
  const SlabClass& of = kSlabClasses[place.word.detail];
  if (into_chunk < of.first_offset || (into_chunk - of.first_offset) % of.block_bytes != 0)
    return std::nullopt;
  place.index = (into_chunk - of.first_offset) / of.block_bytes;
  return place;
}

std::uint64_t ChunkTable::size_bytes(const Place& place) const {
  return place.word.kind == ChunkKind::large ? place.word.chunks * kChunkBytes
                                             : kSlabClasses[place.word.detail].block_bytes;
}

bool ChunkTable::is_used(const Place& place) const {
  if (place.word.kind == ChunkKind::large) return word(place.chunk).detail != 0;
  return (used_bits(place.chunk, place.index / 64) >> place.index % 64 & 1) != 0;
}

std::uint64_t& ChunkTable::used_word(const Place& place) const {
  return place.word.kind == ChunkKind::large ? table_word(place.chunk)
                                             : map_word(place.chunk, place.index / 64);
}

void ChunkTable::set_used(const Place& place, bool used) {
  std::uint64_t& word = used_word(place);
  const std::uint64_t bit =
      place.word.kind == ChunkKind::large ? kLargeUsedBit : std::uint64_t{1} << place.index % 64;
  if (used)
    std::atomic_ref(word).fetch_or(bit, std::memory_order_release);
  else
    std::atomic_ref(word).fetch_and(~bit, std::memory_order_release);
  memory_.tell_stored(&word, sizeof word);
}

void ChunkTable::flush_used(const Place& place) {
  const std::uint64_t& word = used_word(place);
  memory_.flush(reinterpret_cast<const std::byte*>(&word), sizeof word);
}

}  // namespace pawl::fase
