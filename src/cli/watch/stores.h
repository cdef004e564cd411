// Whether a process stored into a mapped file since that was last synchronised: the kernel marks
// pages that are stored to, and takes the mark away when it writes them out.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace pawl::cli::watch {

// Writes out what is dirty of the file that the process has under this number, for what was done
// before is no store of a mapping.  False where the marks would say nothing: in memory's file
// systems they never go.
bool write_out(pid_t process, int descriptor);

// True when a page of these addresses is marked.
bool has_stores(pid_t thread, std::uint64_t begin, std::uint64_t end);

}  // namespace pawl::cli::watch
