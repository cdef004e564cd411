// Recovery: decides whether a journal belongs to a file, and brings the base to the last durable
// state.  Idempotent: a crash during recovery is followed by the same recovery (law 4).
#pragma once

#include <optional>
#include <span>

#include "journal/reader.h"

namespace pawl::journal {

struct Replayed {
  std::uint64_t records = 0;
  std::uint64_t next_sequence = 1;
  JournalId journal_id{};
  std::uint64_t generation = 0;  // of the header found
};

struct Bond {
  bool is_of_group = false;  // its records are bound to its members, not to the file that names it
  bool has_records = false;  // which would be lost by not believing it
  bool accept_loss = false;  // a copy of the journal will do, for want of the original
};

// Does the journal belong to the file?  EBADMSG with what to do when not.  With `accept_loss` also
// what check_is_lost() says.
Status check_bond(Medium& medium, const Header& header, const Bond& bond);

// What the records behind one do to a file.
struct Later {
  // From here on they cut off: it is not written, for its space was given back when they were
  // applied, and there may be none to write it again.
  std::uint64_t cut = kNoTruncation;
  // At least so long they leave it: blocks before that are not given back in between, for on a full
  // disk the file system may keep them (XFS).
  std::uint64_t size_bytes = 0;
};

// Brings a file from before a record that next() returned to after it, but for what `later` undoes;
// `file` is its number, 0 in its own journal.
Status apply_record(MediumFile& base, std::uint64_t file, Reader& reader,
                    const RecordSummary& record, const Later& later);

// A failure of what is read from the medium's journal, which it names.
Status with_journal_name(const Medium& medium, const Status& status);

// Replays all whole records of `journal` into the base and flushes it.  On failure the journal is
// as it was, and so is the file unless replay had begun: then a later replay completes it.
// With `accept_loss` evidence of damage does not stop it: what can be read is replayed.
Result<Replayed> replay(Medium& medium, MediumFile& journal, bool accept_loss = false);

// The same of a group's journal, whose file's medium is `group`, into those of its files that are
// given; whether they belong to it was checked.
struct FileToReplay {
  std::uint64_t number;
  Medium* medium;
};
Result<Replayed> replay_group(Medium& group, MediumFile& journal,
                              std::span<const FileToReplay> files, bool accept_loss);

// The error of a file that carries the mark while its journal is not beside it: says, after asking
// for the journal's lock, who writes the file or where its journal is.  ENODATA with
// may_be_given_up() when neither is so, and only then is it said how to accept the loss.
Status missing_journal(Medium& medium, const Mark& mark);
bool may_be_given_up(const SoughtJournal& sought);

// Before the journal that a mark names is given up for what was found in its place: a failure, as
// of missing_journal(), where it stands under another name.
Status check_is_lost(Medium& medium, const Mark& mark);

}  // namespace pawl::journal
