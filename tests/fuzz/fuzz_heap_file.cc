// The file of a heap that somebody has changed, cut or made longer, with any bytes as its journal:
// what looks at it and what opens it stay within it, end, and find the same
// (tests/heap/hostile_heap.h).
//
// The input: 8 bytes that set the scene, 8 changes of 8 bytes, then the journal.

#include <algorithm>

#include "fuzz/format_by_document.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/require.h"
#include "fuzz/written_journal.h"
#include "heap/heap.h"
#include "heap/hostile_heap.h"
#include "support/memory_medium.h"

namespace pawl::fuzz {

using test::HostileHeap;

namespace {

enum Flag : unsigned {
  kSeal = 1,  // checksums are made right afterwards
  kHasJournal = 2,
  kIsMarked = 4,
};
constexpr unsigned kChangesShift = 3;  // how many changes are made
constexpr unsigned kChangesMax = 8;
constexpr std::size_t kChangesAt = 8;
constexpr std::uint64_t kSizeUnit = 1024;  // of the file's size, where it is another
// Larger ones take their time.
constexpr std::uint64_t kSizeBytesMax = std::uint64_t{64} << 20;
constexpr unsigned kSteps = 40;

}  // namespace

const std::size_t kPrologueBytes = kChangesAt + kChangesMax * HostileHeap::kChangeBytes;

namespace {

// What a heap of the image leaves in its journal when it is used for a while, and not closed.
std::vector<std::byte> journal_of_heap(unsigned lives) {
  const test::HeapImage image;
  test::StoredDisk stored{.base = image.content(), .mark = {}, .journal = {}};
  HeapOptions options;
  options.mapping.journal_size_bytes = kJournalSizeMin;
  options.mapping.tracker = TrackerChoice::fault;
  for (unsigned life = 0; life < lives; ++life) {
    test::MemoryDisk disk(stored, {.backing = test::Backing::memory_file});
    auto heap = Heap::open(disk.open(), options);
    require(heap.ok(), "the image is a heap");
    for (const std::size_t size : {40u, 3'000u, 20'000u, 6'000'000u}) {
      auto block = heap.value()->allocate(size, 16);
      require(block.ok() && heap.value()->set_root(block.value()).ok(), "the heap has room");
      *block.value() = 'j';
      require(heap.value()->sync().ok(), "the heap is synced");
    }
    heap.value().reset();
    stored = disk.state();
  }
  return bytes_of(*stored.journal);
}

std::vector<std::byte> input(unsigned flags, std::initializer_list<int> change,
                             std::span<const std::byte> journal) {
  std::vector<std::byte> bytes(kPrologueBytes + journal.size());
  bytes[0] = static_cast<std::byte>(flags | (change.size() == 0 ? 0u : 1u) << kChangesShift);
  std::transform(change.begin(), change.end(), bytes.begin() + kChangesAt,
                 [](int byte) { return static_cast<std::byte>(byte); });
  std::copy(journal.begin(), journal.end(), bytes.begin() + kPrologueBytes);
  return bytes;
}

// The mark is that of this journal.
test::StoredDisk scene(const HostileHeap& heap, document::Bytes bytes) {
  const auto flags = document::number_at(bytes, 0, 1);
  const document::Bytes journal = bytes.subspan(kPrologueBytes);
  test::StoredDisk disk{.base = heap.content(), .mark = {}, .journal = {}};
  if (const std::uint64_t size = document::number_at(bytes, 2, 2); size != 0)
    disk.base.resize(std::min(size * kSizeUnit, kSizeBytesMax));
  if ((flags & kHasJournal) != 0) disk.journal = content_of(journal);
  if ((flags & kIsMarked) != 0) disk.mark = Mark{document::read(journal).id, "/memory/file.pawl"};
  return disk;
}

}  // namespace

std::vector<Seed> seeds() {
  std::vector<Seed> seeds;
  for (const unsigned lives : {1u, 2u}) {
    const std::vector<std::byte> journal = journal_of_heap(lives);
    const std::string name = "lives_" + std::to_string(lives);
    constexpr unsigned kCrashed = kSeal | kHasJournal | kIsMarked;
    seeds.push_back({name + ".crashed", input(kCrashed, {}, journal)});
    seeds.push_back({name + ".root", input(kCrashed, {0, 0, 0, 3, 8, 0, 0, 0}, journal)});
    seeds.push_back({name + ".maximum", input(kCrashed, {0, 0, 0, 1, 9, 0, 0, 0}, journal)});
    seeds.push_back({name + ".unmarked", input(kSeal | kHasJournal, {}, journal)});
    seeds.push_back({name + ".alone", input(kSeal, {0, 0, 0, 0, 7, 0, 0, 0}, {})});
    seeds.push_back({name + ".unsealed", input(0, {11, 0, 0, 3, 0, 0, 0, 0}, {})});
  }
  return seeds;
}

}  // namespace pawl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pawl::fuzz;
  if (size < kPrologueBytes) return 0;
  const document::Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
  const document::Journal journal = document::read(bytes.subspan(kPrologueBytes));
  for (const document::Record& record : journal.records)
    for (const document::Size& one : record.sizes)
      if (one.size > kSizeBytesMax) return 0;
  static const pawl::test::HeapImage kImage;
  static HostileHeap heap(kImage);
  heap.reset();
  const unsigned flags = data[0];
  for (unsigned i = 0; i < (flags >> kChangesShift) % (kChangesMax + 1); ++i)
    heap.change(
        bytes.subspan(kChangesAt + i * HostileHeap::kChangeBytes, HostileHeap::kChangeBytes));
  if ((flags & kSeal) != 0) heap.seal_all();
  pawl::test::Random random(data[1]);
  const std::string wrong = heap.use_disk(scene(heap, bytes), random, kSteps);
  require(wrong.empty(), [&] { return wrong; });
  return 0;
}
