// The file that a line of /proc/PID/maps is about: its name there is no proof, for the file may lie
// in another mount namespace, and whoever may write to a directory decides what the name leads to.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "medium/descriptor.h"
#include "medium/memory_areas.h"
#include "medium/status.h"
#include "wsp/process/file_proof.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

struct MappedFile {
  FileProof proof;
  std::uint64_t bytes = 0;
  std::int64_t changed_ns = 0;
};

// What the program has mapped there, if its name leads to it, as far as that is known without
// asking a server; else a failure.  The mapping itself is asked, which takes
// CAP_CHECKPOINT_RESTORE; without that its device and inode are compared, and where only a server
// knows the name that one is asked, and waited for some milliseconds (ETIMEDOUT).  Where device and
// inode are those of more than one file (btrfs, overlayfs) the program itself has to be able to
// read the file, and the proof is not `is_certain`.
Result<MappedFile> find_mapped_file(const MemoryArea& line, const SavedProcess& program,
                                    MountTable& mounts);

// The link to the mapped file itself, which takes CAP_CHECKPOINT_RESTORE to follow.
std::string link_to_mapped(pid_t process, const MemoryArea& line);

// Whether the kernel calls the file what it calls that of the line, by device and inode, which are
// not those of stat(2) on all file systems.
bool is_mapped_as(const Descriptor& file, const MemoryArea& line);

}  // namespace pawl::wsp
