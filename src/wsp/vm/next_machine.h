// The files of a machine that is about to boot, beside those of a save until it is ready to run:
// whatever fails before costs no save.
#pragma once

#include <cstdint>

#include "medium/status.h"
#include "wsp/vm/directory.h"

namespace pawl::wsp::vm {

// DIR/next, empty.  Nobody else may run the machine.
Result<MachineDirectory> make_next(const MachineDirectory& directory);

// Its memory, without any space yet: only the memory that is there may be the reason why there is
// too little.  ENOSPC where there would be too little without that.
Status make_next_memory(const MachineDirectory& directory, const MachineDirectory& next,
                        std::uint64_t bytes);

// Puts memory, device state and descriptions of the next in place of those that are there, and
// reserves the memory's space.  Durable on return.  To be called when there is no save any more.
Status take_place(const MachineDirectory& directory, const MachineDirectory& next,
                  std::uint64_t memory_bytes);

// Of a boot that failed.
void forget_next(const MachineDirectory& directory);

}  // namespace pawl::wsp::vm
