// The files of a group: several files whose commits stand in one journal.  The journal's header
// lists them, and each of them has a side file that names the journal.  docs/journal-format.md.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "journal/format.h"
#include "journal/page_buffer.h"

namespace pawl::journal {

// Whose side file it is.
enum class Role : std::uint32_t {
  file = 0,    // of one file, whose records it holds
  group = 1,   // of a group's file: records are about the files it lists
  member = 2,  // of a file in a group: it holds no record, and lists the group's file.  Before the
               // file is in the group, and as soon as it has all commits, it is that of one file
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

// The side file of a file that joins a group.  Its mark and its side file agree at every moment:
// as long as the side file says that the file is in the group, the mark is there.  So a file whose
// side file says so, and which has no such mark, is another one, or was changed by somebody else.
//
// In one slot stands a member's header, in the other that of an empty journal of the file alone: a
// torn write leaves the other one.
class MemberSide {
 public:
  // Makes an empty side file that of `file`, outside of the group whose journal has this id and
  // whose file is `group`.  Durable on success.  All memory that the others need is taken here.
  static Result<MemberSide> make(std::unique_ptr<MediumFile> side, const JournalId& group_id,
                                 const FileIdentity& file, const GroupFile& group);
  // The file is in the group, or is not any more.  Durable on success.
  Status enter();
  Status leave();
  // enter(), after leave().
  Status enter_again();

 private:
  Status renew(std::uint64_t slot);

  MemberSide(std::unique_ptr<MediumFile> side, AlignedBuffer slots)
      : side_(std::move(side)), slots_(std::move(slots)) {}

  std::unique_ptr<MediumFile> side_;
  AlignedBuffer slots_;  // as they are written
};

// leave(), of a side file that a crash left: `found` is its header.
Status leave_group(MediumFile& side, const Header& found, const FileIdentity& file);

}  // namespace pawl::journal
