// Calls that take a file's name away or give it another.  The side file stands beside the file
// under its name, so all that was committed is brought into the file first.  Crash at any point:
// the journal is beside its file, or has nothing of it.
//
// What gets another name is committed before, and taken up again under that: a program that
// prepares a file and renames it finds it prepared, as it would without Pawl.  What loses its name,
// removed or replaced, is not committed: until it is gone, it is as its last commit left it.
#include "preload/interpose.h"

#include <cerrno>

#include "mapping/border.h"
#include "preload/group.h"
#include "preload/inside.h"
#include "preload/lifecycle.h"
#include "preload/messages.h"
#include "preload/named_files.h"
#include "preload/parents_files.h"
#include "preload/patterns.h"
#include "preload/real.h"

namespace pawl::preload {
namespace {

struct Renaming {
  int old_directory;
  const char* old_path;
  int new_directory;
  const char* new_path;
  unsigned flags;
};

// The files that a rename takes along.
struct Moving {
  const Renaming& renaming;
  std::optional<std::string> to = {};           // asked for once there is one
  std::optional<Withdrawing> withdrawing = {};  // only where there may be one
  std::vector<TrackedFilePointer> files = {};
  bool is_directory = false;
};

Status find_landing(Moving& moving) {
  if (moving.to) return {};
  auto landing = path_to_be(moving.renaming.new_directory, moving.renaming.new_path);
  if (!landing.ok()) return landing.status();
  moving.to = std::move(landing.value());
  return {};
}

// Locked.
Status take_along(const TrackedFilePointer& file, Moving& moving, const std::string& path_after) {
  PAWL_TRY(check_takes_a_journal(path_after));
  moving.files.reserve(moving.files.size() + 1);  // nothing may fail once it is suspended
  PAWL_TRY(suspend(file, Mapping::Aside::is_renamed));
  moving.files.push_back(file);
  return {};
}

// Adds the file when it is tracked.
Status suspend_by_inode(const NamedFile& named, Moving& moving) {
  moving.withdrawing.emplace();
  const Held held = hold_inode(named.status.st_dev, named.status.st_ino);
  if (!held || held->is_lost) return {};
  PAWL_TRY(find_landing(moving));
  return take_along(held.file, moving, *moving.to);
}

bool is_tracked(const NamedFile& named) {
  return table::of_inode(named.status.st_dev, named.status.st_ino) != nullptr;
}

// Then the start lock is held while the file changes its name: no other thread takes it up, whose
// journal would stand under the name that it had.  Who holds a file does not wait for that lock.
bool may_start(const NamedFile& named) {
  return S_ISREG(named.status.st_mode) && matches_a_pattern(named.real_path);
}

// Then: another thread had taken it up just before, and it is to be suspended or set aside.
bool has_started(const NamedFile& named) {
  const auto present = table::of_inode(named.status.st_dev, named.status.st_ino);
  return present != nullptr && !present->is_lost;
}

// The file is about to lose this name; empty when it is not tracked.
Result<std::optional<SetAside>> before_removal(const NamedFile& named,
                                               std::optional<Withdrawing>& withdrawing) {
  if (!S_ISREG(named.status.st_mode)) return std::optional<SetAside>();
  // Another thread may map it meanwhile.
  if (is_tracked(named) || (has_group() && !table::is_empty())) withdrawing.emplace();
  if (Held file = hold_inode(named.status.st_dev, named.status.st_ino))
    return set_aside(std::move(file));
  // A live writer's file keeps its name; what cannot be recovered can still be removed.
  if (Status status = recover_if_left(named); is_in_use(status)) return status;
  return std::optional<SetAside>();
}

// After the call that was to take the name away.
void settle(std::optional<SetAside>& aside, bool is_gone, const char* call) {
  if (!aside) return;
  const int error_number = errno;
  if (is_gone) {
    let_go_of(*aside, call);
  } else {
    take_back(*aside, call);
  }
  errno = error_number;
}

// As before_removal(), by name.  Not inlined: the stacks of threads may be small, and settle()
// needs the room.
[[gnu::noinline]] Result<std::optional<SetAside>> before_removal_of(
    int directory, const char* path, std::optional<NamedFile>& named,
    std::optional<Withdrawing>& withdrawing, bool& is_missing) {
  auto found = look_up(directory, path, false);
  is_missing = errno == ENOENT;
  if (!found.ok()) return found.status();
  named = std::move(found.value());
  if (named) return before_removal(*named, withdrawing);
  return std::optional<SetAside>();
}

// Empty: another thread took the file up just before, and all is to be done anew.
std::optional<int> try_to_remove(const char* call, int directory, const char* path, int flags) {
  std::optional<NamedFile> named;
  std::optional<Withdrawing> withdrawing;
  bool is_missing = false;
  auto aside = before_removal_of(directory, path, named, withdrawing, is_missing);
  if (!aside.ok()) return refuse(call, aside.status());
  // In a moment another process may give the name to a file that it has mapped.
  if (!named && is_missing && flags == 0) {
    errno = ENOENT;
    return -1;
  }
  std::unique_lock<std::mutex> none_starts;
  if (named && !aside.value() && may_start(*named)) none_starts = std::unique_lock(start_lock());
  if (none_starts && has_started(*named)) return std::nullopt;
  const int outcome = real().unlinkat(directory, path, flags);
  settle(aside.value(), outcome == 0, call);
  return outcome;
}

// An attempt that answers nothing is made anew.
template <class Attempt>
int until_done(const char* call, const Attempt& try_it) {
  const Inside working;
  for (int attempt = 0; attempt < kNameAttemptsMax; ++attempt) {
    if (const std::optional<int> outcome = try_it()) return *outcome;
  }
  return refuse(call, leads_elsewhere_each_time());
}

int remove_name(const char* call, int directory, const char* path, int flags) {
  if (!in_own_process()) {
    if (refuse_parents_file(call, directory, path, AT_SYMLINK_NOFOLLOW) != 0) return -1;
    return real().unlinkat(directory, path, flags);
  }
  return until_done(call, [&] { return try_to_remove(call, directory, path, flags); });
}

// Files in a directory that is renamed change their paths with it; and all files of a group, whose
// journals name it by its path, where its own file is there.
Status suspend_beneath(const std::string& directory, Moving& moving) {
  if (table::is_empty()) return {};
  moving.withdrawing.emplace();
  const bool takes_all = path_of_open_group().starts_with(directory + "/");
  for (const TrackedFilePointer& file : table::all()) {
    const Held held = hold_file(file);
    if (!held || held->is_lost) continue;
    std::string name = present_name(*held);
    if (name.empty()) name = held->path;
    const bool is_beneath = name.starts_with(directory + "/");
    if (!is_beneath && !takes_all) continue;
    PAWL_TRY(find_landing(moving));
    if (is_beneath) name = *moving.to + name.substr(directory.size());
    PAWL_TRY(take_along(file, moving, name));
  }
  return {};
}

// The file, or what is beneath the directory, is about to change its name.
Status suspend_for_move(const NamedFile& named, Moving& moving) {
  moving.is_directory = S_ISDIR(named.status.st_mode);
  if (moving.is_directory) return suspend_beneath(named.real_path, moving);
  if (!S_ISREG(named.status.st_mode)) return {};
  if (is_tracked(named)) return suspend_by_inode(named, moving);
  // A journal left behind at the old name would be of no file.
  Status status = recover_if_left(named);
  return is_in_use(status) ? status : Status{};
}

// When the journals of all files that move are out of the way.  Beneath a directory journals move
// along.
Status check_lands_beside_no_journal(const Moving& moving) {
  if (moving.is_directory || moving.files.empty()) return {};
  return check_has_no_journal_beside(*moving.to);
}

// In a child that takes no locks.
int rename_as_child(const Renaming& renaming) {
  const auto is_refused = [](int directory, const char* path) {
    return refuse_parents_file("rename", directory, path, AT_SYMLINK_NOFOLLOW) != 0;
  };
  if (is_refused(renaming.old_directory, renaming.old_path)) return -1;
  if ((renaming.flags & RENAME_NOREPLACE) == 0 &&
      is_refused(renaming.new_directory, renaming.new_path))
    return -1;
  return real().renameat2(renaming.old_directory, renaming.old_path, renaming.new_directory,
                          renaming.new_path, renaming.flags);
}

bool lands_on_a_pattern(const Renaming& renaming) {
  if (!has_patterns()) return false;
  const auto path = path_to_be(renaming.new_directory, renaming.new_path);
  return path.ok() && matches_a_pattern(path.value());
}

// Empty: as with try_to_remove(), or the target has come to be since it was looked at.
std::optional<int> try_to_rename(const Renaming& renaming) {
  unsigned flags = renaming.flags;
  const auto pass_on = [&] {
    return real().renameat2(renaming.old_directory, renaming.old_path, renaming.new_directory,
                            renaming.new_path, flags);
  };
  const auto found = look_up(renaming.old_directory, renaming.old_path, false);
  if (!found.ok()) return refuse("rename", found.status());
  // In a moment another process may give the name to a file that it has mapped.
  if (!found.value() && errno == ENOENT && flags == 0) return -1;
  const auto found_target = look_up(renaming.new_directory, renaming.new_path, false);
  if (!found_target.ok()) return refuse("rename", found_target.status());
  const auto& source = found.value();
  const auto& target = found_target.value();
  if (!source) return pass_on();
  const bool same = target && target->status.st_dev == source->status.st_dev &&
                    target->status.st_ino == source->status.st_ino;
  if (same) return pass_on();
  const bool exchange = (renaming.flags & RENAME_EXCHANGE) != 0;
  const bool replaces = target && !exchange && (renaming.flags & RENAME_NOREPLACE) == 0;
  const bool must_be_first = !target && flags == 0 && lands_on_a_pattern(renaming);
  const bool source_may_start = may_start(*source);
  const bool target_may_start = (replaces || exchange) && target && may_start(*target);

  // Taken up again under their new names.  With an exchange both move at once, and the name of one
  // may begin with that of the other.
  Moving from_target{renaming, source->real_path};
  Moving from_source{renaming};
  const auto go_on = [&] {
    go_on_all(from_source.files, "rename");
    go_on_all(from_target.files, "rename");
  };
  const auto undo = [&](const Status& failure) {
    go_on();
    return refuse("rename", failure);
  };
  std::optional<Withdrawing> withdrawing;
  std::optional<SetAside> replaced;
  const Status prepared = at_border([&]() -> Status {
    PAWL_TRY(suspend_for_move(*source, from_source));
    if (target && exchange) PAWL_TRY(suspend_for_move(*target, from_target));
    if (target && replaces) {
      auto before = before_removal(*target, withdrawing);
      if (!before.ok()) return before.status();
      replaced = std::move(before.value());
    }
    if (!replaced) PAWL_TRY(check_lands_beside_no_journal(from_source));
    return check_lands_beside_no_journal(from_target);
  });
  if (!prepared.ok()) return undo(prepared);
  const bool source_is_free = source_may_start && from_source.files.empty();
  const bool target_is_free = target_may_start && from_target.files.empty() && !replaced;
  std::unique_lock<std::mutex> none_starts;
  if (source_is_free || target_is_free) {
    none_starts = replaced ? std::unique_lock(start_lock(), std::try_to_lock)
                           : std::unique_lock(start_lock());
    const bool is_taken = !none_starts;
    if (is_taken || (source_is_free && has_started(*source)) ||
        (target_is_free && has_started(*target))) {
      if (none_starts) none_starts.unlock();
      settle(replaced, false, "rename");
      go_on();
      if (is_taken) none_starts.lock();  // waits for the thread that is starting a file
      return std::nullopt;
    }
  }

  if (must_be_first) flags = RENAME_NOREPLACE;
  int outcome = pass_on();
  if (must_be_first && outcome != 0 && errno == EINVAL) {  // not on this file system
    flags = 0;
    outcome = pass_on();
  }
  const int error_number = errno;
  if (none_starts) none_starts.unlock();
  settle(replaced, outcome == 0, "rename");
  if (outcome != 0) {
    go_on();
    if (must_be_first && error_number == EEXIST) return std::nullopt;
    errno = error_number;
    return outcome;
  }
  resume_all(from_source.files, "rename");
  resume_all(from_target.files, "rename");
  errno = error_number;
  return outcome;
}

int rename_file(const Renaming& renaming) {
  if (!in_own_process()) return rename_as_child(renaming);
  return until_done("rename", [&] { return try_to_rename(renaming); });
}

// Not between the look at a file's names and the loss of one of them: it waits for that.
template <class Link>
int link_file(int directory, const char* path, int flags, const Link& link_really) {
  struct stat status{};
  if (table::is_empty() || !in_own_process() ||
      real().fstatat(directory, path, &status, flags) != 0 || !S_ISREG(status.st_mode))
    return link_really();
  const Inside working;
  const Held file = hold_inode(status.st_dev, status.st_ino);
  return link_really();
}

}  // namespace

int unlink_file(const char* path) { return remove_name("unlink", AT_FDCWD, path, 0); }

PAWL_INTERPOSE int unlinkat(int directory, const char* path, int flags) noexcept try {
  PAWL_PASS(real().unlinkat(directory, path, flags));
  if ((flags & AT_REMOVEDIR) != 0) PAWL_RETURN(real().unlinkat(directory, path, flags));
  PAWL_RETURN(remove_name("unlink", directory, path, flags));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int unlink(const char* path) noexcept try {
  PAWL_PASS(real().unlink(path));
  PAWL_RETURN(unlink_file(path));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int remove(const char* path) noexcept try {
  PAWL_PASS(real().remove(path));
  struct stat status{};
  const bool is_there = real().lstat(path, &status) == 0;
  if (!is_there && errno == ENOENT) PAWL_RETURN(-1);  // as try_to_remove()
  if (!is_there || S_ISDIR(status.st_mode)) PAWL_RETURN(real().remove(path));
  PAWL_RETURN(remove_name("remove", AT_FDCWD, path, 0));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int link(const char* path, const char* new_path) noexcept try {
  PAWL_PASS(real().link(path, new_path));
  PAWL_RETURN(
      link_file(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, [&] { return real().link(path, new_path); }));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int linkat(int directory, const char* path, int new_directory, const char* new_path,
                          int flags) noexcept try {
  const auto link_really = [&] {
    return real().linkat(directory, path, new_directory, new_path, flags);
  };
  PAWL_PASS(link_really());
  const int looked =
      (flags & AT_EMPTY_PATH) | ((flags & AT_SYMLINK_FOLLOW) != 0 ? 0 : AT_SYMLINK_NOFOLLOW);
  PAWL_RETURN(link_file(directory, path, looked, link_really));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int renameat2(int old_directory, const char* old_path, int new_directory,
                             const char* new_path, unsigned flags) noexcept try {
  PAWL_PASS(real().renameat2(old_directory, old_path, new_directory, new_path, flags));
  PAWL_RETURN(rename_file({old_directory, old_path, new_directory, new_path, flags}));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int renameat(int old_directory, const char* old_path, int new_directory,
                            const char* new_path) noexcept try {
  PAWL_PASS(real().renameat(old_directory, old_path, new_directory, new_path));
  PAWL_RETURN(rename_file({old_directory, old_path, new_directory, new_path, 0}));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int rename(const char* old_path, const char* new_path) noexcept try {
  PAWL_PASS(real().rename(old_path, new_path));
  PAWL_RETURN(rename_file({AT_FDCWD, old_path, AT_FDCWD, new_path, 0}));
}
PAWL_OR_NO_MEMORY

}  // namespace pawl::preload
