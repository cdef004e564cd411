// What a process does beside the thread that asks: work that a store leaves to its own threads,
// which would otherwise slow down the next system's turn, and count for nobody.
#pragma once

#include <cstdint>

namespace pawl::bench {

// Waits until every other thread of this process sleeps, and has done so for a while.  Returns how
// long that took, in microseconds, up to the last sight of a thread at work; 0 when there was none.
double settle();

// What this process has used since it began.
struct Usage {
  double processor_us = 0;          // all threads
  double thread_us = 0;             // of that, the calling thread
  std::uint64_t written_bytes = 0;  // given to the file system's cache or the disk; 0: unknown
};
Usage usage();

}  // namespace pawl::bench
