// What a crash left, brought to the last durable commit: of a file, of a group, and of one file of
// a group by itself.
//
// A file of a group carries a mark with the id of the group's journal until its bytes of every
// record are in it, and flushed.  So each file can be recovered alone, in any order; and again
// after a crash in between.
#pragma once

#include "journal/journal.h"
#include "journal/replay.h"

namespace pawl {

// Says of a file of a group that was to be opened by its name whether it is not there.  Whatever
// else is in the way can be mended, and nobody is asked to accept a loss for it.
bool is_gone(const Status& status);

struct OpenJournal {
  std::unique_ptr<MediumFile> file;
  bool is_new = false;
  journal::Replayed replayed;
};

// The side file, locked, for a writer of this file alone; replayed, or new when there was none.
// What a group left of the file is recovered, and over.  EINVAL: it is a group's file.
Result<OpenJournal> recovered_journal(Medium& medium);

// A new side file, locked, of a file that nothing is left to recover of.
Result<JournalFile> fresh_journal(Medium& medium);

// Clears the mark, durably.  Of the second the journal is empty, and gives its space back where
// that takes some.
Status unmark(Medium& medium);
Status unmark(Medium& medium, journal::Journal& journal);
// Clears the mark, durably, and then removes the journal: a file without a mark has nothing that
// only the journal knows.
Status let_go_of(Medium& medium);
// The same with that journal, which is empty, and gives its space back where even that takes some.
Status let_go_of(Medium& medium, journal::Journal& journal);

}  // namespace pawl
