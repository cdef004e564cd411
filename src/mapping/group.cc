#include "mapping/group.h"

#include <fcntl.h>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <new>

#include "journal/membership.h"
#include "mapping/file_turn.h"
#include "mapping/implementation.h"
#include "mapping/open_mappings.h"
#include "mapping/recovery.h"
#include "medium/block_medium.h"
#include "medium/fork_guard.h"
#include "medium/parked_descriptors.h"

namespace pawl {

std::string name_as_seen_from(const Medium& viewer, const Medium& file) {
  // A directory above may have been renamed.
  const auto path_of = [](const Medium& medium) {
    const std::string name = name_in_force(medium.base_descriptor());
    return std::filesystem::path(name.empty() ? medium.path() : name);
  };
  return path_of(file).lexically_relative(path_of(viewer).parent_path()).string();
}

Group::Group(std::unique_ptr<Medium> medium, std::unique_ptr<journal::Journal> journal,
             std::unique_ptr<journal::FlushBudget> budget, const Options& options)
    : medium_(std::move(medium)),
      options_(options),
      log_(std::move(journal), options.apply_threshold_pages, std::move(budget)) {
  log_.journal().keep_what_is_held([this] { return medium_->first_held_record(); });
  guard_fork(this,
             {.before = [] {}, .in_parent = [] {}, .in_child = [this] { abandoned_.store(true); }});
  try {
    open_mappings::add_file(this, medium_->device(), medium_->identity().inode, "a group");
  } catch (...) {
    forget_fork_guard(this);
    throw;
  }
}

Group::~Group() {
  open_mappings::remove_file(this);
  forget_fork_guard(this);
}

Status Group::usable() const {
  if (is_in_child()) {
    return Status::failure(EPERM, PAWL_ERROR_FORKED_CHILD,
                           "this process was forked from the one that opened the group " +
                               medium_->path() + "; open it in the process that commits");
  }
  if (closed_.load())
    return Status::failure(EINVAL, PAWL_ERROR_CLOSED,
                           "the group " + medium_->path() + " is closed; open it again");
  if (log_.failures().has_final()) {
    return Status::failure(
        EIO, PAWL_ERROR_MAPPING_BROKEN,
        "the group " + medium_->path() +
            " takes no more commits since a failure that may have lost bytes: " +
            log_.failures().final_text() +
            ". Unmap its files and close it; the next open recovers its last durable state");
  }
  return {};
}

Result<std::shared_ptr<Group>> Group::open(std::unique_ptr<Medium> medium, const Options& options) {
  PAWL_TRY(options.validate());
  const FileTurn turn(FileTurn::To::open_or_close, *medium);
  if (medium->base().in_place() != nullptr) {
    return Status::failure(EOPNOTSUPP, PAWL_ERROR_UNSUPPORTED_FILE_SYSTEM,
                           medium->path() +
                               " is in persistent memory, where files do not form groups; open it "
                               "as a file on a disk (PAWL_MEDIUM=block)");
  }
  if (!medium->can_mark()) {
    return Status::failure(EOPNOTSUPP, PAWL_ERROR_UNSUPPORTED_FILE_SYSTEM,
                           medium->path() +
                               " is on a file system without user attributes, which "
                               "a group needs");
  }
  const auto check_is_empty = [&]() -> Status {
    auto size = medium->base().size();
    if (!size.ok()) return size.status();
    if (size.value() == 0) return {};
    return Status::failure(EINVAL, medium->path() + " has " + std::to_string(size.value()) +
                                       " bytes; a file that names a group is empty. Choose "
                                       "another name for the group");
  };
  PAWL_TRY(check_is_empty());
  auto file = fresh_journal(*medium);
  if (!file.ok()) return file.status();
  // Recovery may have given it some.
  PAWL_TRY(check_is_empty());
  PAWL_TRY(journal::check_owner_of_side_file(file.value(), *medium));
  PAWL_TRY(medium->keep_journal_private());
  auto list = journal::encode({journal::Role::group, {}});
  if (!list.ok()) return list.status();
  const auto drawn = journal::random_journal_id();
  if (!drawn.ok()) return drawn.status();
  const JournalId& id = drawn.value();
  PAWL_TRY(medium->claim(id));
  const auto give_up = [&](const Status& status) -> Status {
    [[maybe_unused]] const Status ignored = let_go_of(*medium);
    return status;
  };
  auto journal = journal::Journal::format(std::move(file.value().file), id, medium->identity(), 0,
                                          1, options.first_journal_bytes(0), medium->block_bytes(),
                                          std::move(list.value()));
  if (!journal.ok()) {
    return give_up(no_journal("cannot make the journal of a group", options.first_journal_bytes(0),
                              journal.status()));
  }
  journal.value()->may_grow_to(options.journal_bytes_max());
  auto budget = budget_of(*medium, *journal.value(), options);
  if (!budget.ok()) return give_up(budget.status());
  if (const Status named = medium->publish_journal(); !named.ok()) return give_up(named);
  if (const Status marked = medium->set_mark({id, medium->journal_path()}); !marked.ok())
    return give_up(marked);
  if (const Status flushed = medium->base().flush(); !flushed.ok()) return give_up(flushed);
  return std::shared_ptr<Group>(
      new Group(std::move(medium), std::move(journal.value()), std::move(budget.value()), options));
}

Result<std::unique_ptr<Medium>> Group::open_medium(const std::string& path) {
  constexpr int kMode = 0666;  // less the umask
  auto medium = open_block_medium(path, false);
  if (medium.status().error_number() == ENOENT) {
    // Made under this very name: a symbolic link of another user may lead to where nothing is yet.
    const parked_descriptors::OpenedFile made(path, O_RDWR | O_CREAT | O_EXCL, kMode);
    // EEXIST: another process was first.
    if (!made.valid() && errno != EEXIST)
      return FailedCall{errno, "cannot open or make the group's file " + path};
    medium = open_block_medium(path, false);
  }
  return medium;
}

Result<std::shared_ptr<Group>> Group::open(const std::string& path, const Options& options) {
  auto medium = open_medium(path);
  if (!medium.ok()) return medium.status();
  return open(std::move(medium.value()), options);
}

std::size_t Group::files() const {
  const std::lock_guard lock(log_.mutex());
  return members_.size();
}

Status Group::change_list() {
  try {
    journal::Listed listed{journal::Role::group, {}};
    for (const Member& member : members_) {
      if (!member.is_aside) listed.files.push_back(member.listed);
    }
    auto list = journal::encode(listed);
    if (!list.ok()) return list.status();
    return log_.failures().note(log_.journal().change_list(std::move(list.value())));
  } catch (const std::bad_alloc&) {
    return Status::no_memory("no memory to list the files of the group");
  }
}

Status Group::limit_journal(Medium& file) {
  auto rights = file.rights();
  if (!rights.ok()) return rights.status();
  return rights.value().has_value() ? medium_->limit_journal(*rights.value()) : Status{};
}

Result<std::uint64_t> Group::list(const Medium& file) {
  // Records before this one are all in the images, and the new image begins behind them.
  PAWL_TRY(log_.batches().wait());
  std::uint64_t number = 1;
  auto place = members_.begin();
  for (; place != members_.end() && place->listed.number == number; ++place) number += 1;
  if (number > journal::kGroupFilesMax) {
    return Status::failure(ENFILE, PAWL_ERROR_TOO_MANY,
                           "the group " + medium_->path() + " has " +
                               std::to_string(journal::kGroupFilesMax) +
                               " files already; unmap one of them first");
  }
  const auto entered = members_.insert(
      place, Member{{number, file.identity(), name_as_seen_from(*medium_, file)}, nullptr});
  if (const Status changed = change_list(); !changed.ok()) {
    members_.erase(entered);
    return changed;
  }
  return number;
}

void Group::enter(std::uint64_t number, Mapping::Implementation& mapping) {
  for (Member& member : members_) {
    if (member.listed.number == number) member.mapping = &mapping;
  }
}

Status Group::list_again(std::uint64_t number, Mapping::Implementation& mapping) {
  const auto place = std::find_if(members_.begin(), members_.end(), [&](const Member& member) {
    return member.listed.number >= number;
  });
  if (place != members_.end() && place->listed.number == number) {
    PAWL_ASSERT(place->is_aside);
    place->is_aside = false;
    place->mapping = &mapping;
  } else {
    const Medium& file = *mapping.medium_;
    members_.insert(place,
                    Member{{number, file.identity(), name_as_seen_from(*medium_, file)}, &mapping});
  }
  return change_list();
}

void Group::forget(const Mapping::Implementation& mapping) {
  for (Member& member : members_) {
    if (member.mapping == &mapping) member.mapping = nullptr;
  }
}

void Group::erase(std::uint64_t number) noexcept {
  std::erase_if(members_,
                [number](const Member& member) { return member.listed.number == number; });
}

Status Group::strike(std::uint64_t number) {
  erase(number);
  return change_list();
}

Status Group::set_aside(std::uint64_t number) {
  for (Member& member : members_) {
    if (member.listed.number != number) continue;
    member.is_aside = true;
    member.mapping = nullptr;
  }
  return change_list();
}

std::vector<Mapping::Implementation*> Group::mappings() const {
  std::vector<Mapping::Implementation*> all;
  for (const Member& member : members_) {
    if (member.mapping != nullptr && !member.mapping->closed_.load()) all.push_back(member.mapping);
  }
  return all;
}

Result<std::unique_ptr<Mapping>> Group::join(const std::shared_ptr<Group>& group,
                                             std::unique_ptr<Medium> medium) {
  return Mapping::Implementation::open_in(group, std::move(medium));
}

// One call at a time, on a group that takes calls.  In a forked child the lock may be held for
// ever, so that is asked first.
template <class Call>
Status Group::in_order(Call call) {
  if (is_in_child()) return usable();
  const std::lock_guard lock(log_.mutex());
  PAWL_TRY(usable());
  const auto files = mappings();
  if (files.empty()) return {};
  return log_.failures().note(call(files));
}

Status Group::commit() {
  return in_order([](const auto& files) {
    return Mapping::Implementation::commit_whole(files, Mapping::Implementation::Durability::now);
  });
}

Status Group::commit_async() {
  return in_order([](const auto& files) {
    return Mapping::Implementation::commit_whole(files,
                                                 Mapping::Implementation::Durability::queued);
  });
}

Status Group::wait() {
  if (is_in_child()) return usable();
  Status waited = log_.batches().wait();
  PAWL_TRY(usable());
  return waited;
}

Status Group::roll_back() {
  return in_order([](const auto& files) -> Status {
    for (Mapping::Implementation* file : files)
      PAWL_TRY(file->roll_back_locked(0, ~std::uint64_t{0}, true));
    return {};
  });
}

Status Group::close() {
  if (is_in_child()) return usable();
  const std::lock_guard lock(log_.mutex());
  if (closed_.load())
    return Status::failure(EINVAL, PAWL_ERROR_CLOSED,
                           "the group " + medium_->path() + " is closed already");
  const auto mapped = std::count_if(members_.begin(), members_.end(),
                                    [](const Member& member) { return member.mapping != nullptr; });
  if (mapped > 0) {
    return Status::failure(EBUSY, PAWL_ERROR_STILL_OPEN,
                           std::to_string(mapped) + " files of the group " + medium_->path() +
                               " are still mapped; unmap them first");
  }
  closed_.store(true);
  if (log_.failures().has_final()) {
    // As after a crash: the next open finds out which file has what.
    return Status::failure(EIO, PAWL_ERROR_MAPPING_BROKEN,
                           "the group " + medium_->path() +
                               " ended with a failure: " + log_.failures().final_text() +
                               ". The next open recovers its last durable state");
  }
  return let_go_of(*medium_);
}

}  // namespace pawl
