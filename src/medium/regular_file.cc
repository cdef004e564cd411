#include "medium/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

namespace pawl {

Result<Descriptor> open_regular(int directory, const std::string& name, int flags,
                                const std::string& path) {
  const Descriptor found(
      ::openat(directory, name.c_str(), O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW)));
  struct stat status{};
  if (!found.valid() || ::fstat(found.get(), &status) != 0)
    return FailedCall{errno, "cannot open " + path};
  if (S_ISLNK(status.st_mode))
    return Status::failure(ELOOP, PAWL_ERROR_JOURNAL_NAME_TAKEN,
                           path + " is a symbolic link; Pawl follows none");
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    return Status::failure(ENODEV, PAWL_ERROR_NOT_REGULAR_FILE, path + " is not a regular file");
  // What was looked at, whatever the name leads to by now.
  const std::string link = link_to_descriptor(found.get());
  Descriptor opened(::open(link.c_str(), flags & ~O_NOFOLLOW));
  if (opened.valid()) return opened;
  const FailedCall failed{errno, "cannot open " + path};
  if (::faccessat(AT_FDCWD, link.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) return failed;
  return Status::failure(ENOTSUP, PAWL_ERROR_NO_PROC,
                         "cannot open " + path +
                             ": it is opened through /proc once it was looked at, and "
                             "/proc is not mounted; mount it");
}

Result<Descriptor> open_regular(const std::string& path, int flags) {
  return open_regular(AT_FDCWD, path, flags, path);
}

}  // namespace pawl
