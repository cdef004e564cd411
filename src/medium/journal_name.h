// How to recognise a journal, by its name or by its first bytes (docs/journal-format.md has the
// rest).
#pragma once

#include <array>
#include <cstdint>

namespace pawl {

inline constexpr const char* kJournalSuffix = ".pawl";

// Each of its headers begins with that.
inline constexpr std::array<char, 8> kJournalMagic = {'P', 'A', 'W', 'L', 'J', 'R', 'N', 'L'};
inline constexpr std::uint64_t kJournalSlotBytes = 4096;  // of a header, whatever the blocks
inline constexpr std::uint64_t kJournalSlots = 2;

// read(offset, bytes) fills the array from the file, or answers false.
template <class Read>
bool has_journal_magic(Read read) {
  for (std::uint64_t slot = 0; slot < kJournalSlots; ++slot) {
    std::array<char, kJournalMagic.size()> found{};
    if (read(slot * kJournalSlotBytes, found) && found == kJournalMagic) return true;
  }
  return false;
}

}  // namespace pawl
