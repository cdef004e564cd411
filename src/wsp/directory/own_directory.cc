#include "wsp/directory/own_directory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace pawl::wsp {

namespace {

constexpr mode_t kOthersMayWrite = S_IWGRP | S_IWOTH;

Status check_own(const std::string& path, const struct stat& facts) {
  if (facts.st_uid != ::geteuid()) {
    return Status::failure(
        EPERM, fmt::format("{} belongs to user {}, and what lies there is not believed; do this as "
                           "that user, or name a directory of your own",
                           path, facts.st_uid));
  }
  if ((facts.st_mode & kOthersMayWrite) != 0) {
    return Status::failure(
        EPERM, fmt::format("{} can be written by others (mode {:04o}), and what lies there is not "
                           "believed; look at it, and take that away: chmod go-w {}",
                           path, facts.st_mode & 07777, path));
  }
  return {};
}

}  // namespace

sockaddr_un socket_in(int directory, const std::string& name) {
  const std::string path = link_to_descriptor(directory) + "/" + name;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  PAWL_ASSERT(path.size() < sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<OwnDirectory> OwnDirectory::open(const std::string& path, bool make) {
  if (make && ::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return FailedCall{errno, "cannot make the directory " + path};
  const Descriptor found(::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts{};
  if (!found.valid() && (errno == ELOOP || errno == ENOTDIR)) {
    return Status::failure(ENOTDIR, path +
                                        " is a symbolic link, or no directory; name the directory "
                                        "itself");
  }
  if (!found.valid() || ::fstat(found.get(), &facts) != 0)
    return FailedCall{errno, "cannot open the directory " + path};
  PAWL_TRY(check_own(path, facts));
  Descriptor directory(::openat(found.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return FailedCall{errno, "cannot open the directory " + path};
  return OwnDirectory(path, std::move(directory));
}

std::string OwnDirectory::way_to(const std::string& name) const {
  return link_to_descriptor(directory_.get()) + "/" + name;
}

Result<Descriptor> OwnDirectory::open_file(const std::string& name, int flags) const {
  const std::string path = path_ + "/" + name;
  Descriptor file(::openat(directory_.get(), name.c_str(),
                           flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, S_IRUSR | S_IWUSR));
  struct stat facts{};
  const bool is_link = !file.valid() && errno == ELOOP;
  if (!is_link && (!file.valid() || ::fstat(file.get(), &facts) != 0))
    return FailedCall{errno, "cannot open " + path};
  if (is_link || !S_ISREG(facts.st_mode) || facts.st_nlink != 1) {
    return Status::failure(EPERM,
                           path + " is not a regular file of one name; look at it, and remove it");
  }
  PAWL_TRY(check_own(path, facts));
  return file;
}

}  // namespace pawl::wsp
