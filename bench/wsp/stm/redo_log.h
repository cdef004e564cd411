// What a transaction will store into persistent memory, logged before it stores it, as Mnemosyne
// does (Volos, Tack, Swift, ASPLOS 2011): a record is written past the caches, and one fence makes
// it durable and the transaction committed.  Half a record has no valid checksum, and never was.
//
// A thread has one log, of one record: it is emptied when all that it says is durable in its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "medium/cache_lines.h"
#include "medium/persistent_memory.h"

namespace pawl::bench::stm {

struct LoggedWord {
  std::uint64_t offset = 0;  // from the region's beginning
  std::uint64_t value = 0;
};

inline constexpr std::size_t kLoggedWordsMax = 1020;  // of a transaction

// In persistent memory.
struct alignas(kLineBytes) RecordHeader {
  std::uint64_t word_count = 0;  // 0: the log is empty
  std::uint64_t time = 0;        // records are in the order in which their transactions committed
  std::uint64_t checksum = 0;    // of both, and of the words
  std::array<std::uint64_t, 5> unused{};
};
struct LogOfThread {
  RecordHeader header;
  std::array<LoggedWord, kLoggedWordsMax> words;
};
static_assert(sizeof(RecordHeader) == kLineBytes && sizeof(LogOfThread) % kLineBytes == 0);

// A log as its thread writes it.
class RedoLog {
 public:
  // Both must outlive it.
  RedoLog(LogOfThread& area, PersistentMemory& memory) : area_(area), memory_(memory) {}

  // Durable on return: the transaction has happened.  At most kLoggedWordsMax words.
  void commit(std::uint64_t time, std::span<const LoggedWord> words);
  // Durable on return.
  void empty();

 private:
  LogOfThread& area_;
  PersistentMemory& memory_;
  std::vector<std::byte> record_;  // made here, and written at once
};

// Replays what was committed and may not be in its place, in order, drops the rest, and leaves all
// logs empty; durable on return.  May itself be interrupted, at any depth.  `region` is all that
// offsets count in, the logs included; one that leads out of it is damage, and its record is
// dropped. Returns how many records were replayed.
std::size_t recover(std::span<std::byte> region, std::span<LogOfThread> logs,
                    PersistentMemory& memory);

}  // namespace pawl::bench::stm
