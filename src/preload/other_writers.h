// Descriptors by which the program may write to a file that another process has mapped atomically.
// That process would not see it, and its next commit would undo it: so it is refused.
#pragma once

#include "preload/interpose.h"

#include "medium/status.h"

namespace pawl::preload {

// Lock-free.
bool may_have_other_writer(int descriptor);
// As the descriptor is opened: whether its file may come to have another writer while it is open.
void set_may_have_other_writer(int descriptor, bool value);

// EBUSY as long as the file of such a descriptor has a writer that is another process.  Fails, too,
// where that cannot be found out.
Status check_no_other_writer(int descriptor);

// First in a call that is the kernel's and writes: -1, with errno, and a line that says so; else 0.
int refuse_beside_other_writer(const char* call, int descriptor);

}  // namespace pawl::preload
