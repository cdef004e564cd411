// Where the parts of a kept program lie in its address space.  A byte of its memory at address A is
// byte A of the memory file: no table has to be kept, and neighbours stay one mapping.
#pragma once

#include <cstdint>

namespace pawl::wsp {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t round_up_to_page(std::uint64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

// The annex: code of ours that makes system calls in the program's name, and the list of them.
constexpr std::uint64_t kAnnexCode = 0x0e0000000000;
constexpr std::uint64_t kAnnexList = kAnnexCode + 0x10000;
constexpr std::uint64_t kAnnexListBytes = 0x10000;
constexpr std::uint64_t kAnnexEnd = kAnnexList + kAnnexListBytes;

// What brk(2) gives.  Here and below, a part begins at a page within its spread that chance chooses
// for each program: who attacks it is not to know where its libraries and its heap are.
constexpr std::uint64_t kBreakStart = 0x0f0000000000;
constexpr std::uint64_t kBreakEnd = 0x0fffffff0000;
constexpr std::uint64_t kBreakSpread = 1ULL << 32;

// Mappings whose place the program leaves open: of files, and of memory.
constexpr std::uint64_t kFilesStart = 0x100000000000;
constexpr std::uint64_t kFilesEnd = 0x200000000000;
constexpr std::uint64_t kMemoryStart = 0x200000000000;
constexpr std::uint64_t kMemoryEnd = 0x500000000000;
constexpr std::uint64_t kSpread = 1ULL << 42;
// Those that must lie in the first 2 GiB (MAP_32BIT).
constexpr std::uint64_t kLowStart = 0x20000000;
constexpr std::uint64_t kLowEnd = 0x7f000000;
constexpr std::uint64_t kLowSpread = 1ULL << 27;

constexpr std::uint64_t kUserEnd = 0x7ffffffff000;
constexpr std::uint64_t kMemoryFileBytes = kUserEnd;

// No stack that the program begins with is made larger.
constexpr std::uint64_t kStackBytesMax = 64ULL << 20;

// The memory file in the program's descriptors, or one below its limit if that is lower.
constexpr int kMemoryDescriptor = 1000;

}  // namespace pawl::wsp
