#include "msync/workload.h"

#include <cstring>
#include <stdexcept>
#include <unordered_set>

#include "pawl/store.h"

namespace pawl::bench {

Stores::Stores(std::uint64_t mapping_pages, std::uint64_t seed)
    : mapping_pages_(mapping_pages), random_(seed) {}

void Stores::use_few_pages(std::uint32_t count) {
  few_pages_.clear();
  std::unordered_set<std::uint64_t> taken;
  while (few_pages_.size() < count) {
    const std::uint64_t page = random_() % mapping_pages_;
    if (taken.insert(page).second) few_pages_.push_back(page);
  }
}

std::uint64_t Stores::random_page() {
  return few_pages_.empty() ? random_() % mapping_pages_
                            : few_pages_[random_() % few_pages_.size()];
}

void Stores::choose(const Shape& shape) {
  // Half of the pages at most, so that the search for distinct ones ends soon.
  if (shape.pages > (few_pages_.empty() ? mapping_pages_ : few_pages_.size()) / 2)
    throw std::runtime_error("the mapping is too small for so many dirty pages");
  chosen_.clear();
  std::unordered_set<std::uint64_t> taken;
  while (chosen_.size() < shape.pages) {
    const std::uint64_t page = random_page();
    if (!taken.insert(page).second) continue;
    const std::size_t slots = kPageBytes / shape.bytes_per_page;
    chosen_.push_back({page, random_() % slots * shape.bytes_per_page});
  }
}

void Stores::make(char* memory, const Shape& shape) {
  for (const Place& place : chosen_) {
    char* const at = memory + place.page * kPageBytes + place.offset_in_page;
    for (std::uint32_t offset = 0; offset < shape.bytes_per_page; offset += sizeof value_) {
      // Never the same twice, so that every line differs from what stood there.
      value_ += 0x9e3779b97f4a7c15u;
      std::memcpy(at + offset, &value_, sizeof value_);
    }
  }
}

void Stores::mark(const char* memory, const Shape& shape) const {
  for (const Place& place : chosen_)
    ::pawl_stored(memory + place.page * kPageBytes + place.offset_in_page, shape.bytes_per_page);
}

}  // namespace pawl::bench
