#include "medium/directory.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>

namespace pawl {

Result<Directory> Directory::open(const std::string& path) {
  Descriptor opened(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) return FailedCall{errno, "cannot open the directory " + path};
  return Directory(std::move(opened), path);
}

Result<Directory> Directory::open_of(const std::string& path, int file) {
  struct stat status{};
  if (::fstat(file, &status) != 0) return FailedCall{errno, "cannot stat " + path};
  auto found = open(path.substr(0, path.rfind('/') + 1));
  if (!found.ok()) return found;
  const auto is_there = found.value().has(name_in_directory(path), status);
  if (!is_there.ok()) return is_there.status();
  if (is_there.value()) return found;
  return Status::failure(
      ENOENT, PAWL_ERROR_REPLACED,
      path + " was moved, or another took its place, while it was opened; try again");
}

Result<bool> Directory::has(const std::string& name, const struct stat& file) const {
  struct stat named{};
  if (::fstatat(get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0)
    return named.st_ino == file.st_ino && named.st_dev == file.st_dev;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return FailedCall{errno, "cannot look for " + name + " in the directory " + path_};
}

Result<Descriptor> Directory::open_to_flush() const {
  Descriptor handle(::openat(get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (handle.valid()) return handle;
  const FailedCall failed{errno, "cannot open the directory " + path_};
  if (failed.error_number != EACCES) return failed;
  return Status::failure(EACCES, failed.text() +
                                     ": who may not read it cannot make durable what gets a name "
                                     "in it. Give this user that permission (chmod +r), or use "
                                     "another directory");
}

Status Directory::flush() const {
  const auto handle = open_to_flush();
  if (!handle.ok()) return handle.status();
  if (::fsync(handle.value().get()) != 0 && errno != EINVAL)
    return FailedCall{errno, "cannot flush the directory " + path_};
  return {};
}

}  // namespace pawl
