#include "journal/membership.h"

#include <cerrno>

#include "journal/reader.h"
#include "medium/law.h"

namespace pawl::journal {
namespace {

constexpr std::uint32_t kRoot = 0;

Status no_member(const Medium& file, const Medium& group, const std::string& why) {
  return Status::failure(
      EBADMSG, group.journal_path() + " lists " + file.path() + ", and " + file.journal_path() +
                   " does not confirm it: " + why +
                   ". Nothing was changed. If the file is of this group, put its own side file "
                   "back; to recover the others without it, use pawl recover --accept-loss");
}

bool is_same_file(Medium& viewer, const std::string& name, const Medium& file) {
  auto found = viewer.open_sibling(name);
  return found.ok() && found.value()->identity() == file.identity();
}

}  // namespace

Status check_owner_of_group(Medium& group, Medium& file) {
  if (is_broken(Law::members_of_the_group)) return {};
  auto of_group = group.owner();
  if (!of_group.ok()) return of_group.status();
  auto of_file = file.owner();
  if (!of_file.ok()) return of_file.status();
  if (of_group.value() == of_file.value() || of_group.value() == kRoot) return {};
  return Status::failure(
      EPERM, group.path() + " belongs to user " + std::to_string(of_group.value()) + ", and " +
                 file.path() + " to user " + std::to_string(of_file.value()) +
                 "; a group has files of its own owner only. Give the group's file and its journal "
                 "the owner of the file, or make the group as root");
}

Status check_owner_of_side_file(const JournalFile& side, const Medium& medium) {
  if (side.owner == SideFileOwner::of_file || is_broken(Law::members_of_the_group)) return {};
  return Status::failure(
      EPERM, medium.journal_path() + " belongs to another user than " + medium.path() +
                 "; a group takes files of the user who opens it. Use the file outside of the "
                 "group, or as its owner or root");
}

Status check_membership(Medium& file, MediumFile& side, Medium& group, const JournalId& journal_id,
                        std::uint64_t number) {
  if (is_broken(Law::members_of_the_group)) return {};
  auto reader = Reader::open(side);
  if (!reader.ok()) return no_member(file, group, reader.status().text());
  const Listed& listed = reader.value().listed();
  if (listed.role != Role::member) {
    return no_member(file, group, "it is the journal of a file, or of a group");
  }
  if (reader.value().header().journal_id != journal_id)
    return no_member(file, group, "it names another life of the group, or another group");
  const GroupFile& named = listed.files.front();
  if (named.number != number) return no_member(file, group, "it gives the file another number");
  if (!is_same_file(file, named.name, group))
    return no_member(file, group, "it names the group " + named.name);
  return {};
}

Status check_listed_files(Medium& group, const JournalId& journal_id, const Listed& listed) {
  for (const GroupFile& one : listed.files) {
    auto file = group.open_sibling(one.name);
    if (!file.ok()) {
      return Status::failure(
          file.status().error_number() == ENOENT ? ENODATA : file.status().error_number(),
          group.journal_path() + " lists " + one.name + ": " + file.status().text());
    }
    auto mark = file.value()->mark();
    if (!mark.ok()) return mark.status();
    if (!mark.value().has_value() || mark.value()->journal_id != journal_id) continue;
    PAWL_TRY(check_owner_of_group(group, *file.value()));
    auto side = file.value()->read_journal();
    if (!side.ok()) {
      return Status::failure(
          side.status().error_number() == ENOENT ? ENODATA : side.status().error_number(),
          side.status().text());
    }
    PAWL_TRY(check_membership(*file.value(), *side.value(), group, journal_id, one.number));
  }
  return {};
}

}  // namespace pawl::journal
