// Which of QEMU's options a machine that is to survive cannot have, and the whole command line.
#pragma once

#include <string>
#include <vector>

#include "medium/status.h"
#include "wsp/vm/description.h"

namespace pawl::wsp::vm {

// EINVAL, with the option's name and the reason, for the first that cannot be.  What only QEMU
// knows (devices that cannot be migrated) is found by the first rehearsal, before the guest runs.
Status check_options(const std::vector<std::string>& options);

// Whether they say what QEMU is to do with the guest's display; where they do not, it opens a
// window of its own, if it can.
bool choose_display(const std::vector<std::string>& options);

// Of the first bytes of a disk's file: "qcow2", or "raw".  Of a raw disk the guest writes them, so
// this is to be asked once, before the guest has run.
std::string format_of_disk(const std::string& path);

enum class Start { kCold, kRestored };

// `qmp_descriptor` is open in the new process.  The guest does not run before it is told to.
std::vector<std::string> command_line(const MachineDescription& description,
                                      const std::string& memory_path, int qmp_descriptor,
                                      Start start);

}  // namespace pawl::wsp::vm
