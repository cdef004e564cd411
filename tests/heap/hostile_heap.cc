#include "heap/hostile_heap.h"

#include <sys/mman.h>
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "heap/identity.h"
#include "heap/sealed.h"

namespace pawl::test {
namespace {

using heap_format::kSegmentBytes;
using heap_format::kSegmentPages;
using heap_format::PageKind;

// In the middle, which every sanitizer leaves free.
constexpr std::uint64_t kAddress =
    round_down((heap_format::kAddressMin + heap_format::kAddressMax) / 2, kSegmentBytes);
constexpr std::uint64_t kSizeBytesMax = 40 << 20;
constexpr std::uint64_t kGuardBytes = std::uint64_t{64} << 20;

void* at(std::uint64_t address) { return reinterpret_cast<void*>(address); }

void map(std::uint64_t address, std::uint64_t length, int protection, int more, int descriptor) {
  void* const mapped =
      ::mmap(at(address), length, protection, MAP_PRIVATE | MAP_NORESERVE | more, descriptor, 0);
  if (mapped != at(address)) throw std::runtime_error("no memory for a heap at its address");
}

void map_plain(std::uint64_t address, std::uint64_t length, int more) {
  map(address, length, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | more, -1);
}

// Blocks of all kinds, some freed again.
void furnish(Allocator& allocator, Roots& roots) {
  const auto take = [&](std::size_t size) { return allocator.allocate(size).value(); };
  const auto give = [&](char* block) { PAWL_ASSERT(allocator.free(block).ok()); };
  std::vector<char*> small;
  for (int i = 0; i < 700; ++i) small.push_back(take(40));  // several slabs, all but the last full
  for (int i = 0; i < 300; i += 3) give(small[i]);          // and some with room, in a list
  std::vector<char*> middle;
  for (const std::size_t size : {16u, 500u, 1'000u, 3'000u, 7'000u})
    for (int i = 0; i < 20; ++i) middle.push_back(take(size));
  for (std::size_t i = 0; i < middle.size(); i += 2) give(middle[i]);
  std::vector<char*> runs;
  for (const std::size_t pages : {2u, 3u, 70u, 100u, 200u, 400u, 500u})
    runs.push_back(take(pages * kPageBytes));
  give(runs[1]);
  give(runs[4]);
  char* const huge = take(5'000'000);
  char* const gone = take(9'000'000);
  give(take(2 << 20));
  give(gone);
  PAWL_ASSERT(roots.set_root(small[1]).ok());
  for (int i = 0; i < 100; ++i)
    PAWL_ASSERT(
        roots.set_named("root " + std::to_string(i), {i % 2 == 0 ? huge : runs[2], 1}).ok());
}

// A number of the kind that breaks things.
std::uint64_t number(std::uint32_t raw, std::uint64_t present) {
  constexpr std::uint64_t kOne = 1;
  const std::uint64_t edges[] = {0,
                                 1,
                                 kSegmentPages - 1,
                                 kSegmentPages,
                                 kSegmentPages + 1,
                                 kSegmentBytes,
                                 kSizeBytesMax,
                                 kAddress,
                                 kAddress + kSizeBytesMax,
                                 kOne << 31,
                                 kOne << 32,
                                 ~std::uint64_t{0},
                                 present - 1,
                                 present + 1,
                                 present * 2,
                                 raw >> 8};
  return edges[raw % std::size(edges)];
}

template <class Field>
void change_field(Field& field, std::uint32_t raw) {
  field = static_cast<Field>(number(raw, static_cast<std::uint64_t>(field)));
}

}  // namespace

HeapImage::HeapImage() {
  map_plain(kAddress, kSizeBytesMax, MAP_FIXED_NOREPLACE);
  auto* const base = static_cast<char*>(at(kAddress));
  Arena arena(base, 2 * kSegmentBytes, kSizeBytesMax, [](std::uint64_t) { return Status{}; });
  Allocator allocator(arena);
  Roots roots(arena);
  arena.header().identity = make_identity(kAddress, kSizeBytesMax, "");
  arena.segment_table()[0] = heap_format::kSegmentAdministration;
  furnish(allocator, roots);
  size_bytes_ = arena.size_bytes();
  for (std::uint32_t segment = 1; segment < arena.segment_count(); ++segment) {
    const heap_format::SegmentHeader& header = arena.segment(segment);
    if (header.magic == heap_format::kSegmentMagic) segments_.push_back(segment);
    if (arena.segment_table()[segment] < heap_format::kSegmentOfPages) continue;
    for (std::uint32_t page = 0; page < kSegmentPages; ++page)
      if (header.pages[page].kind == PageKind::slab)
        slabs_.push_back(std::uint64_t{segment} * kSegmentPages + page);
  }
  file_ = Descriptor(::memfd_create("pawl-hostile-heap", MFD_CLOEXEC));
  if (!file_.valid() || ::ftruncate(file_.get(), static_cast<off_t>(size_bytes_)) != 0)
    throw std::runtime_error("cannot make a memory file (memfd_create)");
  content_.resize(size_bytes_);
  static constexpr std::array<char, kPageBytes> kZeros{};
  for (std::uint64_t offset = 0; offset < size_bytes_; offset += kPageBytes) {
    if (std::memcmp(base + offset, kZeros.data(), kPageBytes) == 0) continue;
    content_.write(offset, std::as_bytes(std::span(base + offset, kPageBytes)));
    if (::pwrite(file_.get(), base + offset, kPageBytes, static_cast<off_t>(offset)) !=
        ssize_t{kPageBytes})
      throw std::runtime_error("cannot fill a memory file");
  }
  ::munmap(base, kSizeBytesMax);
}

HostileHeap::HostileHeap(const HeapImage& image)
    : image_(image),
      size_bytes_(image.size_bytes()),
      arena_(static_cast<char*>(at(kAddress)), image.size_bytes(), kSizeBytesMax,
             [this](std::uint64_t size_bytes) {
               map_plain(kAddress + size_bytes_, size_bytes - size_bytes_, MAP_FIXED);
               size_bytes_ = size_bytes;
               return Status{};
             }) {
  map(kAddress - kGuardBytes, kSizeBytesMax + 2 * kGuardBytes, PROT_NONE,
      MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1);
  reset();
}

HostileHeap::~HostileHeap() {
  ::munmap(at(kAddress - kGuardBytes), kSizeBytesMax + 2 * kGuardBytes);
}

char* HostileHeap::base() const { return arena_.base(); }

void HostileHeap::reset() {
  map(kAddress, kSizeBytesMax, PROT_NONE, MAP_ANONYMOUS | MAP_FIXED, -1);
  map(kAddress, image_.size_bytes(), PROT_READ | PROT_WRITE, MAP_FIXED, image_.descriptor());
  size_bytes_ = image_.size_bytes();
  arena_.set_size(size_bytes_);
  allocator_.emplace(arena_);
}

void HostileHeap::change(std::span<const std::byte> how) {
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(how[i]); };
  const std::uint32_t which = byte(1) | byte(2) << 8;
  const std::uint32_t field = byte(3);
  const std::uint32_t raw = byte(4) | byte(5) << 8 | byte(6) << 16 | byte(7) << 24;
  const std::uint32_t segment = image_.segments()[which % image_.segments().size()];
  heap_format::SegmentHeader& header = arena_.segment(segment);
  const auto slab_at = [&](std::uint32_t number) -> heap_format::SlabHeader& {
    return *reinterpret_cast<heap_format::SlabHeader*>(
        arena_.page(image_.slabs()[number % image_.slabs().size()]));
  };
  heap_format::SlabHeader& slab = slab_at(which);
  heap_format::HeaderPage& page = arena_.header();
  switch (byte(0) % 12) {
    case 0:
      if (field % 4 == 0) return change_field(page.identity.address, raw);
      if (field % 4 == 1) return change_field(page.identity.size_bytes_max, raw);
      if (field % 4 == 2) return change_field(page.identity.version, raw);
      return change_field(page.root, raw);
    case 1:
      return change_field(page.slabs_with_room[which % kSizeClassCount], raw);
    case 2: {
      heap_format::NamedRoot& named = arena_.named_roots()[which % PAWL_HEAP_ROOTS_MAX];
      if (field % 2 == 0) return change_field(named.address, raw);
      return change_field(named.name[field / 2 % named.name.size()], raw >> 4);
    }
    case 3:
      arena_.segment_table()[which % (kSizeBytesMax / kSegmentBytes)] =
          static_cast<std::uint8_t>(raw % 2 == 0 ? raw / 2 % 6 : raw / 2);
      return;
    case 4:
      switch (field % 5) {
        case 0:
          return change_field(header.magic, raw);
        case 1:
          return change_field(header.index, raw);
        case 2:
          header.kind = static_cast<heap_format::SegmentKind>(raw % 4);
          return;
        case 3:
          return change_field(header.huge_segments, raw);
        default:
          return change_field(header.huge_data_offset, raw);
      }
    case 5:
    case 6: {
      heap_format::PageDescriptor& descriptor = header.pages[raw % kSegmentPages];
      if (field % 2 == 0)
        descriptor.kind = static_cast<PageKind>(field / 2 % 7);
      else
        descriptor.value = static_cast<std::uint8_t>(field / 2);
      return;
    }
    case 7:
    case 8:
      switch (field % 9) {
        case 0:
          return change_field(slab.magic, raw);
        case 1:
          return change_field(slab.size_class, raw);
        case 2:
          return change_field(slab.page_count, raw);
        case 3:
          return change_field(slab.page, raw);
        case 4:
          slab.next = slab_at(raw).page;
          return;
        case 5:
          slab.previous = slab_at(raw).page;
          return;
        case 6:
          return change_field(slab.used, raw);
        case 7:
          return change_field(slab.capacity, raw);
        default:
          slab.used_bits[raw % slab.used_bits.size()] ^= std::uint64_t{1} << (raw >> 8) % 64;
          return;
      }
    case 9:  // the one becomes the other
      slab = slab_at(raw);
      if (field % 2 == 0)
        slab.page = static_cast<std::uint32_t>(image_.slabs()[which % image_.slabs().size()]);
      return;
    case 10: {
      // A slab where there was none, perhaps at its segment's very end.
      if (header.kind != heap_format::SegmentKind::pages) return;
      const std::uint32_t first = raw % 2 == 0 ? kSegmentPages - 1 - raw / 2 % 16 : raw / 2 % 1024;
      header.pages[first] = {PageKind::slab, static_cast<std::uint8_t>(field % kSizeClassCount)};
      const std::uint64_t number = std::uint64_t{segment} * kSegmentPages + first;
      auto& made = *reinterpret_cast<heap_format::SlabHeader*>(arena_.page(number));
      made = slab;
      made.size_class = static_cast<std::uint8_t>(field % kSizeClassCount);
      made.page_count = static_cast<std::uint8_t>(kSizeClasses[made.size_class].slab_pages);
      made.capacity = static_cast<std::uint16_t>(kSizeClasses[made.size_class].capacity);
      made.used = static_cast<std::uint16_t>(made.capacity / 2);
      made.page = static_cast<std::uint32_t>(number);
      seal(made);
      return;
    }
    default:
      base()[raw % (std::uint64_t{image_.size_bytes()})] = static_cast<char>(field);
      return;
  }
}

void HostileHeap::seal_all() {
  seal(arena_.header().identity);
  for (std::uint32_t segment = 1; segment < arena_.segment_count(); ++segment) {
    heap_format::SegmentHeader& header = arena_.segment(segment);
    if (header.magic == heap_format::kSegmentMagic) seal(header);
  }
  for (const std::uint64_t page : image_.slabs())
    seal(*reinterpret_cast<heap_format::SlabHeader*>(arena_.page(page)));
}

Content HostileHeap::content() const {
  Content content = image_.content();
  for (std::uint64_t offset = 0; offset < image_.size_bytes(); offset += kPageBytes) {
    const auto now = std::as_bytes(std::span(base() + offset, kPageBytes));
    std::array<std::byte, kPageBytes> before;
    content.read(offset, before);
    if (std::memcmp(now.data(), before.data(), kPageBytes) != 0) content.write(offset, now);
  }
  return content;
}

void HostileHeap::make_room() { ::munmap(at(kAddress), kSizeBytesMax); }

}  // namespace pawl::test
