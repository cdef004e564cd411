#include "track/open_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "medium/medium.h"

namespace pawl {

namespace {

constexpr std::uint64_t words_for(std::uint64_t bits) { return (bits + 63) / 64; }
constexpr std::size_t bytes_for(std::uint64_t pages) {
  const std::uint64_t words = words_for(pages);
  return static_cast<std::size_t>((words + words_for(words)) * sizeof(std::uint64_t));
}
// The bits of [first, end) that lie in the word that holds `first`.
constexpr std::uint64_t mask_of(std::uint64_t first, std::uint64_t end) {
  const std::uint64_t from_first = ~std::uint64_t{0} << (first % 64);
  const std::uint64_t last_in_word = std::min(end, first / 64 * 64 + 64);
  const std::uint64_t up_to_end = ~std::uint64_t{0} >> (63 - (last_in_word - 1) % 64);
  return from_first & up_to_end;
}

}  // namespace

bool OpenPages::allocate(std::uint64_t pages) {
  void* memory = mmap(nullptr, bytes_for(pages), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  words_ = static_cast<std::uint64_t*>(memory);
  summary_ = words_ + words_for(pages);
  capacity_ = pages;
  return true;
}

void OpenPages::release() {
  if (words_ != nullptr) munmap(words_, bytes_for(capacity_));
  *this = OpenPages{};
}

void OpenPages::open(std::uint64_t first, std::uint64_t end) {
  PAWL_ASSERT(end <= capacity_);
  while (first < end) {
    const std::uint64_t word = first / 64;
    words_[word] |= mask_of(first, end);
    summary_[word / 64] |= std::uint64_t{1} << (word % 64);
    first = (word + 1) * 64;
  }
}

void OpenPages::close(std::uint64_t first, std::uint64_t end) {
  PAWL_ASSERT(end <= capacity_);
  while (first < end) {
    const std::uint64_t word = first / 64;
    words_[word] &= ~mask_of(first, end);
    if (words_[word] == 0) summary_[word / 64] &= ~(std::uint64_t{1} << (word % 64));
    first = (word + 1) * 64;
  }
}

bool OpenPages::next_open(std::uint64_t from, std::uint64_t end, std::uint64_t& page) const {
  while (from < end) {
    const std::uint64_t word = from / 64;
    if (const std::uint64_t bits = words_[word] & mask_of(from, end); bits != 0) {
      page = word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
      return true;
    }
    // The next word that is not zero, by the summary.
    std::uint64_t next_word = word + 1;
    const std::uint64_t words = words_for(end);
    while (next_word < words) {
      const std::uint64_t bits = summary_[next_word / 64] & mask_of(next_word, words);
      if (bits != 0) {
        next_word = next_word / 64 * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
        break;
      }
      next_word = (next_word / 64 + 1) * 64;
    }
    from = next_word * 64;
  }
  return false;
}

std::uint64_t OpenPages::next_closed(std::uint64_t from, std::uint64_t end) const {
  while (from < end) {
    const std::uint64_t word = from / 64;
    if (const std::uint64_t bits = ~words_[word] & mask_of(from, end); bits != 0) {
      return word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
    }
    from = (word + 1) * 64;
  }
  return end;
}

bool OpenPages::next_run(std::uint64_t from, std::uint64_t end, PageRun& run) const {
  end = std::min(end, capacity_);
  std::uint64_t first = 0;
  if (!next_open(from, end, first)) return false;
  run = {first, next_closed(first, end) - first};
  return true;
}

std::uint64_t OpenPages::count_runs(std::uint64_t first, std::uint64_t end) const {
  std::uint64_t count = 0;
  PageRun run;
  for (std::uint64_t from = first; next_run(from, end, run); from = run.end()) {
    if (run.first > first || first == 0 || !contains(first - 1)) ++count;
  }
  return count;
}

}  // namespace pawl
