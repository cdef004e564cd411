// The checksum of journal and heap.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pawl {

// CRC32C, continued from `previous` (0 to begin).
std::uint32_t checksum(const void* bytes, std::size_t count, std::uint32_t previous = 0);

}  // namespace pawl
