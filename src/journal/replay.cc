#include "journal/replay.h"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "journal/advice.h"
#include "medium/law.h"
#include "medium/permissions.h"

namespace pawl::journal {
namespace {

// For Law::replay_is_idempotent: what stands in the base already is inverted.
Status write_what_is_not_there(MediumFile& base, std::uint64_t offset,
                               std::span<const std::byte> bytes) {
  std::vector<std::byte> present(bytes.size());
  PAWL_TRY(base.read(offset, present));
  if (!std::equal(bytes.begin(), bytes.end(), present.begin())) return base.write(offset, bytes);
  for (std::byte& byte : present) byte = ~byte;
  return base.write(offset, present);
}

Status damaged(const Medium& medium, const Loss& loss) {
  return Status::failure(EBADMSG, loss.code,
                         medium.journal_path() + " is damaged: " + loss.text +
                             ". Nothing was changed. " + restore_or_accept_loss());
}

// Makes [from, to) read as zeros with the blocks that it has: only what is not zero is overwritten.
Status clear_in_place(MediumFile& base, std::uint64_t from, std::uint64_t to) {
  static constexpr std::array<std::byte, kPageBytes> kZeros{};
  std::vector<std::byte> page(kPageBytes);
  for (std::uint64_t at = from; at < to;) {
    at = std::max(at, std::min(base.find_data(at), to));
    const std::uint64_t bytes = std::min(to - at, kPageBytes - at % kPageBytes);
    const std::span<std::byte> piece = std::span(page).first(bytes);
    PAWL_TRY(base.read(at, piece));
    if (!std::equal(piece.begin(), piece.end(), kZeros.begin()))
      PAWL_TRY(base.write(at, std::span(kZeros).first(bytes)));
    at += bytes;
  }
  return {};
}

// As the record left it, but never shorter than `size_later`.
Status set_size(MediumFile& base, const FileSize& sizes, std::uint64_t size_later) {
  auto present = base.size();
  if (!present.ok()) return present.status();
  std::uint64_t size_bytes = present.value();
  const std::uint64_t cut =
      std::min(is_broken(Law::cut_with_the_commit) ? kNoTruncation : sizes.truncate_to,
               is_broken(Law::size_with_the_commit) ? kNoTruncation : sizes.size_bytes);
  if (cut < size_bytes) {
    std::uint64_t kept = std::clamp(size_later, cut, size_bytes);
    Status cleared = clear_in_place(base, cut, kept);
    // Where even an overwrite takes space, it is better to give some back.
    if (is_want_of_space(cleared.error_number()))
      kept = cut;
    else if (!cleared.ok())
      return cleared;
    if (kept < size_bytes) PAWL_TRY(base.resize(kept));
    size_bytes = kept;
  }
  const std::uint64_t wanted = std::max(sizes.size_bytes, std::min(size_later, size_bytes));
  if (wanted == size_bytes || is_broken(Law::size_with_the_commit)) return {};
  return base.resize(wanted);
}

}  // namespace

Status apply_record(MediumFile& base, std::uint64_t file, Reader& reader,
                    const RecordSummary& record, const Later& later) {
  const FileSize* const sizes = record.size_of(file);
  if (sizes == nullptr) return {};
  PAWL_TRY(set_size(base, *sizes, later.size_bytes));
  return reader.visit(record, [&](std::uint64_t range_offset, std::span<const std::byte> bytes) {
    std::uint64_t offset = range_offset;
    if (file != 0) {
      if (file_number(range_offset) != file) return Status{};
      offset = offset_in_file(range_offset);
    }
    if (offset >= later.cut) return Status{};
    const auto kept = bytes.first(std::min<std::uint64_t>(bytes.size(), later.cut - offset));
    if (is_broken(Law::replay_is_idempotent)) return write_what_is_not_there(base, offset, kept);
    return base.write(offset, kept);
  });
}

bool may_be_given_up(const SoughtJournal& sought) {
  return sought.found == SoughtJournal::Found::nothing ||
         sought.found == SoughtJournal::Found::copy;
}

Status missing_journal(Medium& medium, const Mark& mark) {
  auto sought = medium.seek_journal(mark);
  if (!sought.ok()) return sought.status();
  switch (sought.value().found) {
    case SoughtJournal::Found::writer:
      return Status::failure(
          EBUSY, PAWL_ERROR_IN_USE,
          medium.path() +
              " is mapped atomically by another writer, which opened it as the file of " +
              mark.journal_path +
              "; try again when that one has unmapped it. (If that journal was removed, let "
              "the program end by itself: to unmap the file loses nothing, to kill it does)");
    case SoughtJournal::Found::journal:
      return Status::failure(ENODATA, PAWL_ERROR_MOVED_JOURNAL,
                             medium.path() +
                                 " was left open by a crash under another name, and its "
                                 "journal is " +
                                 sought.value().path + ": rename that to " + medium.journal_path() +
                                 ", or open the file by the name that goes with it. "
                                 "Nothing is lost");
    case SoughtJournal::Found::copy:
      return Status::failure(
          ENODATA, PAWL_ERROR_COPIED_FILE,
          medium.path() +
              " is a copy of a file that was open: it carries the mark of that one, whose journal "
              "was " +
              mark.journal_path +
              ". Copy the file with pawl snapshot, or together with its journal when no program "
              "has it open; or, to accept the copy as it is (commits may be missing), clear the "
              "mark with 'pawl recover --accept-loss FILE'");
    case SoughtJournal::Found::nothing:
      break;
  }
  return Status::failure(
      ENODATA, PAWL_ERROR_MISSING_JOURNAL,
      medium.path() + " was left open by a crash, and its journal " + mark.journal_path +
          " is missing: commits may stand only there. Put it back as " + medium.journal_path() +
          "; or, to accept the file as it is (commits may be lost), clear the mark with "
          "'pawl recover --accept-loss FILE'. If the file was in a group, that journal only "
          "says so, and the commits stand in the group's: put it back, or restore the "
          "group whole, for the other files have commits that this one would lack");
}

Status check_is_lost(Medium& medium, const Mark& mark) {
  const auto beside = medium.journal_identity();
  if (!beside.ok()) return beside.status();
  if (mark.is_opening || mark.journal == FileIdentity{} || mark.journal.may_be(beside.value()))
    return {};
  auto sought = medium.seek_journal(mark);
  if (!sought.ok()) return sought.status();
  return may_be_given_up(sought.value()) ? Status{} : missing_journal(medium, mark);
}

namespace {

// A copy of the journal of this very life may lack the newest records, and has old ones that a
// checkpoint dropped: in the file they would undo what came later.  (Where file and journal were
// copied together, both are others than the mark says.)
Status check_is_no_copy(Medium& medium, const Mark& mark) {
  if (is_broken(Law::original_journal)) return {};
  const auto identity = medium.journal_identity();
  if (!identity.ok()) return identity.status();
  const FileIdentity& present = identity.value();
  const bool is_known = mark.journal != FileIdentity{} && present != FileIdentity{};
  if (!is_known || !mark.file.may_be(medium.identity()) || mark.journal.may_be(present)) return {};
  return Status::failure(
      EBADMSG, PAWL_ERROR_COPIED_JOURNAL,
      medium.journal_path() + " is a copy of the journal of " + medium.path() +
          ", or was restored, and is not that journal itself"
          ": commits may be missing in it. Nothing was changed. Put the original in its "
          "place; or, if that is lost, accept the copy with 'pawl recover --accept-loss "
          "FILE'");
}

bool names_this_file(Medium& medium, const Header& header) {
  return FileIdentity{header.file_inode, header.file_birth_time_ns} == medium.identity();
}

// Whether the mark of an opening goes with a journal: it names by its id that which its opener had
// recovered, or was about to make.  That shows that its setter could read the mark of the file that
// the journal is of; whose inode and birth time it names shows nothing, for anybody can ask for
// those.  Beside a copy of the file stands a copy of the journal.
Result<bool> is_of_opening(Medium& medium, const Mark& mark, const Header& header) {
  if (!mark.knows(header.journal_id)) return false;
  const bool is_of_copy = mark.file != FileIdentity{} && !mark.file.may_be(medium.identity());
  if (is_of_copy) return true;
  const auto present = medium.journal_identity();
  if (!present.ok()) return present.status();
  return mark.journal.may_be(present.value());
}

// Beside a file without a mark nothing shows that its maker may write the file: anybody can ask for
// the numbers that name it.
Status check_is_no_strangers(Medium& medium) {
  const auto file = medium.rights();
  const auto journal = medium.journal_rights();
  if (!file.ok()) return file.status();
  if (!journal.ok()) return journal.status();
  if (!file.value().has_value() || !journal.value().has_value()) return {};
  const uid_t maker = journal.value()->user;
  if (maker == 0 || (is_shown_user(maker) && (maker == file.value()->user || maker == ::geteuid())))
    return {};
  return Status::failure(
      EBADMSG, PAWL_ERROR_UNBELIEVED_JOURNAL,
      medium.journal_path() + " belongs to user " + std::to_string(maker) + ", and " +
          medium.path() +
          " carries no mark that shows that this one may write it; the journal is not "
          "believed. If you trust what it holds, give it the owner of the file (chown, as "
          "root)");
}

}  // namespace

Status check_bond(Medium& medium, const Header& header, const Bond& bond) {
  auto mark = medium.mark();
  if (!mark.ok()) return mark.status();
  // The mark of an opening that a crash ended takes the place of one whose journal it has.
  if (mark.value().has_value() && mark.value()->is_opening) {
    const auto is_its = is_of_opening(medium, *mark.value(), header);
    if (!is_its.ok()) return is_its.status();
    if (is_its.value()) return {};
  } else if (mark.value().has_value()) {
    if (mark.value()->journal_id == header.journal_id)
      return bond.accept_loss ? check_is_lost(medium, *mark.value())
                              : check_is_no_copy(medium, *mark.value());
    return Status::failure(
        EBADMSG, PAWL_ERROR_FOREIGN_JOURNAL,
        medium.journal_path() + " is the journal of another file (id " +
            describe_journal_id(header.journal_id) + "); that of " + medium.path() +
            " has the id " + describe_journal_id(mark.value()->journal_id) + " and was last at " +
            mark.value()->journal_path + ". Nothing was changed. Put that one in its place");
  }
  if (bond.is_of_group ||
      (!medium.can_mark() && (names_this_file(medium, header) || !bond.has_records)))
    return {};
  if (!bond.has_records) {
    // This file needs nothing of it: it was made, or emptied, just before a crash.
    if (header.file_inode == 0 || names_this_file(medium, header)) return {};
    return Status::failure(
        EBADMSG, PAWL_ERROR_FOREIGN_JOURNAL,
        medium.journal_path() + " is the journal of another file (inode " +
            std::to_string(header.file_inode) +
            "), and that file may be open still, or "
            "need its journal to be opened. Nothing was changed. Give it back to that "
            "file; or, if " +
            medium.path() +
            " took the place of that file, remove the journal: it holds no commits");
  }
  if (names_this_file(medium, header)) {
    if (bond.accept_loss) return check_is_no_strangers(medium);
    return Status::failure(
        EBADMSG, PAWL_ERROR_MARK_REMOVED,
        medium.journal_path() + " was made for " + medium.path() +
            ", whose mark (attribute user.pawl) was removed since: whether the file is as "
            "it was then is not known. Nothing was changed. If nobody changed the file, "
            "take the journal with 'pawl recover --accept-loss FILE'; else move the journal "
            "away");
  }
  const std::string inode = "(inode " + std::to_string(header.file_inode) + ")";
  const bool has_its_number = header.file_inode == medium.identity().inode;
  return Status::failure(
      EBADMSG, PAWL_ERROR_FOREIGN_JOURNAL,
      medium.journal_path() + " holds commits of " +
          (has_its_number ? "an earlier file with the same number " + inode + "; " + medium.path() +
                                " was made at another time"
                          : "another file " + inode + "; " + medium.path() + " is inode " +
                                std::to_string(medium.identity().inode)) +
          " and carries no mark of it. Nothing was changed. If " + medium.path() +
          " replaced the file on purpose, move the journal away; if it "
          "was copied, copy file and journal "
          "together with their attributes (cp --preserve=all) while "
          "no program has the file, or use pawl snapshot");
}

namespace {

// A journal is replayed as what it is found to be, or not at all: the records of a group are no
// plain file's.
Status check_role(const Medium& owner, Role found, Role sought) {
  if (found == sought) return {};
  return with_journal_name(
      owner, Status::failure(EIO, PAWL_ERROR_JOURNAL_CHANGED,
                             "the journal was read twice, and did not say the same; check the "
                             "disk, and try again"));
}

Result<Replayed> replay_files(Medium& owner, MediumFile& journal,
                              std::span<const FileToReplay> files, bool accept_loss) {
  const bool is_group = files.empty() || files.front().number != 0;
  const IfCut if_cut = accept_loss ? IfCut::read_what_is_left : IfCut::refuse;
  auto opened = Reader::open(journal, if_cut);
  if (!opened.ok()) return with_journal_name(owner, opened.status());
  PAWL_TRY(check_role(owner, opened.value().listed().role, is_group ? Role::group : Role::file));

  // First all of it is read, so that what is refused is refused before anything was changed.
  Replayed outcome;
  outcome.journal_id = opened.value().header().journal_id;
  outcome.generation = opened.value().header().generation;
  outcome.next_sequence = opened.value().header().tail_sequence;
  std::vector<std::vector<Later>> later(files.size());  // of each file, by each record
  std::vector<std::uint64_t> last_sizes(files.size());
  for (;;) {
    auto record = opened.value().next();
    if (!record.ok()) return with_journal_name(owner, record.status());
    if (!record.value().has_value()) break;
    outcome.records += 1;
    for (std::size_t i = 0; i < files.size(); ++i) {
      const FileSize* const sizes = record.value()->size_of(files[i].number);
      later[i].push_back({.cut = sizes != nullptr ? sizes->truncate_to : kNoTruncation});
      if (sizes != nullptr) last_sizes[i] = sizes->size_bytes;
    }
    outcome.next_sequence = record.value()->header.sequence + 1;
  }
  auto evidence = opened.value().evidence_of_loss();
  if (!evidence.ok()) return with_journal_name(owner, evidence.status());
  // The records of a group are bound to its files, not to the one that names it.
  PAWL_TRY(check_bond(owner, opened.value().header(),
                      {.is_of_group = is_group,
                       .has_records = outcome.records > 0 || evidence.value().any(),
                       .accept_loss = accept_loss}));
  if (evidence.value().any() && !accept_loss && !is_broken(Law::tell_of_damage))
    return damaged(owner, evidence.value());
  // What was read may stand in caches only, where a writer left it that died before its flush: it
  // must not reach the base (law 1), nor be followed by another header, before it is durable.
  if (const Status flushed = journal.flush(); !flushed.ok())
    return with_journal_name(owner, flushed);
  if (outcome.records == 0) return outcome;

  for (std::size_t i = 0; i < files.size(); ++i) {
    std::uint64_t cut = kNoTruncation;
    for (auto record = later[i].rbegin(); record != later[i].rend(); ++record) {
      cut = std::min(cut, std::exchange(record->cut, cut));
      record->size_bytes = last_sizes[i];
    }
  }

  auto again = Reader::open(journal, if_cut);
  if (!again.ok()) return with_journal_name(owner, again.status());
  for (std::uint64_t replayed = 0; replayed < outcome.records; ++replayed) {
    auto record = again.value().next();
    if (!record.ok()) return with_journal_name(owner, record.status());
    if (!record.value().has_value()) {
      return Status::failure(
          EBADMSG, PAWL_ERROR_JOURNAL_CHANGED,
          owner.journal_path() + " changed while it was read; is another program at it?");
    }
    for (std::size_t i = 0; i < files.size(); ++i) {
      const Status applied = apply_record(files[i].medium->base(), files[i].number, again.value(),
                                          *record.value(), later[i][replayed]);
      if (applied.ok()) continue;
      return Status::failure(
          applied.error_number(),
          is_want_of_space(applied.error_number()) ? PAWL_ERROR_NO_SPACE_TO_RECOVER
                                                   : applied.code(),
          "recovery of " + files[i].medium->path() + " stopped: " + applied.text() +
              ". The journal is as it was; mend the cause and open the file again");
    }
  }
  if (is_broken(Law::flush_what_was_replayed)) return outcome;
  for (const FileToReplay& file : files) PAWL_TRY(file.medium->base().flush());
  return outcome;
}

}  // namespace

Status with_journal_name(const Medium& medium, const Status& status) {
  return status.prefixed(medium.journal_path() + ": ");
}

Result<Replayed> replay(Medium& medium, MediumFile& journal, bool accept_loss) {
  const FileToReplay file{0, &medium};
  return replay_files(medium, journal, {&file, 1}, accept_loss);
}

Result<Replayed> replay_group(Medium& group, MediumFile& journal,
                              std::span<const FileToReplay> files, bool accept_loss) {
  return replay_files(group, journal, files, accept_loss);
}

}  // namespace pawl::journal
