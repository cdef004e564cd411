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
  std::string from;
  std::optional<std::string> to = {};           // asked for once there is one
  std::optional<Withdrawing> withdrawing = {};  // only where there may be one
  std::vector<TrackedFilePointer> files = {};
};

// What the path of the file becomes: it may be known by another of its names.
std::string path_after(const Moving& moving, const TrackedFile& file) {
  if (!file.path.starts_with(moving.from)) return file.path;
  return *moving.to + file.path.substr(moving.from.size());
}

// Locked.
Status take_along(const TrackedFilePointer& file, Moving& moving) {
  if (!moving.to) {
    auto landing = path_to_be(moving.renaming.new_directory, moving.renaming.new_path);
    if (!landing.ok()) return landing.status();
    moving.to = std::move(landing.value());
  }
  PAWL_TRY(check_takes_a_journal(path_after(moving, *file)));
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
  return take_along(held.file, moving);
}

bool is_tracked(const NamedFile& named) {
  return table::of_inode(named.status.st_dev, named.status.st_ino) != nullptr;
}

// The file is about to lose this name; empty when it is not tracked.
Result<std::optional<SetAside>> before_removal(const NamedFile& named,
                                               std::optional<Withdrawing>& withdrawing) {
  if (!S_ISREG(named.status.st_mode)) return std::optional<SetAside>();
  // Another thread may map it meanwhile.
  if (is_tracked(named) || (has_group() && !table::is_empty())) withdrawing.emplace();
  if (Held file = hold_inode(named.status.st_dev, named.status.st_ino)) {
    if (named.status.st_nlink > 1) {
      return Status::failure(EBUSY,
                             named.real_path +
                                 " is mapped atomically under one of its names; unmap it before "
                                 "one of them is removed");
    }
    return set_aside(std::move(file));
  }
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

// The same, by name.  Not inlined: the stacks of threads may be small, and settle() needs the room.
[[gnu::noinline]] Result<std::optional<SetAside>> before_removal_of(
    int directory, const char* path, std::optional<Withdrawing>& withdrawing, bool& is_missing) {
  const auto found = look_up(directory, path, false);
  if (!found.ok()) return found.status();
  if (found.value()) return before_removal(*found.value(), withdrawing);
  is_missing = errno == ENOENT;
  return std::optional<SetAside>();
}

int remove_name(const char* call, int directory, const char* path, int flags) {
  const Inside working;
  std::optional<Withdrawing> withdrawing;
  bool is_missing = false;
  auto aside = before_removal_of(directory, path, withdrawing, is_missing);
  if (!aside.ok()) return refuse(call, aside.status());
  // In a moment another process may give the name to a file that it has mapped.
  if (is_missing && flags == 0) {
    errno = ENOENT;
    return -1;
  }
  const int outcome = real().unlinkat(directory, path, flags);
  settle(aside.value(), outcome == 0, call);
  return outcome;
}

// Files in a directory that is renamed change their paths with it.
Status suspend_beneath(const std::string& directory, Moving& moving) {
  if (table::is_empty()) return {};
  moving.withdrawing.emplace();
  for (const TrackedFilePointer& file : table::all()) {
    const Held held = hold_file(file);
    if (!held || held->is_lost || !held->path.starts_with(directory + "/")) continue;
    PAWL_TRY(take_along(file, moving));
  }
  return {};
}

// The file, or what is beneath the directory, is about to change its name.
Status suspend_for_move(const NamedFile& named, Moving& moving) {
  if (S_ISDIR(named.status.st_mode)) return suspend_beneath(named.real_path, moving);
  if (!S_ISREG(named.status.st_mode)) return {};
  if (is_tracked(named)) return suspend_by_inode(named, moving);
  // A journal left behind at the old name would be of no file.
  Status status = recover_if_left(named);
  return is_in_use(status) ? status : Status{};
}

void move_paths(const Moving& moving) {
  for (const TrackedFilePointer& file : moving.files) {
    const std::lock_guard guard(file->lock);
    file->path = path_after(moving, *file);
  }
}

bool lands_on_a_pattern(const Renaming& renaming) {
  if (!has_patterns()) return false;
  const auto path = path_to_be(renaming.new_directory, renaming.new_path);
  return path.ok() && matches_a_pattern(path.value());
}

// Nothing: the target has come to be since it was looked at.
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

  // Taken up again under their new names.  With an exchange both move at once, and the name of one
  // may begin with that of the other.
  Moving from_target{renaming, target ? target->real_path : std::string(), source->real_path};
  Moving from_source{renaming, source->real_path};
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
    if (!target || !replaces) return {};
    auto before = before_removal(*target, withdrawing);
    if (before.ok()) replaced = std::move(before.value());
    return before.status();
  });
  if (!prepared.ok()) return undo(prepared);

  const bool must_be_first = !target && flags == 0 && lands_on_a_pattern(renaming);
  if (must_be_first) flags = RENAME_NOREPLACE;
  int outcome = pass_on();
  if (must_be_first && outcome != 0 && errno == EINVAL) {  // not on this file system
    flags = 0;
    outcome = pass_on();
  }
  const int error_number = errno;
  settle(replaced, outcome == 0, "rename");
  if (outcome != 0) {
    go_on();
    if (must_be_first && error_number == EEXIST) return std::nullopt;
    errno = error_number;
    return outcome;
  }
  // Without memory they have their descriptors to be opened by, and an old name in messages.
  const Status moved = at_border([&]() -> Status {
    move_paths(from_source);
    move_paths(from_target);
    return {};
  });
  if (!moved.ok()) say("rename", moved.text());
  resume_all(from_source.files, "rename");
  resume_all(from_target.files, "rename");
  errno = error_number;
  return outcome;
}

int rename_file(const Renaming& renaming) {
  constexpr int kAttemptsMax = 100;
  const Inside working;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    if (const auto outcome = try_to_rename(renaming)) return *outcome;
  }
  return refuse("rename", EBUSY, "the new name comes and goes; try again");
}

}  // namespace

int unlink_file(const char* path) {
  return in_own_process() ? remove_name("unlink", AT_FDCWD, path, 0) : real().unlink(path);
}

PAWL_INTERPOSE int unlinkat(int directory, const char* path, int flags) noexcept try {
  PAWL_PASS(real().unlinkat(directory, path, flags));
  if (!in_own_process() || (flags & AT_REMOVEDIR) != 0)
    PAWL_RETURN(real().unlinkat(directory, path, flags));
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
  if (!in_own_process() || real().lstat(path, &status) != 0 || S_ISDIR(status.st_mode)) {
    PAWL_RETURN(real().remove(path));
  }
  PAWL_RETURN(remove_name("remove", AT_FDCWD, path, 0));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int renameat2(int old_directory, const char* old_path, int new_directory,
                             const char* new_path, unsigned flags) noexcept try {
  PAWL_PASS(real().renameat2(old_directory, old_path, new_directory, new_path, flags));
  if (!in_own_process())
    PAWL_RETURN(real().renameat2(old_directory, old_path, new_directory, new_path, flags));
  PAWL_RETURN(rename_file({old_directory, old_path, new_directory, new_path, flags}));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int renameat(int old_directory, const char* old_path, int new_directory,
                            const char* new_path) noexcept try {
  PAWL_PASS(real().renameat(old_directory, old_path, new_directory, new_path));
  if (!in_own_process())
    PAWL_RETURN(real().renameat(old_directory, old_path, new_directory, new_path));
  PAWL_RETURN(rename_file({old_directory, old_path, new_directory, new_path, 0}));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int rename(const char* old_path, const char* new_path) noexcept try {
  PAWL_PASS(real().rename(old_path, new_path));
  if (!in_own_process()) PAWL_RETURN(real().rename(old_path, new_path));
  PAWL_RETURN(rename_file({AT_FDCWD, old_path, AT_FDCWD, new_path, 0}));
}
PAWL_OR_NO_MEMORY

}  // namespace pawl::preload
