#include "medium/named_medium.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "medium/block_medium.h"
#include "medium/memory_functions.h"

namespace pawl {
namespace {

constexpr std::size_t kMarkBytesMax = PATH_MAX + 64;
constexpr int kLockAttemptsMax = 100;

std::uint64_t birth_time_ns(int descriptor) {
  struct statx status{};
  if (::statx(descriptor, "", AT_EMPTY_PATH, STATX_BTIME, &status) != 0) return 0;
  if ((status.stx_mask & STATX_BTIME) == 0) return 0;
  return static_cast<std::uint64_t>(status.stx_btime.tv_sec) * 1'000'000'000u +
         status.stx_btime.tv_nsec;
}

FileIdentity identity_of(int descriptor) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return {};
  return {status.st_ino, birth_time_ns(descriptor)};
}

// "INODE:BIRTH ", as the mark's second version has it; nothing where that does not stand.
std::optional<FileIdentity> parse_identity(const char*& at) {
  FileIdentity identity;
  int length = 0;
  if (std::sscanf(at, "%" SCNu64 ":%" SCNu64 "%n", &identity.inode, &identity.birth_time_ns,
                  &length) != 2 ||
      at[length] != ' ')
    return std::nullopt;
  at += length + 1;
  return identity;
}

bool attributes_unsupported(int error_number) {
  return error_number == ENOTSUP || error_number == EOPNOTSUPP || error_number == ENOSYS;
}

std::optional<JournalId> parse_journal_id(const std::string& digits) {
  if (digits.size() != 32) return std::nullopt;
  JournalId id{};
  for (std::size_t i = 0; i < id.size(); ++i) {
    unsigned value = 0;
    for (std::size_t j = 0; j < 2; ++j) {
      const char digit = digits[2 * i + j];
      if (digit >= '0' && digit <= '9')
        value = value * 16 + static_cast<unsigned>(digit - '0');
      else if (digit >= 'a' && digit <= 'f')
        value = value * 16 + static_cast<unsigned>(digit - 'a' + 10);
      else
        return std::nullopt;
    }
    id[i] = static_cast<std::byte>(value);
  }
  return id;
}

}  // namespace

NamedMedium::NamedMedium(NamedFile file)
    : base_(std::move(file.descriptor), file.path),
      path_(file.path),
      journal_path_(path_ + kJournalSuffix),
      identity_(file.identity),
      read_only_(file.read_only) {}

// Closing any descriptor of a file drops the process's fcntl locks on it, and the program may hold
// some (gdbm, LMDB and Kyoto Cabinet do).  Where it does, the descriptor is left open.
NamedMedium::~NamedMedium() {
  if (program_holds_record_locks()) base_.release();
}

bool NamedMedium::program_holds_record_locks() const {
  struct stat status{};
  if (base_.descriptor() < 0 || ::fstat(base_.descriptor(), &status) != 0) return false;
  std::FILE* locks = std::fopen("/proc/locks", "re");
  if (locks == nullptr) return false;
  char line[256];
  bool held = false;
  while (!held && std::fgets(line, sizeof line, locks) != nullptr) {
    long process = 0;
    unsigned long major_number = 0;
    unsigned long minor_number = 0;
    unsigned long inode = 0;
    if (std::sscanf(line, "%*s POSIX %*s %*s %ld %lx:%lx:%lu", &process, &major_number,
                    &minor_number, &inode) != 4)
      continue;
    held = process == static_cast<long>(::getpid()) && inode == status.st_ino;
  }
  std::fclose(locks);
  return held;
}

// Of another user's side file.  A user attribute is set by those only who may write the file: a
// side file that the mark names was made by one of them, and can say nothing that its maker could
// not have written.  The kernel gives the same inode number and birth time to no second file.
// Beside a file without a mark it has nothing to say: recovery refuses it if it has a record.
bool NamedMedium::may_be_of_a_writer(const Descriptor& side, const struct stat& user) {
  if (!can_mark()) return (user.st_mode & S_IWOTH) != 0;
  const auto marked = mark();
  if (!marked.ok()) return false;
  if (!marked.value().has_value()) return true;
  const FileIdentity identity = identity_of(side.get());
  return identity.birth_time_ns != 0 && marked.value()->side_file == identity;
}

// A side file that someone could have written who may not write the file is not believed.
Result<SideFileOwner> NamedMedium::check_side_file(const Descriptor& side,
                                                   const struct stat& user) {
  struct stat held{};
  if (::fstat(side.get(), &held) != 0)
    return Status::from_errno(errno, "cannot stat " + journal_path_);
  if (!S_ISREG(held.st_mode)) {
    return Status::failure(EBADMSG,
                           journal_path_ + " is not a regular file; move it away and try again");
  }
  if (held.st_nlink > 1) {
    return Status::failure(
        EBADMSG,
        journal_path_ + " has " + std::to_string(held.st_nlink) +
            " names; a journal has one. Find out who linked it, and remove the other names");
  }
  auto owner = SideFileOwner::other;
  if (held.st_uid == user.st_uid || held.st_uid == 0) {
    owner = SideFileOwner::of_file;
  } else if (held.st_uid == ::geteuid()) {
    owner = SideFileOwner::caller;
  } else if (!may_be_of_a_writer(side, user)) {
    return Status::failure(
        EBADMSG, journal_path_ + " belongs to another user (" + std::to_string(held.st_uid) +
                     ") than " + path_ +
                     ", and nothing shows that this one may write the file; the journal is not "
                     "believed. If it is yours, give it the owner of the file");
  }
  if ((held.st_mode & S_IWOTH) != 0 && (user.st_mode & S_IWOTH) == 0) {
    return Status::failure(
        EBADMSG, journal_path_ +
                     " can be written by anyone, and the file cannot; it is not believed. "
                     "If it is yours, take that permission away (chmod o-w)");
  }
  const bool is_of_the_files_group = held.st_gid == user.st_gid && (user.st_mode & S_IWGRP) != 0;
  if ((held.st_mode & S_IWGRP) != 0 && !is_of_the_files_group && (user.st_mode & S_IWOTH) == 0) {
    return Status::failure(
        EBADMSG, journal_path_ + " can be written by the users of group " +
                     std::to_string(held.st_gid) +
                     ", and the file cannot; it is not believed. If it is yours, take that "
                     "permission away (chmod g-w)");
  }
  return owner;
}

Result<std::uint32_t> NamedMedium::owner() {
  struct stat user{};
  if (::fstat(base_.descriptor(), &user) != 0)
    return Status::from_errno(errno, "cannot stat " + path_);
  return std::uint32_t{user.st_uid};
}

Status NamedMedium::lock_side_file(const Descriptor& side) const {
  struct flock lock = lock_of_writer();
  if (::fcntl(side.get(), F_OFD_SETLK, &lock) == 0) return {};
  if (errno == EAGAIN || errno == EACCES) {
    return Status::failure(
        EBUSY, path_ +
                   " is mapped atomically by another writer, and a file has one writer; "
                   "try again when that one has unmapped it (pawl info shows which process it is)");
  }
  return Status::from_errno(errno, "cannot lock " + journal_path_);
}

// As the file: who may read or write the one may read or write the other.
Status NamedMedium::adopt_permissions(const Descriptor& side, const struct stat& user) const {
  struct stat held{};
  if (::fstat(side.get(), &held) != 0)
    return Status::from_errno(errno, "cannot stat " + journal_path_);
  mode_t mode = user.st_mode & 0666;
  if ((user.st_uid != held.st_uid || user.st_gid != held.st_gid) &&
      ::fchown(side.get(), user.st_uid, user.st_gid) != 0) {
    if (::geteuid() == 0) {
      return Status::from_errno(errno, "cannot give " + journal_path_ + " the owner of the file");
    }
    // Without the right to give files away: the group if that may be, or nothing for a group that
    // is not the file's.
    if (user.st_gid != held.st_gid &&
        ::fchown(side.get(), static_cast<uid_t>(-1), user.st_gid) != 0) {
      mode &= ~static_cast<mode_t>(0060);
    }
  }
  if (::fchmod(side.get(), mode) != 0) {
    return Status::from_errno(errno, "cannot give " + journal_path_ + " the mode of the file");
  }
  // On a copy-on-write file system a journal that is overwritten in place stays in one piece.
  int attributes = 0;
  if (::ioctl(side.get(), FS_IOC_GETFLAGS, &attributes) == 0) {
    attributes |= FS_NOCOW_FL;
    [[maybe_unused]] const int ignored = ::ioctl(side.get(), FS_IOC_SETFLAGS, &attributes);
  }
  return {};
}

Result<JournalFile> NamedMedium::acquire_journal(bool create) {
  if (read_only_) return Status::failure(EROFS, path_ + " was opened for looking only");
  struct stat user{};
  if (::fstat(base_.descriptor(), &user) != 0)
    return Status::from_errno(errno, "cannot stat " + path_);
  for (int attempt = 0; attempt < kLockAttemptsMax; ++attempt) {
    constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    std::string name = journal_path_;
    Descriptor side(::open(name.c_str(), kFlags));
    if (!side.valid() && errno == ENOENT) {
      if (!create)
        return Status::failure(ENOENT, path_ + " has no journal (" + journal_path_ + ")");
      name = provisional_path();
      side.reset(::open(name.c_str(), kFlags | O_CREAT, user.st_mode & 0600));
    }
    if (!side.valid()) {
      if (errno == ELOOP) {
        return Status::failure(
            ELOOP, name + " is a symbolic link; Pawl follows none. Move it away and try again");
      }
      return Status::from_errno(errno, "cannot open or create the journal " + name +
                                           " (the directory of the file must be writable)");
    }
    // Before the lock: what is not believed is not waited for either.
    auto owner = check_side_file(side, user);
    if (!owner.ok()) return owner.status();
    PAWL_TRY(lock_side_file(side));
    // The holder before us may have renamed or removed what we opened: then the lock is on nothing.
    struct stat held{};
    struct stat named{};
    if (::fstat(side.get(), &held) != 0) return Status::from_errno(errno, "cannot stat " + name);
    if (::lstat(name.c_str(), &named) != 0 || held.st_ino != named.st_ino ||
        held.st_dev != named.st_dev)
      continue;
    provisional_ = name != journal_path_;
    // Another writer may have given its own the name meanwhile, and this one is a newer
    // provisional.
    if (provisional_ && ::lstat(journal_path_.c_str(), &named) == 0) {
      ::unlink(name.c_str());
      continue;
    }
    if (provisional_) {
      // What an earlier crash left under the provisional name never held a commit.
      if (::ftruncate(side.get(), 0) != 0) return Status::from_errno(errno, "cannot empty " + name);
      if (const Status adopted = adopt_permissions(side, user); !adopted.ok()) {
        ::unlink(name.c_str());
        return adopted;
      }
    }
    auto again = open_side_file("/proc/self/fd/" + std::to_string(side.get()));
    if (!again.ok()) return again.status();
    lock_ = std::move(side);
    return JournalFile{std::move(again.value()), provisional_, owner.value()};
  }
  return Status::failure(EBUSY, "the journal " + journal_path_ +
                                    " comes and goes; another writer is busy with " + path_ +
                                    ". Try again");
}

Status NamedMedium::publish_journal() {
  if (!provisional_) return {};
  // Never over another one: it may hold commits.
  if (::renameat2(AT_FDCWD, provisional_path().c_str(), AT_FDCWD, journal_path_.c_str(),
                  RENAME_NOREPLACE) != 0) {
    return Status::from_errno(errno, "cannot name the journal " + journal_path_);
  }
  provisional_ = false;
  return flush_directory();
}

std::uint64_t NamedMedium::first_held_record() const {
  return lock_.valid() ? pawl::first_held_record(lock_.get()) : kNoRecordIsHeld;
}

Result<Descriptor> NamedMedium::open_to_read() {
  Descriptor side(::open(journal_path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!side.valid()) {
    if (errno == ENOENT)
      return Status::failure(ENOENT, path_ + " has no journal (" + journal_path_ + ")");
    if (errno == ELOOP)
      return Status::failure(ELOOP, journal_path_ + " is a symbolic link; Pawl follows none");
    return Status::from_errno(errno, "cannot open " + journal_path_);
  }
  struct stat user{};
  if (::fstat(base_.descriptor(), &user) != 0)
    return Status::from_errno(errno, "cannot stat " + path_);
  PAWL_TRY(check_side_file(side, user).status());
  return side;
}

Result<std::unique_ptr<MediumFile>> NamedMedium::read_journal() {
  auto side = open_to_read();
  if (!side.ok()) return side.status();
  return std::unique_ptr<MediumFile>(
      std::make_unique<DescriptorFile>(std::move(side.value()), journal_path_));
}

Result<HeldJournal> NamedMedium::hold_journal() {
  auto side = open_to_read();
  if (!side.ok()) return side.status();
  return HeldJournal::hold(std::move(side.value()), journal_path_);
}

Status NamedMedium::flush_directory() const {
  Descriptor handle(::open(directory().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!handle.valid()) return Status::from_errno(errno, "cannot open the directory " + directory());
  if (::fsync(handle.get()) != 0 && errno != EINVAL)
    return Status::from_errno(errno, "cannot flush the directory " + directory());
  return {};
}

Status NamedMedium::remove_journal() {
  // Only the one that we hold: the file may have been renamed, and another have taken its place.
  const std::string name = provisional_ ? provisional_path() : journal_path_;
  struct stat held{};
  struct stat named{};
  if (lock_.valid() && ::fstat(lock_.get(), &held) == 0 && ::lstat(name.c_str(), &named) == 0 &&
      (held.st_ino != named.st_ino || held.st_dev != named.st_dev)) {
    return {};
  }
  if (::unlink(name.c_str()) != 0 && errno != ENOENT) {
    return Status::from_errno(
        errno, "cannot remove " + name +
                   ", and no journal can be made until it is removed: " + path_ +
                   " has all that was committed. Its owner, that of the directory, or root "
                   "may remove it (pawl recover)");
  }
  return {};
}

bool NamedMedium::can_mark() const {
  if (!can_mark_) {
    char value[kMarkBytesMax];
    can_mark_ = ::fgetxattr(base_.descriptor(), kMarkAttribute, value, sizeof value) >= 0 ||
                !attributes_unsupported(errno);
  }
  return *can_mark_;
}

Result<std::optional<Mark>> NamedMedium::mark() {
  char value[kMarkBytesMax];
  const ssize_t length = ::fgetxattr(base_.descriptor(), kMarkAttribute, value, sizeof value);
  if (length < 0) {
    if (errno == ENODATA || attributes_unsupported(errno)) return std::optional<Mark>{};
    return Status::from_errno(errno, "cannot read the mark of " + path_);
  }
  const std::string text(value, static_cast<std::size_t>(length));
  // "1 <32 hex digits> <journal path>"; "2 <32 hex digits> <its inode>:<its birth> <journal path>"
  if (text.size() >= 35 && (text.starts_with("1 ") || text.starts_with("2 ")) && text[34] == ' ') {
    const char* rest = text.c_str() + 35;
    const auto id = parse_journal_id(text.substr(2, 32));
    const auto side_file = text[0] == '2' ? parse_identity(rest) : FileIdentity{};
    if (id && side_file) return std::optional<Mark>{Mark{*id, rest, *side_file}};
  }
  return Status::failure(
      EBADMSG,
      "the mark of " + path_ + " (attribute " + kMarkAttribute +
          ") is not one that this version of Pawl writes; open it with the version that did");
}

Status NamedMedium::set_mark(const Mark& mark) {
  const FileIdentity side_file = identity_of(lock_.get());
  const std::string text = "2 " + describe_journal_id(mark.journal_id) + " " +
                           std::to_string(side_file.inode) + ":" +
                           std::to_string(side_file.birth_time_ns) + " " + mark.journal_path;
  const bool is_set =
      ::fsetxattr(base_.descriptor(), kMarkAttribute, text.data(), text.size(), 0) == 0;
  attributes_changed();
  if (is_set) return {};
  if (errno == ENOSPC || errno == EDQUOT) {
    return Status::from_errno(
        errno, "no room to mark " + path_ + " as open; free some space and try again");
  }
  if (attributes_unsupported(errno) && !can_mark()) return {};
  return Status::from_errno(errno, "cannot mark " + path_ + " as open");
}

Status NamedMedium::clear_mark() {
  const bool is_removed = ::fremovexattr(base_.descriptor(), kMarkAttribute) == 0;
  attributes_changed();
  if (is_removed) return {};
  if (errno == ENODATA || attributes_unsupported(errno)) return {};
  if (errno == ENOSPC || errno == EDQUOT) {
    return Status::from_errno(
        errno, "no room even to remove the mark of " + path_ + "; free some space and try again");
  }
  return Status::from_errno(errno, "cannot remove the mark of " + path_);
}

// A group has its records on a disk, so its files are opened as those are.
Result<std::unique_ptr<Medium>> NamedMedium::open_sibling(const std::string& name) {
  return open_block_medium(name.starts_with('/') ? name : directory() + name, read_only_);
}

Result<char*> NamedMedium::map_private(void* address, std::size_t length, int protection, int flags,
                                       std::uint64_t offset) {
  void* at = memory::map(address, length, protection, MAP_PRIVATE | flags, base_.descriptor(),
                         static_cast<off_t>(offset));
  if (at == MAP_FAILED)
    return Status::from_errno(errno, "cannot map " + std::to_string(length) + " bytes of " + path_);
  return static_cast<char*>(at);
}

namespace {

struct FileSystemVerdict {
  long type;
  const char* name;
  const char* reason;
};

// File systems on which a private mapping or an atomic journal cannot be had.
constexpr FileSystemVerdict kRefusedFileSystems[] = {
    {0x9fa0, "proc", "its files are not storage"},
    {0x62656572, "sysfs", "its files are not storage"},
    {0x01021997, "9p", "it keeps no promise about flushed bytes across hosts"},
};

Result<NamedFile> checked(Descriptor base, const std::string& path, bool read_only) {
  struct stat status{};
  if (::fstat(base.get(), &status) != 0) return Status::from_errno(errno, "cannot stat " + path);
  if (!S_ISREG(status.st_mode))
    return Status::failure(ENODEV,
                           path + " is not a regular file; only those can be mapped atomically");
  struct statfs file_system{};
  if (::fstatfs(base.get(), &file_system) == 0) {
    for (const auto& refused : kRefusedFileSystems) {
      if (file_system.f_type == refused.type) {
        return Status::failure(
            ENODEV, path + " is on " + refused.name + ", which cannot serve: " + refused.reason);
      }
    }
  }
  const FileIdentity identity = identity_of(base.get());
  return NamedFile{std::move(base), path, identity, read_only};
}

}  // namespace

Result<NamedFile> open_named_file(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0)
    return Status::failure(EBADF, "the descriptor " + std::to_string(descriptor) + " is not open");
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  char target[PATH_MAX];
  const ssize_t length = ::readlink(link.c_str(), target, sizeof target - 1);
  if (length < 0)
    return Status::from_errno(errno, "cannot find the name of descriptor " +
                                         std::to_string(descriptor) + " (is /proc mounted?)");
  const std::string path(target, static_cast<std::size_t>(length));
  if ((flags & O_PATH) != 0 || (flags & O_ACCMODE) != O_RDWR) {
    return Status::failure(
        EACCES, path + " must be open for reading and writing (O_RDWR) to be mapped atomically");
  }
  struct stat by_descriptor{};
  struct stat by_name{};
  if (::fstat(descriptor, &by_descriptor) != 0)
    return Status::from_errno(errno, "cannot stat " + path);
  if (!S_ISREG(by_descriptor.st_mode))
    return Status::failure(ENODEV,
                           path + " is not a regular file; only those can be mapped atomically");
  if (by_descriptor.st_nlink == 0 || ::stat(path.c_str(), &by_name) != 0 ||
      by_name.st_ino != by_descriptor.st_ino || by_name.st_dev != by_descriptor.st_dev) {
    return Status::failure(ENOENT, "the file of descriptor " + std::to_string(descriptor) + " (" +
                                       path +
                                       ") has no name any more; a file that cannot be found after "
                                       "a crash cannot be mapped atomically");
  }
  Descriptor base(::open(link.c_str(), O_RDWR | O_CLOEXEC));
  if (!base.valid())
    return Status::from_errno(errno, "cannot open " + path + " again for reading and writing");
  return checked(std::move(base), path, false);
}

Result<NamedFile> open_named_file(const std::string& path, bool read_only) {
  Descriptor base(::open(path.c_str(), (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK));
  if (!base.valid()) return Status::from_errno(errno, "cannot open " + path);
  char real[PATH_MAX];
  if (::realpath(path.c_str(), real) == nullptr)
    return Status::from_errno(errno, "cannot find " + path);
  return checked(std::move(base), real, read_only);
}

}  // namespace pawl
