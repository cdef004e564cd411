#include "fase/undo_log.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "medium/status.h"

namespace pawl::fase {
namespace {

constexpr std::uint64_t kTagMask = (std::uint64_t{1} << kUndoNumberShift) - 1;

std::uint64_t load(const std::uint64_t& word) {
  return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_relaxed);
}

}  // namespace

void UndoLog::begin(std::uint64_t number) {
  number_ = number;
  entries_ = 0;
}

// Only of whole words: of others the bytes would have to be kept, too.
bool UndoLog::was_logged(std::uint64_t address, std::size_t count) {
  if (address % kWordBytes != 0 || count != kWordBytes) return false;
  Known& known = known_[address / kWordBytes % kKnownWords];
  if (known.address == address && known.number == number_) return true;
  known = {address, number_};
  return false;
}

void UndoLog::put_entry(std::uint64_t address, std::span<const std::byte> bytes,
                        std::uint64_t clock) {
  UndoEntry& entry = area_.entries[entries_++];
  memory_.store_word(entry.tag, 0);
  memory_.store_word(entry.address, address);
  memory_.store_word(entry.clock, clock);
  for (std::size_t at = 0; at < bytes.size(); at += kWordBytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(kWordBytes, bytes.size() - at));
    memory_.store_word(reinterpret_cast<std::uint64_t&>(entry.bytes[at]), word);
  }
  memory_.store_word(entry.tag, number_ << kUndoNumberShift | bytes.size());
  memory_.flush(reinterpret_cast<const std::byte*>(&entry), sizeof entry);
}

std::size_t UndoLog::put(const void* at, std::size_t count, std::uint64_t clock, bool again) {
  const std::size_t before = entries_;
  auto address = reinterpret_cast<std::uint64_t>(at);
  if (!again && was_logged(address, count)) return 0;
  if ((count + kUndoBytesMax - 1) / kUndoBytesMax > kUndoEntriesMax - entries_) return kFull;
  std::span bytes(static_cast<const std::byte*>(at), count);
  while (!bytes.empty()) {
    const std::size_t part = std::min(bytes.size(), kUndoBytesMax);
    put_entry(address, bytes.first(part), clock);
    address += part;
    bytes = bytes.subspan(part);
  }
  return entries_ - before;
}

std::size_t UndoLog::put_lock(std::uint64_t lock, LockNote what, std::uint64_t clock) {
  if (entries_ == kUndoEntriesMax) return kFull;
  put_entry(lock | static_cast<std::uint64_t>(what) << kUndoReleasedShift, {}, clock);
  return 1;
}

std::size_t UndoLog::put_end(std::span<const FaseName> depends_on) {
  const std::size_t words = 1 + depends_on.size();
  const std::size_t lines = (words + kLineContentWords - 1) / kLineContentWords;
  PAWL_ASSERT(lines <= kUndoEndLinesMax);
  for (std::size_t n = 0; n < lines; ++n) {
    UndoEndLine& line = area_.end[n];
    memory_.store_word(line[0], 0);
    for (std::size_t i = 1; i < kLineWords; ++i) {
      const std::size_t word = n * kLineContentWords + i - 1;
      if (word >= words) break;
      memory_.store_word(line[i], word == 0 ? depends_on.size() : depends_on[word - 1]);
    }
    memory_.store_word(line[0], number_ << kUndoNumberShift | lines);
    memory_.flush(reinterpret_cast<const std::byte*>(&line), sizeof line);
  }
  return lines;
}

// ---------------------------------------------------------------------------------------- reading

namespace {

// The number of the FASE whose end is whole; 0: none is.
std::uint64_t read_end(const UndoArea& area, std::vector<FaseName>& depends_on) {
  const std::uint64_t tag = load(area.end[0][0]);
  const std::size_t lines = tag & kTagMask;
  if (lines == 0 || lines > kUndoEndLinesMax) return 0;
  std::vector<std::uint64_t> words;
  for (std::size_t n = 0; n < lines; ++n) {
    if (load(area.end[n][0]) != tag) return 0;
    for (std::size_t i = 1; i < kLineWords; ++i) words.push_back(load(area.end[n][i]));
  }
  if (words[0] > words.size() - 1) return 0;
  const auto count = static_cast<std::ptrdiff_t>(words[0]);
  depends_on.assign(words.begin() + 1, words.begin() + 1 + count);
  return tag >> kUndoNumberShift;
}

}  // namespace

FoundUndo read_undo_log(const UndoArea& area, const LogArea& log, std::uint64_t undone_below) {
  FoundUndo found;
  std::vector<FaseName> depends_on;
  // The next FASE overwrites the entries first, and then there may be older ones behind them.
  const std::uint64_t last_ended = read_end(area, depends_on);
  found.number = last_ended;
  for (const UndoEntry& entry : area.entries)
    found.number = std::max(found.number, load(entry.tag) >> kUndoNumberShift);
  for (const BlockEntry& entry : log.blocks)
    found.number = std::max(found.number, load(entry.list));
  if (found.number < undone_below || found.number == 0) return {};
  for (const UndoEntry& entry : area.entries) {
    const std::uint64_t tag = load(entry.tag);
    const std::size_t count = tag & kTagMask;
    if (tag >> kUndoNumberShift != found.number || count == 0 || count > kUndoBytesMax) continue;
    found.entries.push_back(
        {entry.address,
         entry.clock,
         {entry.bytes.begin(), entry.bytes.begin() + static_cast<std::ptrdiff_t>(count)}});
  }
  for (const BlockEntry& entry : log.blocks) {
    if (load(entry.list) == found.number) found.blocks.push_back(load(entry.block));
  }
  found.has_ended = found.number == last_ended;
  if (found.has_ended) found.depends_on = std::move(depends_on);
  return found;
}

std::uint64_t next_undo_number(const UndoArea& area) {
  std::uint64_t highest = 0;
  for (const UndoEndLine& line : area.end)
    highest = std::max(highest, load(line[0]) >> kUndoNumberShift);
  for (const UndoEntry& entry : area.entries)
    highest = std::max(highest, load(entry.tag) >> kUndoNumberShift);
  return highest + 1;
}

}  // namespace pawl::fase
