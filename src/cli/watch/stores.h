// Whether a process stored into a mapped file since that was last synchronised: the kernel marks
// pages that are stored to, and takes the mark away when it writes them out.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "cli/watch/facts.h"

namespace pawl::cli::watch {

// Writes out what is dirty of the file that the process has under this number, for what was done
// before is no store of a mapping.  False where the marks would say nothing: in memory's file
// systems they never go.
bool write_out(pid_t process, int descriptor);
// The same by its name, where that is still the file's.
bool write_out(const std::string& path, const FileKey& key);

// Of a process's mappings between two addresses.
struct Pages {
  std::uint64_t present_bytes = 0;
  std::uint64_t marked_bytes = 0;  // of those: whoever stored to them
};
Pages pages_of(pid_t thread, std::uint64_t begin, std::uint64_t end);

// The page faults of a process.  Without one it stores to no page that was written out before.
std::uint64_t faults_of(pid_t process);

}  // namespace pawl::cli::watch
