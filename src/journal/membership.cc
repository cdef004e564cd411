#include "journal/membership.h"

#include <algorithm>
#include <cerrno>

#include "journal/reader.h"
#include "journal/replay.h"
#include "medium/law.h"

namespace pawl::journal {
namespace {

constexpr std::uint32_t kRoot = 0;

Status no_member(const Medium& file, const Medium& group, const std::string& why) {
  return Status::failure(
      EBADMSG, PAWL_ERROR_GROUP_MISMATCH,
      group.journal_path() + " lists " + file.path() + ", and " + file.journal_path() +
          " does not confirm it: " + why +
          ". Nothing was changed. If the file is of this group, put its own side file "
          "back; to recover the others without it, use pawl recover --accept-loss FILE");
}

bool is_group_of(Medium& file, const std::string& name, const Medium& group) {
  auto found = file.open_group(name);
  return found.ok() && found.value()->identity() == group.identity();
}

// Its mark is that of the file that it is a copy of.
Result<bool> is_copy(Medium& medium) {
  auto mark = medium.mark();
  if (!mark.ok()) return mark.status();
  return mark.value().has_value() && mark.value()->file != FileIdentity{} &&
         !mark.value()->file.may_be(medium.identity());
}

bool carries_mark(const std::optional<Mark>& mark) { return mark.has_value() && !mark->is_opening; }

Status not_marked(Medium& file, const std::string& name) {
  return Status::failure(
      EBADMSG, PAWL_ERROR_GROUP_MISMATCH,
      file.journal_path() + " says that " + file.path() + " is in the group " + name + ", and " +
          file.path() +
          " does not carry the group's mark (attribute user.pawl): it is another file, or a copy "
          "without attributes, or the mark was removed. Commits may stand in the group's journal "
          "only. Nothing was changed. Put back the file that was in the group; copy a group with "
          "all its attributes (cp --preserve=all); or, to take what can be read and accept the "
          "loss of the rest, use pawl recover --accept-loss FILE");
}

}  // namespace

Result<bool> may_lack_commits(Medium& file, const JournalId& journal_id, const std::string& name,
                              bool accept_loss) {
  auto found = file.mark();
  if (!found.ok()) return found.status();
  const std::optional<Mark>& mark = found.value();
  if (carries_mark(mark) && mark->journal_id == journal_id) return true;
  // The journal of another id may hold commits of the file, whatever is accepted.
  if (carries_mark(mark)) {
    return check_bond(file, {.journal_id = journal_id},
                      {.is_of_group = true, .accept_loss = accept_loss});
  }
  const auto side = file.journal_identity();
  if (!side.ok()) return side.status();
  if (mark.has_value() && mark->journal == side.value()) return false;
  if (accept_loss) return true;
  return not_marked(file, name);
}

namespace {

// Of a file that has the listed inode, and no mark of the group, or that of a later life.
Result<bool> lost_its_mark(Medium& file, const JournalId& journal_id, bool accept_loss) {
  auto side = file.read_journal();
  if (side.status().error_number() == ENOENT) return false;
  if (!side.ok()) return side.status();
  auto reader = Reader::open(*side.value());
  if (!reader.ok()) {
    return reader.status().prefixed(file.journal_path() + ": ");
  }
  const Listed& listed = reader.value().listed();
  if (listed.role != Role::member || reader.value().header().journal_id != journal_id) return false;
  return may_lack_commits(file, journal_id, listed.files.front().name, accept_loss);
}

// In a copy of the whole group a file that was recovered alone has no mark, and an inode that
// nobody could list; its side file is gone, or says so.
Result<bool> was_recovered_in_copy(Medium& group, Medium& file, const JournalId& journal_id) {
  auto copied = is_copy(group);
  if (!copied.ok() || !copied.value()) return copied;
  auto side = file.read_journal();
  if (side.ok()) return is_outside(*side.value(), journal_id);
  if (side.status().error_number() == ENOENT) return true;
  return side.status();
}

}  // namespace

Result<bool> is_outside(MediumFile& side, const JournalId& journal_id) {
  auto reader = Reader::open(side);
  if (is_no_journal(reader.status())) return false;
  if (!reader.ok()) return reader.status();
  if (reader.value().listed().role != Role::file ||
      reader.value().header().journal_id != journal_id)
    return false;
  // One that has commits of the file is no word about a group, whatever id the group has.
  const auto record = reader.value().next();
  if (!record.ok()) return record.status();
  return !record.value().has_value();
}

Status check_owner_of_group(Medium& group, Medium& file) {
  if (is_broken(Law::members_of_the_group)) return {};
  auto of_group = group.owner();
  if (!of_group.ok()) return of_group.status();
  auto of_file = file.owner();
  if (!of_file.ok()) return of_file.status();
  if (of_group.value() == of_file.value() || of_group.value() == kRoot) return {};
  return Status::failure(
      EPERM, PAWL_ERROR_GROUP_OTHER_OWNER,
      group.path() + " belongs to user " + std::to_string(of_group.value()) + ", and " +
          file.path() + " to user " + std::to_string(of_file.value()) +
          "; a group has files of its own owner only. Give the group's file and its journal "
          "the owner of the file, or make the group as root");
}

Status check_owner_of_side_file(const JournalFile& side, const Medium& medium) {
  if (side.owner == SideFileOwner::of_file || is_broken(Law::members_of_the_group)) return {};
  return Status::failure(
      EPERM, PAWL_ERROR_GROUP_OTHER_OWNER,
      medium.journal_path() + " belongs to another user than " + medium.path() +
          "; a group takes files of the user who opens it. Use the file outside of the "
          "group, or as its owner or root");
}

Status check_writers_of_group(Medium& group, Medium& file) {
  if (is_broken(Law::members_of_the_group)) return {};
  auto rights = group.journal_rights();
  if (!rights.ok()) return rights.status();
  if (!rights.value().has_value()) return {};
  return file.check_writers_of_journal(*rights.value(), group.journal_path());
}

Status check_membership(Medium& file, MediumFile& side, Medium& group, const JournalId& journal_id,
                        std::uint64_t number, IfCut if_cut) {
  if (is_broken(Law::members_of_the_group)) return {};
  auto reader = Reader::open(side, if_cut);
  if (!reader.ok()) return no_member(file, group, reader.status().text());
  const Listed& listed = reader.value().listed();
  if (listed.role != Role::member) {
    return no_member(file, group, "it is the journal of a file, or of a group");
  }
  if (reader.value().header().journal_id != journal_id)
    return no_member(file, group, "it names another life of the group, or another group");
  const GroupFile& named = listed.files.front();
  if (named.number != number) return no_member(file, group, "it gives the file another number");
  if (!is_group_of(file, named.name, group))
    return no_member(file, group, "it names the group " + named.name);
  return {};
}

Result<bool> is_left_to_recover(Medium& group, Medium& file, const JournalId& journal_id,
                                const GroupFile& listed, bool accept_loss) {
  auto found = file.mark();
  if (!found.ok()) return found.status();
  const std::optional<Mark>& mark = found.value();
  if (carries_mark(mark) && mark->journal_id == journal_id) return true;
  // A copy has another inode, and its mark has that of what it is a copy of.
  const bool is_the_listed_one =
      file.identity() == listed.identity || (mark.has_value() && mark->file == listed.identity);
  if (is_broken(Law::members_of_the_group)) return false;
  if (is_the_listed_one) return lost_its_mark(file, journal_id, accept_loss);
  auto recovered = was_recovered_in_copy(group, file, journal_id);
  if (!recovered.ok()) return recovered.status();
  if (recovered.value()) return false;
  return Status::failure(
      ENODATA, PAWL_ERROR_GROUP_FILE_REPLACED,
      group.path() + " was left open by a crash together with " + file.path() +
          ", which was inode " + std::to_string(listed.identity.inode) +
          " then; what has that name now is another file, or a copy without the mark. "
          "Nothing was changed. Put the file back under that name; or, if it has all that "
          "it needs, or to accept the loss of its commits, use pawl recover --accept-loss FILE");
}

Status check_number(Medium& file, const std::string& journal_path, const Listed& of_group,
                    std::uint64_t number) {
  if (is_broken(Law::members_of_the_group)) return {};
  auto mark = file.mark();
  if (!mark.ok()) return mark.status();
  const bool is_marked = carries_mark(mark.value());
  // The mark of a copy has the inode of what it is a copy of, and so has a copy of the list.
  const FileIdentity known_as = is_marked ? mark.value()->file : file.identity();
  const auto listed =
      std::find_if(of_group.files.begin(), of_group.files.end(), [&](const GroupFile& one) {
        return known_as == FileIdentity{} ? one.number == number : one.identity == known_as;
      });
  if (listed == of_group.files.end()) {
    return Status::failure(
        EBADMSG, PAWL_ERROR_GROUP_MISMATCH,
        journal_path + " does not list " + file.path() +
            ", which carries its mark. Nothing was changed. Restore the files of the "
            "group and its journal from a copy; or, to accept the loss of commits, use "
            "pawl recover --accept-loss FILE");
  }
  if (listed->number == number) return {};
  return Status::failure(
      ENODATA, PAWL_ERROR_GROUP_FILE_RENAMED,
      file.path() + " is a file of a group under another name: " + journal_path + " lists it as " +
          listed->name +
          ", and what it has now is the name, or the side file, of another file of the "
          "group. Give it back its name, and its own side file beside it. Nothing is lost");
}

namespace {

Status if_missing(Status failure) {
  if (failure.error_number() != ENOENT) return failure;
  return Status::failure(ENODATA, PAWL_ERROR_GROUP_FILE_MISSING, failure.text());
}

}  // namespace

Status check_listed_files(Medium& group, const JournalId& journal_id, const Listed& listed) {
  for (const GroupFile& one : listed.files) {
    auto file = group.open_sibling(one.name);
    if (!file.ok()) {
      return if_missing(file.status().prefixed(group.journal_path() + " lists " + one.name + ": "));
    }
    auto is_left = is_left_to_recover(group, *file.value(), journal_id, one);
    if (!is_left.ok()) return is_left.status();
    if (!is_left.value()) continue;
    PAWL_TRY(check_owner_of_group(group, *file.value()));
    PAWL_TRY(check_writers_of_group(group, *file.value()));
    PAWL_TRY(check_number(*file.value(), group.journal_path(), listed, one.number));
    auto side = file.value()->read_journal();
    if (!side.ok()) return if_missing(side.status());
    auto outside = is_outside(*side.value(), journal_id);
    if (!outside.ok()) return outside.status();
    if (outside.value()) continue;
    PAWL_TRY(check_membership(*file.value(), *side.value(), group, journal_id, one.number));
    PAWL_TRY(check_bond(*file.value(), {.journal_id = journal_id}, {.is_of_group = true}));
  }
  return {};
}

}  // namespace pawl::journal
