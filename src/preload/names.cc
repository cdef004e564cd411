// Calls that take a file's name away or give it another.  The side file stands beside the file
// under its name, so a tracked file is closed cleanly first and, where it lives on, taken up again
// under the new name.  Crash at any point: either there is no journal, or it is beside its file.
#include "preload/interpose.h"

#include <cerrno>
#include <cstring>

#include "preload/inside.h"
#include "preload/lifecycle.h"
#include "preload/messages.h"
#include "preload/named_files.h"
#include "preload/real.h"

namespace pawl::preload {
namespace {

// Appends to `suspended` when the file is tracked.
Status suspend_by_inode(const NamedFile& named, std::vector<Suspended>& suspended) {
  const TrackedFilePointer file = table::of_inode(named.status.st_dev, named.status.st_ino);
  if (file == nullptr) return {};
  const std::lock_guard guard(file->lock);
  if (file->has_ended) return {};
  auto one = suspend(file);
  if (one.ok()) suspended.push_back(std::move(one.value()));
  return one.status();
}

bool is_tracked(const NamedFile& named) {
  return table::of_inode(named.status.st_dev, named.status.st_ino) != nullptr;
}

// The file is about to lose this name.
Status suspend_for_removal(const NamedFile& named, std::vector<Suspended>& suspended) {
  if (!S_ISREG(named.status.st_mode)) return {};
  if (is_tracked(named)) {
    if (named.status.st_nlink > 1) {
      return Status::failure(EBUSY,
                             named.real_path +
                                 " is mapped atomically under one of its names; unmap it before "
                                 "one of them is removed");
    }
    return suspend_by_inode(named, suspended);
  }
  // A live writer's file keeps its name; what cannot be recovered can still be removed.
  Status status = recover_if_left(named.real_path);
  return status.error_number() == EBUSY ? status : Status{};
}

int remove_name(const char* call, int directory, const char* path, int flags) {
  const Inside working;
  const auto named = look_up(directory, path, false);
  std::vector<Suspended> suspended;
  if (named) {
    if (const Status status = suspend_for_removal(*named, suspended); !status.ok())
      return refuse(call, status);
  }
  const int outcome = real().unlinkat(directory, path, flags);
  if (outcome != 0) {
    const int error_number = errno;
    resume_all(suspended, call);
    errno = error_number;
  }
  // Otherwise descriptors and window are the kernel's from here on: what has no name does not
  // survive a crash, and has nothing to keep.
  return outcome;
}

struct Renaming {
  int old_directory;
  const char* old_path;
  int new_directory;
  const char* new_path;
  unsigned flags;
};

// Files in a directory that is renamed change their paths with it.
Status suspend_beneath(const std::string& directory, std::vector<Suspended>& suspended) {
  for (const TrackedFilePointer& file : table::all()) {
    const std::lock_guard guard(file->lock);
    if (file->has_ended || !file->path.starts_with(directory + "/")) continue;
    auto one = suspend(file);
    if (!one.ok()) return one.status();
    suspended.push_back(std::move(one.value()));
  }
  return {};
}

// The file, or what is beneath the directory, is about to change its name.
Status suspend_for_move(const NamedFile& named, std::vector<Suspended>& suspended) {
  if (S_ISDIR(named.status.st_mode)) return suspend_beneath(named.real_path, suspended);
  if (!S_ISREG(named.status.st_mode)) return {};
  if (is_tracked(named)) return suspend_by_inode(named, suspended);
  // A journal left behind at the old name would be of no file.
  Status status = recover_if_left(named.real_path);
  return status.error_number() == EBUSY ? status : Status{};
}

void move_paths(std::vector<Suspended>& suspended, const std::string& from, const std::string& to) {
  for (Suspended& one : suspended) {
    const std::lock_guard guard(one.file->lock);
    if (one.file->path.starts_with(from)) one.file->path = to + one.file->path.substr(from.size());
  }
}

int rename_file(const Renaming& renaming) {
  const Inside working;
  const auto pass_on = [&] {
    return real().renameat2(renaming.old_directory, renaming.old_path, renaming.new_directory,
                            renaming.new_path, renaming.flags);
  };
  const auto source = look_up(renaming.old_directory, renaming.old_path, false);
  const auto target = look_up(renaming.new_directory, renaming.new_path, false);
  if (!source) return pass_on();
  const bool same = target && target->status.st_dev == source->status.st_dev &&
                    target->status.st_ino == source->status.st_ino;
  if (same) return pass_on();
  const bool exchange = (renaming.flags & RENAME_EXCHANGE) != 0;
  const bool replaces = target && !exchange && (renaming.flags & RENAME_NOREPLACE) == 0;

  std::vector<Suspended> moved;     // taken up again under their new names
  std::vector<Suspended> replaced;  // lose their name
  const auto undo = [&](const Status& failure) {
    resume_all(moved, "rename");
    resume_all(replaced, "rename");
    return refuse("rename", failure);
  };
  if (const Status status = suspend_for_move(*source, moved); !status.ok()) return undo(status);
  if (target && exchange) {
    if (const Status status = suspend_for_move(*target, moved); !status.ok()) return undo(status);
  }
  if (target && replaces) {
    if (const Status status = suspend_for_removal(*target, replaced); !status.ok())
      return undo(status);
  }

  const int outcome = pass_on();
  const int error_number = errno;
  if (outcome != 0) {
    resume_all(moved, "rename");
    resume_all(replaced, "rename");
    errno = error_number;
    return outcome;
  }
  if (const auto landed = look_up(renaming.new_directory, renaming.new_path, false)) {
    // With an exchange both move at once; a path is changed once because it starts with one of the
    // two only.
    std::vector<Suspended> from_source;
    std::vector<Suspended> from_target;
    for (Suspended& one : moved) {
      const bool is_source = one.file->path.starts_with(source->real_path);
      (is_source ? from_source : from_target).push_back(std::move(one));
    }
    move_paths(from_source, source->real_path, landed->real_path);
    move_paths(from_target, landed->real_path, source->real_path);
    resume_all(from_source, "rename");
    resume_all(from_target, "rename");
  }
  errno = error_number;
  return outcome;
}

}  // namespace

PAWL_INTERPOSE int unlinkat(int directory, const char* path, int flags) noexcept {
  PAWL_PASS(real().unlinkat(directory, path, flags));
  if (!in_own_process() || (flags & AT_REMOVEDIR) != 0)
    return real().unlinkat(directory, path, flags);
  return remove_name("unlink", directory, path, flags);
}
PAWL_INTERPOSE int unlink(const char* path) noexcept {
  PAWL_PASS(real().unlink(path));
  if (!in_own_process()) return real().unlink(path);
  return remove_name("unlink", AT_FDCWD, path, 0);
}
PAWL_INTERPOSE int remove(const char* path) noexcept {
  PAWL_PASS(real().remove(path));
  struct stat status{};
  if (!in_own_process() || real().lstat(path, &status) != 0 || S_ISDIR(status.st_mode)) {
    return real().remove(path);
  }
  return remove_name("remove", AT_FDCWD, path, 0);
}

PAWL_INTERPOSE int renameat2(int old_directory, const char* old_path, int new_directory,
                             const char* new_path, unsigned flags) noexcept {
  PAWL_PASS(real().renameat2(old_directory, old_path, new_directory, new_path, flags));
  if (!in_own_process())
    return real().renameat2(old_directory, old_path, new_directory, new_path, flags);
  return rename_file({old_directory, old_path, new_directory, new_path, flags});
}
PAWL_INTERPOSE int renameat(int old_directory, const char* old_path, int new_directory,
                            const char* new_path) noexcept {
  PAWL_PASS(real().renameat(old_directory, old_path, new_directory, new_path));
  if (!in_own_process()) return real().renameat(old_directory, old_path, new_directory, new_path);
  return rename_file({old_directory, old_path, new_directory, new_path, 0});
}
PAWL_INTERPOSE int rename(const char* old_path, const char* new_path) noexcept {
  PAWL_PASS(real().rename(old_path, new_path));
  if (!in_own_process()) return real().rename(old_path, new_path);
  return rename_file({AT_FDCWD, old_path, AT_FDCWD, new_path, 0});
}

}  // namespace pawl::preload
