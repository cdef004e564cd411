#include "stm/redo_log.h"

#include <algorithm>
#include <cstring>

#include "medium/checksum.h"
#include "medium/persistent_copy.h"
#include "medium/status.h"

namespace pawl::bench::stm {
namespace {

std::uint64_t checksum_of(const RecordHeader& header, const LoggedWord* words) {
  const std::array<std::uint64_t, 2> head{header.word_count, header.time};
  // Never 0, so that no record is like memory that was never written.
  return checksum(words, header.word_count * sizeof *words, checksum(head.data(), sizeof head)) |
         std::uint64_t{1} << 32;
}

bool is_whole(const LogOfThread& log) {
  const RecordHeader& header = log.header;
  return header.word_count > 0 && header.word_count <= kLoggedWordsMax &&
         header.checksum == checksum_of(header, log.words.data());
}

bool is_inside(const LogOfThread& log, std::size_t region_bytes) {
  return std::all_of(log.words.begin(),
                     log.words.begin() + static_cast<std::ptrdiff_t>(log.header.word_count),
                     [&](const LoggedWord& word) {
                       return word.offset % kMemoryWordBytes == 0 &&
                              word.offset <= region_bytes - kMemoryWordBytes;
                     });
}

// Without its fence.
void begin_emptying(LogOfThread& log, PersistentMemory& memory) {
  constexpr std::uint64_t kEmpty = 0;
  memory.copy(reinterpret_cast<std::byte*>(&log.header.word_count),
              std::as_bytes(std::span(&kEmpty, 1)));
}

}  // namespace

void RedoLog::commit(std::uint64_t time, std::span<const LoggedWord> words) {
  PAWL_ASSERT(words.size() <= kLoggedWordsMax);
  RecordHeader header{.word_count = words.size(), .time = time};
  header.checksum = checksum_of(header, words.data());
  const std::size_t bytes = sizeof header + words.size_bytes();
  // Whole lines, so that none has to be read to be written.
  record_.resize((bytes + kLineBytes - 1) / kLineBytes * kLineBytes);
  std::memcpy(record_.data(), &header, sizeof header);
  std::memcpy(record_.data() + sizeof header, words.data(), words.size_bytes());
  memory_.copy(reinterpret_cast<std::byte*>(&area_), record_);
  memory_.fence();
}

void RedoLog::empty() {
  begin_emptying(area_, memory_);
  memory_.fence();
}

std::size_t recover(std::span<std::byte> region, std::span<LogOfThread> logs,
                    PersistentMemory& memory) {
  std::vector<const LogOfThread*> whole;
  for (const LogOfThread& log : logs) {
    if (is_whole(log) && is_inside(log, region.size())) whole.push_back(&log);
  }
  std::sort(whole.begin(), whole.end(), [](const LogOfThread* one, const LogOfThread* other) {
    return one->header.time < other->header.time;
  });
  for (const LogOfThread* log : whole) {
    for (std::size_t i = 0; i < log->header.word_count; ++i) {
      const LoggedWord& word = log->words[i];
      memory.copy(region.data() + word.offset, std::as_bytes(std::span(&word.value, 1)));
    }
  }
  // All is in its place before any record goes.
  memory.fence();
  for (LogOfThread& log : logs) {
    if (log.header.word_count != 0) begin_emptying(log, memory);
  }
  memory.fence();
  return whole.size();
}

}  // namespace pawl::bench::stm
