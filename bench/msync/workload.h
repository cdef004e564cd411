// What one commit consists of, and the stores that make it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace pawl::bench {

inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::size_t kLineBytes = 64;

struct Shape {
  std::uint32_t pages = 1;
  std::uint32_t bytes_per_page = kLineBytes;  // kLineBytes or kPageBytes
  std::uint32_t think_us = 0;                 // pause before each commit's stores; 0: saturated
  std::uint64_t record_bytes = 0;             // of Pawl's record for it: what the floor writes

  std::uint64_t changed_bytes() const { return std::uint64_t{pages} * bytes_per_page; }
};

// Chooses random pages, and changes every cache line that it says it changes.
class Stores {
 public:
  Stores(std::uint64_t mapping_pages, std::uint64_t seed);

  // From now on, only so many pages of the mapping, chosen at random, are ever used.
  void use_few_pages(std::uint32_t count);
  const std::vector<std::uint64_t>& few_pages() const { return few_pages_; }

  // Chooses distinct pages, and one line of each where only a line is to change.
  void choose(const Shape& shape);
  void make(char* memory, const Shape& shape);
  // Tells Pawl where, as code does that pawl-clang compiled.
  void mark(const char* memory, const Shape& shape) const;

 private:
  struct Place {
    std::uint64_t page;
    std::size_t offset_in_page;
  };
  std::uint64_t random_page();

  const std::uint64_t mapping_pages_;
  std::mt19937_64 random_;
  std::vector<std::uint64_t> few_pages_;  // empty: all of them
  std::vector<Place> chosen_;
  std::uint64_t value_ = 0;
};

}  // namespace pawl::bench
