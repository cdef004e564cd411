// The memory of windows, and what a child with a copy of the memory still has of its parent's.
//
// One rule for every table that knows windows by their addresses.  In a child an entry of other
// memory (number_of_memory() differs) speaks of what is still the copy that the child inherited,
// and of nothing else: it refuses commits there.  Pawl gives the program's protection back there,
// where a tracker or Pawl took it away.  Both end where the memory is unmapped, mapped over or
// moved, and never began where the child has no copy (MADV_DONTFORK).  Where the child sets a
// protection of its own, Pawl gives none back any more.
//
// A child of vfork(), which shares its parent's memory, has no other memory.  memory::map() and its
// kin (medium/memory_functions.h) tell what becomes of memory: what changes it past libc is not
// seen.
#pragma once

#include <cstddef>
#include <cstdint>

#include "medium/status.h"

namespace pawl::inherited_memory {

// Of windows, and of what is left of those of other memory.
inline constexpr std::size_t kPiecesMax = 4096;

struct Piece {
  std::uintptr_t low = 0;
  std::uintptr_t high = 0;   // exclusive; whole pages
  std::uint64_t memory = 0;  // the number of the memory whose window it was
  bool gives_back = false;   // the program's protection, which it has not set itself since
};

// By who makes a window, once it is there and before it goes.
Status add(const void* address, std::size_t length);
void remove(const void* address, std::size_t length);

// In a child, before other threads: finds out what it has of all that its parent had.  Otherwise
// the first call below does so.
void come();

// False in all but children: a few loads.
bool any();
// Whether some of these addresses is still the copy of a window; in the second form, of one in that
// memory.  Without memory.
bool holds(const void* address, std::size_t length);
bool holds(const void* address, std::size_t length, std::uint64_t memory);
// The first piece of other memory from that place on, which is then the one behind it.
bool next(std::size_t& place, Piece& piece);

// Before a call that changes the mapping or the protection of this memory, which then has what the
// program asked for: nothing is given back there any more.
void let_go(const void* address, std::size_t length);
// Behind a call that made these addresses other memory.
void forget(const void* address, std::size_t length);

// Gives the program's protection back to what trackers, and who watches a child's stores, protected
// in the piece.  True when all or some of [low, high), where a store is about to be made, can be
// stored to.  Async-signal-safe.
using GiveBack = bool (*)(const Piece& piece, std::uintptr_t low, std::uintptr_t high);
void give_back_by(GiveBack give_back);

// Async-signal-safe.  True when the store that faulted at `address` may now be tried again.
bool open_for_store(const void* address);
// For a system call that is about to store.
void open_range(const void* address, std::size_t length);

}  // namespace pawl::inherited_memory
