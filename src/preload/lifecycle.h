// How a file becomes a Pawl mapping, and stops being one.
//
// Callers are inside().  "Locked" functions are called with file.lock held.
#pragma once

#include "preload/interpose.h"

#include <sys/stat.h>

#include <optional>

#include "preload/tracked_files.h"

namespace pawl::preload {

// The process whose files these are.  False in a child of vfork() or of a bare clone(), which
// shares or copies our memory without our fork handlers having run.
bool in_own_process();
void adopt_process();

// Finds what a descriptor is open on, without a lock of the program being lost.
std::optional<std::string> path_of_descriptor(int descriptor);

// Takes the file of `descriptor` (regular, open O_RDWR) under Pawl: recovers it when a crash left
// it, makes its journal, and attaches every descriptor the process has of it.  Returns the file
// that is there already when there is one.
Result<TrackedFilePointer> start(int descriptor, const struct stat& status, bool asked_for_by_name);

// Attaches a descriptor that was just opened when its file is tracked.
void join(int descriptor);

// Locked.  What the mapping can do for this process: EPERM for a copy inherited by fork, EIO for
// one whose file was closed beneath it.
Status check_ours(const TrackedFile& file);

// Locked.  When neither descriptor nor window is left: commits what is pending and closes cleanly.
Status end_if_unused(const TrackedFilePointer& file);

// Locked.  Commits, closes cleanly, and leaves descriptors and window as the kernel's own: before
// the file loses its name, at exit and before exec.  On failure the file is still tracked.
struct Suspended {
  TrackedFilePointer file;
  std::vector<int> descriptors;
  std::optional<Window> window;
};
Result<Suspended> suspend(const TrackedFilePointer& file);

// Takes the file up again after suspend(), under the name it has now.
Status resume(const Suspended& suspended);

// Commits and closes every file, at the end of the process or before it becomes another program.
// Failures are said, not returned: there is nobody left to act on them.
std::vector<Suspended> suspend_all(const char* call);
void resume_all(const std::vector<Suspended>& suspended, const char* call);

// Replays the journal that a crash left beside the file at this path, if there is one.  EBUSY when
// it belongs to a live writer.
Status recover_if_left(const std::string& real_path);

}  // namespace pawl::preload
