#include "mapping/recovery.h"

#include <cerrno>

#include "journal/journal.h"
#include "journal/membership.h"
#include "mapping/mapping.h"

namespace pawl {
namespace {

constexpr int kAcquireAttemptsMax = 100;

Status they_come_and_go(const Medium& medium) {
  return Status::failure(EBUSY, PAWL_ERROR_OPENING_RACED,
                         "writers of " + medium.path() + " come and go; try again");
}

// Says what to do where a directory has the name of the journal, or no file can have it.
Result<JournalFile> acquire_journal(Medium& medium, bool create) {
  auto acquired = medium.acquire_journal(create);
  if (acquired.ok()) return acquired;
  switch (acquired.status().error_number()) {
    case EISDIR:
      return Status::failure(EISDIR, PAWL_ERROR_JOURNAL_NAME_TAKEN,
                             "cannot open the journal " + medium.journal_path() +
                                 ": it is a directory; move it away and try again");
    case ENAMETOOLONG:
      return Status::failure(ENAMETOOLONG, PAWL_ERROR_NAME_TOO_LONG,
                             "cannot make the journal " + medium.journal_path() +
                                 ": the name of the file leaves no room for " + kJournalSuffix +
                                 "; give the file a shorter name");
    default:
      return acquired;
  }
}

// The existing side file, locked; ENOENT when there is none and the file carries no mark, or that
// of an opening; what missing_journal() says when it carries another.  A writer that begins or ends
// meanwhile is not taken for a crash: its mark, but for that of its opening, comes after its
// journal and goes before it.
Result<JournalFile> existing_journal(Medium& medium) {
  std::optional<Mark> seen;
  for (int attempt = 0; attempt < kAcquireAttemptsMax; ++attempt) {
    auto acquired = acquire_journal(medium, false);
    if (acquired.ok() || acquired.status().error_number() != ENOENT) return acquired;
    auto mark = medium.mark();
    if (!mark.ok()) return mark.status();
    if (!mark.value().has_value() || mark.value()->is_opening) return acquired;
    if (seen.has_value() && seen->journal_id == mark.value()->journal_id) {
      return journal::missing_journal(medium, *mark.value());
    }
    seen = mark.value();
  }
  return they_come_and_go(medium);
}

struct Header {
  JournalId journal_id{};
  std::uint64_t generation = 0;
  bool has_ring = true;  // one of a file that is outside of its group has none
  journal::Listed listed;
};

journal::IfCut if_cut(bool accept_loss) {
  return accept_loss ? journal::IfCut::read_what_is_left : journal::IfCut::refuse;
}

Result<Header> header_of(MediumFile& journal, bool accept_loss) {
  auto reader = journal::Reader::open(journal, if_cut(accept_loss));
  if (!reader.ok()) return reader.status();
  const journal::Header& header = reader.value().header();
  return Header{header.journal_id, header.generation, header.journal_bytes > journal::kAreaStart,
                reader.value().listed()};
}

Result<bool> carries_mark_of(Medium& medium, const JournalId& journal_id) {
  auto mark = medium.mark();
  if (!mark.ok()) return mark.status();
  return mark.value().has_value() && !mark.value()->is_opening &&
         mark.value()->journal_id == journal_id;
}

// What a dead opening had brought into the file stands still in the journal beside the name that it
// used.  Its records are older than what is committed from now on, and nothing would show that once
// the file has that name again.
Status retire_earlier_journal(Medium& medium) {
  auto mark = medium.mark();
  if (!mark.ok()) return mark.status();
  if (!mark.value().has_value() || !mark.value()->is_opening) return {};
  const auto empty = [&](std::unique_ptr<MediumFile> file) -> Result<bool> {
    auto reader = journal::Reader::open(*file, journal::IfCut::refuse);
    if (journal::is_no_journal(reader.status())) return false;
    if (!reader.ok()) return reader.status();
    const journal::Header header = reader.value().header();
    // Who may write the file could name the journal of any other.
    const bool is_of_file =
        reader.value().listed().role == journal::Role::file &&
        FileIdentity{header.file_inode, header.file_birth_time_ns} == medium.identity() &&
        mark.value()->knows(header.journal_id);
    if (!is_of_file) return false;
    const auto emptied = journal::Journal::format(
        std::move(file), header.journal_id, medium.identity(), header.generation,
        header.tail_sequence, kJournalSizeMin, header.block_bytes);
    if (!emptied.ok()) return emptied.status();
    return true;
  };
  return medium.retire_journal(*mark.value(), empty);
}

// Makes the mark ours to remove, of a file whose side file is acquired, and of whose journal with
// the id `recovered` everything is in it.  The mark of that journal nobody else may replace, and it
// is left as it is: to set it takes space on some file systems (XFS), and the disk may be full. Any
// other one may by now be that of a writer who opened another name.
Status take_over_mark(Medium& medium, const std::optional<JournalId>& recovered) {
  if (recovered.has_value()) {
    auto is_ours = carries_mark_of(medium, *recovered);
    if (!is_ours.ok()) return is_ours.status();
    if (is_ours.value()) return {};
  }
  PAWL_TRY(retire_earlier_journal(medium));
  auto seen = medium.mark();
  if (!seen.ok()) return seen.status();
  const auto id = journal::random_journal_id();
  if (!id.ok()) return id.status();
  Status claimed = medium.claim(id.value(), recovered);
  if (!is_want_of_space(claimed.error_number()) || !seen.value().has_value() ||
      !seen.value()->is_opening)
    return claimed;
  // There is no room for a mark of our own.  That of an opening that died is as good: whoever else
  // comes sees it, and then our notice.
  auto present = medium.mark();
  if (!present.ok()) return present.status();
  const bool is_same =
      present.value().has_value() && present.value()->journal_id == seen.value()->journal_id;
  return is_same ? Status{} : claimed;
}

Status claim_and_let_go_of(Medium& medium, const std::optional<JournalId>& recovered) {
  PAWL_TRY(take_over_mark(medium, recovered));
  return let_go_of(medium);
}

Status leave_group(const Medium& medium, MediumFile& side, const Header& header) {
  return journal::leave_group(
      side, {.generation = header.generation, .journal_id = header.journal_id}, medium.identity());
}

// Of a file that has all commits of its group, or of which they are given up.  Its side file says
// so, durably, before the mark goes: without the mark nothing else tells it from a file that lost
// its mark.
Status end_membership(Medium& medium, MediumFile& side, const Header& header) {
  PAWL_TRY(take_over_mark(medium, header.journal_id));
  PAWL_TRY(leave_group(medium, side, header));
  return let_go_of(medium);
}

Status lost_sight_of(const Medium& medium, const std::string& name, const Status& why,
                     const std::string& what_to_do) {
  return Status::failure(ENODATA, PAWL_ERROR_GROUP_FILE_MISSING,
                         medium.path() + " was left open by a crash together with " + name +
                             ", which cannot be opened (" + why.text() + "). " + what_to_do +
                             "; or, to accept the loss of commits, use pawl recover "
                             "--accept-loss FILE");
}

// Whether the journal is that which the file was last in, as the side file with this header says.
Status check_group(MediumFile& journal, const Medium& group, Medium& file, const Header& header,
                   bool accept_loss) {
  auto found = header_of(journal, accept_loss);
  if (!found.ok()) {
    return found.status().prefixed(group.journal_path() + ": ");
  }
  if (found.value().journal_id == header.journal_id &&
      found.value().listed.role == journal::Role::group)
    return journal::check_number(file, group.journal_path(), found.value().listed,
                                 header.listed.files.front().number);
  return Status::failure(
      EBADMSG, PAWL_ERROR_GROUP_MISMATCH,
      group.journal_path() + " is another journal than that which " + file.path() +
          " was last in. Put that one in its place; or, to accept the loss of commits, "
          "use pawl recover --accept-loss FILE");
}

// A file whose side file names a group.
Result<std::uint64_t> recover_member(Medium& medium, MediumFile& own_side, const Header& header,
                                     bool accept_loss) {
  const journal::GroupFile& listed = header.listed.files.front();
  auto may_lack = journal::may_lack_commits(medium, header.journal_id, listed.name, accept_loss);
  if (!may_lack.ok()) return may_lack.status();
  if (!may_lack.value()) {
    PAWL_TRY(end_membership(medium, own_side, header));
    return std::uint64_t{0};
  }
  auto group = medium.open_group(listed.name);
  if (group.ok()) PAWL_TRY(journal::check_owner_of_group(*group.value(), medium));
  // Looked at before it is locked: another life of the group, which goes on, is not waited for.
  auto seen = group.ok() ? group.value()->read_journal()
                         : Result<std::unique_ptr<MediumFile>>(group.status());
  if (!seen.ok() && !is_gone(seen.status())) return seen.status();
  if (!seen.ok() && !accept_loss) {
    return lost_sight_of(medium, "the group " + listed.name, seen.status(),
                         "Put the group's file (it is empty) and its journal back");
  }
  Status found = seen.status();
  if (found.ok()) found = check_group(*seen.value(), *group.value(), medium, header, accept_loss);
  if (!found.ok()) {
    const bool is_lost = is_gone(found) || found.error_number() == EBADMSG;
    if (!is_lost || !accept_loss) return found;
    PAWL_TRY(end_membership(medium, own_side, header));
    return std::uint64_t{0};
  }
  PAWL_TRY(journal::check_bond(medium, {.journal_id = header.journal_id},
                               {.is_of_group = true, .accept_loss = accept_loss}));
  auto side = acquire_journal(*group.value(), false);
  if (!side.ok()) {
    if (side.status().error_number() == ENOENT) return they_come_and_go(*group.value());
    return side.status();
  }
  PAWL_TRY(journal::check_owner_of_side_file(side.value(), *group.value()));
  PAWL_TRY(journal::check_writers_of_group(*group.value(), medium));
  PAWL_TRY(check_group(*side.value().file, *group.value(), medium, header, accept_loss));
  const journal::FileToReplay file{listed.number, &medium};
  auto replayed =
      journal::replay_group(*group.value(), *side.value().file, {&file, 1}, accept_loss);
  if (!replayed.ok()) return replayed.status();
  PAWL_TRY(end_membership(medium, own_side, header));
  return replayed.value().records;
}

// The side file, locked, of a file that may lack commits of the group; null when it lacks none any
// more: another recovery was at it.
Result<std::unique_ptr<MediumFile>> confirmed_side_file(Medium& group, const Header& header,
                                                        Medium& file,
                                                        const journal::GroupFile& listed,
                                                        bool accept_loss) {
  const std::uint64_t number = listed.number;
  // Without its own word for it a file is not the group's to change, nor to be given up: it is left
  // as it is when the loss is accepted.
  const auto unconfirmed = [&](const Status& why) -> Result<std::unique_ptr<MediumFile>> {
    if (accept_loss) return std::unique_ptr<MediumFile>();
    return why;
  };
  if (const Status owned = journal::check_owner_of_group(group, file); !owned.ok())
    return unconfirmed(owned);
  // Nothing is lost by it: whoever finds the journal to be his own takes the permission away.
  PAWL_TRY(journal::check_writers_of_group(group, file));
  const Status numbered = journal::check_number(file, group.journal_path(), header.listed, number);
  if (numbered.error_number() == EBADMSG) return unconfirmed(numbered);
  // Files that changed names have lost nothing, so nothing is given up.
  if (!numbered.ok()) return numbered;
  auto side = acquire_journal(file, false);
  auto is_left = journal::is_left_to_recover(group, file, header.journal_id, listed, accept_loss);
  if (!is_left.ok()) return is_left.status();
  if (!is_left.value()) return std::unique_ptr<MediumFile>();
  if (!side.ok()) {
    const bool is_unbelievable = side.status().error_number() == EBADMSG;
    if (side.status().error_number() != ENOENT && !is_unbelievable) return side.status();
    return unconfirmed(Status::failure(
        is_unbelievable ? EBADMSG : ENODATA,
        is_unbelievable ? side.status().code() : PAWL_ERROR_GROUP_FILE_MISSING,
        side.status().text() + ", and " + group.journal_path() +
            " has commits of the file. Put the file's own side file back; to recover the others "
            "of the group without it, use pawl recover --accept-loss FILE"));
  }
  Status confirmed = journal::check_owner_of_side_file(side.value(), file);
  if (confirmed.ok()) {
    auto is_outside = journal::is_outside(*side.value().file, header.journal_id);
    if (!is_outside.ok()) return is_outside.status();
    if (is_outside.value()) return std::move(side.value().file);

    confirmed = journal::check_membership(file, *side.value().file, group, header.journal_id,
                                          number, if_cut(accept_loss));
  }
  if (!confirmed.ok()) return unconfirmed(confirmed);
  PAWL_TRY(journal::check_bond(file, {.journal_id = header.journal_id},
                               {.is_of_group = true, .accept_loss = accept_loss}));
  return std::move(side.value().file);
}

// All files of a group, of whose file the journal is.
Result<journal::Replayed> replay_members(Medium& group, MediumFile& journal, const Header& header,
                                         bool accept_loss) {
  std::vector<std::unique_ptr<Medium>> media;      // with the writers' locks
  std::vector<std::unique_ptr<MediumFile>> sides;  // of each
  std::vector<journal::FileToReplay> files;        // but for those that have all commits
  for (const journal::GroupFile& listed : header.listed.files) {
    auto medium = group.open_sibling(listed.name);
    if (!medium.ok()) {
      if (!is_gone(medium.status())) return medium.status();
      if (accept_loss) continue;
      return lost_sight_of(group, listed.name, medium.status(), "Put it back");
    }
    auto is_left =
        journal::is_left_to_recover(group, *medium.value(), header.journal_id, listed, accept_loss);
    const int refused = is_left.status().error_number();
    if (accept_loss && (refused == ENODATA || refused == EBADMSG)) continue;
    if (!is_left.ok()) return is_left.status();
    if (!is_left.value()) continue;
    auto side = confirmed_side_file(group, header, *medium.value(), listed, accept_loss);
    if (!side.ok()) return side.status();
    if (side.value() == nullptr) continue;
    auto is_outside = journal::is_outside(*side.value(), header.journal_id);
    if (!is_outside.ok()) return is_outside.status();
    if (!is_outside.value()) files.push_back({listed.number, medium.value().get()});
    sides.push_back(std::move(side.value()));
    media.push_back(std::move(medium.value()));
  }
  auto replayed = journal::replay_group(group, journal, files, accept_loss);
  if (!replayed.ok()) return replayed.status();
  for (std::size_t i = 0; i < media.size(); ++i) {
    auto found = header_of(*sides[i], accept_loss);
    if (!found.ok()) return found.status();
    PAWL_TRY(found.value().listed.role == journal::Role::member
                 ? end_membership(*media[i], *sides[i], found.value())
                 : claim_and_let_go_of(*media[i], header.journal_id));
  }
  return replayed;
}

// What waits in a side file that was acquired; both it and the mark go.
Result<std::uint64_t> recover_with(Medium& medium, JournalFile& side, bool accept_loss) {
  MediumFile& file = *side.file;
  const auto header = header_of(file, accept_loss);
  // What could not be read may be the journal of a group, with the commits of others.
  if (!header.ok()) return journal::with_journal_name(medium, header.status());
  const journal::Role role = header.value().listed.role;
  if (role != journal::Role::file) PAWL_TRY(journal::check_owner_of_side_file(side, medium));
  if (role == journal::Role::member)
    return recover_member(medium, file, header.value(), accept_loss);
  auto replayed = role == journal::Role::group
                      ? replay_members(medium, file, header.value(), accept_loss)
                      : journal::replay(medium, file, accept_loss);
  if (!replayed.ok()) return replayed.status();
  const Status claimed = take_over_mark(medium, replayed.value().journal_id);
  // Even to remove the mark may take space: on a full disk the journal gives back its own first.
  const bool is_full = is_want_of_space(claimed.error_number());
  if (!claimed.ok() && !is_full) return claimed;
  // One without a ring is empty, and on a full disk gets none.
  if (!header.value().has_ring) {
    PAWL_TRY(claimed);
    PAWL_TRY(let_go_of(medium));
    return replayed.value().records;
  }
  // The journal is emptied, durably, before the mark goes: a crash in between finds nothing to do.
  auto emptied =
      journal::Journal::format(std::move(side.file), replayed.value().journal_id, medium.identity(),
                               replayed.value().generation, replayed.value().next_sequence,
                               kJournalSizeMin, medium.block_bytes());
  if (!emptied.ok()) return emptied.status();
  if (is_full) {
    PAWL_TRY(emptied.value()->give_all_space_back());
    PAWL_TRY(take_over_mark(medium, replayed.value().journal_id));
  }
  PAWL_TRY(let_go_of(medium, *emptied.value()));
  return replayed.value().records;
}

// A file whose journal is given up, if it has none that anybody could still find; and one that was
// only about to be opened, which loses nothing.  Under the lock of a journal of our own, so that no
// writer begins meanwhile.
Status give_up_mark(Medium& medium, bool is_opening) {
  auto held = acquire_journal(medium, true);
  if (!held.ok()) return held.status();
  if (!held.value().is_new) return they_come_and_go(medium);
  if (is_opening) return claim_and_let_go_of(medium, std::nullopt);
  auto mark = medium.mark();
  if (!mark.ok()) return mark.status();
  if (!mark.value().has_value()) return they_come_and_go(medium);
  auto sought = medium.seek_journal(*mark.value());
  if (!sought.ok()) return sought.status();
  if (!journal::may_be_given_up(sought.value()))
    return journal::missing_journal(medium, *mark.value());
  // What was sought is what the mark names now; who comes from here on sees our notice.
  return claim_and_let_go_of(medium, mark.value()->journal_id);
}

}  // namespace

Status unmark(Medium& medium) {
  PAWL_TRY(medium.clear_mark());
  return medium.base().flush();
}

namespace {

// To remove an attribute takes space on some file systems (XFS), and the journal has some.
template <class Call>
Status with_space_of(journal::Journal& journal, const Call& call) {
  Status done = call();
  if (!is_want_of_space(done.error_number())) return done;
  PAWL_TRY(journal.give_all_space_back());
  return call();
}

}  // namespace

Status unmark(Medium& medium, journal::Journal& journal) {
  return with_space_of(journal, [&] { return unmark(medium); });
}

Status let_go_of(Medium& medium) {
  PAWL_TRY(unmark(medium));
  return medium.remove_journal();
}

Status let_go_of(Medium& medium, journal::Journal& journal) {
  return with_space_of(journal, [&] { return let_go_of(medium); });
}

bool is_gone(const Status& status) {
  switch (status.error_number()) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case EISDIR:
    case ENODEV:
      return true;
    default:
      return false;
  }
}

Result<OpenJournal> recovered_journal(Medium& medium) {
  for (int attempt = 0; attempt < kAcquireAttemptsMax; ++attempt) {
    auto acquired = existing_journal(medium);
    if (!acquired.ok() && acquired.status().error_number() == ENOENT)
      acquired = acquire_journal(medium, true);
    if (!acquired.ok()) return acquired.status();
    JournalFile& side = acquired.value();
    OpenJournal journal;
    journal.is_new = side.is_new;
    if (side.is_new) {
      PAWL_TRY(retire_earlier_journal(medium));
      journal.file = std::move(side.file);
      return journal;
    }
    // Its owner may go on to write to it: it is replayed, and another takes its place.
    const auto replace = [&] { return recover_with(medium, side, false).status(); };
    if (side.owner == SideFileOwner::other) {
      PAWL_TRY(replace());
      continue;
    }
    const auto header = header_of(*side.file, false);
    if (!header.ok()) return journal::with_journal_name(medium, header.status());
    if (header.value().listed.role == journal::Role::group) {
      return Status::failure(EINVAL, PAWL_ERROR_NAMES_GROUP,
                             medium.path() +
                                 " names a group of files, which a crash left open; open "
                                 "the group, or recover it with pawl recover");
    }
    if (header.value().listed.role == journal::Role::member) {
      // Under an id of its own from now on: the group's journal may still have records of it.
      auto recovered = recover_member(medium, *side.file, header.value(), false);
      if (!recovered.ok()) return recovered.status();
      continue;
    }
    auto replayed = journal::replay(medium, *side.file);
    if (!replayed.ok()) return replayed.status();
    if (medium.adopt_journal(side.owner) == SideFileOwner::other) {
      PAWL_TRY(replace());
      continue;
    }
    PAWL_TRY(retire_earlier_journal(medium));
    journal.file = std::move(side.file);
    journal.replayed = replayed.value();
    return journal;
  }
  return they_come_and_go(medium);
}

Result<JournalFile> fresh_journal(Medium& medium) {
  auto recovered = recover(medium);
  if (!recovered.ok()) return recovered.status();
  auto acquired = acquire_journal(medium, true);
  if (!acquired.ok()) return acquired.status();
  if (!acquired.value().is_new) return they_come_and_go(medium);
  return acquired;
}

Result<std::uint64_t> recover(Medium& medium, bool accept_loss) {
  auto acquired = existing_journal(medium);
  if (!acquired.ok()) {
    auto mark = medium.mark();
    if (!mark.ok()) return mark.status();
    const bool is_missing = acquired.status().error_number() == ENODATA;
    const bool was_opening = acquired.status().error_number() == ENOENT &&
                             mark.value().has_value() && mark.value()->is_opening;
    if (!was_opening && !(is_missing && accept_loss)) {
      if (acquired.status().error_number() != ENOENT) return acquired.status();
      PAWL_TRY(medium.check_has_no_writer());
      return std::uint64_t{0};
    }
    PAWL_TRY(give_up_mark(medium, was_opening));
    return std::uint64_t{0};
  }
  return recover_with(medium, acquired.value(), accept_loss);
}

namespace {

// The group that the file was left in.  Null: in none, or that cannot be told; recovery of the file
// itself says why.
std::unique_ptr<Medium> group_left_with(Medium& medium) {
  auto side = medium.read_journal();
  if (!side.ok()) return nullptr;
  const auto header = header_of(*side.value(), false);
  if (!header.ok() || header.value().listed.role != journal::Role::member) return nullptr;
  auto is_its_mark = carries_mark_of(medium, header.value().journal_id);
  if (!is_its_mark.ok() || !is_its_mark.value()) return nullptr;
  auto group = medium.open_group(header.value().listed.files.front().name);
  if (!group.ok() || !journal::check_owner_of_group(*group.value(), medium).ok()) return nullptr;
  auto journal = group.value()->read_journal();
  if (!journal.ok() ||
      !check_group(*journal.value(), *group.value(), medium, header.value(), false).ok())
    return nullptr;
  return std::move(group.value());
}

}  // namespace

Result<std::uint64_t> recover_with_group(Medium& medium) {
  if (const auto group = group_left_with(medium)) {
    auto recovered = recover(*group);
    // What stands in its way may be mended; that is left as it is, and this file is recovered.
    if (recovered.status().error_number() == EBUSY) return recovered;
  }
  return recover(medium);
}

}  // namespace pawl
