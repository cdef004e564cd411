// A thread's log: frames are written where the last durable chain of them does not stand.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fase/direct_memory.h"
#include "fase/format.h"

namespace pawl::fase {

// Frames and lists are numbered below it.  A file has counted up to half of it at most, so that all
// sections of a run find numbers.
inline constexpr std::uint64_t kNumbersEnd = std::uint64_t{1} << (64 - kListShift);

// What a frame says, but for its number.
struct Frame {
  std::uint32_t function = 0;  // its number; 0: the FASE has ended
  std::uint32_t region = 0;
  bool after_call = false;  // counts only as the caller's of another one
  std::uint32_t depth = 0;
  std::uint64_t list = 0;  // of blocks
  std::uint32_t entries = 0;
  std::uint64_t caller = 0;                   // the number of its frame, at a depth of more than 0
  std::span<const std::uint64_t> locks = {};  // of an end: the blocks that it frees
  std::span<const std::byte> live_ins = {};   // whole words
};

// Where a frame stands.
struct FrameName {
  std::uint64_t number = 0;  // 0: nowhere
  std::uint8_t place = 0;
};

// Of one thread.  Nothing here fences.
class Log {
 public:
  static constexpr std::uint8_t kNoPlace = 0xff;

  // `next_number` is above all that the area holds; the last FASE's end stands at `end_place` of
  // depth 0, and is kept.
  Log(LogArea& area, DirectMemory& memory, std::uint64_t next_number,
      std::uint8_t end_place = kNoPlace)
      : area_(area), memory_(memory), next_number_(next_number) {
    kept_.fill(kNoPlace);
    kept_[0] = end_place;
  }

  // For frames and lists: each is given once in the life of a log.
  std::uint64_t take_number();
  std::uint64_t next_number() const { return next_number_; }

  // Flushed on return.
  FrameName write(const Frame& frame);
  std::size_t lines_of(const Frame& frame) const;

  // The frames at these places, of depth 0 and on, are durable now, and nothing writes over them
  // until the next are kept.
  void keep(std::span<const std::uint8_t> places);
  // Of depth 0: when no FASE is open, that of the last end.
  std::uint8_t end_place() const { return kept_[0]; }

  // Entries of a list, from that index on.  Flushed on return; how many lines that took.
  std::size_t put_blocks(std::uint32_t index, std::uint64_t list,
                         std::span<const std::uint64_t> blocks);
  // The same, of an entry that no frame names any longer.
  void clear_block(std::uint32_t index);

 private:
  LogArea& area_;
  DirectMemory& memory_;
  std::uint64_t next_number_;
  std::array<std::uint8_t, kDepthMax> kept_;
};

// --- reading -------------------------------------------------------------------------------------

// A frame as it was found, and its callers'.
struct FoundFrame {
  FrameName name;
  std::uint32_t function = 0;
  std::uint32_t region = 0;
  bool after_call = false;
  std::uint32_t depth = 0;
  std::uint64_t list = 0;
  std::uint32_t entries = 0;
  std::uint64_t caller = 0;
  std::vector<std::uint64_t> locks;
  std::vector<std::byte> live_ins;  // and what fills its last line
};

struct FoundLog {
  // Of the FASE that has to be finished: the outermost function's first.  Empty: there is none.
  std::vector<FoundFrame> chain;
  // Of the last FASE that has ended: where its end stands, and the blocks that it frees.
  std::uint8_t end_place = Log::kNoPlace;
  std::vector<std::uint64_t> freed;
  std::uint64_t next_number = 1;  // above kNumbersEnd: the log is damaged
};

// Trusts nothing but that the log has its size.
FoundLog read_log(const LogArea& area);

}  // namespace pawl::fase
