// The medium of libpmemobj, as slow as one asks for: functions of libpmem take the place of those
// that libpmemobj calls, count what goes to the memory, and wait as Pawl's emulation does.
#pragma once

#include "snapshot/structure.h"

namespace pawl::bench {

// Of every thread's lines and fences from here on.  0: none is added.
void set_pmem_latency(std::uint64_t line_ns, std::uint64_t fence_ns);

// Lines and fences so far, of the calling thread and of those that ended.
MediumUse pmem_use();

}  // namespace pawl::bench
