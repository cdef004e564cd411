#include "wsp/process/file_proof.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "wsp/process/program_rights.h"
#include "wsp/process/time_space.h"

namespace pawl::wsp {

namespace {

// What open(2) takes besides the access mode; creation and truncation are over.
constexpr std::uint32_t kOpenFlags = O_ACCMODE | O_APPEND | O_NONBLOCK | O_DSYNC | O_SYNC |
                                     O_DIRECT | O_DIRECTORY | O_NOATIME | O_PATH | O_LARGEFILE;
constexpr int kFoundOnly = O_PATH | O_NOFOLLOW | O_CLOEXEC;
constexpr ino_t kProcRoot = 1;  // the inode of each root of a proc(5)

bool is_device(std::uint32_t type) { return type == S_IFCHR || type == S_IFBLK; }

// A save does not ask a server for the birth.
bool is_same(const FileProof& had, const FileProof& is, bool same_boot) {
  if (had.type != is.type) return false;
  // Its node may have been made anew; what it stands for is the device.
  if (is_device(had.type)) return had.device_number == is.device_number;
  return had.inode == is.inode &&
         (had.birth_time_ns == 0 || had.birth_time_ns == is.birth_time_ns) &&
         (had.device == is.device || !same_boot);
}

Status is_another(const std::string& name) {
  return Status::failure(ESTALE, name + " is another file than it was");
}

bool is_trusted(uid_t owner) { return owner == 0 || owner == ::geteuid(); }

bool look_at_file(int directory, const std::string& name, int how, FileProof& into) {
  struct statx found{};
  if (::statx(directory, name.c_str(), how | (name.empty() ? AT_EMPTY_PATH : 0),
              STATX_TYPE | STATX_INO | STATX_BTIME, &found) != 0)
    return false;
  into.type = found.stx_mode & S_IFMT;
  into.inode = found.stx_ino;
  into.device = makedev(found.stx_dev_major, found.stx_dev_minor);
  into.device_number = makedev(found.stx_rdev_major, found.stx_rdev_minor);
  into.birth_time_ns = (found.stx_mask & STATX_BTIME) == 0
                           ? 0
                           : static_cast<std::uint64_t>(found.stx_btime.tv_sec) * 1'000'000'000 +
                                 found.stx_btime.tv_nsec;
  return true;
}

// The type of the file system; 0 when it is not known.
long file_system_type(int directory, const std::string& name) {
  struct statfs facts{};
  if (name.empty()) return ::fstatfs(directory, &facts) == 0 ? facts.f_type : 0;
  const Descriptor found(::openat(directory, name.c_str(), O_PATH | O_CLOEXEC));
  return found.valid() && ::fstatfs(found.get(), &facts) == 0 ? facts.f_type : 0;
}

// What may change of a directory that stays is not compared: overlayfs numbers those anew that it
// had forgotten.
bool is_alike(const FileProof& had, const Descriptor& directory, bool same_boot) {
  FileProof is;
  if (!prove_file(directory.get(), "", is)) return false;
  if (had.birth_time_ns != 0 && file_system_type(directory.get(), "") == OVERLAYFS_SUPER_MAGIC)
    is.inode = had.inode;
  return is_same(had, is, same_boot);
}

// A directory that is reached through those of ours and of root alone, which nobody else may write;
// in one like /tmp others cannot rename what is ours.
Descriptor open_unchanged(const std::string& name) {
  constexpr int kFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Descriptor at(::open("/", kFlags));
  for (const std::filesystem::path& part : std::filesystem::path(name).relative_path()) {
    struct stat parent{};
    struct stat facts{};
    Descriptor next(::openat(at.get(), part.c_str(), kFlags));
    if (!next.valid() || ::fstat(at.get(), &parent) != 0 || ::fstat(next.get(), &facts) != 0)
      return {};
    const bool others_write = (parent.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    const bool is_kept = (parent.st_mode & S_ISVTX) != 0 && is_trusted(facts.st_uid);
    if (!is_trusted(parent.st_uid) || (others_write && !is_kept)) return {};
    at = std::move(next);
  }
  return at;
}

// The file, if nobody else can have changed the way to it.  Behind a boot file systems have other
// numbers, and one that another user has made (a stick of his, an image) may hold a file of any
// inode and time of birth: there only we may have renamed it, either.
Descriptor find_unchanged(const std::string& name, const FileProof& had, bool same_boot) {
  const std::filesystem::path path(name);
  const Descriptor holding = open_unchanged(path.parent_path().string());
  struct stat facts{};
  if (!holding.valid() || ::fstat(holding.get(), &facts) != 0) return {};
  const bool is_ours = facts.st_uid == ::geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  Descriptor found(::openat(holding.get(), path.filename().c_str(), kFoundOnly));
  FileProof is;
  const bool is_same_file =
      found.valid() && prove_file(found.get(), "", is) && is_same(had, is, same_boot);
  return is_same_file && (same_boot || is_ours) ? std::move(found) : Descriptor();
}

Descriptor find_proven(const std::string& name, const FileProof& had, bool same_boot) {
  const bool is_proven = had.is_certain && had.birth_time_ns != 0 && !is_device(had.type);
  return is_proven ? find_unchanged(name, had, same_boot) : Descriptor();
}

// Who has a lease and is no enemy gives it up at once, as a file server does.  All files together
// are waited for no longer than that.
bool may_wait_for_lease() {
  constexpr std::chrono::seconds kAllLeasesMax{1};
  static const auto until = std::chrono::steady_clock::now() + kAllLeasesMax;
  if (std::chrono::steady_clock::now() >= until) return false;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return true;
}

// Whoever has a lease on it (F_SETLEASE) must not hold us up: the status flags are those asked for.
Descriptor open_at_once(const std::string& link, int flags) {
  Descriptor opened;
  do {
    opened.reset(::open(link.c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  } while (!opened.valid() && errno == EWOULDBLOCK && may_wait_for_lease());
  const bool is_name = (flags & O_PATH) != 0;
  if (opened.valid() && !is_name && (flags & O_NONBLOCK) == 0)
    ::fcntl(opened.get(), F_SETFL, ::fcntl(opened.get(), F_GETFL) & ~O_NONBLOCK);
  return opened;
}

Status check_mount(const Descriptor& found, const std::string& name, const FileProof& had) {
  if (had.restrictions == 0) return {};
  const std::optional<Mount> mount = mount_of(found.get());
  if (mount && (had.restrictions & ~mount->restrictions) == 0) return {};
  return Status::failure(ESTALE,
                         name +
                             " lies in a mount with fewer restrictions than it was opened by "
                             "(ro, nosuid, nodev, noexec, nosymfollow); mount it as it was");
}

// With the rights that we have now.
Result<Descriptor> open_found(const Descriptor& found, const std::string& name,
                              const FileProof& had, int flags) {
  PAWL_TRY(check_mount(found, name, had));
  const bool is_link = had.type == S_IFLNK;  // O_PATH and O_NOFOLLOW, which no link to it would say
  const std::string link = link_to_descriptor(found.get());
  Descriptor opened =
      is_link ? Descriptor(::fcntl(found.get(), F_DUPFD_CLOEXEC, 0)) : open_at_once(link, flags);
  if (opened.valid()) return opened;
  if (errno == EWOULDBLOCK) {
    return FailedCall{errno, "a program has a lease on " + name +
                                 " (fcntl(2), F_SETLEASE; /proc/locks has its number), which it "
                                 "was asked to give up; try again, or stop it"};
  }
  return FailedCall{errno, "cannot open " + name};
}

bool takes_other_rights(const Status& refused) {
  return refused.error_number() == EACCES || refused.error_number() == EPERM;
}

Status lacks_rights(const std::string& name, const Status& refused) {
  return FailedCall{refused.error_number(), "cannot open " + name + " with the program's rights"};
}

}  // namespace

FileProof proof_of(const DescriptorFacts& facts) {
  return {static_cast<std::uint32_t>(facts.type),
          facts.device,
          facts.inode,
          facts.times[0],
          facts.value,
          true,
          static_cast<std::uint32_t>(facts.times[1])};
}

FileProof proof_of(const MappingFacts& facts) {
  return {S_IFREG, facts.device, facts.inode, facts.birth_time_ns, 0, facts.is_certain != 0};
}

FileProof proof_of(const DirectoryFacts& facts) {
  return {S_IFDIR, facts.device, facts.inode, facts.birth_time_ns, 0};
}

bool prove_file(int directory, const std::string& name, FileProof& into) {
  if (!look_at_file(directory, name, 0, into)) return false;
  if (into.birth_time_ns != 0 || (into.type != S_IFREG && into.type != S_IFDIR)) return true;
  const long system = file_system_type(directory, name);
  if (system == PROC_SUPER_MAGIC || system == SYSFS_MAGIC) into.inode = into.device = 0;
  return true;
}

bool is_of_a_process(const std::string& name) {
  for (std::size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1)) {
    const std::string above = name.substr(0, std::max<std::size_t>(at, 1));
    struct stat facts{};
    if (at + 1 < name.size() && name[at + 1] >= '0' && name[at + 1] <= '9' &&
        ::stat(above.c_str(), &facts) == 0 && facts.st_ino == kProcRoot &&
        file_system_type(AT_FDCWD, above) == PROC_SUPER_MAGIC)
      return true;
  }
  return false;
}

bool prove_known_directory(pid_t process, FileProof& into) {
  const Descriptor directory(
      ::open(fmt::format("/proc/{}/cwd", process).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid() || !prove_known_file(directory.get(), "", into)) return false;
  // Where it has a birth, it is no file of the kernel's: no list of mounts is read, of any length.
  if (into.birth_time_ns == 0)
    forget_inode_of_kernel(MountTable(process).find(mount_number_of(directory.get())), into);
  return true;
}

void forget_inode_of_kernel(const std::optional<Mount>& mount, FileProof& of) {
  const bool is_file = of.type == S_IFREG || of.type == S_IFDIR;
  if (is_file && of.birth_time_ns == 0 && mount &&
      (mount->type == "proc" || mount->type == "sysfs"))
    of.inode = of.device = 0;
}

bool prove_known_file(int directory, const std::string& name, FileProof& into) {
  return look_at_file(directory, name, AT_STATX_DONT_SYNC, into);
}

Result<Descriptor> open_known(int directory, const std::string& name) {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_CACHED;
  // Somebody may rename or mount something in the same moment.
  constexpr int kTriesMax = 3;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    Descriptor found(
        static_cast<int>(::syscall(SYS_openat2, directory, name.c_str(), &how, sizeof(how))));
    if (found.valid()) return found;
    if (errno != EAGAIN) break;
  }
  // A sandbox, or an old kernel, does not know the call.
  const bool is_refused = errno == ENOSYS || errno == EPERM || errno == EINVAL;
  return FailedCall{is_refused ? EAGAIN : errno, "cannot open " + name};
}

Result<Descriptor> find_known_file(const std::string& name, const FileProof& had) {
  Result<Descriptor> found = open_known(AT_FDCWD, name);
  if (!found.ok()) return found;
  FileProof is;
  const bool is_proven = prove_known_file(found.value().get(), "", is);
  if (had.inode == 0) is.inode = is.device = 0;  // the kernel's own
  if (!is_proven || !is_same(had, is, true)) return is_another(name);
  return found;
}

bool is_elsewhere(const std::string& name, int error_number) {
  // Of a file that has a name like that the kernel would have known it.
  if (error_number == EAGAIN) return !name.starts_with('/') || name.ends_with(" (deleted)");
  return error_number == ENOENT || error_number == ENOTDIR || error_number == ELOOP ||
         error_number == ESTALE;
}

Result<Descriptor> find_file(const std::string& name, const FileProof& had, bool same_boot) {
  Descriptor found(::open(name.c_str(), kFoundOnly));
  if (!found.valid()) return FailedCall{errno, "cannot open " + name};
  FileProof is;
  if (!prove_file(found.get(), "", is) || !is_same(had, is, same_boot)) return is_another(name);
  return found;
}

Result<Descriptor> open_known_file(const std::string& name, const FileProof& had, int flags,
                                   const SavedProcess& program) {
  const Result<ProgramRights> rights = ProgramRights::take(program);
  if (!rights.ok()) return rights.status();
  const Result<Descriptor> found = find_known_file(name, had);
  Result<Descriptor> opened =
      found.ok() ? open_found(found.value(), name, had, flags) : found.status();
  if (opened.ok() || !takes_other_rights(opened.status())) return opened;
  return lacks_rights(name, opened.status());
}

Result<Descriptor> open_file(const std::string& name, const FileProof& had, int flags,
                             const SavedProcess& program, bool same_boot) {
  Status refused;
  {
    const Result<ProgramRights> rights = ProgramRights::take(program);
    if (!rights.ok()) return rights.status();
    const Result<Descriptor> found = find_file(name, had, same_boot);
    Result<Descriptor> opened =
        found.ok() ? open_found(found.value(), name, had, flags) : found.status();
    if (opened.ok()) return opened;
    refused = opened.status();
  }
  if (!takes_other_rights(refused)) return refused;
  const Descriptor found = find_proven(name, had, same_boot);
  if (found.valid()) return open_found(found, name, had, flags);
  return lacks_rights(name, refused);
}

Result<Descriptor> open_again(const SavedDescriptor& descriptor, const SavedProcess& program) {
  const FileProof had = proof_of(descriptor.facts);
  return open_file(descriptor.text, had, static_cast<int>(descriptor.facts.flags & kOpenFlags),
                   program, is_of_this_boot(program.system));
}

Status foresee_way(const SavedDescriptor& descriptor, const SavedProcess& program) {
  const std::string& name = descriptor.text;
  const std::uint32_t mode = descriptor.facts.flags & O_ACCMODE;
  const bool is_name = (descriptor.facts.flags & O_PATH) != 0;
  const int wanted = is_name            ? F_OK
                     : mode == O_RDONLY ? R_OK
                     : mode == O_WRONLY ? W_OK
                                        : R_OK | W_OK;
  {
    const Result<ProgramRights> rights = ProgramRights::take(program);
    if (!rights.ok()) return rights.status();
    if (::faccessat(AT_FDCWD, name.c_str(), wanted, AT_EACCESS) == 0 || errno != EACCES) return {};
  }
  if (find_proven(name, proof_of(descriptor.facts), false).valid()) return {};
  return FailedCall{EACCES,
                    "cannot open " + name +
                        " with the program's rights, nor, once the machine was started again, "
                        "with the restorer's: others could change what its name leads to"};
}

Status go_to_directory(const SavedProcess& program) {
  const std::string& name = program.directory;
  const FileProof had = proof_of(program.process.directory);
  const Descriptor unchanged = open_unchanged(name);
  const bool same_boot = is_of_this_boot(program.system);
  int error_number = 0;
  {
    const Result<ProgramRights> rights = ProgramRights::take(program);
    if (!rights.ok()) return rights.status();
    const Descriptor found(::open(name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (found.valid() && !unchanged.valid() && !is_alike(had, found, same_boot))
      return Status::failure(ESTALE,
                             "cannot go to " + name +
                                 ": it is another directory than the program was in; that "
                                 "is believed only where all directories above it are "
                                 "root's or the restorer's, and nobody else may write them");
    if (found.valid() && ::fchdir(found.get()) == 0) return {};
    error_number = errno;
  }
  FileProof is;
  if (error_number == EACCES && had.birth_time_ns != 0 && unchanged.valid() &&
      prove_file(unchanged.get(), "", is) && is_same(had, is, same_boot) &&
      ::fchdir(unchanged.get()) == 0)
    return {};
  return FailedCall{error_number, "cannot go to " + name + " with the program's rights"};
}

}  // namespace pawl::wsp
