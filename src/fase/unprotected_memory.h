// Memory of a file that is opened without protection, to measure what protection costs: stores are
// stores, and nothing is ever written back or waited for.
#pragma once

#include <cstring>

#include "medium/persistent_memory.h"

namespace pawl::fase {

class UnprotectedMemory final : public PersistentMemory {
 public:
  void copy(std::byte* to, std::span<const std::byte> from) override {
    std::memcpy(to, from.data(), from.size());
  }
  void flush(const std::byte*, std::size_t) override {}
  void fence() override {}
};

}  // namespace pawl::fase
