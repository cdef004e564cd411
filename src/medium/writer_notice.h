// Who writes a file says so in the kernel's table of locks, by the file's device and inode number:
// so a writer is found whatever name the file has by now, or was opened by.
//
// The notice is a shared lock on bytes of the writer's own side file which no one else locks; their
// place and number are the file's inode and device (docs/journal-format.md).  So it meets no lock
// of the program, and the kernel takes it back when its holder dies.  /proc/locks lists it, to
// every user and in every container.
#pragma once

#include <sys/stat.h>

#include "medium/status.h"

namespace pawl {

// An opener says that it is there before it looks at the file's mark; and, once the mark is its
// own, that it is the writer.
enum class Notice { opener, writer };

// Puts the notice on the side file, which must be open for reading; it goes with the open file, as
// the writer's lock does.
Status put_notice(int side, const struct stat& user, Notice notice);

// How many side files have that notice for the file.  ENOTSUP: the kernel does not say; EBUSY: its
// table changes faster than it can be read.
Result<std::size_t> count_notices(const struct stat& user, Notice notice);

}  // namespace pawl
