// The files of a group: several files whose commits stand in one journal.  The journal's header
// lists them, and each of them has a side file that names the journal.  docs/journal-format.md.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "journal/format.h"

namespace pawl::journal {

// Whose side file it is.
enum class Role : std::uint32_t {
  file = 0,    // of one file, whose records it holds
  group = 1,   // of a group's file: records are about the files it lists
  member = 2,  // of a file in a group: it holds no record, and lists the group's file
};

struct GroupFile {
  std::uint64_t number = 0;  // by which records name it: from 1, at most kGroupFilesMax
  FileIdentity identity;     // which file it is, whatever its name has become
  std::string name;          // as seen from the directory of the file that lists it
};

struct Listed {
  Role role = Role::file;
  std::vector<GroupFile> files;
};

// What follows a header of kVersionOfGroups.  ENAMETOOLONG: the names take more than a slot has.
Result<std::vector<std::byte>> encode(const Listed& listed);
// Nothing when the bytes say what no header does.
bool decode(std::span<const std::byte> bytes, Listed& listed);

// Makes an empty side file that of a member: of the group whose journal has this id, and whose file
// is `group`.  Durable on success.
Status write_member(MediumFile& side, const JournalId& group_id, const GroupFile& group);

}  // namespace pawl::journal
