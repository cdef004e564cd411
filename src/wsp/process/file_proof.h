// Which file the program had, and the way to it again: its name alone is no proof, for whoever may
// write to one of its directories decides what it names.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/process/mount.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

struct FileProof {
  std::uint32_t type = 0;  // S_IFMT
  std::uint64_t device = 0;
  std::uint64_t inode = 0;          // 0, and no device, where only the name tells which it is
  std::uint64_t birth_time_ns = 0;  // 0: not known
  std::uint64_t device_number = 0;  // of a device: major and minor
  bool is_certain = true;           // else another file of that file system may have the same
  std::uint32_t restrictions = 0;   // of the mount by which it was opened (mount.h)
};

FileProof proof_of(const DescriptorFacts& facts);
FileProof proof_of(const MappingFacts& facts);
FileProof proof_of(const DirectoryFacts& facts);

// Of an open file, or one by its name (AT_FDCWD); links are followed.  False when there is none.
// The kernel makes the inodes of its own files (proc(5), sysfs(5)) anew at any time.
bool prove_file(int directory, const std::string& name, FileProof& into);

// The same, as far as it is known here: no server is asked (NFS, FUSE), which may not answer any
// more when the power fails.  Those of proc(5) and sysfs(5) are as all others.
bool prove_known_file(int directory, const std::string& name, FileProof& into);
// Then these are known by their mount.
void forget_inode_of_kernel(const std::optional<Mount>& mount, FileProof& of);
// The current directory of a process.
bool prove_known_directory(pid_t process, FileProof& into);

// What the name leads to (AT_FDCWD: from the current directory), as find_file().  EAGAIN: only a
// server knows.
Result<Descriptor> open_known(int directory, const std::string& name);
Result<Descriptor> find_known_file(const std::string& name, const FileProof& had);
// The same with the program's rights, and opens it, of a file system that answers by itself.
// EAGAIN, too: somebody has a lease on it.
Result<Descriptor> open_known_file(const std::string& name, const FileProof& had, int flags,
                                   const SavedProcess& program);
// Of such a failure: the name leads nowhere, or elsewhere.
bool is_elsewhere(const std::string& name, int error_number);

// What the name leads to, for nothing but to be compared and opened: to open a device or a pipe
// does something.  ESTALE: it is another file than the program had.  `same_boot`: numbers of
// devices change when the machine starts.
Result<Descriptor> find_file(const std::string& name, const FileProof& had, bool same_boot);

// Finds it, and opens it, with the program's rights; where these have gone, with ours, if it is
// certain and proven by its birth to be the very file that the program had open so, and nobody else
// can have changed the way to it; in another boot, in which the numbers of file systems prove
// nothing, nor its name.  ESTALE: its mount restricts less than the program's did.
Result<Descriptor> open_file(const std::string& name, const FileProof& had, int flags,
                             const SavedProcess& program, bool same_boot);

// Finds and opens a file that the program had open, as it had it.
Result<Descriptor> open_again(const SavedDescriptor& descriptor, const SavedProcess& program);

// Whether that would do in another boot, too, where the program's rights do not open the file any
// more.  It is not opened.
Status foresee_way(const SavedDescriptor& descriptor, const SavedProcess& program);

// Whether the name is that of a process's own file (/proc/PID/...), which ends with the process.
bool is_of_a_process(const std::string& name);

// Goes to the program's directory, with its rights; with ours, where these do not reach it any
// more, if nobody else can have changed what its name leads to.  It is the one that the program was
// in; another one only where nobody else can have put it there, and with the program's rights.
Status go_to_directory(const SavedProcess& program);

}  // namespace pawl::wsp
