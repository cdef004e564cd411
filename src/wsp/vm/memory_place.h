// What a directory is as a place for a guest's memory: does it outlive the machine's power?
#pragma once

#include "medium/status.h"
#include "wsp/vm/directory.h"

namespace pawl::wsp::vm {

struct MemoryPlace {
  enum class Kind {
    kTmpfs,         // memory of this machine: a stand-in, which survives processes only
    kDaxFlushed,    // persistent memory, and the processor's caches reach it when the power fails
    kDaxUnflushed,  // persistent memory; what is in the processor's caches is lost
    kPageCache,     // a file on a disk: what was not written back is lost with the machine
  };
  Kind kind = Kind::kPageCache;
  bool sees_access = true;  // times of access are kept, by which a foreign mapping is noticed
};

// Makes a file there for a moment.
Result<MemoryPlace> look_at_memory_place(const MachineDirectory& directory);

}  // namespace pawl::wsp::vm
