// Files by name, before a call does something to that name.  Callers are inside(), unless it says
// otherwise.
#pragma once

#include "preload/interpose.h"

#include <sys/stat.h>

#include <optional>
#include <string>

#include "medium/status.h"
#include "preload/tracked_files.h"

namespace pawl::preload {

struct NamedFile {
  struct stat status;
  std::string real_path;
};

// What a descriptor shows, also one opened with O_PATH.
Result<NamedFile> identify(int descriptor);

// What the name stands for; nothing when there is no such file, or it is out of the program's
// reach: errno says which, and is 0 where it is there, and no concern of ours.  Opens it with
// O_PATH only, so that no lock of the program is lost and no permission is asked for; where all
// descriptors are in use, and without /proc, the path is followed link by link.  Fails where the
// file's path cannot be found out, unless the file carries no mark and is not tracked: what is done
// to it is then no concern of ours.
Result<std::optional<NamedFile>> look_up(int directory, const char* path, bool follow_links);

// How often a call begins anew because its name has come to lead to another file meanwhile; and its
// refusal behind that: EBUSY.
inline constexpr int kNameAttemptsMax = 100;
Status leads_elsewhere_each_time();

// Where a file of that name is, or would be: the path of its directory, without links, and its last
// part.
Result<std::string> path_to_be(int directory, const char* path);
// Before a tracked file gets that path.  ENAMETOOLONG: the name of a journal beside it would be too
// long.  EACCES: the directory may not be read.
Status check_takes_a_journal(const std::string& path);
// EEXIST: what stands where the journal of a file with that path would be is none of its own.
Status check_has_no_journal_beside(const std::string& path);

// Recovers a regular file that a crash left, before the program looks at it or changes it.  Success
// too when the journal is a live writer's, and when what stands beside the file is no concern of
// ours: the file neither matches a pattern nor carries a mark.  Who only reads a file that matches
// no pattern reads it as any program does: then nothing is looked at that stands beside it.
Status recover_before_use(const NamedFile& file, bool is_only_read);

// True when the file matches a pattern, carries a mark or has a writer: what stands beside it is
// then its journal.
bool concerns_us(const NamedFile& file);

// openat(2) and unlink(2) as the program calls them.  The caller is not inside().
int open_file(int directory, const char* path, int flags, mode_t mode);
int unlink_file(const char* path);

}  // namespace pawl::preload
