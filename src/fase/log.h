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

// What a frame says, but for its number.
struct Frame {
  std::uint32_t function = 0;  // its number; 0: the FASE has ended
  std::uint32_t region = 0;
  bool after_call = false;  // counts only as the caller's of another one
  std::uint32_t depth = 0;
  std::uint64_t list = 0;  // of blocks
  std::uint32_t entries = 0;
  std::uint64_t caller = 0;  // the number of its frame, at a depth of more than 0
  std::span<const std::uint64_t> locks = {};
  std::span<const std::byte> live_ins = {};  // whole words
};

// Where a frame stands.
struct FrameName {
  std::uint64_t number = 0;  // 0: nowhere
  std::uint8_t place = 0;
};

// Of one thread.  Nothing here fences.
class Log {
 public:
  // `next_number` is above all that the area holds.
  Log(LogArea& area, DirectMemory& memory, std::uint64_t next_number)
      : area_(area), memory_(memory), next_number_(next_number) {
    kept_.fill(kNone);
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

  // Flushed on return.
  void put_block(std::uint32_t index, BlockEntry entry);
  // The same, of an entry that no frame names any longer.
  void clear_block(std::uint32_t index);
  const BlockEntry& block(std::uint32_t index) const { return area_.blocks[index]; }

 private:
  static constexpr std::uint8_t kNone = 0xff;

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
  std::uint64_t next_number = 1;
};

// Trusts nothing but that the log has its size.
FoundLog read_log(const LogArea& area);

}  // namespace pawl::fase
