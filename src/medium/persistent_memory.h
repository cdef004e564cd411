// What moves bytes into persistent memory: copies that bypass the caches, write-back of cache
// lines, and the fence behind which all of it is durable.
//
// Between the fences nothing is promised: any of the words written since may be there or not, in
// any order, those that were only stored into a cache included.  docs/persistent-memory.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "medium/status.h"

namespace pawl {

// The seam: a test may put a memory of its own here, which loses what no fence had reached.
//
// Any thread may call.  A fence is for what the calling thread copied and flushed, and what others
// had before they passed a lock that the caller took since.
class PersistentMemory {
 public:
  PersistentMemory() = default;
  PersistentMemory(const PersistentMemory&) = delete;
  PersistentMemory& operator=(const PersistentMemory&) = delete;
  virtual ~PersistentMemory() = default;

  // Of any alignment and size.  Durable after the next fence; no flush is needed.
  virtual void copy(std::byte* to, std::span<const std::byte> from) = 0;
  // The same, of zeros.
  void zero(std::byte* to, std::size_t count);
  // Stores that were made there are durable after the next fence.
  virtual void flush(const std::byte* at, std::size_t count) = 0;
  virtual void fence() = 0;
};

// How a cache line is written back.
enum class LineFlush {
  automatic,   // the best that there is
  clwb,        // keeps the line in the cache
  clflushopt,  // drops it
  clflush,     // the same, one after the other
  none,        // not needed: the power reaches the caches, too (eADR)
};

// Latencies that are added to those of the memory at hand, in ns, to study slower media: of each
// line that was copied or flushed since the thread's last fence, paid at the fence, and of the
// fence.
inline constexpr std::uint32_t kEmulatedNsMin = 20;
inline constexpr std::uint32_t kEmulatedNsMax = 2000;

struct PersistentMemoryOptions {
  LineFlush flush = LineFlush::automatic;
  std::uint32_t line_ns = 0;  // 0: none is added
  std::uint32_t fence_ns = 0;

  // PAWL_FLUSH, PAWL_EMULATE_LINE_NS and PAWL_EMULATE_FENCE_NS.  EINVAL names the variable and what
  // it takes.
  static Result<PersistentMemoryOptions> from_environment();
};

// Whether bytes that were copied and fenced survive a loss of power, if the memory does.  False on
// processors whose instructions Pawl does not know: there a copy is a copy, which survives the
// process.
bool memory_can_survive_power_loss();

// ENOTSUP: the processor has no such instruction.
Result<std::unique_ptr<PersistentMemory>> make_persistent_memory(
    const PersistentMemoryOptions& options);

}  // namespace pawl
