// Brings a saved program back in a new process: the same addresses, the same thread ids, its
// descriptors opened again.
#pragma once

#include <memory>

#include "medium/status.h"
#include "wsp/process/process.h"
#include "wsp/process/save.h"

namespace pawl::wsp {

constexpr int kRestoreStepsCount = 7;

// What can be told without making anything: marker, checksums, the kernel, the files that the
// program had mapped or open, the names and addresses of its sockets, and that nobody would share
// those, which a restore does not ask.
Status check_restorable(const KeptMemory& memory);

// On success the marker is gone, durably, and all threads stand still: resume_all().  On failure
// what was saved is as it was, unless the text says otherwise.  As read_saved(); ENOTSUP: another
// kernel; ESTALE: such a file is another one; EEXIST: a thread's id is taken.
Result<std::unique_ptr<Process>> restore(KeptMemory& memory, Process::Tell tell,
                                         const StepHook& hook);

}  // namespace pawl::wsp
