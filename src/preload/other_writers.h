// Whether a file has a writer, a process that has it mapped atomically: all who ask, ask here.  The
// answer is that of the writer's notice, which is about the inode: a writer that has stepped aside
// (for a new name, for an exec that may fail) has neither mark nor journal, and its notice all the
// same, and so has one whose file goes by another name.  A file with neither of the attributes that
// say that there may be one (named_medium.h) has none: then the notices, which the kernel keeps in
// one list with the locks of all users, are not asked.
//
// And descriptors by which the program may write to a file that another process has mapped.  That
// process would not see it, and its next commit would undo it: so it is refused.
#pragma once

#include "preload/interpose.h"

#include <sys/stat.h>

#include <string>

#include "medium/status.h"
#include "preload/named_files.h"

namespace pawl::preload {

// This process included.  An error where it cannot be told (writer_notice.h).
Result<bool> has_any_writer(const struct stat& status);
// The file has neither attribute.
bool has_no_sign_of_a_writer(const NamedFile& file);
// Without this process.  By a thread that holds no lock of a file (tracked_files.h).
Result<bool> has_other_writer(const struct stat& status);
Result<bool> has_other_writer(const NamedFile& file);
// The refusal of what would change such a file: EBUSY.
Status is_written_by_other(const std::string& name);
// For one that may be dying, whose lock this process just got: a bounded moment, and a short one
// behind a call that is not to wait; after a wait in vain not again for a while.
enum class Locking { waits, at_once };
void wait_for_other_writer_to_end(int descriptor, Locking how);

// Lock-free.
bool may_have_other_writer(int descriptor);
// As the descriptor is opened: whether its file may come to have another writer while it is open.
void set_may_have_other_writer(int descriptor, bool value);

// EBUSY as long as the file of such a descriptor has a writer that is another process.  Where that
// was killed meanwhile the file is recovered, as if it were opened now.  Fails, too, where either
// cannot be found out or done.  Success: the descriptor's file may be tracked by now.
Status check_no_other_writer(int descriptor);
// The same, too, of any other descriptor whose file has a name, and an attribute that says that
// there may be a writer.
Status check_may_map(int descriptor, const struct stat& status);
// First in a call that reads: recovers the file where its writer was killed.  -1 as below, where it
// cannot be.
int refuse_before_reading(const char* call, int descriptor);

// First in a call that is the kernel's and writes: -1, with errno, and a line that says so; else 0.
int refuse_beside_other_writer(const char* call, int descriptor);

}  // namespace pawl::preload
