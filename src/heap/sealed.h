// Checksums of the heap's structures: whoever stores past the end of a block most often hits one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "medium/checksum.h"
#include "track/store_marks.h"

namespace pawl {

// Of the bytes behind the structure's field crc32c.  The few before it are constants, or follow
// from where the structure stands; who reads it compares them.
template <class Structure>
std::uint32_t seal_of(const Structure& structure) {
  constexpr std::size_t kFrom = offsetof(Structure, crc32c) + sizeof structure.crc32c;
  return checksum(reinterpret_cast<const char*>(&structure) + kFrom, sizeof structure - kFrom);
}

// Behind every change of the structure: the store tracker is told of all of it.
template <class Structure>
void seal(Structure& structure) {
  structure.crc32c = seal_of(structure);
  note_stored(structure);
}

template <class Structure>
bool is_sealed(const Structure& structure) {
  return structure.crc32c == seal_of(structure);
}

}  // namespace pawl
