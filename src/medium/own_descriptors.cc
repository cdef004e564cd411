#include "medium/own_descriptors.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace pawl::own_descriptors {
namespace {

// What is beyond is not followed: closed by the program, it is noticed before it is written.
constexpr unsigned kNumbersMax = 65536;
constexpr unsigned kBits = 64;

std::array<std::atomic<std::uint64_t>, kNumbersMax / kBits> own;

bool is_followed(int number) { return number >= 0 && static_cast<unsigned>(number) < kNumbersMax; }

std::atomic<std::uint64_t>& word_of(int number) {
  return own[static_cast<unsigned>(number) / kBits];
}
std::uint64_t bit_of(int number) {
  return std::uint64_t{1} << (static_cast<unsigned>(number) % kBits);
}

}  // namespace

void add(int number) {
  if (is_followed(number)) word_of(number).fetch_or(bit_of(number), std::memory_order_relaxed);
}

void remove(int number) {
  if (is_followed(number)) word_of(number).fetch_and(~bit_of(number), std::memory_order_relaxed);
}

bool contains(int number) {
  return is_followed(number) &&
         (word_of(number).load(std::memory_order_relaxed) & bit_of(number)) != 0;
}

std::vector<int> between(unsigned first, unsigned last) {
  std::vector<int> found;
  for (unsigned word = first / kBits; word < own.size() && word * kBits <= last; ++word) {
    for (std::uint64_t left = own[word].load(std::memory_order_relaxed); left != 0;
         left &= left - 1) {
      const unsigned number = word * kBits + static_cast<unsigned>(std::countr_zero(left));
      if (number >= first && number <= last) found.push_back(static_cast<int>(number));
    }
  }
  return found;
}

}  // namespace pawl::own_descriptors
