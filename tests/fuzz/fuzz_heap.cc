// A heap whose bookkeeping was changed in many ways: what is made of it stays within it, ends, and
// where pawl_heap_check finds nothing, all goes well (tests/heap/hostile_heap.h).
//
// The input: a byte of flags, four of a seed for how the heap is used, then changes of eight bytes.

#include <algorithm>
#include <cstring>

#include "fuzz/fuzz_target.h"
#include "fuzz/require.h"
#include "heap/hostile_heap.h"

namespace pawl::fuzz {
namespace {

enum Flag : unsigned {
  kSeal = 1,  // checksums are made right afterwards
  kUseLong = 2,
};
// The other bits, when they are this: opened by all of Pawl, which takes its time.
constexpr unsigned kAsAFile = 4;
constexpr std::size_t kChangesAt = 5;
constexpr std::size_t kChangesMax = 64;
constexpr unsigned kSteps = 60;
constexpr unsigned kStepsLong = 500;

std::vector<std::byte> input(unsigned flags, std::initializer_list<int> changes) {
  std::vector<std::byte> bytes(kChangesAt);
  bytes[0] = static_cast<std::byte>(flags);
  for (const int change : changes) bytes.push_back(static_cast<std::byte>(change));
  return bytes;
}

}  // namespace

std::vector<Seed> seeds() {
  std::vector<Seed> seeds;
  for (const unsigned flags : {0u, kSeal + 0u, kSeal | kAsAFile, kSeal | kUseLong}) {
    const std::string name = "flags_" + std::to_string(flags);
    seeds.push_back({name + ".unchanged", input(flags, {})});
    seeds.push_back({name + ".root", input(flags, {0, 0, 0, 3, 8, 0, 0, 0})});
    seeds.push_back({name + ".list", input(flags, {1, 5, 0, 0, 3, 0, 0, 0})});
    seeds.push_back({name + ".table", input(flags, {3, 2, 0, 0, 0, 0, 0, 0})});
    seeds.push_back({name + ".segment", input(flags, {4, 1, 0, 3, 11, 0, 0, 0})});
    seeds.push_back({name + ".page", input(flags, {5, 0, 0, 4, 77, 0, 0, 0})});
    seeds.push_back({name + ".slab", input(flags, {7, 3, 0, 4, 1, 0, 0, 0})});
    seeds.push_back({name + ".slab_at_the_end", input(flags, {10, 0, 0, 60, 0, 0, 0, 0})});
  }
  return seeds;
}

}  // namespace pawl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pawl::fuzz;
  using pawl::test::HostileHeap;
  if (size < kChangesAt) return 0;
  static const pawl::test::HeapImage kImage;
  static HostileHeap heap(kImage);
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const unsigned flags = data[0];
  std::uint32_t seed = 0;
  std::memcpy(&seed, data + 1, sizeof seed);
  heap.reset();
  for (std::size_t at = kChangesAt;
       at + HostileHeap::kChangeBytes <=
       std::min(size, kChangesAt + kChangesMax * HostileHeap::kChangeBytes);
       at += HostileHeap::kChangeBytes)
    heap.change(bytes.subspan(at, HostileHeap::kChangeBytes));
  if ((flags & kSeal) != 0) heap.seal_all();
  pawl::test::Random random(seed);
  const unsigned steps = (flags & kUseLong) != 0 ? kStepsLong : kSteps;
  const std::string wrong =
      flags / kAsAFile == 1 ? heap.use_file(random, kSteps) : heap.use(random, steps);
  require(wrong.empty(), [&] { return wrong; });
  return 0;
}
