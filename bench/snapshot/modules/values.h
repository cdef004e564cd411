// The values that pairs get: the same for every system.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "snapshot/structure.h"

namespace pawl::bench {

class Values {
 public:
  Values() {
    std::uint64_t state = 1;
    for (auto& value : values_) {
      for (char& byte : value) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        byte = static_cast<char>(state >> 56);
      }
    }
  }
  const char* operator[](std::uint64_t index) const { return values_[index % kPairValues].data(); }

 private:
  std::array<std::array<char, kPairValueBytes>, kPairValues> values_;
};

// What a program that reads a value does with it: little.
inline std::uint64_t sum_of(const char* value) {
  std::uint64_t word = 0;
  std::memcpy(&word, value, sizeof word);
  return word;
}

// What a read-modify-write makes of a value.
inline void change_all(char* value) {
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= kPairValueBytes;
       at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, value + at, sizeof word);
    word += 0x9e3779b97f4a7c15u;
    std::memcpy(value + at, &word, sizeof word);
  }
}

}  // namespace pawl::bench
