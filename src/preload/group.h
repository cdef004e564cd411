// The group of the process, if PAWL_GROUP names one: every file that it maps atomically is in it,
// and every commit is one of all that is pending in all of them.
//
// Callers are inside().
#pragma once

#include "preload/tracked_files.h"

namespace pawl::preload {

// At the start of the process.
void read_group();

bool has_group();

// The mapping of a file that is open as `descriptor`: in the group, which is opened first if need
// be, or alone.  It takes over what keeps other writers away from the medium of one that stepped
// aside.
Result<std::unique_ptr<Mapping>> open_mapping(int descriptor, Medium* aside = nullptr);
// Before a file is closed that is to be opened again, and with the last one the group.  EBUSY: its
// file is not found under its name.
Status check_group_usable();
// Empty: it is not open, or there is none.
std::string path_of_open_group();
// After a file was closed: the group goes with its last one, so that another process may have it.
Status close_group_if_unused();
// After the last file was closed for an exec, which may fail: no other process may have it.
Status close_group_for_exec();

// With file.lock held, on a file that check_ours() found to be ours.  Without a group they are
// calls on the file's mapping.  All but the first are for calls that promise durability: where a
// file of the group is lost (TrackedFile::is_lost), they fail with EIO behind the commit.
Status commit_all(TrackedFile& file);
Status synchronise_all(TrackedFile& file);
Status commit_range(TrackedFile& file, void* address, std::size_t length);
Status commit_range_async(TrackedFile& file, void* address, std::size_t length);

// Around fork().  The child opens the group anew, when its parent has closed it.
void lock_group_for_fork();
void unlock_group_after_fork();
void forget_group_in_child();

}  // namespace pawl::preload
