// Instead of the library's pawl_stored(): writes down what is marked, byte by byte.  In one source
// file of a test program.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pawl/store.h"
#include "track/tracker.h"

namespace pawl::test {

struct RecordedStore {
  const char* at;
  std::size_t count;
};
inline std::vector<RecordedStore> recorded_stores;

// Memory where mappings lie.
class RegionMemory {
 public:
  explicit RegionMemory(std::size_t bytes) : bytes_(bytes) {
    void* const memory =
        mmap(reinterpret_cast<void*>(std::max(kStoreRegionFirst, std::uint64_t{0x31} << 40)), bytes,
             PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    start_ = static_cast<char*>(memory);
  }
  ~RegionMemory() { munmap(start_, bytes_); }
  RegionMemory(const RegionMemory&) = delete;
  RegionMemory& operator=(const RegionMemory&) = delete;
  char* start() const { return start_; }
  std::size_t bytes() const { return bytes_; }

 private:
  char* start_ = nullptr;
  std::size_t bytes_;
};

// Offsets in the memory of which a mark was made.
inline std::set<std::size_t> recorded_in(const RegionMemory& memory) {
  std::set<std::size_t> offsets;
  for (const RecordedStore& store : recorded_stores) {
    for (std::size_t i = 0; i < store.count; ++i) {
      const std::ptrdiff_t offset = store.at + i - memory.start();
      if (offset >= 0 && static_cast<std::size_t>(offset) < memory.bytes())
        offsets.insert(static_cast<std::size_t>(offset));
    }
  }
  return offsets;
}

}  // namespace pawl::test

extern "C" void pawl_stored(const void* address, std::size_t length) {
  pawl::test::recorded_stores.push_back({static_cast<const char*>(address), length});
}
