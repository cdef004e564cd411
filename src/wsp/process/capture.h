// What a save takes from a program that stands still.
#pragma once

#include <sys/types.h>

#include <vector>

#include "medium/memory_areas.h"
#include "medium/status.h"
#include "wsp/process/one_processor.h"
#include "wsp/process/process.h"
#include "wsp/process/records.h"
#include "wsp/process/urgency.h"

namespace pawl::wsp {

// Who `gives_way` stops for what is more urgent, by ECANCELED: there may be many of each.

// Registers, signals and the like of all threads, and what the process has once.  ENOTSUP names
// what cannot be kept.
Status capture_threads(Process& process, bool gives_way, SavedProcess& into);
// How those threads are scheduled, but for what a save itself does to them.
void capture_scheduling(const Urgency& urgency, const OneProcessor& one_processor,
                        SavedProcess& into);
// The mappings, and the facts of the kernel that they depend on.
Status capture_mappings(Process& process, bool gives_way, SavedProcess& into);
// The open descriptors (capture_descriptors.cc).  ENOSPC: no image holds them.
Status capture_descriptors(Process& process, bool gives_way, SavedProcess& into);
// Of a program that is about to be killed: what the kernel keeps of its connections for a while
// (TIME_WAIT) keeps no address from the restore.  The program sees nothing of it.
void release_addresses(pid_t leader, const SavedProcess& saved);

// Facts of the running kernel; `lines` are the mappings of any process on it.
Status read_system_facts(pid_t process, const std::vector<MemoryArea>& lines, SystemFacts& into);

// To those threads that were captured.
Status attach_threads(Process& process, const SavedProcess& saved);

}  // namespace pawl::wsp
