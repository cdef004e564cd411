// What stands in a file of failure-atomic sections.  docs/fase-format.md draws it, byte by byte.
//
//   header page   what the file is, how often it was opened, by which program, and the root
//   logs          one for each thread
//   scheme logs   one for each thread, beside the former: what other schemes than iDO log
//   heap area     the blocks
//
// All of it is stored in place, by words that a crash leaves old or new.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "fase/abi.h"
#include "medium/cache_lines.h"
#include "medium/medium.h"
#include "medium/sections_file.h"

namespace pawl::fase {

inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::array<char, 8> kMagic = kSectionsMagic;

inline constexpr std::uint32_t kThreadsMax = 256;  // at a time: one has a log
inline constexpr std::uint32_t kDepthMax = 32;     // of calls, in a FASE
inline constexpr std::uint32_t kLocksMax = 32;     // held at a time, recursion counted
inline constexpr std::uint32_t kBlocksMax = 1023;  // allocated and freed between two publications
inline constexpr std::uint32_t kFreedByEndMax = kLocksMax;  // blocks that the end of a FASE frees
inline constexpr std::uint32_t kFunctionsMax = 0x7fffffff;
inline constexpr std::uint32_t kRegionsMax = 0x10000;  // of a function
inline constexpr std::uint32_t kFingerprintBytesMax = 56;

inline constexpr std::size_t kWordBytes = 8;
inline constexpr std::size_t kLineWords = kLineBytes / kWordBytes;

// --- header page ---------------------------------------------------------------------------------

// Written when the file is made, and never again.
struct Identity {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t crc32c;  // of what follows in this struct
  std::uint64_t address;
  std::uint64_t size_bytes;
  std::uint64_t logs_offset;
  std::uint64_t scheme_logs_offset;
  std::uint64_t heap_offset;
  std::uint64_t creation_time_ns;  // since 1970
  std::array<std::byte, 64> reserved;
};
static_assert(sizeof(Identity) == 128);

// Changed only while no FASE is open: when it is torn, nothing needs it.
struct Fingerprint {
  std::uint32_t crc32c;  // of what follows in this struct
  std::uint32_t size_bytes;
  std::array<std::byte, kFingerprintBytesMax> bytes;
};
static_assert(sizeof(Fingerprint) == kLineBytes);

// Whose logs the file has.
struct SchemeRecord {
  std::uint64_t scheme;        // Scheme, of the program that opened it last
  std::uint64_t undone_below;  // FASEs of undo with lower numbers are no more to be undone
  std::uint64_t has_sections;  // 1 once a program that has some opened it
};

struct Header {
  Identity identity;
  alignas(kLineBytes) std::uint64_t opens;      // how often it was opened
  alignas(kLineBytes) std::uint64_t logs_used;  // those behind were never written
  alignas(kLineBytes) Fingerprint program;      // that opened it last
  alignas(kLineBytes) std::uint64_t root;       // an address in the file, or 0
  alignas(kLineBytes) SchemeRecord scheme;
  alignas(kLineBytes) std::array<std::byte, kPageBytes - 448> reserved;
};
static_assert(sizeof(Header) == kPageBytes);
static_assert(offsetof(Header, opens) == 128 && offsetof(Header, logs_used) == 192);
static_assert(offsetof(Header, program) == 256 && offsetof(Header, root) == 320);
static_assert(offsetof(Header, scheme) == 384);

// --- logs ----------------------------------------------------------------------------------------

struct BlockEntry {
  std::uint64_t list;   // the number of the list that it is of; 0: none
  std::uint64_t block;  // its address, and kFreedBit
};
inline constexpr std::uint64_t kFreedBit = 1;

// The first word of each line: number of the frame << 8 | lines of the frame.
inline constexpr unsigned kNumberShift = 8;
// The second word of the frame.
inline constexpr std::uint64_t kAfterCallBit = std::uint64_t{1} << 63;
inline constexpr unsigned kFunctionShift = 32;
inline constexpr unsigned kRegionShift = 16;
inline constexpr unsigned kDepthShift = 8;
// The third: number of the list of blocks << 10 | entries.
inline constexpr unsigned kListShift = 10;
static_assert(kBlocksMax < 1u << kListShift);

// A lock that is held: its address, and
inline constexpr std::uint64_t kReadingBit = 1;
inline constexpr std::uint64_t kRecursiveBit = 2;  // its holder may take it once more
inline constexpr std::uint64_t kLockBits = kReadingBit | kRecursiveBit;
// What pawl_fase_begin() takes: nobody's.
inline constexpr std::uint64_t kSectionLock = kRecursiveBit;

// Words of a frame but the first of each line: two of its header, its caller's number, locks,
// live-ins.
inline constexpr std::size_t kLineContentWords = kLineWords - 1;
inline constexpr std::size_t kFrameHeaderWords = 2;
inline constexpr std::size_t kLiveInWordsMax = PAWL_FASE_LIVE_IN_BYTES_MAX / kWordBytes;
inline constexpr std::size_t kFrameWordsMax = kFrameHeaderWords + 1 + kLocksMax + kLiveInWordsMax;
inline constexpr std::size_t kFrameLinesMax =
    (kFrameWordsMax + kLineContentWords - 1) / kLineContentWords;

struct FramePlace {
  std::array<std::array<std::uint64_t, kLineWords>, kFrameLinesMax> lines;
};
static_assert(sizeof(FramePlace) == 768);

inline constexpr std::size_t kPlaces = 2;  // of each depth

struct LogArea {
  std::array<BlockEntry, kBlocksMax + 1> blocks;  // the last one is not used
  std::array<std::array<FramePlace, kPlaces>, kDepthMax> frames;
};
inline constexpr std::uint64_t kLogBytes = std::uint64_t{64} << 10;
static_assert(sizeof(LogArea) == kLogBytes);

// --- areas ---------------------------------------------------------------------------------------

inline constexpr std::uint64_t kSchemeLogBytes = std::uint64_t{64} << 10;  // of a thread
inline constexpr std::uint64_t kLogsOffset = std::uint64_t{64} << 10;
inline constexpr std::uint64_t kSchemeLogsOffset = kLogsOffset + kThreadsMax * kLogBytes;
inline constexpr std::uint64_t kHeapOffset = kSchemeLogsOffset + kThreadsMax * kSchemeLogBytes;

// Where files are mapped.  The lower part of the window is the address sanitizer's own.
inline constexpr std::uint64_t kAddressMin = 0x110000000000;
inline constexpr std::uint64_t kAddressMax = PAWL_FASE_WINDOW + PAWL_FASE_WINDOW_BYTES;
inline constexpr std::uint64_t kAddressAlignment = std::uint64_t{1} << 30;
static_assert(kAddressMin >= PAWL_FASE_WINDOW && kAddressMin < kAddressMax);

inline bool is_in_window(std::uint64_t address) {
  return address - PAWL_FASE_WINDOW < PAWL_FASE_WINDOW_BYTES;
}
inline bool is_in_window(const void* at) {
  return is_in_window(reinterpret_cast<std::uint64_t>(at));
}

// --- locks ---------------------------------------------------------------------------------------

// A lock's word: times that the file was opened << 2 | state.  Of the times, as many bits as fit.
inline constexpr unsigned kLockStateBits = 2;

}  // namespace pawl::fase
