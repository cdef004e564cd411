// Where heaps are mapped, and who sits there already.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace pawl {

// What a heap's file holds as an address.
inline char* memory_at(std::uint64_t address) {
  return reinterpret_cast<char*>(address);  // NOLINT(performance-no-int-to-ptr): it is an address
}

// An address for a new heap that may grow to so many bytes, drawn at random so that the heaps of
// one program seldom meet.
std::uint64_t draw_heap_address(std::uint64_t size_bytes_max);

// One line of /proc/self/maps.
struct MemoryArea {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::string name;  // a file, or a name such as [stack]; never empty
};
// Calls visit for each area of this process's memory, in order; false when it cannot look.
bool for_each_memory_area(const std::function<void(const MemoryArea&)>& visit);

// What is mapped in [start, end), as text: "a.heap, b.heap and 2 more".
std::string describe_memory(std::uint64_t start, std::uint64_t end);

}  // namespace pawl
