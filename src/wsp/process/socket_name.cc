#include "wsp/process/socket_name.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/capability.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "medium/descriptor.h"
#include "wsp/process/bounded_child.h"
#include "wsp/process/file_proof.h"
#include "wsp/process/internet_socket.h"
#include "wsp/process/mount.h"
#include "wsp/process/object_owner.h"
#include "wsp/process/proc.h"
#include "wsp/process/program_rights.h"

namespace pawl::wsp {

namespace {

constexpr const char* kNotHad = "its address cannot be had with the program's rights";
constexpr const char* kNotRemoved = "cannot remove the name that it left behind";
constexpr int kNameOnly = O_PATH | O_NOFOLLOW | O_CLOEXEC;
constexpr unsigned long kUnixFile = SIOCPROTOPRIVATE;  // SIOCUNIXFILE, which sys/un.h lacks

// Empty where it has none, or an abstract one.
std::string name_of(const DescriptorFacts& facts) {
  const auto* const local = reinterpret_cast<const sockaddr_un*>(&facts.address);
  if (facts.domain != AF_UNIX || facts.address_bytes <= sizeof(sa_family_t)) return {};
  return {local->sun_path, ::strnlen(local->sun_path, facts.address_bytes - sizeof(sa_family_t))};
}

// The file that a socket is bound to, as the kernel says.
struct BoundFile {
  Descriptor itself;                     // where we may have it (CAP_NET_ADMIN); O_PATH
  std::optional<unix_diag_vfs> numbers;  // elsewhere
  bool is_known() const { return itself.valid() || numbers.has_value(); }
};

// Whether the name that was opened is the one that the socket is bound to.
bool is_name_of(int name, const BoundFile& bound, MountTable& mounts) {
  FileProof is;
  FileProof had;
  if (!prove_known_file(name, "", is) || !S_ISSOCK(is.type)) return false;
  if (bound.itself.valid())
    return prove_known_file(bound.itself.get(), "", had) && is.device == had.device &&
           is.inode == had.inode;
  if (!bound.numbers || static_cast<std::uint32_t>(is.inode) != bound.numbers->udiag_vfs_ino)
    return false;
  // Not by stat(2), which answers others where a file system has several devices (btrfs).
  std::optional<Mount> mount = mounts.find(mount_number_of(name));
  if (!mount) mount = mount_of(name);  // ours, where the program sees others
  return mount && mount->device == bound.numbers->udiag_vfs_dev;
}

Descriptor open_bound_file(int socket) { return Descriptor(::ioctl(socket, kUnixFile)); }

std::optional<unix_diag_vfs> ask_what_is_bound(int socket) {
  const std::optional<UnixSocketFacts> told = ask_about_socket(socket);
  return told ? told->file : std::nullopt;
}

// The parts of a name: the directory, and what lies in it.
std::pair<std::string, std::string> parts_of(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  if (slash == std::string::npos) return {".", name};
  return {name.substr(0, slash + 1), name.substr(slash + 1)};
}

// Whether a name in a directory may be removed, once that may be written.
bool may_be_removed(const struct stat& present, const struct stat& holding,
                    const SavedProcess& program) {
  const uid_t user = program.process.user[3];
  return (holding.st_mode & S_ISVTX) == 0 || holding.st_uid == user || user == 0 ||
         present.st_uid == user;
}

// The directory in which a name lies, and what has the name.
struct FoundName {
  Descriptor directory;
  Descriptor file;
};

using Open = Result<Descriptor> (*)(int directory, const std::string& name);

Result<Descriptor> open_name(int directory, const std::string& name) {
  Descriptor found(::openat(directory, name.c_str(), kNameOnly));
  if (!found.valid()) return FailedCall{errno, "cannot open " + name};
  return found;
}

// From the program's directory, and with its rights, with which it is made anew.  All else is asked
// by these: a second walk may lead elsewhere, to a server.
Result<FoundName> find_name(int current, const std::string& name, const SavedProcess& program,
                            Open open) {
  const Result<ProgramRights> rights = ProgramRights::take(program);
  if (!rights.ok()) return rights.status();
  const auto [above, last] = parts_of(name);
  Result<Descriptor> directory = open(current, above);
  if (!directory.ok()) return directory.status();
  Result<Descriptor> file = open(directory.value().get(), last);
  if (!file.ok()) return file.status();
  return FoundName{std::move(directory.value()), std::move(file.value())};
}

// Whether the name of a socket can be made anew with the program's rights: it is not with ours.
bool can_be_bound_again(const FoundName& found, const struct stat& present,
                        const SavedProcess& program) {
  const Result<ProgramRights> rights = ProgramRights::take(program);
  const auto may = [](const Descriptor& what, int mode) {
    return ::faccessat(what.get(), "", mode, AT_EACCESS | AT_EMPTY_PATH) == 0;
  };
  struct stat holding{};
  // What may not be written to cannot be asked whether somebody listens there.
  return rights.ok() && may(found.directory, W_OK | X_OK) && may(found.file, W_OK) &&
         ::fstat(found.directory.get(), &holding) == 0 && may_be_removed(present, holding, program);
}

// Whether the name's owner can be given to it with the program's rights.
bool can_be_owned_again(const struct stat& present, const SavedProcess& program) {
  constexpr std::uint64_t kMayChangeOwner = 1ULL << CAP_CHOWN;
  if ((program.process.capabilities[2] & kMayChangeOwner) != 0) return true;
  const std::vector<std::uint32_t>& groups = program.groups;
  return present.st_uid == program.process.user[3] &&
         (present.st_gid == program.process.group_ids[3] ||
          std::find(groups.begin(), groups.end(), present.st_gid) != groups.end());
}

// Nobody listens at it any more.
bool is_unheard(int name, int type) {
  const Descriptor probe(::socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string link = link_to_descriptor(name);
  link.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return probe.valid() &&
         ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
             0 &&
         errno == ECONNREFUSED;
}

// Whether the name is there, of a socket that nobody uses: nothing else may be removed.
Result<bool> was_left_behind(int directory, const std::string& last, int type) {
  struct stat facts{};
  const Descriptor found(::openat(directory, last.c_str(), kNameOnly));
  if (!found.valid() && errno == ENOENT) return false;
  if (!found.valid()) return FailedCall{errno, "cannot look at what has its name"};
  if (::fstat(found.get(), &facts) != 0 || !S_ISSOCK(facts.st_mode))
    return Status::failure(EADDRINUSE, "another file has its name; move it away");
  if (!is_unheard(found.get(), type))
    return Status::failure(EADDRINUSE,
                           "another program listens at its name; stop that, or remove the name");
  return true;
}

// Whether the name is there, and may be removed; fails where it cannot be made anew.  With the
// program's rights, which are taken.
Result<bool> can_be_made(int directory, const std::string& last, const DescriptorFacts& facts,
                         const SavedProcess& program) {
  struct stat holding{};
  struct stat present{};
  if (::faccessat(directory, ".", W_OK | X_OK, AT_EACCESS) != 0 ||
      ::fstat(directory, &holding) != 0)
    return FailedCall{errno, kNotHad};
  Result<bool> is_there = was_left_behind(directory, last, facts.type);
  if (is_there.ok() && is_there.value() &&
      ::fstatat(directory, last.c_str(), &present, AT_SYMLINK_NOFOLLOW) == 0 &&
      !may_be_removed(present, holding, program))
    return Status::failure(EPERM, kNotRemoved);
  return is_there;
}

// The name gets the mode of the socket, less the mask.
bool bind_without_mask(const DescriptorFacts& facts, int socket) {
  const mode_t before = ::umask(0);
  const bool is_bound =
      ::bind(socket, reinterpret_cast<const sockaddr*>(&facts.address), facts.address_bytes) == 0;
  const int error_number = errno;
  ::umask(before);
  errno = error_number;
  return is_bound;
}

Status bind_abstract_name(const DescriptorFacts& facts, int socket) {
  if (bind_without_mask(facts, socket)) return {};
  return FailedCall{errno, with_advice("its abstract name cannot be had", errno, facts)};
}

// It leaves nothing behind.
Status check_abstract_name(const DescriptorFacts& facts) {
  if (facts.domain != AF_UNIX || facts.address_bytes <= sizeof(sa_family_t)) return {};
  const Descriptor probe(::socket(AF_UNIX, facts.type | SOCK_CLOEXEC, facts.protocol));
  if (!probe.valid()) return FailedCall{errno, "a socket"};
  return bind_abstract_name(facts, probe.get());
}

Status give_mode_of_name(const DescriptorFacts& facts, int socket, const SavedProcess& program) {
  const Result<ProgramRights> owner = ProgramRights::take(program, facts);
  if (!owner.ok()) return owner.status();
  if (::fchmod(socket, static_cast<mode_t>(facts.value) & 07777) == 0) return {};
  return FailedCall{errno, "its mode cannot be given to it"};
}

Status give_name_owner(const DescriptorFacts& facts, int name) {
  struct stat found{};
  const SocketOwner owner = owner_of(facts);
  if (::fstat(name, &found) == 0 && found.st_uid == owner.user && found.st_gid == owner.group)
    return {};
  if (::fchownat(name, "", owner.user, owner.group, AT_EMPTY_PATH) != 0)
    return FailedCall{errno, "its name cannot be given its owner with the program's rights"};
  return {};
}

// Tried with a socket of no name, which is new as the name will be.  In a directory with the bit
// for groups that has the directory's group already.
Status check_name_owner(int directory, const DescriptorFacts& facts, const SavedProcess& program) {
  struct stat holding{};
  const SocketOwner owner = owner_of(facts);
  DescriptorFacts name{};
  name.user = owner.user;
  name.group = owner.group;
  name.mode = static_cast<std::uint32_t>(facts.value) & 07777;
  if (::fstat(directory, &holding) == 0 && (holding.st_mode & S_ISGID) != 0 &&
      holding.st_gid == owner.group)
    name.group = program.process.group_ids[3];
  return check_gift(name);
}

Status check_file_name(const DescriptorFacts& facts, const SavedProcess& program) {
  const Result<ProgramRights> rights = ProgramRights::take(program);
  if (!rights.ok()) return rights.status();
  const auto [above, last] = parts_of(name_of(facts));
  const std::string path = above.front() == '/' ? above : program.directory + "/" + above;
  const Descriptor directory(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  // The restore may get where the program was in another way: go_to_directory().
  if (!directory.valid() && errno == EACCES && above.front() != '/') return {};
  if (!directory.valid()) return FailedCall{errno, kNotHad};
  PAWL_TRY(can_be_made(directory.get(), last, facts, program).status());
  return check_name_owner(directory.get(), facts, program);
}

struct NameQuestion {
  pid_t leader;
  const SavedProcess& program;
  const BoundFile& bound;
  MountTable& mounts;
};

Status name_is_not_there(pid_t leader, const std::string& name) {
  const bool is_relative = name.front() != '/';
  return Status::failure(
      ENOTSUP,
      fmt::format("the name of its socket, {}, is not there any more{} (let it keep the name that "
                  "it was bound to{})",
                  name,
                  is_relative
                      ? ", from the program's present directory " + read_proc_link(leader, "cwd")
                      : "",
                  is_relative ? ", and bind it by a whole name before it goes elsewhere" : ""));
}

Status cannot_be_made(const std::string& name) {
  return Status::failure(
      ENOTSUP,
      fmt::format("the program could not make its socket {} again: it may not write to that "
                  "directory, or to the socket, or not remove the name",
                  name));
}

Status note_name(const NameQuestion& asked, const Result<FoundName>& found, DescriptorFacts& into) {
  const std::string name = name_of(into);
  const int error_number = found.ok() ? 0 : found.status().error_number();
  if (error_number == ENOENT || error_number == ENOTDIR)
    return name_is_not_there(asked.leader, name);
  if (error_number == EACCES || error_number == EPERM) return cannot_be_made(name);
  struct stat present{};
  if (!found.ok() || ::fstat(found.value().file.get(), &present) != 0)
    return FailedCall{found.ok() ? errno : error_number,
                      "cannot look at the name of its socket, " + name};
  if (!is_name_of(found.value().file.get(), asked.bound, asked.mounts)) {
    return Status::failure(
        ENOTSUP, fmt::format("the name of its socket, {}, is that of another file by now", name));
  }
  if (!can_be_bound_again(found.value(), present, asked.program)) return cannot_be_made(name);
  if (!can_be_owned_again(present, asked.program)) {
    return Status::failure(ENOTSUP,
                           fmt::format("the program could not give its socket {} to user {} and "
                                       "group {} again; let it be the program's",
                                       name, present.st_uid, present.st_gid));
  }
  into.value = present.st_mode;
  into.times[0] = present.st_uid;
  into.times[1] = present.st_gid;
  return {};
}

Result<BoundFile> find_bound_file(int socket, UnixSockets& sockets, const DescriptorFacts& facts) {
  BoundFile bound{open_bound_file(socket), std::nullopt};
  if (bound.is_known()) return bound;
  const bool listens = facts.kind == static_cast<std::uint32_t>(DescriptorKind::listening);
  if (const UnixSocketFacts* const told = sockets.find(facts.inode, listens))
    bound.numbers = told->file;
  else if (sockets.are_too_many())  // a save that takes longer is better than none
    bound.numbers = ask_what_is_bound(socket);
  if (bound.is_known()) return bound;
  return Status::failure(
      ENOTSUP, fmt::format("the kernel does not tell whether its socket has the name {} still "
                           "(sock_diag(7), which takes CONFIG_UNIX_DIAG)",
                           name_of(facts)));
}

bool answers_by_itself(const FoundName& found, MountTable& mounts) {
  const auto answers = [&mounts](const Descriptor& file) {
    return answers_by_itself(mounts.find(mount_number_of(file.get())));
  };
  return answers(found.directory) && answers(found.file);
}

}  // namespace

Status capture_socket_name(pid_t leader, int socket, const SavedProcess& program,
                           MountTable& mounts, UnixSockets& sockets, DescriptorFacts& into) {
  const std::string name = name_of(into);
  if (name.empty()) return {};
  const Result<BoundFile> bound = find_bound_file(socket, sockets, into);
  if (!bound.ok()) return bound.status();
  const NameQuestion asked{leader, program, bound.value(), mounts};
  // From where the program is: with its rights alone /proc/PID/cwd may be closed to us.
  const Descriptor current(
      ::open(fmt::format("/proc/{}/cwd", leader).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const Result<FoundName> known = find_name(current.get(), name, program, open_known);
  if (known.ok() && answers_by_itself(known.value(), mounts)) return note_name(asked, known, into);
  const SharedBytes told(sizeof(DescriptorFacts));
  if (told.data() == nullptr) return Status::no_memory("no memory to look at a socket's name");
  auto* const facts = new (told.data()) DescriptorFacts(into);
  const auto look = [&] {
    return note_name(asked, find_name(current.get(), name, program, open_name), *facts);
  };
  Status noted = try_in_child(kServerTimeMax, look, {current.get(), bound.value().itself.get()});
  into = *facts;
  if (noted.error_number() == ETIMEDOUT)
    return noted.with_text("the file server of the name of its socket, " + name +
                           ", does not answer");
  return noted;
}

Status check_socket_name(const DescriptorFacts& facts, const SavedProcess& program) {
  if (name_of(facts).empty()) return check_abstract_name(facts);
  return check_file_name(facts, program);
}

Status bind_unix_socket(const DescriptorFacts& facts, int socket, const SavedProcess& program) {
  const std::string name = name_of(facts);
  // The mode is there with the name: nobody comes in between the two.
  if (!name.empty()) PAWL_TRY(give_mode_of_name(facts, socket, program));
  const Result<ProgramRights> rights = ProgramRights::take(program);
  if (!rights.ok()) return rights.status();
  if (name.empty()) return bind_abstract_name(facts, socket);
  // Opened once: what leads to it may be another directory in the next moment.
  const auto [above, last] = parts_of(name);
  const Descriptor directory(::open(above.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return FailedCall{errno, kNotHad};
  const Result<bool> is_there = can_be_made(directory.get(), last, facts, program);
  if (!is_there.ok()) return is_there.status();
  if (is_there.value() && ::unlinkat(directory.get(), last.c_str(), 0) != 0 && errno != ENOENT)
    return FailedCall{errno, kNotRemoved};
  // By its whole name, which getsockname(2) tells; that it lies there is proven behind it.
  if (!bind_without_mask(facts, socket)) return FailedCall{errno, kNotHad};
  const Descriptor bound(::openat(directory.get(), last.c_str(), kNameOnly));
  BoundFile file{open_bound_file(socket), std::nullopt};
  if (!file.is_known()) file.numbers = ask_what_is_bound(socket);
  MountTable mounts(::getpid());
  if (!bound.valid() || !is_name_of(bound.get(), file, mounts))
    return Status::failure(ESTALE, "its name was changed meanwhile; try again");
  return give_name_owner(facts, bound.get());
}

}  // namespace pawl::wsp
