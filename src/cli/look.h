// What can be said of a file, its mark and its journal by looking only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/exit_codes.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "journal/reader.h"
#include "medium/medium.h"

namespace pawl::cli {

enum class State {
  clean,            // no mark, no journal
  needs_recovery,   // the next open replays the journal, or removes it when it holds nothing
  damaged_journal,  // the next open refuses, as in all that follow
  foreign_journal,
  missing_journal,
  in_use,
  newer_version,
};

struct Look {
  std::string path;
  // Of the file that was looked at, and of its journal: whoever may write a directory on the path
  // can put others in their place.
  std::uint64_t device = 0;
  FileIdentity identity;
  FileIdentity journal_identity;
  std::uint64_t file_size_bytes = 0;
  bool can_mark = false;
  std::optional<Mark> mark;

  std::string journal_path;
  bool has_journal = false;
  bool is_locked = false;
  std::uint64_t journal_size_bytes = 0;
  std::optional<journal::Header> header;
  journal::Listed listed;    // the files of a group, or the group of a file
  std::string records_path;  // of the journal that has the records: the group's, or its own
  bool other_slot_damaged = false;

  // Of the records that the next open would replay.
  std::uint64_t record_count = 0;
  std::uint64_t range_count = 0;
  std::uint64_t changed_bytes = 0;
  std::uint64_t record_bytes = 0;
  std::uint64_t last_sequence = 0;
  std::uint64_t recovered_size_bytes = 0;  // of the file, afterwards
  std::string end_reason;                  // see journal::Reader

  State state = State::clean;
  pawl_error code = PAWL_ERROR_NONE;  // what the next open would be refused with
  std::string explanation;            // what is so, and what to do about it
};

const char* state_name(State state);
ExitCode exit_code_of(State state);
// Of what is no state of a mapped file: of a heap, or of sections.
ExitCode exit_code_of(const Status& failure);

using OnRecord = std::function<void(const journal::RecordSummary& record)>;

// Changes nothing.  Fails only when it cannot look: no such file, no regular file, no permission,
// an error of the disk.  Whatever is wrong with mark and journal is a state.  The journal of a file
// in use moves on while it is read, so its records are only told of with `read_live_journal`.
Result<Look> look_at_file(const std::string& path, bool read_live_journal, Progress& progress,
                          const OnRecord& on_record);

Json header_json(const journal::Header& header);

}  // namespace pawl::cli
