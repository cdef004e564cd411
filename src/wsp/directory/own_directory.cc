#include "wsp/directory/own_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "wsp/lent_right.h"

namespace pawl::wsp {

namespace {

constexpr mode_t kOthersMayWrite = S_IWGRP | S_IWOTH;

Status check_own(const std::string& path, const struct stat& facts) {
  if (facts.st_uid != ::geteuid()) {
    const std::string as_that_user =
        ::geteuid() != 0 ? "do this as that user"
                         : "do this as that user: " +
                               command_with_lent_right(facts.st_uid, facts.st_gid, "--init-groups");
    return Status::failure(
        EPERM,
        fmt::format("{} belongs to user {}, and what lies there is not believed; {}, or name "
                    "a directory of your own",
                    path, facts.st_uid, as_that_user));
  }
  if ((facts.st_mode & kOthersMayWrite) != 0) {
    // As /tmp, which is meant so.
    const std::string advice = (facts.st_mode & S_ISVTX) != 0
                                   ? "name a directory of your own"
                                   : "look at it, and take that away: chmod go-w " + path;
    return Status::failure(EPERM, fmt::format("{} can be written by others (mode {:04o}), and what "
                                              "lies there is not believed; {}",
                                              path, facts.st_mode & 07777, advice));
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
  return open_in(AT_FDCWD, path, path);
}

Result<OwnDirectory> OwnDirectory::open_in(int parent, const std::string& name,
                                           const std::string& path) {
  const Descriptor found(
      ::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
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
  const std::string path = path_of(name);
  Descriptor file(::openat(directory_.get(), name.c_str(),
                           flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, S_IRUSR | S_IWUSR));
  struct stat facts{};
  const bool is_link = !file.valid() && errno == ELOOP;
  if (!is_link && (!file.valid() || ::fstat(file.get(), &facts) != 0))
    return FailedCall{errno, "cannot open " + path};
  if (is_link || !S_ISREG(facts.st_mode) || facts.st_nlink != 1) {
    return Status::failure(EPERM,
                           path +
                               " is not a regular file of one name; look at it, and remove it, or "
                               "its other names");
  }
  PAWL_TRY(check_own(path, facts));
  return file;
}

Result<Descriptor> OwnDirectory::make_file(const std::string& name) const {
  if (::unlinkat(directory_.get(), name.c_str(), 0) != 0 && errno != ENOENT)
    return FailedCall{errno, "cannot remove " + path_of(name)};
  return open_file(name, O_RDWR | O_CREAT | O_EXCL);
}

Result<std::string> OwnDirectory::read_file(const std::string& name, std::size_t bytes_max) const {
  Result<Descriptor> file = open_file(name, O_RDONLY);
  if (!file.ok()) return file.status();
  std::string text;
  std::array<char, 16384> bytes;
  for (;;) {
    const ssize_t count = ::read(file.value().get(), bytes.data(), bytes.size());
    if (count < 0) return FailedCall{errno, "cannot read " + path_of(name)};
    if (count == 0) return text;
    text.append(bytes.data(), static_cast<std::size_t>(count));
    if (text.size() > bytes_max)
      return Status::failure(EFBIG, path_of(name) + " is longer than it can be");
  }
}

Status OwnDirectory::write_file(const std::string& name, const std::string& text) const {
  const std::string fresh = name + ".new";
  Result<Descriptor> file = make_file(fresh);
  if (!file.ok()) return file.status();
  const int number = file.value().get();
  if (::write(number, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(number) != 0 ||
      ::renameat(directory_.get(), fresh.c_str(), directory_.get(), name.c_str()) != 0) {
    const int error_number = errno;
    ::unlinkat(directory_.get(), fresh.c_str(), 0);
    return FailedCall{error_number, "cannot write " + path_of(name)};
  }
  return {};
}

Result<OwnDirectory> OwnDirectory::make_in(int parent, const std::string& parent_path,
                                           const std::string& name) {
  const std::string path = parent_path + "/" + name;
  if (::mkdirat(parent, name.c_str(), S_IRWXU) != 0)
    return FailedCall{errno, "cannot make the directory " + path};
  Result<OwnDirectory> made = open_in(parent, name, path);
  // Whoever may write the parent may have put another one of this user's into its place.
  if (made.ok() && !made.value().names().empty())
    return Status::failure(EEXIST, path + " was replaced by another directory");
  return made;
}

bool OwnDirectory::has(const std::string& name) const {
  return ::faccessat(directory_.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

std::vector<std::string> OwnDirectory::names() const {
  std::vector<std::string> found;
  const int number = ::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const listed = number < 0 ? nullptr : ::fdopendir(number);
  if (listed == nullptr) {
    if (number >= 0) ::close(number);
    return found;
  }
  while (const dirent* entry = ::readdir(listed)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") found.push_back(name);
  }
  ::closedir(listed);
  return found;
}

void OwnDirectory::remove_files() const {
  for (const std::string& name : names()) ::unlinkat(directory_.get(), name.c_str(), 0);
}

void OwnDirectory::remove_directory(const std::string& name) const {
  const Result<OwnDirectory> gone = open_in(directory_.get(), name, path_of(name));
  if (!gone.ok()) return;
  gone.value().remove_files();
  ::unlinkat(directory_.get(), name.c_str(), AT_REMOVEDIR);
}

Status listen_in(const OwnDirectory& directory, const std::string& name, const Descriptor& socket,
                 int waiting_max) {
  const int holding = directory.descriptor();
  const std::string fresh = name + ".new";
  const sockaddr_un address = socket_in(holding, fresh);
  ::unlinkat(holding, fresh.c_str(), 0);
  if (::fchmod(socket.get(), S_IRUSR | S_IWUSR) != 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return FailedCall{errno, "cannot make the socket " + directory.path_of(name)};
  if (::listen(socket.get(), waiting_max) == 0 &&
      ::renameat(holding, fresh.c_str(), holding, name.c_str()) == 0)
    return {};
  const int error_number = errno;
  ::unlinkat(holding, fresh.c_str(), 0);
  return FailedCall{error_number, "cannot listen at " + directory.path_of(name)};
}

}  // namespace pawl::wsp
