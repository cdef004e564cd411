#include "cli/look.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "journal/advice.h"
#include "journal/membership.h"
#include "journal/replay.h"
#include "mapping/recovery.h"
#include "medium/block_medium.h"
#include "medium/descriptor.h"
#include "medium/held_journal.h"
#include "medium/sections_file.h"

namespace pawl::cli {

namespace {

// Tells a journal whose header is damaged from a file that never was one.
bool has_magic(MediumFile& journal) {
  return has_journal_magic([&](std::uint64_t offset, auto& bytes) {
    return journal.read(offset, std::as_writable_bytes(std::span(bytes))).ok();
  });
}

bool is_all_zero_header(MediumFile& journal) {
  std::array<std::byte, sizeof(journal::Header)> bytes{};
  for (std::uint64_t slot = 0; slot < kJournalSlots; ++slot) {
    if (!journal.read(slot * kJournalSlotBytes, bytes).ok()) return false;
    for (const std::byte byte : bytes) {
      if (byte != std::byte{0}) return false;
    }
  }
  return true;
}

// A failure that speaks of what the journal is, and not of a disk or a permission.
bool speaks_of_content(const Status& status) {
  return status.error_number() == EBADMSG || status.error_number() == ELOOP ||
         status.error_number() == ENOTSUP;
}

Look& conclude(Look& look, State state, pawl_error code, std::string explanation) {
  look.state = state;
  look.code = code;
  look.explanation = std::move(explanation);
  return look;
}

Look& conclude(Look& look, State state, const Status& why) {
  return conclude(look, state, why.code(), why.text());
}

void conclude_cut(Look& look, const std::string& journal_path, const journal::Reader& reader) {
  conclude(look, State::damaged_journal, PAWL_ERROR_CUT_JOURNAL,
           journal_path + ": " + reader.cut() + ". " + journal::restore_or_accept_loss());
}

std::string in_use_text(const Look& look) {
  const std::string who = look.header.has_value()
                              ? fmt::format("process {}", look.header->writer_process)
                              : std::string("a process");
  return who + " has it mapped atomically; what it holds cannot be judged before it lets go";
}

std::string recovery_text(const Look& look) {
  std::string text;
  if (look.record_count == 0) {
    text =
        "a crash left it with nothing to replay; the next open, or pawl recover, removes the "
        "journal";
  } else {
    text = fmt::format(
        "a crash left it; the next open, or pawl recover, replays {} ({} changed bytes)",
        count_text(look.record_count, "record"), look.changed_bytes);
  }
  if (!look.end_reason.empty()) {
    text += "; then the journal ends in a commit that is not whole, which is dropped (" +
            look.end_reason + "): it was not acknowledged, unless the journal was damaged since";
  }
  return text;
}

// Nothing: it is not to be read, and the look says why.
Result<std::optional<journal::Reader>> open_journal(Look& look, const std::string& path,
                                                    MediumFile& journal) {
  Result<journal::Reader> opened =
      journal::Reader::open(journal, journal::IfCut::read_what_is_left);
  if (opened.ok()) return std::optional<journal::Reader>(std::move(opened.value()));
  const Status& failure = opened.status();
  if (!speaks_of_content(failure)) return failure;
  const Status why = failure.prefixed(path + ": ");
  if (failure.error_number() == ENOTSUP) {
    conclude(look, State::newer_version, why);
  } else if (has_magic(journal) || is_all_zero_header(journal)) {
    conclude(look, State::damaged_journal, why);
  } else {
    conclude(look, State::foreign_journal, why);
  }
  return std::optional<journal::Reader>();
}

// Of a file in a group: the group's journal.  Null: it is not there, and the look says so.
Result<std::unique_ptr<MediumFile>> group_journal(Look& look, Medium& medium) {
  const std::string& name = look.listed.files.front().name;
  Result<std::unique_ptr<Medium>> group = medium.open_group(name);
  if (group.status().error_number() == EPERM) {
    conclude(look, State::foreign_journal, group.status());
    return std::unique_ptr<MediumFile>();
  }
  Result<std::unique_ptr<MediumFile>> journal =
      group.ok() ? group.value()->read_journal() : group.status();
  if (journal.ok()) {
    look.records_path = group.value()->journal_path();
    Status believed = journal::check_owner_of_group(*group.value(), medium);
    if (believed.ok()) believed = journal::check_writers_of_group(*group.value(), medium);
    if (believed.ok()) return journal;
    conclude(look, State::foreign_journal, believed);
    return std::unique_ptr<MediumFile>();
  }
  if (!is_gone(journal.status())) return journal.status();
  conclude(look, State::missing_journal, PAWL_ERROR_GROUP_FILE_MISSING,
           "it was left open in the group " + name +
               ", whose journal cannot be read: " + journal.status().text() +
               ". Put the group's file (it is empty) and its journal back; or, to accept the file "
               "as it is (commits may be lost), use pawl recover --accept-loss FILE");
  return std::unique_ptr<MediumFile>();
}

// Whether a record is about the file that is looked at.
bool concerns(const Look& look, const journal::RecordSummary& record) {
  return look.listed.role != journal::Role::member ||
         record.size_of(look.listed.files.front().number) != nullptr;
}

std::uint64_t size_after(const Look& look, const journal::RecordSummary& record) {
  if (look.listed.role == journal::Role::group) return look.file_size_bytes;
  const std::uint64_t number =
      look.listed.role == journal::Role::member ? look.listed.files.front().number : 0;
  const journal::FileSize* const size = record.size_of(number);
  return size != nullptr ? size->size_bytes : look.recovered_size_bytes;
}

Status read_records(Look& look, Medium& medium, journal::Reader& reader, Progress& progress,
                    const OnRecord& on_record) {
  for (;;) {
    Result<std::optional<journal::RecordSummary>> record = reader.next();
    if (!record.ok()) return record.status();
    const std::optional<journal::RecordSummary>& next = record.value();
    if (!next.has_value()) break;
    const journal::RecordSummary& found = *next;
    if (!concerns(look, found)) continue;
    look.record_count += 1;
    look.range_count += found.range_count;
    look.changed_bytes += found.changed_bytes;
    look.record_bytes += found.bytes;
    look.last_sequence = found.header.sequence;
    look.recovered_size_bytes = size_after(look, found);
    progress.at(look.record_bytes, look.journal_size_bytes);
    if (on_record) on_record(found);
  }
  look.end_reason = reader.end_reason();
  if (look.is_locked) return {};

  Result<journal::Loss> evidence = reader.evidence_of_loss();
  if (!evidence.ok()) return evidence.status();
  const bool has_records = look.record_count > 0 || evidence.value().any();
  Status bond = journal::check_bond(
      medium, reader.header(),
      {.is_of_group = look.listed.role != journal::Role::file, .has_records = has_records});
  if (!bond.ok() && !speaks_of_content(bond)) return bond;
  if (!reader.cut().empty()) {
    conclude_cut(look, look.records_path, reader);
    // Which says what to do, too.
    if (!bond.ok())
      look.explanation = look.records_path + ": " + reader.cut() + ". Besides, " + bond.text();
    return {};
  }
  if (!bond.ok()) {
    conclude(look, State::foreign_journal, bond);
    return {};
  }
  if (evidence.value().any()) {
    conclude(look, State::damaged_journal, evidence.value().code,
             look.records_path + " is damaged: " + evidence.value().text + ". " +
                 journal::restore_or_accept_loss());
    return {};
  }
  conclude(look, State::needs_recovery, PAWL_ERROR_NONE, recovery_text(look));
  if (look.listed.role != journal::Role::group) return {};
  Status listed = journal::check_listed_files(medium, reader.header().journal_id, look.listed);
  if (listed.error_number() == ENODATA) {
    conclude(look, State::missing_journal, listed);
  } else if (listed.error_number() == EPERM || speaks_of_content(listed)) {
    conclude(look, State::foreign_journal, listed);
  } else if (!listed.ok()) {
    return listed;
  }
  return {};
}

// Reads header and records.  Of a live journal nothing more than those is told.
Status look_into_journal(Look& look, Medium& medium, MediumFile& journal, bool read_records_too,
                         Progress& progress, const OnRecord& on_record) {
  Result<std::optional<journal::Reader>> own = open_journal(look, look.journal_path, journal);
  if (!own.ok()) return own.status();
  if (!own.value().has_value()) return {};
  journal::Reader& reader = *own.value();  // NOLINT(bugprone-unchecked-optional-access)
  look.header = reader.header();
  look.listed = reader.listed();
  look.records_path = look.journal_path;
  look.other_slot_damaged = reader.other_slot_damaged();
  if (look.is_locked && !read_records_too) return {};
  if (look.listed.role == journal::Role::member && !reader.cut().empty()) {
    conclude_cut(look, look.journal_path, reader);
    return {};
  }
  if (look.listed.role != journal::Role::member)
    return read_records(look, medium, reader, progress, on_record);
  Result<bool> may_lack =
      journal::may_lack_commits(medium, reader.header().journal_id, look.listed.files.front().name);
  if (!may_lack.ok() && !speaks_of_content(may_lack.status())) return may_lack.status();
  if (!may_lack.ok() || !may_lack.value()) {
    if (may_lack.ok())
      conclude(look, State::needs_recovery, PAWL_ERROR_NONE, recovery_text(look));
    else
      conclude(look, State::foreign_journal, may_lack.status());
    return {};
  }
  Result<std::unique_ptr<MediumFile>> shared = group_journal(look, medium);
  if (!shared.ok()) return shared.status();
  if (shared.value() == nullptr) return {};
  Result<std::optional<journal::Reader>> of_group =
      open_journal(look, look.records_path, *shared.value());
  if (!of_group.ok()) return of_group.status();
  if (!of_group.value().has_value()) return {};
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access)
  journal::Reader& records = *of_group.value();
  Status numbered = journal::check_number(medium, look.records_path, records.listed(),
                                          look.listed.files.front().number);
  if (numbered.ok()) return read_records(look, medium, records, progress, on_record);
  if (numbered.error_number() != ENODATA && !speaks_of_content(numbered)) return numbered;
  conclude(look,
           numbered.error_number() == ENODATA ? State::missing_journal : State::foreign_journal,
           numbered);
  return {};
}

// The file may be missing, and its journal still be there.
Status with_what_is_left(const std::string& path, const Status& failure) {
  const std::string journal = path + kJournalSuffix;
  if (failure.error_number() != ENOENT || ::access(journal.c_str(), F_OK) != 0) return failure;
  return Status::failure(ENOENT, failure.text() + ". Its journal " + journal +
                                     " is there, and may hold commits of it: put the file back");
}

// Marked, and without a journal: nothing was committed since it was closed.
Result<Look> look_at_opening(Look& look, Medium& medium) {
  const Result<SoughtJournal> sought = medium.seek_journal(*look.mark);
  if (!sought.ok()) return sought.status();
  if (sought.value().found == SoughtJournal::Found::writer)
    return conclude(look, State::in_use, PAWL_ERROR_IN_USE, in_use_text(look));
  return conclude(look, State::needs_recovery, PAWL_ERROR_NONE, recovery_text(look));
}

}  // namespace

const char* state_name(State state) {
  switch (state) {
    case State::clean:
      return "clean";
    case State::needs_recovery:
      return "needs-recovery";
    case State::damaged_journal:
      return "damaged-journal";
    case State::foreign_journal:
      return "foreign-journal";
    case State::missing_journal:
      return "missing-journal";
    case State::in_use:
      return "in-use";
    case State::newer_version:
      return "newer-version";
  }
  return "unknown";
}

ExitCode exit_code_of(const Status& failure) {
  switch (failure.code()) {
    case PAWL_ERROR_DAMAGED_HEAP:
      return kExitDamagedHeap;
    case PAWL_ERROR_OTHER_LAYOUT:
      return kExitForeign;
    case PAWL_ERROR_UNSUPPORTED_VERSION:
      return kExitOtherVersion;
    default:
      return kExitFailure;
  }
}

ExitCode exit_code_of(State state) {
  switch (state) {
    case State::clean:
      return kExitOk;
    case State::needs_recovery:
      return kExitNeedsRecovery;
    case State::damaged_journal:
      return kExitDamaged;
    case State::foreign_journal:
      return kExitForeign;
    case State::missing_journal:
      return kExitMissing;
    case State::in_use:
      return kExitInUse;
    case State::newer_version:
      return kExitOtherVersion;
  }
  return kExitFailure;
}

Result<Look> look_at_file(const std::string& path, bool read_live_journal, Progress& progress,
                          const OnRecord& on_record) {
  Result<std::unique_ptr<Medium>> opened = open_block_medium(path, true);
  if (!opened.ok()) return with_what_is_left(path, opened.status());
  Medium& medium = *opened.value();

  Look look;
  look.path = medium.path();
  look.device = medium.device();
  look.identity = medium.identity();
  const Result<FileIdentity> beside = medium.journal_identity();
  if (!beside.ok()) return beside.status();
  look.journal_identity = beside.value();
  look.journal_path = medium.journal_path();
  look.can_mark = medium.can_mark();
  Result<std::uint64_t> size = medium.base().size();
  if (!size.ok()) return size.status();
  look.file_size_bytes = size.value();
  look.recovered_size_bytes = size.value();

  Result<std::optional<Mark>> mark = medium.mark();
  if (!mark.ok()) {
    if (!speaks_of_content(mark.status())) return mark.status();
    return conclude(look, State::newer_version, mark.status());
  }
  look.mark = mark.value();

  Result<std::unique_ptr<MediumFile>> journal = medium.read_journal();
  if (!journal.ok()) {
    const Status& failure = journal.status();
    if (failure.error_number() == ENOENT) {
      if (!look.mark.has_value()) {
        if (has_sections(medium.base_descriptor()))
          return Status::failure(EINVAL, PAWL_ERROR_WRONG_KIND_OF_FILE,
                                 look.path +
                                     " is a file of sections, which keeps its state in "
                                     "itself; look with 'pawl fase info'");
        if (const Status busy = medium.check_has_no_writer(); !busy.ok())
          return conclude(look, State::in_use, PAWL_ERROR_IN_USE, in_use_text(look));
        return conclude(look, State::clean, PAWL_ERROR_NONE,
                        "nothing to recover: no mark, no journal");
      }
      if (look.mark->is_opening) return look_at_opening(look, medium);
      const Status missing = journal::missing_journal(medium, *look.mark);
      if (missing.error_number() == EBUSY) return conclude(look, State::in_use, missing);
      if (missing.error_number() != ENODATA) return missing;
      return conclude(look, State::missing_journal, missing);
    }
    if (!speaks_of_content(failure)) return failure;
    look.has_journal = true;
    return conclude(look, State::foreign_journal, failure);
  }
  look.has_journal = true;
  Result<std::uint64_t> journal_size = journal.value()->size();
  if (!journal_size.ok()) return journal_size.status();
  look.journal_size_bytes = journal_size.value();
  Result<bool> is_written = has_writer(look.journal_path);
  if (!is_written.ok()) return is_written.status();
  look.is_locked = is_written.value();

  const Status status =
      look_into_journal(look, medium, *journal.value(), read_live_journal, progress, on_record);
  if (!status.ok()) return status.prefixed(look.journal_path + ": ");
  if (look.is_locked) conclude(look, State::in_use, PAWL_ERROR_IN_USE, in_use_text(look));
  return look;
}

Json header_json(const journal::Header& header) {
  return Json{{"version", header.version},
              {"generation", header.generation},
              {"journal_id", describe_journal_id(header.journal_id)},
              {"epoch", header.epoch},
              {"file_inode", header.file_inode},
              {"file_birth_time_ns", header.file_birth_time_ns},
              {"tail_offset", header.tail_offset},
              {"tail_sequence", header.tail_sequence},
              {"writer_process", header.writer_process},
              {"journal_bytes", header.journal_bytes},
              {"block_bytes", header.block_bytes}};
}

}  // namespace pawl::cli
