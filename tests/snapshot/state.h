// What a file of generation g holds: every byte of it follows from g.  All pages carry the
// generation, in lines that differ from one generation to the next; all else is zeros.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "medium/medium.h"

namespace pawl::test {

struct StateShape {
  std::uint64_t pages_max = 200;
  // Every so many generations all of large_pages are there, and change: more than a commit may
  // stage.
  std::uint64_t large_every = 0;  // 0: never
  static constexpr std::uint64_t kLargePages = 2100;
};

// Grows and shrinks from one generation to the next.
inline std::uint64_t pages_of_state(std::uint64_t generation, const StateShape& shape) {
  if (shape.large_every != 0 && generation % shape.large_every == 1) return StateShape::kLargePages;
  return 1 + generation * 7919 % shape.pages_max;
}

using StatePage = std::array<std::byte, kPageBytes>;

inline void make_state_page(std::uint64_t generation, std::uint64_t page, std::uint64_t pages,
                            StatePage& into) {
  into.fill(std::byte{0});
  const std::uint64_t words[] = {generation, page, pages, generation * 0x9e3779b97f4a7c15u + page};
  for (const std::uint64_t line : {std::uint64_t{0}, 1 + generation % 61, std::uint64_t{63}})
    std::memcpy(into.data() + line * 64, words, sizeof words);
}

// The generation that the file is of, all of it; or nothing, and what is wrong with it.
std::optional<std::uint64_t> generation_of_file(const std::string& path, const StateShape& shape,
                                                std::string& problem);

}  // namespace pawl::test
