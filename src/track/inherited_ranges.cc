#include "track/inherited_ranges.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "track/fault_table.h"
#include "track/segv_handler.h"

namespace pawl {
namespace {

using inherited_memory::Piece;

struct InheritedRange {
  std::uintptr_t first = 0;
  std::uintptr_t end = 0;
  std::uint64_t memory = 0;  // whose window it is
  int protection = 0;
  const std::string* message = nullptr;  // stays for the life of the process
  std::atomic<bool> is_said{false};
};

std::array<InheritedRange, kInheritedRangesMax> inherited_ranges;

// Past the wrappers, and in the signal handler.
bool protect_inherited(std::uintptr_t first, std::uintptr_t end, int protection) {
  return ::syscall(SYS_mprotect, first, end - first, protection) == 0;
}

// Past the preload library's own write().
void say_once(InheritedRange& range) {
  if (range.is_said.exchange(true)) return;
  [[maybe_unused]] const long said =
      ::syscall(SYS_write, STDERR_FILENO, range.message->data(), range.message->size());
}

std::vector<Piece> pieces_that_give_back(std::uintptr_t first, std::uintptr_t end) {
  std::vector<Piece> found;
  Piece piece;
  for (std::size_t place = 0; inherited_memory::next(place, piece);) {
    const Piece common{std::max(piece.low, first), std::min(piece.high, end), piece.memory,
                       piece.gives_back};
    if (common.low < common.high && common.gives_back) found.push_back(common);
  }
  return found;
}

}  // namespace

constinit std::atomic<std::size_t> InheritedRanges::count_{0};

void InheritedRanges::watch(char* address, std::size_t length, int protection,
                            const std::string& message) {
  if ((protection & PROT_WRITE) == 0) return;
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  for (const Piece& piece : pieces_that_give_back(first, first + length)) {
    const std::size_t number = count_.load();
    if (number == kInheritedRangesMax) return;
    InheritedRange& range = inherited_ranges[number];
    range.first = piece.low;
    range.end = piece.high;
    range.memory = piece.memory;
    range.protection = protection;
    range.message = new std::string(message);
    range.is_said.store(false);
    count_.store(number + 1);
    ensure_segv_handler();
    give_back_inherited_memory();
    protect_inherited(range.first, range.end, armed(protection));
  }
}

void InheritedRanges::watch_again() {
  for (std::size_t i = 0; i < count_.load(); ++i) {
    InheritedRange& range = inherited_ranges[i];
    for (const Piece& piece : pieces_that_give_back(range.first, range.end)) {
      if (piece.memory != range.memory) continue;
      range.is_said.store(false);
      protect_inherited(piece.low, piece.high, armed(range.protection));
    }
  }
}

// Two threads may store at once: both go on, and one speaks.
bool InheritedRanges::give_back(const Piece& piece, std::uintptr_t low, std::uintptr_t high) {
  bool is_open = false;
  for (std::size_t i = 0; i < count_.load(); ++i) {
    InheritedRange& range = inherited_ranges[i];
    const std::uintptr_t first = std::max(range.first, piece.low);
    const std::uintptr_t end = std::min(range.end, piece.high);
    if (range.memory != piece.memory || first >= end ||
        !protect_inherited(first, end, range.protection))
      continue;
    if (std::max(low, first) >= std::min(high, end)) continue;
    is_open = true;
    say_once(range);
  }
  return is_open;
}

}  // namespace pawl
