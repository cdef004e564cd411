// The bookkeeping of blocks after a crash at each copy, flush and fence, whatever lines the crash
// takes: sections that allocate and free go on side by side, and those that were armed are
// finished.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "blocks_area.h"
#include "support/test_size.h"

namespace pawl::fase::test {
namespace {

constexpr std::uint64_t kChunks = 12;
constexpr std::size_t kSectionsMax = 3;
constexpr std::size_t kListMax = 4;
constexpr std::size_t kMapBytesMax = 512;

// What sections allocated and freed, by the offset in the area, in order.
struct Entry {
  std::uint64_t offset = 0;
  bool freed = false;
};

struct Section {
  std::vector<Entry> list;
  std::size_t wanted = 0;     // entries
  bool armed = false;         // its list is durable, and its end is not
  std::size_t published = 0;  // entries
};

using Used = std::set<std::uint64_t>;

Used used_after(const Used& before, const std::vector<Section>& sections) {
  Used used = before;
  for (const Section& section : sections) {
    if (!section.armed) continue;
    for (const Entry& entry : section.list) {
      if (entry.freed)
        used.erase(entry.offset);
      else
        used.insert(entry.offset);
    }
  }
  return used;
}

std::map<std::uint64_t, std::uint64_t> used_in(const Blocks& blocks, std::uint64_t base) {
  std::map<std::uint64_t, std::uint64_t> used;
  EXPECT_TRUE(blocks
                  .for_each_used([&](std::uint64_t address, std::uint64_t size_bytes) {
                    used[address - base] = size_bytes;
                  })
                  .ok());
  return used;
}

void expect_sound(const Blocks& blocks) {
  EXPECT_EQ(blocks.check([](const std::string& text) { ADD_FAILURE() << text; }), 0u);
}

// Nothing is lost: what no used block lies in can be had as a block of a chunk.
void expect_no_leak(Blocks& blocks, std::uint64_t base) {
  std::vector<bool> occupied(kChunks);
  for (std::uint64_t chunk = 0; chunk < first_chunk_of(kChunks); ++chunk) occupied[chunk] = true;
  for (const auto& [offset, size_bytes] : used_in(blocks, base)) {
    for (std::uint64_t at = offset; at < offset + size_bytes; at += kChunkBytes)
      occupied[at / kChunkBytes] = true;
    occupied[(offset + size_bytes - 1) / kChunkBytes] = true;
  }
  for (;;) {
    auto reserved = blocks.reserve(kChunkBytes);
    if (!reserved.ok()) {
      EXPECT_EQ(reserved.status().error_number(), ENOMEM);
      break;
    }
    const std::uint64_t chunk = (reserved.value() - base) / kChunkBytes;
    ASSERT_FALSE(occupied[chunk]) << "chunk " << chunk;
    occupied[chunk] = true;
  }
  EXPECT_EQ(std::count(occupied.begin(), occupied.end(), false), 0);
}

// Finishes all armed sections, side by side.
void finish(Blocks& blocks, std::uint64_t base, ShadowedMemory& memory,
            std::vector<Section> sections, const Used& before, std::mt19937_64& random) {
  sections.erase(std::remove_if(sections.begin(), sections.end(),
                                [](const Section& section) { return !section.armed; }),
                 sections.end());
  Used listed;
  for (const Section& section : sections) {
    for (const Entry& entry : section.list) {
      listed.insert(entry.offset);
      ASSERT_TRUE(blocks.keep(base + entry.offset).ok());
    }
  }
  // A section that goes on may allocate before the others have ended.
  std::vector<std::uint64_t> reserved;
  for (int i = 0; i < 3; ++i) {
    auto block = blocks.reserve(random() % 2 == 0 ? 20000 : kChunkBytes * 2);
    if (!block.ok()) continue;
    const std::uint64_t offset = block.value() - base;
    EXPECT_FALSE(before.contains(offset) || listed.contains(offset)) << offset;
    reserved.push_back(block.value());
  }
  std::vector<std::size_t> done(sections.size());
  for (std::size_t left = sections.size(); left > 0;) {
    const std::size_t which = random() % sections.size();
    const std::vector<Entry>& list = sections[which].list;
    if (done[which] == list.size()) {
      done[which] += 1;
      left -= 1;
      memory.direct().fence();
    }
    if (done[which] > list.size()) continue;
    const Entry entry = list[done[which]++];
    if (entry.freed)
      blocks.set_free(base + entry.offset);
    else
      blocks.set_used(base + entry.offset);
  }
  memory.set_observer({});  // they have ended: from here on nobody would finish them again
  for (const Section& section : sections)
    for (const Entry& entry : section.list)
      if (entry.freed) blocks.give_back(base + entry.offset);
  for (const std::uint64_t block : reserved) blocks.give_back(block);
}

void expect_recovered(BlocksMemory& left, const std::vector<Section>& sections, const Used& before,
                      std::mt19937_64& random, bool crash_again) {
  ShadowedMemory memory(left);
  std::unique_ptr<BlocksMemory> left_again;
  if (crash_again) {
    std::size_t events = random() % 12;
    memory.set_observer([&, events]() mutable {
      if (events-- == 0) left_again = memory.crash(ShadowedMemory::Lines::random, random);
    });
  }
  const std::uint64_t base = left.area().address;
  auto opened = Blocks::open(left.area(), memory.direct());
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  Blocks& blocks = *opened.value();
  expect_sound(blocks);
  finish(blocks, base, memory, sections, before, random);
  expect_sound(blocks);
  Used used;
  for (const auto& [offset, size_bytes] : used_in(blocks, base)) used.insert(offset);
  EXPECT_EQ(used, used_after(before, sections));
  expect_no_leak(blocks, base);
  expect_sound(blocks);
  if (left_again != nullptr) expect_recovered(*left_again, sections, before, random, false);
}

// Sections that go on in turns, for some steps.
class Life {
 public:
  explicit Life(std::uint64_t seed) : random_(seed), crashes_(seed) {
    memory_.set_observer([this] { crash(); });
    EXPECT_TRUE(Blocks::make(area_.area(), memory_.direct()).ok());
    made_ = true;
    area_.set_chunks_max(chunks_max_);
    auto opened = Blocks::open(area_.area(), memory_.direct());
    EXPECT_TRUE(opened.ok());
    blocks_ = std::move(opened.value());
  }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) step();
  }
  std::uint64_t crashes() const { return count_; }

 private:
  void crash() {
    if (!made_ || ::testing::Test::HasFailure()) return;
    using Lines = ShadowedMemory::Lines;
    for (const Lines lines : {Lines::oldest, Lines::newest, Lines::random, Lines::random}) {
      const auto left = memory_.crash(lines, crashes_);
      expect_recovered(*left, sections_, used_, crashes_, count_ % 4 == 0);
      ++count_;
    }
  }

  void step() {
    // The file grows now by this, now by that.
    if (random_() % 6 == 0) area_.set_chunks_max(++chunks_max_);
    if (sections_.size() < kSectionsMax && random_() % 4 == 0) {
      sections_.push_back({.list = {}, .wanted = 1 + random_() % kListMax});
      return;
    }
    if (sections_.empty()) return;
    const std::size_t which = random_() % sections_.size();
    Section& section = sections_[which];
    if (section.armed && section.published < section.list.size()) {
      const Entry entry = section.list[section.published++];
      if (entry.freed)
        blocks_->set_free(base_ + entry.offset);
      else
        blocks_->set_used(base_ + entry.offset);
    } else if (section.armed) {
      memory_.direct().fence();
      end(which);
    } else if (section.list.size() < section.wanted) {
      work(section);
    } else if (random_() % 8 == 0) {
      drop(which);
    } else {
      section.armed = true;
    }
  }

  void work(Section& section) {
    section.wanted -= 1;  // whether or not there is something to do
    section.wanted += add_entry(section) ? 1 : 0;
  }
  bool add_entry(Section& section) {
    if (random_() % 2 == 0) {
      static constexpr std::array<std::uint64_t, 8> kSizes = {512,   600,   8000,  15000,
                                                              20000, 32000, 65536, 180000};
      auto reserved = blocks_->reserve(kSizes[random_() % kSizes.size()]);
      if (reserved.ok()) section.list.push_back({reserved.value() - base_, false});
      if (reserved.ok()) fill(area_.base() + (reserved.value() - base_));
      return reserved.ok();
    }
    std::vector<std::uint64_t> blocks(used_.begin(), used_.end());
    for (const Entry& entry : section.list)
      if (!entry.freed) blocks.push_back(entry.offset);
    if (blocks.empty()) return false;
    const std::uint64_t offset = blocks[random_() % blocks.size()];
    const bool begun = blocks_->begin_free(base_ + offset).ok();
    if (begun) section.list.push_back({offset, true});
    return begun;
  }

  // What a block holds may be taken for a slab's map, when there was none before it.
  void fill(std::byte* block) {
    std::memset(block, 0xff, kMapBytesMax);
    memory_.direct().flush(block, kMapBytesMax);
  }

  void end(std::size_t which) {
    const Section section = sections_[which];
    used_ = used_after(used_, {section});
    sections_.erase(sections_.begin() + which);
    for (const Entry& entry : section.list)
      if (entry.freed) blocks_->give_back(base_ + entry.offset);
  }
  void drop(std::size_t which) {
    const Section section = sections_[which];
    sections_.erase(sections_.begin() + which);
    for (const Entry& entry : section.list)
      if (entry.freed) blocks_->cancel_free(base_ + entry.offset);
    for (const Entry& entry : section.list)
      if (!entry.freed) blocks_->give_back(base_ + entry.offset);
  }

  std::mt19937_64 random_;
  std::mt19937_64 crashes_;
  std::uint64_t chunks_max_ = 3;
  BlocksMemory area_{kChunks * kChunkBytes};
  ShadowedMemory memory_{area_};
  const std::uint64_t base_ = area_.area().address;
  bool made_ = false;
  std::unique_ptr<Blocks> blocks_;
  std::vector<Section> sections_;
  Used used_;
  std::uint64_t count_ = 0;
};

TEST(BlocksCrash, ArmedSectionsAreFinishedAndOthersNeverWere) {
  for (std::uint64_t seed = 1; seed <= pawl::test::at_size(1U, 3U) && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Life life(seed);
    life.run(160);
    EXPECT_GT(life.crashes(), 200u);
  }
}

// Half made, an area is made again; made, it is empty.
TEST(BlocksCrash, MakingAnAreaIsRepeated) {
  std::mt19937_64 random(1);
  BlocksMemory area(kChunks * kChunkBytes);
  ShadowedMemory memory(area);
  memory.set_observer([&] {
    for (int i = 0; i < 8; ++i) {
      const auto left = memory.crash(ShadowedMemory::Lines::random, random);
      DirectMemory plain = plain_memory();
      auto opened = Blocks::open(left->area(), plain);
      if (!opened.ok()) {
        EXPECT_EQ(opened.status().error_number(), EUCLEAN);
        ASSERT_TRUE(Blocks::make(left->area(), plain).ok());
        opened = Blocks::open(left->area(), plain);
      }
      ASSERT_TRUE(opened.ok());
      expect_no_leak(*opened.value(), left->area().address);
    }
  });
  ASSERT_TRUE(Blocks::make(area.area(), memory.direct()).ok());
  memory.set_observer({});
  const auto left = memory.crash(ShadowedMemory::Lines::oldest, random);
  DirectMemory plain = plain_memory();
  EXPECT_TRUE(Blocks::open(left->area(), plain).ok());
}

}  // namespace
}  // namespace pawl::fase::test
