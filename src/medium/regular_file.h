// Opens files by names that somebody else may have chosen: those that stand in a journal, a mark or
// a program, and those in a directory of another user.
#pragma once

#include <string>

#include "medium/descriptor.h"

namespace pawl {

// As openat(2), and looks at what the name leads to before it opens that: to open a device acts on
// some, and to open a FIFO waits for its other end, or wakes it.  ENODEV: it is neither a regular
// file nor a directory.  ELOOP: it is a symbolic link, with O_NOFOLLOW.  `path` is for messages.
Result<Descriptor> open_regular(int directory, const std::string& name, int flags,
                                const std::string& path);
Result<Descriptor> open_regular(const std::string& path, int flags);

}  // namespace pawl
