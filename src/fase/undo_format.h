// What the scheme undo has in a thread's scheme log.  docs/fase-format.md draws it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "fase/format.h"

namespace pawl::fase {

// First word of each line: number of the FASE << 8 | what it is said there.  Set last, and cleared
// first, so that a line that has it is whole.
inline constexpr unsigned kUndoNumberShift = 8;

// What stood at an address; or, without bytes, that a lock was taken, or released (this bit).
inline constexpr unsigned kUndoReleasedShift = 63;
inline constexpr std::size_t kUndoBytesMax = 40;  // in an entry
struct UndoEntry {
  std::uint64_t tag;  // and bytes
  std::uint64_t address;
  std::uint64_t clock;
  std::array<std::byte, kUndoBytesMax> bytes;
};
static_assert(sizeof(UndoEntry) == kLineBytes);

// The end of a FASE: how many dependences it has, and these, over as many lines as it takes.
using UndoEndLine = std::array<std::uint64_t, kLineWords>;
inline constexpr std::size_t kUndoEndLinesMax =
    (1 + kThreadsMax + kLineContentWords - 1) / kLineContentWords;

// FASEs by name: index of the log << 56 | number.
inline constexpr unsigned kFaseLogShift = 56;
static_assert(kThreadsMax <= 1u << (64 - kFaseLogShift));

inline constexpr std::size_t kUndoEntriesMax = kSchemeLogBytes / kLineBytes - kUndoEndLinesMax;
struct UndoArea {
  std::array<UndoEndLine, kUndoEndLinesMax> end;
  std::array<UndoEntry, kUndoEntriesMax> entries;
};
static_assert(sizeof(UndoArea) == kSchemeLogBytes);

}  // namespace pawl::fase
