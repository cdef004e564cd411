// Waits that are too short for the kernel.
#pragma once

#include <cstdint>

namespace pawl {

class BusyWait {
 public:
  // Measured once for the process: some milliseconds at the first call.
  static const BusyWait& process();

  // Returns when at least so much time has passed.  Some 20 ns are the least that it can be.
  void wait_ns(std::uint64_t duration_ns) const;

 private:
  BusyWait();
  std::uint64_t ticks() const;

  bool counts_ticks_ = false;   // by the processor's counter, which runs at one rate
  double ticks_of_a_ns_ = 1;    // else by the clock
  std::uint64_t overhead_ = 0;  // ticks that a wait of nothing takes
};

}  // namespace pawl
