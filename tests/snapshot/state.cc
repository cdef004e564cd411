#include "snapshot/state.h"

#include "support/temporary_directory.h"

namespace pawl::test {

std::optional<std::uint64_t> generation_of_file(const std::string& path, const StateShape& shape,
                                                std::string& problem) {
  const std::string content = read_file(path);
  if (content.size() < kPageBytes) {
    problem = "it has " + std::to_string(content.size()) + " bytes";
    return std::nullopt;
  }
  std::uint64_t generation = 0;
  std::memcpy(&generation, content.data(), sizeof generation);
  const std::uint64_t pages = pages_of_state(generation, shape);
  if (content.size() != pages * kPageBytes) {
    problem = "generation " + std::to_string(generation) + " has " + std::to_string(pages) +
              " pages, and the file " + std::to_string(content.size()) + " bytes";
    return std::nullopt;
  }
  StatePage expected;
  for (std::uint64_t page = 0; page < pages; ++page) {
    make_state_page(generation, page, pages, expected);
    if (std::memcmp(content.data() + page * kPageBytes, expected.data(), kPageBytes) == 0) continue;
    std::uint64_t found = 0;
    std::memcpy(&found, content.data() + page * kPageBytes, sizeof found);
    problem = "its first page is of generation " + std::to_string(generation) + ", page " +
              std::to_string(page) + " of " + std::to_string(pages) + " is not (it says " +
              std::to_string(found) + ")";
    return std::nullopt;
  }
  return generation;
}

}  // namespace pawl::test
