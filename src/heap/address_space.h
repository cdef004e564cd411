// Where heaps are mapped, and who sits there already.
#pragma once

#include <cstdint>
#include <string>

#include "medium/memory_areas.h"
#include "medium/status.h"

namespace pawl {

// What a heap's file holds as an address.
inline char* memory_at(std::uint64_t address) {
  return reinterpret_cast<char*>(address);  // NOLINT(performance-no-int-to-ptr): it is an address
}

// An address for a new heap that may grow to so many bytes, drawn at random from all that there
// are: two heaps that have a and b bytes when they are opened meet with a probability of at most (a
// + b) / (kAddressMax - kAddressMin - size_bytes_max).
std::uint64_t draw_heap_address(std::uint64_t size_bytes_max);

// How many bytes from the address on nothing is mapped, at most so many; 0 when it cannot look.
std::uint64_t free_bytes_at(std::uint64_t address, std::uint64_t bytes_max);

// A file, or a name such as [stack]; never empty.
std::string text_of(const MemoryArea& area);

struct Addresses {
  std::uint64_t start;
  std::uint64_t end;
};

// EADDRINUSE for a heap that belongs there, with what is: another open heap and its range, or what
// else is mapped: "libc.so.6, [heap] and 2 more".
Status address_taken(const std::string& path, const Addresses& wanted);

std::string hexadecimal(std::uint64_t value);

}  // namespace pawl
