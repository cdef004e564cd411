// The scheme undo, when a file is opened: what FASEs stored that did not end, and those that depend
// on them, is taken back.  It takes no code of the program that crashed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fase/blocks.h"
#include "fase/direct_memory.h"
#include "fase/undo_log.h"
#include "medium/status.h"

namespace pawl::fase {

// Where the program may have stored: addresses.
struct StoredRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct Undone {
  std::uint64_t fases = 0;
  std::vector<std::uint64_t> unused;  // blocks: to be given back when the logs are void
};

// Indices into the logs: those that did not end, and those that depend on them.
std::vector<std::size_t> find_interrupted(std::span<const FoundUndo> logs);

// Logs by their indices.  Flushed, and not fenced, on return.  The logs stay as they are: to do it
// again, also after a part of it, has the same outcome.  EUCLEAN: an entry is of memory where no
// program stores, or of no block.
Result<Undone> undo_interrupted(std::span<const FoundUndo> logs, std::span<const StoredRange> where,
                                Blocks& blocks, DirectMemory& memory);

}  // namespace pawl::fase
