// How a journal is told from other files, by its name or by its first bytes (docs/journal-format.md
// has the rest).
#pragma once

#include <array>
#include <cstdint>

namespace pawl {

inline constexpr const char* kJournalSuffix = ".pawl";

// Each of its headers begins with that.
inline constexpr std::array<char, 8> kJournalMagic = {'P', 'A', 'W', 'L', 'J', 'R', 'N', 'L'};
inline constexpr std::uint64_t kJournalSlotBytes = 4096;  // of a header, whatever the blocks
inline constexpr std::uint64_t kJournalSlots = 2;

}  // namespace pawl
