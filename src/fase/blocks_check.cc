// What is used, counted and verified by a walk through the table.

#include <algorithm>
#include <bit>

#include "fase/blocks.h"

namespace pawl::fase {
namespace {

std::string at(const ChunkTable& table, std::uint32_t chunk) {
  return " (chunk " + std::to_string(chunk) + ", at address " +
         std::to_string(table.address_of(chunk)) + ")";
}

bool is_used_large(ChunkWord word) { return word.kind == ChunkKind::large && word.detail != 0; }

// Calls visit(chunk, word) for each chunk, without those inside of used large blocks.
template <class Visit>
Status walk(const ChunkTable& table, Visit visit) {
  const std::uint32_t end = table.end();
  for (std::uint32_t chunk = table.first(); chunk < end;) {
    const ChunkWord word = table.word(chunk);
    if (!table.is_sound(chunk, word))
      return blocks_damaged("the heap's table was overwritten" + at(table, chunk));
    visit(chunk, word);
    chunk += is_used_large(word) ? word.chunks : 1;
  }
  return {};
}

class Check {
 public:
  Check(const ChunkTable& table, const Chunks& chunks, const Blocks::ReportFault& report)
      : table_(table), chunks_(chunks), report_(report) {}

  std::uint64_t run() {
    const std::uint32_t end = table_.end();
    for (std::uint32_t chunk = table_.first(); chunk < end;) {
      const ChunkWord word = table_.word(chunk);
      std::uint32_t looked_at = 1;
      if (!table_.is_sound(chunk, word))
        fault("the table was overwritten", chunk);
      else if (word.kind == ChunkKind::slab)
        look_at_slab(chunk, word);
      else if (is_used_large(word))
        looked_at = look_at_large(chunk, word);
      chunk += looked_at;
    }
    return faults_;
  }

 private:
  void fault(const std::string& text, std::uint32_t chunk) {
    ++faults_;
    if (report_) report_(text + at(table_, chunk));
  }

  void look_at_slab(std::uint32_t chunk, ChunkWord word) {
    const SlabClass& of = kSlabClasses[word.detail];
    const Slab* const slab = chunks_.known_state(chunk).slab();
    std::uint64_t any = 0;
    for (std::uint32_t i = 0; i < map_words(of); ++i) {
      const std::uint64_t used = table_.used_bits(chunk, i);
      any |= used;
      if ((used & bits_behind(of, i)) != 0)
        fault("a slab has blocks used that it cannot have", chunk);
      if (slab != nullptr && (used & ~slab->taken_bits(i)) != 0)
        fault("a block is used and may be handed out", chunk);
    }
    // The map's last line has no more words that mean something.
    for (std::uint32_t i = map_words(of); i < of.map_lines * kLineBytes / 8; ++i)
      if (table_.used_bits(chunk, i) != 0)
        fault("a slab has blocks used that it cannot have", chunk);
    if (slab != nullptr && (slab->size_class() != word.detail || slab->chunk() != chunk))
      fault("a slab is known as another one", chunk);
    if (any != 0 && chunks_.is_free(chunk)) fault("a slab with used blocks is free", chunk);
  }

  std::uint32_t look_at_large(std::uint32_t chunk, ChunkWord word) {
    for (std::uint32_t i = 0; i < word.chunks; ++i) {
      if (i > 0 && table_.word(chunk + i).kind != ChunkKind::free)
        fault("something stands inside of a large block", chunk + i);
      if (chunks_.is_free(chunk + i)) fault("a part of a large block is free", chunk + i);
    }
    const ChunkState known = chunks_.known_state(chunk);
    if (known != ChunkState() && known != ChunkState::large &&
        known != ChunkState::large_being_freed)
      fault("a large block is known as something else", chunk);
    return word.chunks;
  }

  const ChunkTable& table_;
  const Chunks& chunks_;
  const Blocks::ReportFault& report_;
  std::uint64_t faults_ = 0;
};

}  // namespace

Status Blocks::for_each_used(const VisitBlock& visit) const {
  return walk(table_, [&](std::uint32_t chunk, ChunkWord word) {
    const std::uint64_t start = table_.address_of(chunk);
    if (is_used_large(word)) visit(start, word.chunks * kChunkBytes);
    if (word.kind != ChunkKind::slab) return;
    const SlabClass& of = kSlabClasses[word.detail];
    for (std::uint32_t i = 0; i < map_words(of); ++i) {
      for (std::uint64_t used = table_.used_bits(chunk, i) & ~bits_behind(of, i); used != 0;
           used &= used - 1) {
        const std::uint32_t index = 64 * i + static_cast<std::uint32_t>(std::countr_zero(used));
        visit(start + of.first_offset + index * of.block_bytes, of.block_bytes);
      }
    }
  });
}

Result<BlocksInformation> Blocks::information() const {
  BlocksInformation counted;
  counted.size_bytes = table_.end() * kChunkBytes;
  counted.size_bytes_max = table_.count() * kChunkBytes;
  PAWL_TRY(walk(table_, [&](std::uint32_t chunk, ChunkWord word) {
    if (word.kind == ChunkKind::slab) {
      const SlabClass& of = kSlabClasses[word.detail];
      counted.slabs += 1;
      std::uint64_t used = 0;
      for (std::uint32_t i = 0; i < map_words(of); ++i)
        used += std::popcount(table_.used_bits(chunk, i) & ~bits_behind(of, i));
      counted.blocks_used += used;
      counted.bytes_used += used * of.block_bytes;
    } else if (is_used_large(word)) {
      counted.blocks_used += 1;
      counted.large_blocks_used += 1;
      counted.bytes_used += word.chunks * kChunkBytes;
      counted.large_bytes_used += word.chunks * kChunkBytes;
    } else {
      counted.chunks_free += 1;
    }
  }));
  return counted;
}

std::uint64_t Blocks::check(const ReportFault& report) const {
  return Check(table_, *chunks_, report).run();
}

}  // namespace pawl::fase
