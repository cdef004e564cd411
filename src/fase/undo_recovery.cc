#include "fase/undo_recovery.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <tuple>

namespace pawl::fase {
namespace {

struct Step {
  const FoundUndoEntry* entry;
  std::size_t log;
  std::size_t place;  // in the log
};

bool is_in(std::span<const StoredRange> where, const FoundUndoEntry& entry) {
  return std::ranges::any_of(where, [&](const StoredRange& range) {
    return entry.address >= range.begin && entry.address <= range.end &&
           entry.bytes.size() <= range.end - entry.address;
  });
}

Status damaged(const std::string& what) {
  return Status::failure(EUCLEAN, PAWL_ERROR_DAMAGED_SECTIONS,
                         "a log of the scheme undo is damaged: " + what);
}

// The last store first.  Clocks say the order between logs, places that in one.
std::vector<Step> in_reverse_order(std::span<const FoundUndo> logs,
                                   std::span<const std::size_t> interrupted) {
  std::vector<Step> steps;
  for (const std::size_t log : interrupted) {
    for (std::size_t i = 0; i < logs[log].entries.size(); ++i)
      steps.push_back({&logs[log].entries[i], log, i});
  }
  const auto key = [](const Step& step) {
    return std::tuple(step.entry->clock, step.log, step.place);
  };
  std::ranges::sort(steps,
                    [&](const Step& left, const Step& right) { return key(left) > key(right); });
  return steps;
}

// A block that one of them allocated is free, whoever freed it since; one that was only freed is
// used.  (What is freed cannot be allocated again before it is certain that it stays so.)
Status take_blocks_back(std::span<const FoundUndo> logs, std::span<const std::size_t> interrupted,
                        Blocks& blocks, std::vector<std::uint64_t>& unused) {
  std::map<std::uint64_t, bool> was_allocated;
  for (const std::size_t log : interrupted) {
    for (const std::uint64_t entry : logs[log].blocks)
      was_allocated[entry & ~kFreedBit] |= (entry & kFreedBit) == 0;
  }
  for (const auto& [block, allocated] : was_allocated) {
    if (Status kept = blocks.keep(block); !kept.ok())
      return kept.error_number() == EINVAL ? damaged(kept.text()) : std::move(kept);
    if (!allocated) {
      blocks.set_used(block);
      continue;
    }
    blocks.set_free(block);
    unused.push_back(block);
  }
  return {};
}

}  // namespace

std::vector<std::size_t> find_interrupted(std::span<const FoundUndo> logs) {
  std::vector<bool> is_interrupted(logs.size());
  for (std::size_t i = 0; i < logs.size(); ++i)
    is_interrupted[i] = logs[i].number != 0 && !logs[i].has_ended;
  // A log that is about another FASE by now is none of those: that one was settled.
  const auto is_undone = [&](FaseName name) {
    const std::size_t log = log_of(name);
    return log < logs.size() && is_interrupted[log] && logs[log].number == number_of(name);
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < logs.size(); ++i) {
      if (is_interrupted[i] || !std::ranges::any_of(logs[i].depends_on, is_undone)) continue;
      is_interrupted[i] = true;
      changed = true;
    }
  }
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    if (is_interrupted[i]) found.push_back(i);
  }
  return found;
}

Result<Undone> undo_interrupted(std::span<const FoundUndo> logs, std::span<const StoredRange> where,
                                Blocks& blocks, DirectMemory& memory) {
  const std::vector<std::size_t> interrupted = find_interrupted(logs);
  const std::vector<Step> steps = in_reverse_order(logs, interrupted);
  for (const Step& step : steps) {
    if (!is_in(where, *step.entry)) {
      return damaged("it has bytes of address " + std::to_string(step.entry->address) +
                     ", where no program stores");
    }
  }
  Undone undone;
  undone.fases = interrupted.size();
  PAWL_TRY(take_blocks_back(logs, interrupted, blocks, undone.unused));
  for (const Step& step : steps) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in the file
    auto* const at = reinterpret_cast<std::byte*>(step.entry->address);
    std::memcpy(at, step.entry->bytes.data(), step.entry->bytes.size());
    memory.tell_stored(at, step.entry->bytes.size());
    memory.flush(at, step.entry->bytes.size());
  }
  return undone;
}

}  // namespace pawl::fase
