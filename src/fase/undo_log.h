// The scheme undo: a thread's log of what its FASE has overwritten, and what is read there after a
// crash.
//
// It follows Atlas (Chakrabarti, Boehm, Bhandari, OOPSLA 2014), but that an entry is one cache line
// with as much as fits, that what was logged is not logged again, and that locks are not logged:
// what depends on what is with the end of a FASE (undo_dependences.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fase/direct_memory.h"
#include "fase/undo_format.h"

namespace pawl::fase {

using FaseName = std::uint64_t;
inline FaseName fase_name(std::uint32_t log, std::uint64_t number) {
  return std::uint64_t{log} << kFaseLogShift | number;
}
inline std::uint32_t log_of(FaseName name) {
  return static_cast<std::uint32_t>(name >> kFaseLogShift);
}
inline std::uint64_t number_of(FaseName name) {
  return name & ((std::uint64_t{1} << kFaseLogShift) - 1);
}

// Of one thread.  Nothing here fences.
class UndoLog {
 public:
  UndoLog(UndoArea& area, DirectMemory& memory) : area_(area), memory_(memory) {}

  // Of the next FASE; the log of that before may be overwritten from now on.
  void begin(std::uint64_t number);
  // What stands there, but for what this FASE has logged already.  Flushed on return.  Returns how
  // many entries that took, or kFull; of what was not full nothing is lost.
  static constexpr std::size_t kFull = ~std::size_t{0};
  // Also what it has logged, if `again`.
  std::size_t put(const void* at, std::size_t count, std::uint64_t clock, bool again = false);
  // That a lock is taken or released, in an entry of no bytes.  As put().
  enum class LockNote : std::uint64_t { taken = 0, released = 1 };
  std::size_t put_lock(std::uint64_t lock, LockNote what, std::uint64_t clock);
  bool has_entries() const { return entries_ > 0; }
  bool is_half_full() const { return entries_ > kUndoEntriesMax / 2; }
  // Flushed on return; how many lines it took.
  std::size_t put_end(std::span<const FaseName> depends_on);

 private:
  // Words that were logged whole.  What is not found here may have been all the same.
  static constexpr std::size_t kKnownWords = 256;

  bool was_logged(std::uint64_t address, std::size_t count);
  void put_entry(std::uint64_t address, std::span<const std::byte> bytes, std::uint64_t clock);

  UndoArea& area_;
  DirectMemory& memory_;
  std::uint64_t number_ = 0;
  std::size_t entries_ = 0;
  struct Known {
    std::uint64_t address = 0;
    std::uint64_t number = 0;  // of the FASE that logged it
  };
  std::array<Known, kKnownWords> known_{};
};

// --- reading -------------------------------------------------------------------------------------

struct FoundUndoEntry {
  std::uint64_t address = 0;
  std::uint64_t clock = 0;
  std::vector<std::byte> bytes;
};

struct FoundUndo {
  // Of the FASE that the log is about; 0: none that may have to be undone.
  std::uint64_t number = 0;
  bool has_ended = false;
  std::vector<FaseName> depends_on;     // when it has
  std::vector<FoundUndoEntry> entries;  // as they were made
  std::vector<std::uint64_t> blocks;    // as the log has them: kFreedBit
};

// Trusts nothing but the sizes.  FASEs below the number are not looked at.
FoundUndo read_undo_log(const UndoArea& area, const LogArea& log, std::uint64_t undone_below);
// Above all that the area has, whole or not.
std::uint64_t next_undo_number(const UndoArea& area);

}  // namespace pawl::fase
