// For functions that stand as the compiler would make them, written by hand.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../../src/fase/abi.h"

namespace pawl::test {

template <class T>
std::uint64_t word_of(T value) {
  return (std::uint64_t)value;  // NOLINT: pointers and numbers
}

// What a region takes, a word each.
template <class... Values>
struct LiveIns {
  std::uint64_t words[sizeof...(Values)];
  explicit LiveIns(Values... values) : words{word_of(values)...} {}
};

struct Words {
  explicit Words(const void* live_ins) : at(static_cast<const std::uint64_t*>(live_ins)) {}
  template <class T>
  T get(std::size_t index) const {
    return (T)at[index];  // NOLINT: as above
  }
  const std::uint64_t* at;
};

// A store as it is compiled.
template <class T>
void store(T& at, T value) {
  *const_cast<volatile T*>(&at) = value;
  pawl_fase_stored(&at, sizeof at);
}

template <class Function>
void (*address_of(Function* function))() {
  return reinterpret_cast<void (*)()>(function);
}

}  // namespace pawl::test
