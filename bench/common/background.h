// What a process does beside the thread that asks: work that a store leaves to its own threads, or
// to the kernel's, which would otherwise slow down the next system's turn, and count for nobody.
#pragma once

#include <cstdint>
#include <string>

namespace pawl::bench {

// Waits until every other thread of this process sleeps, and has done so for a while, but for one
// that only keeps a processor awake; then flushes the file system that holds `directory`, so that
// no write waits in its cache.  Returns how long the work took, in microseconds: that of the
// threads, up to the last sight of one at work, and the flush.  Throws std::runtime_error when the
// flush fails.
double settle(const std::string& directory);

// What this process has used since it began.
struct Usage {
  double processor_us = 0;          // all threads
  double thread_us = 0;             // of that, the calling thread
  std::uint64_t written_bytes = 0;  // given to the file system's cache or the disk; 0: unknown
};
Usage usage();

}  // namespace pawl::bench
