// The one benchmark that knows Pawl from inside: it counts the allocator's own lines, on plain
// memory, by comparing all of it before and after each operation.
#include "heap/dirt.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory_resource>
#include <numeric>
#include <random>

#include "common/failure.h"
#include "heap/allocator.h"

namespace pawl::bench {

namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kMemoryBytes = std::size_t{256} << 20;
constexpr int kSeed = 20130415;

// Memory that is zero at first, aligned as heaps are.
class Region {
 public:
  Region() {
    const std::size_t length = kMemoryBytes + heap_format::kSegmentBytes;
    mapped_ = static_cast<char*>(
        ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (mapped_ == MAP_FAILED) fail_with_errno("mmap");
    start_ = reinterpret_cast<char*>(
        round_up(reinterpret_cast<std::uintptr_t>(mapped_), heap_format::kSegmentBytes));
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() { ::munmap(mapped_, kMemoryBytes + heap_format::kSegmentBytes); }
  char* start() const { return start_; }

 private:
  char* mapped_ = nullptr;
  char* start_ = nullptr;
};

// Either allocator, as the same containers take it.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual std::pmr::memory_resource& resource() = 0;
  // How much of the region is in use, and whether a line of it is the allocator's own.
  virtual std::size_t used_bytes() const = 0;
  virtual bool is_bookkeeping(std::size_t offset) const = 0;
  virtual bool tells_bookkeeping() const = 0;
};

class PawlSubject final : public Subject, public std::pmr::memory_resource {
 public:
  explicit PawlSubject(const Region& region)
      : arena_(region.start(), heap_format::kSegmentBytes, kMemoryBytes,
               [](std::uint64_t) { return Status{}; }) {
    arena_.segment_table()[0] = heap_format::kSegmentAdministration;
  }
  std::pmr::memory_resource& resource() override { return *this; }
  std::size_t used_bytes() const override { return arena_.size_bytes(); }
  bool tells_bookkeeping() const override { return true; }
  bool is_bookkeeping(std::size_t offset) const override {
    const auto segment = static_cast<std::uint32_t>(offset / heap_format::kSegmentBytes);
    const std::uint64_t page = offset / kPageBytes;
    if (segment == 0 || page % heap_format::kSegmentPages == 0) return true;
    const auto& descriptor = arena_.segment(segment).pages[page % heap_format::kSegmentPages];
    return descriptor.kind == heap_format::PageKind::slab &&
           offset % kPageBytes < sizeof(heap_format::SlabHeader);
  }

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    auto block = allocator_.allocate(size, std::max(alignment, heap_format::kBlockAlignment));
    if (!block.ok()) throw std::bad_alloc();
    return block.value();
  }
  void do_deallocate(void* block, std::size_t, std::size_t) override {
    if (!allocator_.free(static_cast<char*>(block)).ok()) std::abort();
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  Arena arena_;
  Allocator allocator_{arena_};
};

// Free lists inside of free blocks, as most allocators of programs have them.
class PoolSubject final : public Subject {
 public:
  explicit PoolSubject(const Region& region)
      : memory_(region.start(), kMemoryBytes, std::pmr::null_memory_resource()),
        counting_(memory_, region.start()),
        pool_(&counting_) {}
  std::pmr::memory_resource& resource() override { return pool_; }
  std::size_t used_bytes() const override { return counting_.used_bytes; }
  bool tells_bookkeeping() const override { return false; }
  bool is_bookkeeping(std::size_t) const override { return false; }

 private:
  struct Counting final : std::pmr::memory_resource {
    Counting(std::pmr::memory_resource& memory, const char* from) : below(memory), start(from) {}
    void* do_allocate(std::size_t size, std::size_t alignment) override {
      char* const block = static_cast<char*>(below.allocate(size, alignment));
      used_bytes = std::max(used_bytes, static_cast<std::size_t>(block + size - start));
      return block;
    }
    void do_deallocate(void*, std::size_t, std::size_t) override {}
    bool do_is_equal(const memory_resource& other) const noexcept override {
      return this == &other;
    }
    std::pmr::memory_resource& below;
    const char* start;
    std::size_t used_bytes = 0;
  };

  std::pmr::monotonic_buffer_resource memory_;
  Counting counting_;
  std::pmr::unsynchronized_pool_resource pool_;
};

// Compares the region with its copy, and brings the copy up to it.
class Differ {
 public:
  explicit Differ(const Region& region) : region_(region) {}
  void count_into(const Subject& subject, Dirt& dirt) {
    const std::size_t used = round_up(subject.used_bytes(), kPageBytes);
    for (std::size_t page = 0; page < used; page += kPageBytes) {
      if (std::memcmp(region_.start() + page, copy_.start() + page, kPageBytes) == 0) continue;
      dirt.pages += 1;
      for (std::size_t line = page; line < page + kPageBytes; line += kLineBytes) {
        if (std::memcmp(region_.start() + line, copy_.start() + line, kLineBytes) == 0) continue;
        dirt.lines += 1;
        if (subject.is_bookkeeping(line)) dirt.bookkeeping_lines += 1;
      }
      std::memcpy(copy_.start() + page, region_.start() + page, kPageBytes);
    }
  }

 private:
  const Region& region_;
  Region copy_;
};

using Map = std::pmr::map<std::pmr::string, std::pmr::string>;

void measure(Subject& subject, Differ& differ, const std::string& allocator, std::uint32_t keys,
             std::uint32_t value_bytes, std::vector<Dirt>& into) {
  std::mt19937 random(kSeed);
  Map& map = *new (subject.resource().allocate(sizeof(Map))) Map(&subject.resource());
  std::vector<std::uint32_t> order(keys);
  std::iota(order.begin(), order.end(), 0);
  std::string value(value_bytes, '\0');
  const auto draw_value = [&]() -> const std::string& {
    std::generate(value.begin(), value.end(), [&] { return static_cast<char>(random()); });
    return value;
  };
  const auto key_of = [&](std::uint32_t number) {
    return std::pmr::string("key" + std::to_string(number), std::pmr::new_delete_resource());
  };
  Dirt ignored;
  differ.count_into(subject, ignored);
  const auto each = [&](const char* operation, const std::function<void(std::uint32_t)>& act) {
    std::shuffle(order.begin(), order.end(), random);
    Dirt dirt{operation, allocator};
    for (const std::uint32_t number : order) {
      act(number);
      differ.count_into(subject, dirt);
    }
    dirt.pages /= keys;
    dirt.lines /= keys;
    dirt.bookkeeping_lines = subject.tells_bookkeeping() ? dirt.bookkeeping_lines / keys : -1;
    into.push_back(dirt);
  };
  each("insert", [&](std::uint32_t number) { map.emplace(key_of(number), draw_value()); });
  each("replace", [&](std::uint32_t number) { map.find(key_of(number))->second = draw_value(); });
  each("delete", [&](std::uint32_t number) { map.erase(map.find(key_of(number))); });
}

}  // namespace

std::vector<Dirt> measure_dirt(std::uint32_t keys, std::uint32_t value_bytes) {
  std::vector<Dirt> rows;
  {
    const Region region;
    PawlSubject subject(region);
    Differ differ(region);
    measure(subject, differ, "pawl", keys, value_bytes, rows);
  }
  {
    const Region region;
    PoolSubject subject(region);
    Differ differ(region);
    measure(subject, differ, "pool of free lists", keys, value_bytes, rows);
  }
  return rows;
}

}  // namespace pawl::bench
