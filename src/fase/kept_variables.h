// Variables of the program that sections read behind their frames, which hold what they held.
//
// The compiler knows which of them the sections of the same source file change, and keeps none of
// those.  What sections of other files change, and what is changed through a pointer, shows when it
// happens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fase/abi.h"

namespace pawl::fase {

class KeptVariables {
 public:
  // Of constructors, while the program has one thread.
  void add(const pawl_fase_kept* begin, const pawl_fase_kept* end);

  // One that has some of the bytes; null: there is none.
  const pawl_fase_kept* find(const void* at, std::size_t count) const;

 private:
  std::vector<pawl_fase_kept> by_address_;  // each once, as large as any object says
};

}  // namespace pawl::fase
