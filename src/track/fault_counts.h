// How many page faults the kernel has counted, and whether all that it counted are sampled by now:
// the two facts by which the fault log is believed (fault_log.h).
#pragma once

#include <cstdint>
#include <optional>

#include "track/machine_faults.h"

namespace pawl {

// Whose faults are counted.
enum class FaultsOf {
  machine,  // of every process: also those of a process that stores into this one's memory
  process,  // of this process's threads, live or ended
};

// Never fewer than had been counted when the call began.  Nothing where the kernel does not say.
std::optional<std::int64_t> count_faults(FaultsOf whose, machine_faults::Text& text);

// Of the calling thread, exactly.
std::int64_t count_own_faults();

// Waits for the faults that system calls take without storing (futex, mlock ask for a page that is
// writable): what they opened before this call is counted when it returns true.
bool wait_for_faults_of_calls();

// True when every other thread of the process has been seen blocked, or had ended, during the call.
// A blocked thread has left the processor of its own accord: it is not between the count and the
// sample of a fault, nor was it since some moment of this call.  False says nothing.
bool see_other_threads_blocked();

}  // namespace pawl
