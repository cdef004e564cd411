#include "preload/named_files.h"

#include <fcntl.h>
#include <sys/xattr.h>

#include <cerrno>
#include <climits>
#include <cstdlib>

#include "medium/block_medium.h"
#include "medium/readable_memory.h"
#include "preload/lifecycle.h"
#include "preload/other_writers.h"
#include "preload/patterns.h"
#include "preload/read_snapshots.h"
#include "preload/real.h"

namespace pawl::preload {

namespace {

// What the kernel says of the name itself, whoever asks: then no call does anything to a file.
bool is_of_the_name(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case EACCES:
    case ENAMETOOLONG:
    case EBADF:
    case EFAULT:
      return true;
    default:
      return false;
  }
}

// The same name, for calls that take no directory.
std::string name_from(int directory, const char* path) {
  if (directory == AT_FDCWD || path[0] == '/') return path;
  return link_to_descriptor(directory) + "/" + path;
}

// Not inlined: the stacks of threads may be small, and callers need the room.
[[gnu::noinline]] Result<std::string> follow(const std::string& name) {
  char resolved[PATH_MAX];
  if (realpath(name.c_str(), resolved) == nullptr)
    return FailedCall{errno, "cannot find the path of " + name};
  return std::string(resolved);
}

// Whatever the last part is, it is left as it is.
Result<std::string> follow_directory(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  const std::string last = name.substr(slash == std::string::npos ? 0 : slash + 1);
  if (last.empty() || last == "." || last == "..") return follow(name);
  auto directory =
      follow(slash == std::string::npos ? std::string(".") : name.substr(0, slash + 1));
  if (!directory.ok()) return directory.status();
  return (directory.value() == "/" ? std::string() : directory.value()) + "/" + last;
}

bool has_a_place(const struct stat& status) {
  return S_ISREG(status.st_mode) || S_ISDIR(status.st_mode);
}

// Certainly not a file that we have to do with, although it cannot be said where it is.
bool is_no_concern(const std::string& name, bool follow_links, const struct stat& status) {
  if (table::of_inode(status.st_dev, status.st_ino) != nullptr) return false;
  if (S_ISDIR(status.st_mode)) return table::is_empty();
  const auto lacks = [&](const char* attribute) {
    const auto get = follow_links ? getxattr : lgetxattr;
    return get(name.c_str(), attribute, nullptr, 0) < 0 &&
           (errno == ENODATA || errno == EOPNOTSUPP);
  };
  if (!lacks(kMarkAttribute)) return false;
  if (lacks(kNoticeAttribute)) return true;
  const auto written = has_any_writer(status);
  return written.ok() && !written.value();
}

// Without a descriptor and without /proc.
Result<std::optional<NamedFile>> look_up_by_links(int directory, const char* path,
                                                  bool follow_links) {
  NamedFile file{};
  if (real().fstatat(directory, path, &file.status, follow_links ? 0 : AT_SYMLINK_NOFOLLOW) != 0) {
    if (is_of_the_name(errno)) return std::optional<NamedFile>();
    return FailedCall{errno, std::string("cannot look at ") + path};
  }
  if (!has_a_place(file.status)) return std::optional(std::move(file));
  const std::string name = name_from(directory, path);
  auto real_path = follow_links ? follow(name) : follow_directory(name);
  if (real_path.ok() && real().lstat(real_path.value().c_str(), &file.status) == 0) {
    file.real_path = std::move(real_path.value());
    return std::optional(std::move(file));
  }
  if (is_no_concern(name, follow_links, file.status)) {
    errno = 0;  // it is there
    return std::optional<NamedFile>();
  }
  if (!real_path.ok()) return real_path.status();
  return Status::failure(EAGAIN, real_path.value() + " is being replaced; try again");
}

}  // namespace

Result<NamedFile> identify(int descriptor) {
  NamedFile file{};
  if (real().fstat(descriptor, &file.status) != 0)
    return FailedCall{errno, "cannot look at a file"};
  if (!has_a_place(file.status)) return file;
  auto real_path = path_of_descriptor(descriptor);
  if (!real_path.ok()) return real_path.status();
  file.real_path = std::move(real_path.value());
  return file;
}

Result<std::optional<NamedFile>> look_up(int directory, const char* path, bool follow_links) {
  if (path == nullptr) {
    errno = EFAULT;
    return std::optional<NamedFile>();
  }
  const int handle =
      real().openat(directory, path, O_PATH | O_CLOEXEC | (follow_links ? 0 : O_NOFOLLOW));
  if (handle < 0 && is_of_the_name(errno)) return std::optional<NamedFile>();
  if (handle < 0) return look_up_by_links(directory, path, follow_links);
  auto file = identify(handle);
  real().close(handle);
  if (!file.ok()) return look_up_by_links(directory, path, follow_links);
  return std::optional(std::move(file.value()));
}

Status leads_elsewhere_each_time() {
  return Status::failure(EBUSY, "the name leads to another file each time; try again");
}

Result<std::string> path_to_be(int directory, const char* path) {
  if (!is_readable_text(path)) return Status::failure(EFAULT, "a name that is no text");
  std::string name = name_from(directory, path);
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  return follow_directory(name);
}

Status check_takes_a_journal(const std::string& path) {
  struct stat status{};
  if (real().lstat((path + kJournalSuffix).c_str(), &status) != 0 && errno == ENAMETOOLONG)
    return Status::failure(ENAMETOOLONG, "the name " + path +
                                             " is too long for a journal beside it (" +
                                             kJournalSuffix + "); choose a shorter one");
  const std::string directory = path.substr(0, path.rfind('/') + 1);
  const int handle = real().open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0 && errno == EACCES)
    return Status::failure(EACCES, "no journal can be made in " + directory +
                                       ", which this process may not read; choose another "
                                       "directory, or give it the right to read");
  if (handle >= 0) real().close(handle);
  return {};
}

Status check_has_no_journal_beside(const std::string& path) {
  struct stat status{};
  if (real().lstat((path + kJournalSuffix).c_str(), &status) != 0) return {};
  return Status::failure(EEXIST, path + kJournalSuffix +
                                     " is the journal of another file, which may need it, and "
                                     "the file that is renamed could have none there; move it "
                                     "away, or choose another name");
}

bool concerns_us(const NamedFile& file) {
  if (matches_a_pattern(file.real_path)) return true;
  if (has_no_sign_of_a_writer(file)) return false;
  if (getxattr(file.real_path.c_str(), kMarkAttribute, nullptr, 0) >= 0) return true;
  const auto written = has_any_writer(file.status);
  return written.ok() && written.value();
}

Status recover_before_use(const NamedFile& file, bool is_only_read) {
  if (!S_ISREG(file.status.st_mode)) return {};
  if (is_only_read && !matches_a_pattern(file.real_path)) return {};
  Status status = retry_while_opened(file.real_path, [&] {
    // Whoever may only read it leaves it to its writer; what was committed is shown by a copy.
    if (is_only_read && is_written_elsewhere(file)) return is_written_by_other(file.real_path);
    return recover_now(file);
  });
  if (status.ok() || status.error_number() == EBUSY) return {};
  if (!concerns_us(file)) return {};
  if (status.error_number() != EACCES) return status;
  return status.with_text(status.text() +
                          ". A crash left it open, and it must be recovered first by "
                          "who may write it: let its program open it again, or run "
                          "pawl recover. To read what is committed take pawl snapshot");
}

}  // namespace pawl::preload
