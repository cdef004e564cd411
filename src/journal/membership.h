// Which journal of a group may change which file.  What a group's journal says of itself proves
// nothing: whoever may make a file in some directory can make a journal there that lists any file.
// So the file has to agree (law 5): its mark has the id of the group's journal, its own side file
// names the group, the group is of the file's owner, or of root, and nobody may write its journal
// who may not write the file.  All files of a group have one
// id, so the list says which file has which number, by its inode and birth time: names change.
#pragma once

#include "journal/group_files.h"
#include "journal/reader.h"

namespace pawl::journal {

// EPERM: the group whose file `group` is of another user than `file`.
Status check_owner_of_group(Medium& group, Medium& file);

// The same, of a side file that was acquired: EPERM unless it is of the owner of `medium`, or of
// root.
Status check_owner_of_side_file(const JournalFile& side, const Medium& medium);

// EBADMSG: somebody may write the journal of the group who may not write `file`, and so could have
// written its records.
Status check_writers_of_group(Medium& group, Medium& file);

// Whether the side file of `file` says that the file is number `number` of the group with the file
// `group`, whose journal has this id.  EBADMSG: it does not.
Status check_membership(Medium& file, MediumFile& side, Medium& group, const JournalId& journal_id,
                        std::uint64_t number, IfCut if_cut = IfCut::refuse);

// Whether `file`, beside which stands the side file of a member of the group `name` with the
// journal of this id, may lack commits of the group.  False: the loss of them was accepted, and a
// crash came in between.  EBADMSG: the file does not carry the mark, so that it is another one, a
// copy without attributes, or lost its mark.  With `accept_loss` one without a mark may lack some.
Result<bool> may_lack_commits(Medium& file, const JournalId& journal_id, const std::string& name,
                              bool accept_loss = false);

// Whether the side file of a file that carries the mark of this journal says that the file is
// outside of the group: it has all commits, or never had one.  A journal with records says nothing.
Result<bool> is_outside(MediumFile& side, const JournalId& journal_id);

// Whether `file`, which was found by the name of `listed`, may lack commits of the group.  False:
// it had not joined yet, has left, or was recovered alone.  ENODATA: another file took that name.
// Otherwise as may_lack_commits().
Result<bool> is_left_to_recover(Medium& group, Medium& file, const JournalId& journal_id,
                                const GroupFile& listed, bool accept_loss = false);

// Whether the list of a group's journal has `file` under this number: by its mark, if it carries
// one.
// ENODATA: it has it under another one, so that files changed names, and nothing is lost.  EBADMSG:
// it does not have it.
Status check_number(Medium& file, const std::string& journal_path, const Listed& of_group,
                    std::uint64_t number);

// Whether recovery of the group would take all files that this list of its journal has; changes
// nothing.  ENODATA: a file, or its side file, is missing.
Status check_listed_files(Medium& group, const JournalId& journal_id, const Listed& listed);

}  // namespace pawl::journal
