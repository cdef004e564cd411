// Changes of a tracked file's bytes and size that more than one call asks for.  Callers hold
// file.lock, and have asked check_ours().
#pragma once

#include "preload/interpose.h"

#include "preload/tracked_files.h"

namespace pawl::preload {

// Zeros in [from, end); grows the file when end lies beyond it.
Status write_zeros(TrackedFile& file, std::uint64_t from, std::uint64_t end);

// fallocate(2): modes that leave the rest of the file in its place.
Status check_mode_of_allocation(const TrackedFile& file, int mode);
// In one of these modes.
Status allocate(TrackedFile& file, int mode, std::uint64_t offset, std::uint64_t length);

}  // namespace pawl::preload
