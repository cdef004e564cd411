// Journals as anybody can make them: well formed, with the right checksums, for files of others.
#pragma once

#include <cstddef>
#include <string>

#include "medium/medium.h"

namespace pawl::test {

// Of the file that a path leads to; all zeros where it leads to none.
FileIdentity identity_of(const std::string& path);

// The journal id in the mark of a file; false when it carries none, or may not be read.
bool read_marked_id(const std::string& path, JournalId& id);

// A group's journal, and the group's empty file beside it: with one record, which says that the
// file of this name holds `content`, and has so many bytes.
bool make_journal_of_group(const std::string& group, const std::string& name, const JournalId& id,
                           const std::string& content, std::size_t file_bytes);
// That of one file, beside it.
bool make_journal_of_file(const std::string& file, const JournalId& id, const std::string& content,
                          std::size_t file_bytes);

// One without a record, which names no file: any file may take it.
bool make_empty_journal(const std::string& file);
// The side file of a file in a group of this name.
bool make_side_file_of_member(const std::string& file, const std::string& group,
                              const JournalId& id);

}  // namespace pawl::test
