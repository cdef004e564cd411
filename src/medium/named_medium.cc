#include "medium/named_medium.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/posix_acl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "medium/block_medium.h"
#include "medium/environment.h"
#include "medium/fork_guard.h"
#include "medium/kept_journal.h"
#include "medium/law.h"
#include "medium/memory_functions.h"
#include "medium/mount_id.h"
#include "medium/parked_descriptors.h"
#include "medium/permissions.h"
#include "medium/refused_file_systems.h"
#include "medium/regular_file.h"
#include "medium/sections_file.h"

namespace pawl {
namespace {

std::string may_not_write(const Directory& directory) {
  const std::string what =
      ". This user may not write, or not search, the directory " + directory.path();
  struct stat held{};
  if (::fstat(directory.get(), &held) == 0 && held.st_uid == ::geteuid())
    return what +
           ": give the permission back (chmod u+wx), and recover the file again (pawl recover)";
  return what + ": have its owner, or root, recover the file (pawl recover)";
}

constexpr std::size_t kMarkBytesMax = PATH_MAX + 192;
constexpr mode_t kJournalModeBits = 0666;
// Its owner commits and recovers also where the file was made read-only meanwhile.
constexpr mode_t kJournalOwnerBits = 0600;
constexpr int kLockAttemptsMax = 100;
constexpr int kClaimAttemptsMax = 100;
constexpr useconds_t kPauseUs = 5000;

// `wants_room` where there is none for it.
Status cannot_change_attributes(const FailedCall& failed, const std::string& wants_room) {
  if (is_want_of_space(failed.error_number)) {
    return FailedCall{failed.error_number, wants_room + "; free some space and try again",
                      PAWL_ERROR_NO_SPACE_FOR_MARK};
  }
  if (failed.error_number != EACCES && failed.error_number != EPERM) return failed;
  return Status::failure(
      failed.error_number, PAWL_ERROR_LEFT_BEHIND,
      failed.text() +
          ". It has all that was committed, but this process may not change it any more (was it "
          "made read-only, or did this process give up its user?). Give the permission back "
          "(chmod u+w), and then end it as its owner or root: pawl recover");
}

// Other for another list; 0 for none.
std::uint64_t number_of(const std::vector<AccessEntry>& list) {
  std::uint64_t number = 0;
  for (const AccessEntry& entry : list) {
    number =
        (number ^ (std::uint64_t{entry.id} << 32 | std::uint64_t{entry.tag} << 16 | entry.rights)) *
        0x9e3779b97f4a7c15U;
    number ^= number >> 29;
  }
  return number;
}

// A copy of a file that took its place, and got its inode number, has another generation.
Result<std::uint64_t> generation_of(int descriptor, const std::string& path) {
  std::array<std::uint32_t, 2> generation{};  // the kernel fills the first, and asks for a long
  static_assert(sizeof generation == sizeof(long));
  const auto ask = [&](int opened) {
    return ::ioctl(opened, FS_IOC_GETVERSION, generation.data()) == 0 ? 0 : errno;
  };
  int failure = ask(descriptor);
  if (failure == EBADF) {
    // It only leads to the file (O_PATH).
    const Descriptor opened(
        ::open(link_to_descriptor(descriptor).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    failure = opened.valid() ? ask(opened.get()) : errno;
  }
  if (failure == 0) return std::uint64_t{generation[0]};
  if (failure == ENOTTY || failure == EOPNOTSUPP || failure == EINVAL || failure == ENOSYS)
    return std::uint64_t{0};
  return FailedCall{failure, "cannot find out which file " + path + " is"};
}

// A question that failed says nothing: a file that is taken for one without a birth would be
// refused later, as a copy of itself.  The generation is asked for beside a birth time, too: what
// was stored may be that.
Result<FileIdentity> identity_of(int descriptor, const std::string& path) {
  struct stat plain{};
  if (::fstat(descriptor, &plain) != 0) return FailedCall{errno, "cannot stat " + path};
  FileIdentity identity{plain.st_ino, 0};
  struct statx status{};
  const bool is_answered = ::statx(descriptor, "", AT_EMPTY_PATH, STATX_BTIME, &status) == 0;
  if (!is_answered && errno != ENOSYS)
    return FailedCall{errno, "cannot find out when " + path + " was made"};
  if (is_answered && (status.stx_mask & STATX_BTIME) != 0)
    identity.birth_time_ns = static_cast<std::uint64_t>(status.stx_btime.tv_sec) * 1'000'000'000u +
                             status.stx_btime.tv_nsec;
  if (!S_ISREG(plain.st_mode)) return identity;
  const auto generation = generation_of(descriptor, path);
  if (generation.ok()) identity.generation = generation.value();
  if (identity.is_proof()) return identity;
  // One of the first seconds of 1970 is what an inode without a time of birth has got for one.
  if (!generation.ok()) return generation.status();
  identity.birth_time_ns = identity.generation;
  return identity;
}

bool attributes_unsupported(int error_number) {
  return error_number == ENOTSUP || error_number == EOPNOTSUPP || error_number == ENOSYS;
}

bool is_known(const FileIdentity& identity) { return identity != FileIdentity{}; }

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

// "2 <32 hex digits> open|opening <inode>:<birth> <inode>:<birth> <journal path>", of the file and
// of its journal, and in front of the path of an opening "<32 hex digits> ", of the journal that
// was recovered; a version before had "1 <32 hex digits> <journal path>".
std::string describe_mark(const Mark& mark) {
  const auto describe = [](const FileIdentity& identity) {
    return " " + std::to_string(identity.inode) + ":" + std::to_string(identity.birth_time_ns);
  };
  return "2 " + describe_journal_id(mark.journal_id) + (mark.is_opening ? " opening" : " open") +
         describe(mark.file) + describe(mark.journal) + " " +
         (mark.is_opening ? describe_journal_id(mark.recovered_id) + " " : "") + mark.journal_path;
}

// Takes the id of the journal that was recovered from what an opening's mark has behind the
// identities.  Without one the mark shows no knowledge of any journal.
void take_recovered_id(Mark& mark) {
  char digits[33];
  int end = 0;
  if (std::sscanf(mark.journal_path.c_str(), "%32[0-9a-f] %n", digits, &end) != 1 || end == 0)
    return;
  const auto id = parse_journal_id(digits);
  if (!id) return;
  mark.recovered_id = *id;
  mark.journal_path.erase(0, static_cast<std::size_t>(end));
}

std::optional<Mark> parse_mark(const std::string& text) {
  char digits[33];
  int end = 0;
  Mark mark;
  if (text.starts_with("1 ")) {
    if (std::sscanf(text.c_str(), "1 %32[0-9a-f] %n", digits, &end) != 1) return std::nullopt;
  } else {
    char state[8];
    if (std::sscanf(text.c_str(),
                    "2 %32[0-9a-f] %7[a-z] %" SCNu64 ":%" SCNu64 " %" SCNu64 ":%" SCNu64 " %n",
                    digits, state, &mark.file.inode, &mark.file.birth_time_ns, &mark.journal.inode,
                    &mark.journal.birth_time_ns, &end) != 6)
      return std::nullopt;
    mark.is_opening = std::strcmp(state, "opening") == 0;
    if (!mark.is_opening && std::strcmp(state, "open") != 0) return std::nullopt;
  }
  const auto id = parse_journal_id(digits);
  if (!id || end == 0) return std::nullopt;
  mark.journal_id = *id;
  mark.journal_path = text.substr(static_cast<std::size_t>(end));
  if (mark.is_opening) take_recovered_id(mark);
  return mark;
}

bool may_be_elsewhere() {
  const char* const asked = environment_variable(kJournalElsewhere);
  return asked != nullptr && std::strcmp(asked, "1") == 0;
}

bool is_same(const Mark& one, const Mark& other) {
  return one.journal_id == other.journal_id && one.is_opening == other.is_opening;
}

Status has_another_writer(const std::string& path) {
  return Status::failure(
      EBUSY, PAWL_ERROR_IN_USE,
      path +
          " is mapped atomically by another writer, and a file has one writer, whatever its "
          "name; try again when that one has unmapped it (pawl info shows which process it "
          "is)");
}

// Of a notice is not known whose it is: any user can put one.
Status busy_by_notice(const std::string& path, std::uint64_t byte) {
  return Status::failure(
      EBUSY, PAWL_ERROR_IN_USE,
      path +
          " has another writer, or one is opening it; try again when that one has unmapped it. "
          "If you know of none: docs/journal-format.md (Locks) says how root finds the "
          "process that has put the notice (byte " +
          std::to_string(byte) + ")");
}

// Its header has a list of files behind it (docs/journal-format.md, Groups).  What a later version
// has there is not known, so it may be one.
bool is_journal_of_group(int side) {
  struct Start {
    std::array<char, 8> magic;
    std::uint32_t version;
    std::array<std::byte, 92> rest;
    std::uint32_t whose;
  };
  static_assert(sizeof(Start) == 108);
  constexpr std::uint32_t kVersionOfGroups = 3;
  constexpr std::uint32_t kOfGroup = 1;
  for (std::uint64_t slot = 0; slot < kJournalSlots; ++slot) {
    Start start{};
    const auto at = static_cast<off_t>(slot * kJournalSlotBytes);
    if (::pread(side, &start, sizeof start, at) != static_cast<ssize_t>(sizeof start) ||
        start.magic != kJournalMagic)
      continue;
    if (start.version > kVersionOfGroups) return true;
    if (start.version == kVersionOfGroups && start.whose == kOfGroup) return true;
  }
  return false;
}

Status cannot_ask_for_writers(const std::string& path, const Status& why) {
  return Status::failure(why.error_number(), PAWL_ERROR_WRITERS_UNKNOWN,
                         "cannot find out whether " + path + " has a writer: " + why.text());
}

}  // namespace

Status cannot_read_flags(int descriptor, int error_number) {
  const std::string which = "the descriptor " + std::to_string(descriptor);
  if (error_number == EBADF)
    return Status::failure(EBADF, PAWL_ERROR_INVALID_ARGUMENT, which + " is not open");
  return FailedCall{error_number, "cannot find out how " + which + " is open (fcntl)"};
}

Status set_notice_attribute(int file, const std::string& path) {
  if (::fsetxattr(file, kNoticeAttribute, "1", 1, XATTR_CREATE) == 0 || errno == EEXIST ||
      attributes_unsupported(errno))
    return {};
  return cannot_change_attributes(
      {errno, "cannot say of " + path + " that its mark goes for a moment only"},
      "no room to say of " + path + " that its mark goes for a moment only");
}

NamedMedium::NamedMedium(NamedFile file)
    : base_(std::move(file.descriptor), file.path),
      directory_(std::move(file.directory)),
      path_(file.path),
      journal_path_(path_ + kJournalSuffix),
      journal_name_(name_in_directory(journal_path_)),
      identity_(file.identity),
      device_(file.device),
      read_only_(file.read_only) {
  guard_fork(this, {.before = [] {}, .in_parent = [] {}, .in_child = [this] { abandon(); }});
}

// Closing any descriptor of a file drops the process's fcntl locks on it, and the program may hold
// some (gdbm, LMDB and Kyoto Cabinet do).  Where it does, the descriptor is left open.
NamedFile::~NamedFile() { parked_descriptors::close(std::move(descriptor)); }

NamedMedium::~NamedMedium() {
  forget_fork_guard(this);
  if (process_.is_this()) {
    give_locks_back();
    notices_.withdraw();
  }
  parked_descriptors::close(base_.take());
}

// Of another user's side file.  A user attribute is set by those only who may write the file: a
// side file that the mark names was made by one of them, and can say nothing that its maker could
// not have written.  The kernel gives the same inode number and birth time to no second file.
// Beside a file without a mark it has nothing to say: recovery refuses it if it has a record.
Result<bool> NamedMedium::may_be_of_a_writer(const std::optional<Mark>& mark, bool is_named,
                                             std::uint32_t owner_of_side) const {
  if (can_mark()) return !mark.has_value() || is_named;
  const auto file = rights_of_file(base_.descriptor(), path_);
  if (!file.ok()) return file.status();
  return may_write(file.value(), owner_of_side) == MayWrite::yes;
}

// Whom this user namespace does not show was let in by a writer of the file, or is not believed.
Status NamedMedium::check_writers_of(const Rights& side, const std::string& side_path,
                                     MadeByWriter made_by_writer) const {
  const auto file = rights_of_file(base_.descriptor(), path_);
  if (!file.ok()) return file.status();
  const auto hidden =
      made_by_writer == MadeByWriter::yes ? HiddenIds::are_the_same : HiddenIds::may_differ;
  const auto intruder = find_intruder(side, file.value(), ACL_WRITE, hidden);
  if (!intruder.has_value()) return {};
  const std::string number = std::to_string(intruder->id);
  const std::string who = intruder->kind == Intruder::Kind::anyone  ? "anyone"
                          : intruder->kind == Intruder::Kind::group ? "the users of group " + number
                                                                    : "user " + number;
  return Status::failure(EBADMSG, PAWL_ERROR_UNBELIEVED_JOURNAL,
                         side_path + " can be written by " + who + ", and " + path_ +
                             " cannot; it is not believed. If it is yours, take that "
                             "permission away (chmod go-w)");
}

// The mark shows that the owner of the side file could write the file once, and he can write the
// side file for ever.  Which groups he is in is not known here: that any may write has to do.
Status NamedMedium::check_may_still_write(uid_t owner_of_side) const {
  const auto file = rights_of_file(base_.descriptor(), path_);
  if (!file.ok()) return file.status();
  // One whom this user namespace does not show may be the owner of the file.
  const bool may_be_owner = owner_of_side == file.value().user;
  if (may_be_owner || may_write(file.value(), owner_of_side) != MayWrite::no) return {};
  return Status::failure(
      EBADMSG, PAWL_ERROR_UNBELIEVED_JOURNAL,
      journal_path_ + " belongs to user " + std::to_string(owner_of_side) + ", who may not write " +
          path_ +
          " any more, and could still change the journal; it is not believed. If you trust what it "
          "holds, give it the owner of the file (chown, as root), or that user the right to write "
          "the file, until it is recovered; else remove it and use pawl recover --accept-loss");
}

Status NamedMedium::check_writers_of_journal(const Rights& journal, const std::string& path) {
  return check_writers_of(journal, path, MadeByWriter::maybe);
}

// A side file that someone could have written who may not write the file is not believed.  What is
// said of one holds if nothing has changed since the mark was read: another writer may just have
// come or gone.  Then EAGAIN.
Result<SideFileOwner> NamedMedium::check_side_file(int side, const struct stat& user) const {
  const auto mark = read_mark();
  if (!mark.ok()) return mark.status();
  auto checked = check_side_file_by(mark.value(), side, user);
  if (checked.ok() || checked.status().error_number() != EBADMSG) return checked;
  struct stat held{};
  if (::fstat(side, &held) != 0) return FailedCall{errno, "cannot stat " + journal_path_};
  const auto is_there = directory_.has(journal_name_, held);
  const auto present = read_mark();
  if (!present.ok()) return present.status();
  const bool is_as_it_was =
      is_there.ok() && is_there.value() &&
      present.value().has_value() == mark.value().has_value() &&
      (!present.value().has_value() || is_same(*present.value(), *mark.value()));
  if (is_as_it_was) return checked;
  return Status::failure(EAGAIN, PAWL_ERROR_OPENING_RACED,
                         journal_path_ + " is another file by now");
}

Result<SideFileOwner> NamedMedium::check_side_file_by(const std::optional<Mark>& mark, int side,
                                                      const struct stat& user) const {
  struct stat held{};
  if (::fstat(side, &held) != 0) return FailedCall{errno, "cannot stat " + journal_path_};
  if (!S_ISREG(held.st_mode)) return is_no_journal();
  if (held.st_nlink > 1) {
    return Status::failure(
        EBADMSG, PAWL_ERROR_UNBELIEVED_JOURNAL,
        journal_path_ + " has " + std::to_string(held.st_nlink) +
            " names; a journal has one. Find out who linked it, and remove the other names");
  }
  const auto identity = identity_of(side, journal_path_);
  if (!identity.ok()) return identity.status();
  const bool is_named =
      mark.has_value() && mark->journal.is_proof() && mark->journal == identity.value();
  auto owner = SideFileOwner::other;
  const bool is_shown = is_shown_user(held.st_uid);
  if ((held.st_uid == user.st_uid && is_shown) || held.st_uid == 0) {
    owner = SideFileOwner::of_file;
  } else if (held.st_uid == ::geteuid() && is_shown) {
    owner = SideFileOwner::caller;
  } else {
    const auto may_be = may_be_of_a_writer(mark, is_named, held.st_uid);
    if (!may_be.ok()) return may_be.status();
    if (!may_be.value()) {
      return Status::failure(
          EBADMSG, PAWL_ERROR_UNBELIEVED_JOURNAL,
          journal_path_ + " belongs to another user (" + std::to_string(held.st_uid) + ") than " +
              path_ +
              ", and nothing shows that this one may write the file; the journal is not "
              "believed. If it is yours, give it the owner of the file");
    }
  }
  const auto rights = rights_of_file(side, journal_path_);
  if (!rights.ok()) return rights.status();
  PAWL_TRY(check_writers_of(rights.value(), journal_path_,
                            is_named ? MadeByWriter::yes : MadeByWriter::maybe));
  if (owner == SideFileOwner::other && is_named)
    PAWL_TRY(check_may_still_write(rights.value().user));
  // The original may need it.
  if (mark.has_value() && is_known(mark->file) && !mark->file.may_be(identity_) &&
      mark->journal == identity.value()) {
    return Status::failure(
        EBADMSG, PAWL_ERROR_JOURNAL_OF_ORIGINAL,
        path_ + " is a copy of a file that was open, and " + journal_path_ +
            " is the journal of the original (inode " + std::to_string(mark->file.inode) +
            "). Nothing was changed. Move the journal back beside the original; or, if "
            "the copy is to replace the original, give it a copy of the journal (cp "
            "--preserve=all), too");
  }
  return owner;
}

Result<std::uint32_t> NamedMedium::owner() {
  struct stat user{};
  if (::fstat(base_.descriptor(), &user) != 0) return FailedCall{errno, "cannot stat " + path_};
  if (!is_shown_user(user.st_uid))
    return Status::failure(EPERM, PAWL_ERROR_GROUP_OTHER_OWNER,
                           path_ +
                               " belongs to a user whom this user namespace does not show: "
                               "whether the files of a group have one owner cannot be told");
  return std::uint32_t{user.st_uid};
}

// A clone of a file system (a snapshot of btrfs, a copy of the device) has the same inode numbers
// and birth times as the original, whose journals the marks in it name by their paths.
bool NamedMedium::is_of_a_clone(int side, const struct stat& held) const {
  constexpr long kOverlay = 0x794c7630;
  if (held.st_dev == device_ || may_be_elsewhere()) return false;
  // An overlay shows its files with the devices of its layers.
  struct statfs file_system{};
  const std::uint64_t mount = mount_of(side);
  return ::fstatfs(side, &file_system) != 0 || file_system.f_type != kOverlay || mount == 0 ||
         mount != mount_of(base_.descriptor());
}

Status NamedMedium::check_file_system(int side, const struct stat& user) const {
  struct stat held{};
  if (::fstat(side, &held) != 0) return FailedCall{errno, "cannot stat " + journal_path_};
  if (held.st_dev == user.st_dev) return {};
  // An overlay shows its files with the devices of its layers.
  const std::uint64_t mount = mount_of(side);
  if (mount != 0 && mount == mount_of(base_.descriptor())) return {};
  if (may_be_elsewhere()) return {};
  return Status::failure(
      EXDEV, PAWL_ERROR_JOURNAL_ON_OTHER_FILE_SYSTEM,
      journal_path_ + " is on another file system than " + path_ +
          ": one can be lost without the other. Use the name that the file has in its own "
          "directory (" +
          path_ + " may be a bind mount of one file); or, if the journal shall be there, set " +
          kJournalElsewhere + "=1");
}

Status NamedMedium::lock_side_file(int side) const {
  struct flock lock = lock_of_writer();
  if (::fcntl(side, F_OFD_SETLK, &lock) == 0) return {};
  if (errno != EAGAIN && errno != EACCES) return FailedCall{errno, "cannot lock " + journal_path_};
  if (!is_locked_by_reader(side)) return has_another_writer(path_);
  return Status::failure(
      EBUSY, PAWL_ERROR_JOURNAL_LOCKED_BY_READER,
      path_ + " cannot be opened for writing: a process that may only read " + journal_path_ +
          ", and so is no writer, has locked it. End that process, and take from its user "
          "the right to read the file; docs/security.md (A lock on a journal) says how root "
          "finds it");
}

// Of the file's owner: root has the means to give it away.
Status NamedMedium::prepare_new_side_file(int side, const struct stat& user) const {
  PAWL_TRY(adopt_permissions(base_.descriptor(), side, kJournalModeBits, journal_path_,
                             kJournalOwnerBits));
  struct stat held{};
  if (::fstat(side, &held) != 0) return FailedCall{errno, "cannot stat " + journal_path_};
  if (held.st_uid != user.st_uid && ::geteuid() == 0 && is_shown_user(user.st_uid))
    return Status::failure(EPERM, "cannot give " + journal_path_ + " the owner of the file");
  // On a copy-on-write file system a journal that is overwritten in place stays in one piece.
  int attributes = 0;
  if (::ioctl(side, FS_IOC_GETFLAGS, &attributes) == 0) {
    attributes |= FS_NOCOW_FL;
    [[maybe_unused]] const int ignored = ::ioctl(side, FS_IOC_SETFLAGS, &attributes);
  }
  return {};
}

// The file may have been made private since the journal was.  What grants more than it, and is not
// ours to change, is replayed and replaced, as another user's is.  The journal of a group has bytes
// of files that may be more private than the one beside it: nobody gets more than he has.
SideFileOwner NamedMedium::adopt_journal(SideFileOwner owner) {
  struct stat user{};
  if (owner == SideFileOwner::other || ::fstat(base_.descriptor(), &user) != 0)
    return SideFileOwner::other;
  look_at_list();
  rights_ = rights_of(user.st_mode, user.st_uid, user.st_gid) + list_seen_;
  const auto is_adopted = [&] {
    if (is_journal_of_group(side_file())) return narrow(side_file());
    return adopt_permissions(base_.descriptor(), side_file(), kJournalModeBits, journal_path_,
                             kJournalOwnerBits)
               .ok() ||
           !grants_more(side_file(), base_.descriptor());
  };
  // Those who adopted it before may have died before it was durable.
  return is_adopted() && flush_rights().ok() ? owner : SideFileOwner::other;
}

// False: it grants more than the file, and is not ours to change.
bool NamedMedium::narrow(int side) const {
  const auto held = rights_of_file(side, journal_path_);
  const auto of_file = rights_of_file(base_.descriptor(), path_);
  if (!held.ok() || !of_file.ok()) return false;
  const Rights wanted = common_rights(held.value(), of_file.value());
  return wanted == held.value() || give_rights(side, wanted, journal_path_).ok();
}

Result<std::optional<Rights>> NamedMedium::rights() {
  auto rights = rights_of_file(base_.descriptor(), path_);
  if (!rights.ok()) return rights.status();
  return std::optional(std::move(rights.value()));
}

Result<std::optional<Rights>> NamedMedium::journal_rights() {
  Descriptor named;
  if (side_file() < 0) {
    auto side = open_named_side_file(O_RDONLY);
    if (!side.ok()) return side.status();
    named = std::move(side.value());
  }
  auto rights = rights_of_file(named.valid() ? named.get() : side_file(), journal_path_);
  if (!rights.ok()) return rights.status();
  return std::optional(std::move(rights.value()));
}

// Who opens it now may read, or write, what comes to stand in it later.
Status NamedMedium::keep_journal_private() {
  auto adopted = rights_of_file(side_file(), journal_path_);
  if (!adopted.ok()) return adopted.status();
  limit_ = adopted.value();
  Rights own = adopted.value();
  own.list.clear();
  own.mode &= kJournalOwnerBits;
  return give_rights(side_file(), own, journal_path_);
}

Status NamedMedium::limit_journal(const Rights& rights) {
  PAWL_ASSERT(limit_.has_value());
  const auto held = rights_of_file(side_file(), journal_path_);
  if (!held.ok()) return held.status();
  Rights wanted = common_rights(*limit_, rights);
  if (held.value() != wanted) {
    const Status given = give_rights(side_file(), wanted, journal_path_);
    if (!given.ok() && common_rights(held.value(), wanted) != held.value()) {
      return Status::failure(
          EACCES, PAWL_ERROR_JOURNAL_TOO_READABLE,
          "a file of the group " + path_ + " is more private than " + journal_path_ +
              ", which this user cannot change, and which would tell what is committed (" +
              given.text() + "). Give the journal the mode of the file, and call again");
    }
    // Recovery believes no journal that grants more than the file: that must not come back.
    PAWL_TRY(flush_rights());
  }
  limit_ = std::move(wanted);
  return {};
}

// Where it cannot be read, as in a sandbox that came later, it is what it was.
void NamedMedium::look_at_list() {
  const auto list = access_list_of(base_.descriptor(), path_);
  if (list.ok()) list_seen_ = number_of(list.value());
}

// A file that has lost its last name never gets another, and does not survive a crash: who has its
// name by then is not to find the journal of a stranger.
void NamedMedium::leave_name_to_others() {
  struct stat user{};
  struct stat held{};
  if (::fstat(base_.descriptor(), &user) != 0 || ::fstat(side_file(), &held) != 0) return;
  const auto is_named = directory_.has(name_in_directory(path_), user);
  if (!is_named.ok() || is_named.value()) return;
  if (held.st_nlink > 0) {
    const auto is_beside = directory_.has(journal_name_, held);
    if (!is_beside.ok() || !is_beside.value()) return;
    if (::unlinkat(directory_.get(), journal_name_.c_str(), 0) != 0) return;
  }
  has_left_name_ = true;
}

Status NamedMedium::follow_rights(bool with_list) {
  OpenFile::Seen base;
  OpenFile::Seen side;  // the lock is on it
  PAWL_TRY(base_.check_open(base, side));
  if (!base.has_name && (side.has_name || !has_left_name_)) leave_name_to_others();
  if (!side.has_name && !has_left_name_) {
    return Status::failure(ESTALE, PAWL_ERROR_JOURNAL_REMOVED,
                           journal_path_ + " was removed while it was in use");
  }
  if (with_list) look_at_list();
  const std::uint64_t seen = base.rights + list_seen_;
  if (seen != rights_) {
    const Status adopted = adopt_permissions(base_.descriptor(), side_file(), kJournalModeBits,
                                             journal_path_, kJournalOwnerBits);
    if (!adopted.ok() && grants_more(side_file(), base_.descriptor())) {
      return Status::failure(EACCES, PAWL_ERROR_JOURNAL_TOO_READABLE,
                             path_ +
                                 " was made more private than its journal, which this user cannot "
                                 "change, and which would tell what is committed (" +
                                 adopted.text() +
                                 "). Give the journal the mode of the file, or the file the mode "
                                 "that it had, and call again");
    }
    PAWL_TRY(flush_rights());
    rights_ = seen;
  }
  rights_seen_ = seen;
  return {};
}

// Of the side file.  After a loss of power the ones that it had before would tell others what was
// committed since; or, where they let more users write than the file's, it would not be believed.
Status NamedMedium::flush_rights() const {
  return ::fsync(side_file()) == 0
             ? Status{}
             : Status::failure(EIO, "cannot flush " + journal_path_ + ": " + std::strerror(errno));
}

// Where there is no /proc, other means have to do.
Status NamedMedium::put_notice(Notice notice) {
  struct stat user{};
  if (::fstat(base_.descriptor(), &user) != 0) return FailedCall{errno, "cannot stat " + path_};
  // A child that has the descriptor has the notice, too.
  const NoFork no_fork;
  Status put = notices_.put(user, notice);
  return put.error_number() == ENOTSUP ? Status{} : std::move(put);
}

// Of this file, under whatever name.
Result<bool> NamedMedium::others_have(Notice notice) {
  if (is_broken(Law::ask_for_writers)) return false;
  struct stat user{};
  if (::fstat(base_.descriptor(), &user) != 0) return FailedCall{errno, "cannot stat " + path_};
  const NoFork no_fork;
  return notices_.others_have(user, notice);
}

Status NamedMedium::has_a_notice(Notice notice) const {
  struct stat user{};
  if (::fstat(base_.descriptor(), &user) != 0) return FailedCall{errno, "cannot stat " + path_};
  return busy_by_notice(path_, WriterNotices::byte_of(user, notice));
}

// Where that cannot be told a mark would show it; or any user could keep all files from being
// opened.
Status NamedMedium::check_has_no_writer() {
  const auto writers = others_have(Notice::writer);
  return writers.ok() && writers.value() ? has_a_notice(Notice::writer) : Status{};
}

// A mark that is there may be that of a writer who opened the file by another name; where there can
// be no mark, there may be one, too.  Both openers have put their notice before they look.  A
// writer whose mark is gone has let go of the file for a moment only (stay_the_writer()): it is not
// to find ours when it comes back.
Status NamedMedium::exclude_other_writers(const std::optional<Mark>& mark) {
  if (can_mark() && !mark.has_value()) return check_has_no_writer();
  const auto others = others_have(Notice::opener);
  if (others.ok()) return others.value() ? has_a_notice(Notice::opener) : Status{};
  // Whoever writes it holds the lock of the journal that its mark names; that is ours.
  const auto journal = journal_identity();
  if (!journal.ok()) return journal.status();
  if (mark.has_value() && !mark->is_opening && mark->journal == journal.value()) return {};
  return cannot_ask_for_writers(path_, others.status());
}

// Somebody may have taken the mark of a writer away, by hand or with a tool that restores
// attributes.  The mark is ours now, so that of two openers only one comes here; who has the notice
// of a writer besides us was one before.
Status NamedMedium::exclude_unmarked_writers(const Mark& ours) {
  PAWL_TRY(put_notice(Notice::writer));
  const auto others = others_have(Notice::writer);
  // Where that cannot be told the mark alone has to do: or any user could keep all files from being
  // opened.
  if (!others.ok() || !others.value()) return {};
  const auto present = read_mark();
  if (present.ok() && present.value().has_value() && is_same(ours, *present.value()))
    PAWL_TRY(remove_mark());
  return has_a_notice(Notice::writer);
}

// Locks the side file, and finds out whether the file may be written with it.  EAGAIN: it is not
// the one of that name any more.
Result<JournalFile> NamedMedium::hold_side_file(int side, const struct stat& user, Named named) {
  // Before the lock: what is not believed is not waited for either.
  const auto owner = check_side_file(side, user);
  if (!owner.ok()) return owner.status();
  PAWL_TRY(lock_side_file(side));
  // The holder before us may have removed what we opened: then the lock is on nothing.
  struct stat held{};
  struct stat present{};
  if (::fstat(side, &held) != 0) return FailedCall{errno, "cannot stat " + journal_path_};
  const bool is_there =
      ::fstatat(directory_.get(), journal_name_.c_str(), &present, AT_SYMLINK_NOFOLLOW) == 0;
  if (!is_there && errno != ENOENT) return FailedCall{errno, "cannot look for " + journal_path_};
  const bool is_ours = is_there && held.st_ino == present.st_ino && held.st_dev == present.st_dev;
  if (named == Named::yes ? !is_ours : is_there)
    return Status::failure(EAGAIN, PAWL_ERROR_OPENING_RACED,
                           journal_path_ + " is another file by now");
  PAWL_TRY(check_file_system(side, user));
  PAWL_TRY(put_notice(Notice::opener));
  auto marked = read_mark();
  if (!marked.ok()) return marked.status();
  // Who stays the writer meets others at most while they turn back; claim() waits for that.
  if (!keeps_notices_) PAWL_TRY(exclude_other_writers(marked.value()));
  // Again: from here on nobody can make one of it.
  if (!marked.value().has_value()) PAWL_TRY(check_has_no_sections(base_.descriptor(), path_));
  // Of one that was found it is not known yet whether it is the file's journal.
  rights_.reset();
  if (named == Named::not_yet)
    rights_ = rights_of(user.st_mode, user.st_uid, user.st_gid) + list_seen_;
  const std::string link = link_to_descriptor(side);
  struct stat shown{};
  if (::stat(link.c_str(), &shown) != 0) return FailedCall{errno, "cannot open " + link};
  if (shown.st_ino != held.st_ino || shown.st_dev != held.st_dev)
    return Status::failure(EIO, PAWL_ERROR_NO_PROC,
                           "/proc shows another file than " + journal_path_ +
                               " under the number of its descriptor; nothing was written");
  auto again = open_side_file(link);
  if (!again.ok()) return again.status();
  base_.write_only_with(writers_lock(), writers_notice());
  return JournalFile{std::move(again.value()), named == Named::not_yet, owner.value()};
}

// Not left to the close alone: a child that no handler knew has the descriptor as well.
void NamedMedium::give_locks_back() {
  if (!(unnamed_ ? unnamed_->file().check_open().ok() : lock_.is_open())) return;
  struct flock all = {
      .l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
  [[maybe_unused]] const int ignored = ::fcntl(side_file(), F_OFD_SETLK, &all);
}

// May be called with the lock of a mapping, for which fork() may wait; and need not keep it
// waiting: what a child finds half closed has no lock any more.
void NamedMedium::let_go_of_side_file() {
  give_locks_back();
  if (keeps_notices_) {
    renew_notices();
  } else {
    notices_.withdraw();
  }
  base_.write_without_lock();
  limit_.reset();
  lock_.reset(-1);
  unnamed_.reset();
  hidden_name_.clear();
  has_left_name_ = false;
}

// A child that was made without our handlers (_Fork()) has a copy, and would keep others away for
// as long as it lives: behind an exec, too, which ends this process's.
void NamedMedium::renew_notices() {
  struct stat user{};
  const NoFork no_fork;
  WriterNotices anew;
  if (::fstat(base_.descriptor(), &user) != 0 || !anew.put(user, Notice::opener).ok() ||
      !anew.put(user, Notice::writer).ok())
    return;
  std::swap(notices_, anew);
  anew.withdraw();
}

// To the owner of the journal, who alone may change that.
std::string NamedMedium::mode_forbids() const {
  return ": its mode forbids it to its owner, who is this user. Give the permission back: chmod "
         "u+rw " +
         journal_path_;
}

// Or not look into the directory.
Status NamedMedium::may_not_open_side_file() const {
  struct stat held{};
  if (::fstatat(directory_.get(), name_in_directory(journal_path_).c_str(), &held,
                AT_SYMLINK_NOFOLLOW) != 0)
    return FailedCall{errno, "cannot look for the journal " + journal_path_};
  if (held.st_uid == ::geteuid()) {
    return Status::failure(EACCES, PAWL_ERROR_NO_PERMISSION,
                           "cannot open the journal " + journal_path_ + mode_forbids());
  }
  return Status::failure(EACCES, PAWL_ERROR_JOURNAL_OF_OTHER_USER,
                         "the journal " + journal_path_ + " belongs to user " +
                             std::to_string(held.st_uid) +
                             ", who had the file open when it crashed, and this user may "
                             "not write it. Have that user, or root, open the file or "
                             "recover it (pawl recover)");
}

// A child that was forked before abandon() knows the descriptor would have the lock, for as long as
// it lives.
Status NamedMedium::open_or_make_side_file(bool create) {
  const NoFork no_fork;
  auto opened = open_named_side_file(O_RDWR);
  if (opened.ok()) {
    lock_ = std::move(opened.value());
    return {};
  }
  const int refused = opened.status().error_number();
  if (refused == EACCES || refused == EPERM) return may_not_open_side_file();
  const bool is_missing = refused == ENOENT;
  if (refused == ELOOP || refused == EBADMSG || (is_missing && !create)) return opened.status();
  auto made = is_missing ? NewFile::make(directory_) : Result<NewFile>(opened.status());
  if (!made.ok()) {
    return made.status().prefixed("cannot open or create the journal " + journal_path_ +
                                  " (the directory of the file must be readable and writable): ");
  }
  unnamed_.emplace(std::move(made.value()));
  return {};
}

Result<JournalFile> NamedMedium::acquire_journal(bool create) {
  if (read_only_) return Status::failure(EROFS, path_ + " was opened for looking only");
  let_go_of_side_file();
  struct stat user{};
  if (::fstat(base_.descriptor(), &user) != 0) return FailedCall{errno, "cannot stat " + path_};
  look_at_list();
  for (int attempt = 0; attempt < kLockAttemptsMax; ++attempt) {
    PAWL_TRY(open_or_make_side_file(create));
    const auto named = unnamed_ ? Named::not_yet : Named::yes;
    if (named == Named::not_yet) PAWL_TRY(prepare_new_side_file(unnamed_->descriptor(), user));
    auto acquired = hold_side_file(side_file(), user, named);
    if (acquired.ok()) return acquired;
    let_go_of_side_file();
    if (acquired.status().error_number() != EAGAIN) return acquired;
  }
  return Status::failure(EBUSY, PAWL_ERROR_OPENING_RACED,
                         "the journal " + journal_path_ +
                             " comes and goes; another writer is busy with " + path_ +
                             ". Try again");
}

Status NamedMedium::publish_journal() {
  // One that was found may have been named by a writer that died before it flushed the directory.
  if (!unnamed_.has_value()) return directory_.flush();
  // Never over another one: it may hold commits.
  Status named = unnamed_->publish(journal_path_, false);
  if (named.error_number() == EEXIST) {
    return Status::failure(EBUSY, PAWL_ERROR_OPENING_RACED,
                           journal_path_ + " was made by another program just now, while " + path_ +
                               " was opened; try again");
  }
  // With a name it is one to remove, though it may not be durable yet.
  if (unnamed_->has_name()) {
    const NoFork no_fork;
    lock_ = Descriptor(unnamed_->release());
    unnamed_.reset();
  }
  return named;
}

// The child's copy of the lock goes, and a file without a name stays the parent's.
void NamedMedium::abandon() {
  lock_.reset(-1);
  retired_.reset(-1);
  notices_.abandon();
  if (unnamed_.has_value()) Descriptor(unnamed_->release());
}

Result<FileIdentity> NamedMedium::journal_identity() {
  if (side_file() >= 0) return identity_of(side_file(), journal_path_);
  const Descriptor side(
      ::openat(directory_.get(), journal_name_.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
  if (side.valid()) return identity_of(side.get(), journal_path_);
  if (errno == ENOENT || errno == ENAMETOOLONG) return FileIdentity{};
  return FailedCall{errno, "cannot look for the journal " + journal_path_};
}

Status NamedMedium::claim(const JournalId& journal_id, const std::optional<JournalId>& recovered) {
  const Mark ours{.journal_id = journal_id,
                  .journal_path = journal_path_,
                  .is_opening = true,
                  .recovered_id = recovered.value_or(JournalId{})};
  const int only_if_none = is_broken(Law::mark_only_if_none) ? 0 : XATTR_CREATE;
  for (int attempt = 0; attempt < kClaimAttemptsMax; ++attempt) {
    Status created = write_mark(ours, only_if_none);
    if (created.ok()) return keeps_notices_ ? Status{} : exclude_unmarked_writers(ours);
    if (created.error_number() != EEXIST) return created;
    auto seen = read_mark();
    if (!seen.ok()) return seen.status();
    if (!seen.value().has_value()) continue;
    Status alone = exclude_other_writers(seen.value());
    if (keeps_notices_ && seen.value()->is_opening && alone.error_number() == EBUSY) {
      // An opener who finds our notice, and takes the mark away again.
      ::usleep(kPauseUs);
      continue;
    }
    PAWL_TRY(alone);
    // The mark that was there before the look and behind it was there all the time, and its setter
    // is no more; whoever comes now sees a mark, and then our notice.
    auto present = read_mark();
    if (!present.ok()) return present.status();
    if (!present.value().has_value() || !is_same(*seen.value(), *present.value())) continue;
    if (!present.value()->is_opening &&
        (!recovered.has_value() || present.value()->journal_id != *recovered))
      return has_another_writer(path_);
    PAWL_TRY(write_mark(ours, 0));
    return put_notice(Notice::writer);
  }
  return Status::failure(EBUSY, PAWL_ERROR_OPENING_RACED,
                         "writers of " + path_ + " come and go; try again");
}

Result<SoughtJournal> NamedMedium::seek_journal(const Mark& mark) {
  using Found = SoughtJournal::Found;
  const auto others = others_have(Notice::opener);
  if (!others.ok()) return cannot_ask_for_writers(path_, others.status());
  if (others.value()) return SoughtJournal{Found::writer, {}};
  if (is_known(mark.file) && !mark.file.may_be(identity_)) return SoughtJournal{Found::copy, {}};
  // Nothing else of that name is touched.
  if (!mark.journal_path.ends_with(kJournalSuffix)) return SoughtJournal{};
  const Descriptor named(::open(mark.journal_path.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
  if (!named.valid() && (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG))
    return SoughtJournal{};
  struct stat status{};
  if (!named.valid() || ::fstat(named.get(), &status) != 0)
    return FailedCall{errno, "cannot look for " + mark.journal_path + ", the journal of " + path_};
  if (!S_ISREG(status.st_mode) || is_of_a_clone(named.get(), status)) return SoughtJournal{};
  const auto identity = identity_of(named.get(), mark.journal_path);
  if (!identity.ok()) return identity.status();
  if (is_known(mark.journal) && !mark.journal.may_be(identity.value())) return SoughtJournal{};
  const auto is_written = has_writer(mark.journal_path);
  // Who may not read it knows that it is there.
  if (!is_written.ok() && is_written.status().error_number() != EACCES) return is_written.status();
  return SoughtJournal{is_written.ok() && is_written.value() ? Found::writer : Found::journal,
                       mark.journal_path};
}

Status NamedMedium::retire_journal(const Mark& mark, const EmptyJournal& empty) {
  const auto beside = journal_identity();
  if (!beside.ok()) return beside.status();
  const bool is_under_another_name = mark.file == identity_ && is_known(mark.journal) &&
                                     !mark.journal.may_be(beside.value()) &&
                                     mark.journal_path.ends_with(kJournalSuffix);
  if (!is_under_another_name) return {};
  const std::string name = name_in_directory(mark.journal_path);
  const auto directory =
      Directory::open(mark.journal_path.substr(0, mark.journal_path.size() - name.size()));
  if (!directory.ok()) return {};
  struct stat found{};
  const Descriptor named(
      ::openat(directory.value().get(), name.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
  const auto is_it = [&](int side) -> Result<bool> {
    if (::fstat(side, &found) != 0) return FailedCall{errno, "cannot stat " + mark.journal_path};
    if (!S_ISREG(found.st_mode) || is_of_a_clone(side, found)) return false;
    const auto identity = identity_of(side, mark.journal_path);
    if (!identity.ok()) return identity.status();
    return identity.value() == mark.journal;
  };
  if (!named.valid() && errno == ENOENT) return {};
  if (!named.valid()) return FailedCall{errno, "cannot look for " + mark.journal_path};
  const auto is_named = is_it(named.get());
  if (!is_named.ok()) return is_named.status();
  if (!is_named.value()) return {};
  const auto open_it = [&]() -> Status {
    const NoFork no_fork;
    auto side = open_regular(directory.value().get(), name,
                             O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mark.journal_path);
    if (side.ok()) retired_ = std::move(side.value());
    return side.status();
  };
  const Status opened = open_it();
  if (opened.error_number() == ENOENT) return {};
  if (!opened.ok()) {
    Status failed = opened.prefixed(
        path_ +
        " was opened under another name when a crash ended that, and the journal of that name has "
        "to be removed before the file can change: ");
    if (opened.error_number() != EACCES && opened.error_number() != EPERM) return failed;
    return Status::failure(
        opened.error_number(), PAWL_ERROR_JOURNAL_OF_OTHER_USER,
        failed.text() + ". Have its owner, or root, recover " + path_ + " (pawl recover)");
  }
  // The lock lasts until it is removed.
  const struct End {
    Descriptor& of;
    ~End() { of.reset(-1); }
  } end{retired_};
  const Descriptor& side = retired_;
  const auto is_opened = is_it(side.get());
  if (!is_opened.ok()) return is_opened.status();
  if (!is_opened.value()) return {};
  PAWL_TRY(lock_side_file(side.get()));
  // The mark that names it may not be durable yet, and the one before may need it.
  attributes_changed();
  PAWL_TRY(base().flush());
  // Opened again: a child that has a copy of the descriptor would have the lock.
  Descriptor again(::open(link_to_descriptor(side.get()).c_str(), O_RDWR | O_CLOEXEC));
  if (!again.valid()) return FailedCall{errno, "cannot open " + mark.journal_path + " again"};
  auto emptied = empty(std::make_unique<DescriptorFile>(std::move(again), mark.journal_path));
  if (!emptied.ok()) return emptied.status();
  // Without a record it does no harm where it may not be removed.
  if (!emptied.value()) return {};
  const auto is_there = directory.value().has(name, found);
  if (is_there.ok() && is_there.value()) ::unlinkat(directory.value().get(), name.c_str(), 0);
  return {};
}

std::uint64_t NamedMedium::first_held_record() const {
  return lock_.valid() ? pawl::first_held_record(lock_.get()) : kNoRecordIsHeld;
}

Result<Descriptor> NamedMedium::open_named_side_file(int flags) const {
  auto side = open_regular(directory_.get(), journal_name_,
                           flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, journal_path_);
  if (side.ok()) return side;
  switch (side.status().error_number()) {
    case ENODEV:
      return is_no_journal();
    case ELOOP:
      return side.status().with_text(side.status().text() + ". Move it away and try again");
    case ENOENT:
      return Status::failure(ENOENT, path_ + " has no journal (" + journal_path_ + ")");
    default:
      return side;
  }
}

Status NamedMedium::is_no_journal() const {
  return Status::failure(EBADMSG, PAWL_ERROR_NOT_A_JOURNAL,
                         journal_path_ + " is not a regular file; move it away and try again");
}

Result<Descriptor> NamedMedium::open_to_read() const {
  auto side = try_to_open_to_read();
  for (int attempt = 1; attempt < kLockAttemptsMax && side.status().error_number() == EAGAIN;
       ++attempt)
    side = try_to_open_to_read();
  return side;
}

// EAGAIN as check_side_file().
Result<Descriptor> NamedMedium::try_to_open_to_read() const {
  auto side = open_named_side_file(O_RDONLY);
  if (side.status().error_number() == EACCES) {
    struct stat held{};
    const bool is_ours = ::fstatat(directory_.get(), name_in_directory(journal_path_).c_str(),
                                   &held, AT_SYMLINK_NOFOLLOW) == 0 &&
                         held.st_uid == ::geteuid();
    return side.status().with_text(
        side.status().text() +
        (is_ours ? mode_forbids()
                 : ". Its owner, or root, may recover " + path_ + " (pawl recover)"));
  }
  if (!side.ok()) return side;
  struct stat user{};
  if (::fstat(base_.descriptor(), &user) != 0) return FailedCall{errno, "cannot stat " + path_};
  PAWL_TRY(check_side_file(side.value().get(), user).status());
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

Status NamedMedium::remove_journal() {
  if (unnamed_.has_value()) {
    unnamed_.reset();
    return {};
  }
  // Only the one that we hold: the file may have been renamed, and another have taken its place.
  if (lock_.valid()) PAWL_TRY(base_.check_open());
  struct stat held{};
  if (lock_.valid() && ::fstat(lock_.get(), &held) != 0)
    return FailedCall{errno, "cannot stat " + journal_path_};
  const Directory* directory = &directory_;
  std::string name = hidden_name_.empty() ? journal_path_ : directory_.path() + hidden_name_;
  const auto cannot_remove = [&](int error_number) {
    return left_behind(FailedCall{error_number, "cannot remove " + name}, *directory);
  };
  Result<bool> is_there = true;
  Result<Directory> other = Directory();
  if (lock_.valid()) is_there = directory->has(name_in_directory(name), held);
  if (is_there.ok() && !is_there.value()) {
    // Both may have been renamed: the kernel knows what the file is called.
    name = name_of_descriptor(base_.descriptor());
    if (name.empty()) return {};
    other = Directory::open_of(name, base_.descriptor());
    name += kJournalSuffix;
    if (other.status().error_number() == ENOENT) return {};
    if (!other.ok()) return cannot_remove(other.status().error_number());
    directory = &other.value();
    is_there = directory->has(name_in_directory(name), held);
    if (is_there.ok() && !is_there.value()) return {};
  }
  if (!is_there.ok()) return cannot_remove(is_there.status().error_number());
  if (::unlinkat(directory->get(), name_in_directory(name).c_str(), 0) != 0 && errno != ENOENT)
    return cannot_remove(errno);
  let_go_of_side_file();
  return {};
}

Status NamedMedium::left_behind(const FailedCall& failed, const Directory& directory) const {
  std::string text = Status(failed).text() + ". " + path_ + " has all that was committed";
  if (failed.error_number == EACCES) text += may_not_write(directory);
  if (failed.error_number == EPERM)
    text += ". Its owner, that of the directory, or root may remove it (pawl recover)";
  return Status::failure(failed.error_number, PAWL_ERROR_LEFT_BEHIND, text);
}

// Where it is not under its name somebody has moved it, and nobody takes it for another's there.
Status NamedMedium::hide_journal() {
  PAWL_ASSERT(lock_.valid() && hidden_name_.empty());
  PAWL_TRY(base_.check_open());
  struct stat held{};
  if (::fstat(lock_.get(), &held) != 0) return FailedCall{errno, "cannot stat " + journal_path_};
  const auto is_there = directory_.has(journal_name_, held);
  if (is_there.ok() && !is_there.value()) return {};
  auto name = draw_provisional_name();
  if (!name.ok()) return name.status();
  if (!is_there.ok())
    return left_behind({is_there.status().error_number(), "cannot remove " + journal_path_},
                       directory_);
  if (::renameat(directory_.get(), journal_name_.c_str(), directory_.get(), name.value().c_str()) !=
      0)
    return left_behind({errno, "cannot remove " + journal_path_}, directory_);
  hidden_name_ = std::move(name.value());
  return {};
}

Status NamedMedium::show_journal() {
  if (hidden_name_.empty()) return {};
  PAWL_TRY(rename_in(directory_, hidden_name_, journal_name_));
  hidden_name_.clear();
  return directory_.flush();
}

Status NamedMedium::stay_the_writer() {
  keeps_notices_ = true;
  PAWL_TRY(base_.check_open());
  Status set = set_notice_attribute(base_.descriptor(), path_);
  attributes_changed();
  return set;
}

// Before the notices are withdrawn: the next writer may have set its own by then.
void NamedMedium::is_writer_no_more() {
  keeps_notices_ = false;
  if (!base_.check_open().ok()) return;
  [[maybe_unused]] const int ignored = ::fremovexattr(base_.descriptor(), kNoticeAttribute);
  attributes_changed();
}

void NamedMedium::take_over_writer(Medium& aside) {
  auto* const named = dynamic_cast<NamedMedium*>(&aside);
  if (named == nullptr) return;
  const NoFork no_fork;  // a child would have a copy that neither of the two knows
  notices_ = std::exchange(named->notices_, {});
  keeps_notices_ = true;
}

Result<std::string> NamedMedium::keep_journal_aside(Kept kept) {
  PAWL_ASSERT(lock_.valid());
  PAWL_TRY(base_.check_open());
  return keep_aside(directory_, journal_path_, lock_.get(), kept);
}

bool NamedMedium::can_mark() const {
  if (!can_mark_) {
    can_mark_ = ::fgetxattr(base_.descriptor(), kMarkAttribute, nullptr, 0) >= 0 ||
                !attributes_unsupported(errno);
  }
  return *can_mark_;
}

Result<std::optional<Mark>> NamedMedium::mark() { return read_mark(); }

Result<std::optional<Mark>> NamedMedium::read_mark() const {
  std::string value(kMarkBytesMax, '\0');
  const ssize_t length =
      ::fgetxattr(base_.descriptor(), kMarkAttribute, value.data(), value.size());
  if (length < 0) {
    const int failure = errno;
    if (failure == ENODATA || (attributes_unsupported(failure) && !can_mark()))
      return std::optional<Mark>{};
    return FailedCall{failure, "cannot read the mark of " + path_};
  }
  value.resize(static_cast<std::size_t>(length));
  if (const auto mark = parse_mark(value)) return mark;
  return Status::failure(
      EBADMSG, PAWL_ERROR_UNKNOWN_MARK,
      "the mark of " + path_ + " (attribute " + kMarkAttribute +
          ") is not one that this version of Pawl writes; open it with the version that did");
}

Status NamedMedium::set_mark(const Mark& mark) {
  Status marked = write_mark(mark, 0);
  if (marked.ok()) keeps_notices_ = false;
  return marked;
}

// EEXIST as it comes, with XATTR_CREATE.
Status NamedMedium::write_mark(const Mark& mark, int flags) {
  Mark bound = mark;
  bound.file = identity_;
  const auto journal = journal_identity();
  if (!journal.ok()) return journal.status();
  bound.journal = journal.value();
  PAWL_TRY(base_.check_open());
  const auto set = [&] {
    const std::string text = describe_mark(bound);
    return ::fsetxattr(base_.descriptor(), kMarkAttribute, text.data(), text.size(), flags) == 0;
  };
  bool is_set = set();
  // The path is a hint, and a long one may be more than an attribute can be.
  if (!is_set && (errno == ENOSPC || errno == E2BIG || errno == ERANGE)) {
    bound.journal_path.clear();
    is_set = set();
  }
  const int failure = errno;
  attributes_changed();
  if (is_set) {
    can_mark_ = true;
    return {};
  }
  if (is_want_of_space(failure)) {
    return FailedCall{failure,
                      "no room to mark " + path_ + " as open; free some space and try again",
                      PAWL_ERROR_NO_SPACE_FOR_MARK};
  }
  if (attributes_unsupported(failure) && !can_mark()) return {};
  return FailedCall{failure, "cannot mark " + path_ + " as open"};
}

// Who stays the writer is asked for by its notice as long as there is no mark.
Status NamedMedium::clear_mark() {
  PAWL_TRY(remove_mark());
  if (!keeps_notices_) is_writer_no_more();
  return {};
}

Status NamedMedium::remove_mark() {
  PAWL_TRY(base_.check_open());
  const bool is_removed = ::fremovexattr(base_.descriptor(), kMarkAttribute) == 0;
  const int failure = errno;
  attributes_changed();
  const bool is_none = failure == ENODATA || (attributes_unsupported(failure) && !can_mark());
  if (is_removed || is_none) return {};
  return cannot_change_attributes({failure, "cannot remove the mark of " + path_},
                                  "no room even to remove the mark of " + path_);
}

// A group has its records on a disk, so its files are opened as those are.
Result<std::unique_ptr<Medium>> NamedMedium::open_sibling(const std::string& name) {
  return open_block_medium(name.starts_with('/') ? name : directory_.path() + name, read_only_);
}

Result<std::unique_ptr<Medium>> NamedMedium::open_group(const std::string& name) {
  auto file = open_group_file(name);
  if (!file.ok()) return file.status();
  return make_block_medium(std::move(file.value()));
}

Result<NamedFile> NamedMedium::open_group_file(const std::string& name) {
  constexpr uid_t kRoot = 0;
  const std::string group = name.starts_with('/') ? name : directory_.path() + name;
  const Descriptor found(::open(group.c_str(), O_PATH | O_CLOEXEC));
  struct stat status{};
  if (!found.valid() || ::fstat(found.get(), &status) != 0)
    return FailedCall{errno, "cannot open " + group};
  if (!S_ISREG(status.st_mode))
    return Status::failure(ENODEV, PAWL_ERROR_NOT_REGULAR_FILE,
                           group + " is not a regular file; only those can be mapped");
  const auto own = owner();
  if (!own.ok()) return own.status();
  if (status.st_uid != own.value() && status.st_uid != kRoot) {
    return Status::failure(
        EPERM, PAWL_ERROR_GROUP_OTHER_OWNER,
        journal_path_ + " names the group " + group + ", which belongs to user " +
            std::to_string(status.st_uid) + ", and " + path_ + " to user " +
            std::to_string(own.value()) +
            "; a group has files of its own owner only, so it is not opened. Give the "
            "group's file and its journal the owner of the file, or make the group as root");
  }
  // What was looked at, whatever the name leads to by now.
  auto file = open_named_file(link_to_descriptor(found.get()), read_only_);
  if (file.ok()) return file;
  return file.status().prefixed(group + " cannot be opened: ");
}

Result<char*> NamedMedium::map_private(void* address, std::size_t length, int protection, int flags,
                                       std::uint64_t offset) {
  PAWL_TRY(base_.check_open());
  void* at = memory::map(address, length, protection, MAP_PRIVATE | flags, base_.descriptor(),
                         static_cast<off_t>(offset));
  if (at == MAP_FAILED)
    return FailedCall{errno, "cannot map " + std::to_string(length) + " bytes of " + path_};
  return static_cast<char*>(at);
}

namespace {

// Before it is opened, which acts on some files of the kernel's own.
Status check_file_system_of(const std::string& path) {
  const Descriptor found(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct statfs file_system{};
  if (!found.valid() || ::fstatfs(found.get(), &file_system) != 0) return {};
  for (const auto& refused : kRefusedFileSystems) {
    if (file_system.f_type == refused.number) {
      return Status::failure(
          ENODEV, PAWL_ERROR_UNSUPPORTED_FILE_SYSTEM,
          path + " is on " + refused.type + ", which cannot serve: " + refused.reason);
    }
  }
  return {};
}

Status is_not_regular(const std::string& path) {
  return Status::failure(ENODEV, PAWL_ERROR_NOT_REGULAR_FILE,
                         path + " is not a regular file; only those can be mapped atomically");
}

// Opens the file, or takes the descriptor of it that could not be closed.
Result<NamedFile> open_base(const std::string& path, int flags) {
  NamedFile file;
  if (struct stat status{}; ::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return is_not_regular(path);
    if (S_ISREG(status.st_mode)) file.descriptor = parked_descriptors::take(status, flags);
  }
  if (file.descriptor.valid()) return file;
  const StandardNumbersTaken taken;
  PAWL_TRY(check_file_system_of(path));
  auto opened = open_regular(path, flags);
  if (!opened.ok()) return opened.status();
  file.descriptor = std::move(opened.value());
  return file;
}

bool has_magic(int file) {
  return has_journal_magic([&](std::uint64_t offset, auto& bytes) {
    return ::pread(file, bytes.data(), bytes.size(), static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(bytes.size());
  });
}

// Whoever names one, or maps whatever matches a pattern, would write into the commits of a file.  A
// file that has a mark is none, whatever its bytes are: it may have commits of its own to recover.
Status check_is_no_journal(int base, const std::string& path) {
  if (!path.ends_with(kJournalSuffix) || ::fgetxattr(base, kMarkAttribute, nullptr, 0) >= 0)
    return {};
  if (!has_magic(base)) return {};
  return Status::failure(EINVAL, PAWL_ERROR_NAMES_JOURNAL,
                         path + " is a journal; name its file: " +
                             path.substr(0, path.size() - std::strlen(kJournalSuffix)));
}

Result<NamedFile> checked(NamedFile file, const std::string& path, bool read_only, For purpose) {
  const int base = file.descriptor.get();
  struct stat status{};
  if (::fstat(base, &status) != 0) return FailedCall{errno, "cannot stat " + path};
  if (!S_ISREG(status.st_mode)) return is_not_regular(path);
  PAWL_TRY(check_is_no_journal(base, path));
  if (purpose == For::journal && ::fgetxattr(base, kMarkAttribute, nullptr, 0) < 0)
    PAWL_TRY(check_has_no_sections(base, path));
  auto directory = Directory::open_of(path, base);
  if (!directory.ok()) return directory.status();
  file.directory = std::move(directory.value());
  file.path = path;
  const auto identity = identity_of(base, path);
  if (!identity.ok()) return identity.status();
  file.identity = identity.value();
  file.device = status.st_dev;
  file.read_only = read_only;
  return file;
}

}  // namespace

Result<NamedFile> open_named_file(int descriptor, For purpose) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0) return cannot_read_flags(descriptor, errno);
  const std::string path = name_of_descriptor(descriptor);
  if (path.empty())
    return FailedCall{
        errno,
        "cannot find the name of descriptor " + std::to_string(descriptor) + " (is /proc mounted?)",
        PAWL_ERROR_NO_PROC};
  struct stat by_descriptor{};
  struct stat by_name{};
  if (::fstat(descriptor, &by_descriptor) != 0) return FailedCall{errno, "cannot stat " + path};
  if (!S_ISREG(by_descriptor.st_mode)) return is_not_regular(path);
  if ((flags & O_PATH) != 0 || (flags & O_ACCMODE) != O_RDWR) {
    return Status::failure(
        EACCES, PAWL_ERROR_NOT_READ_WRITE,
        path + " must be open for reading and writing (O_RDWR) to be mapped atomically");
  }
  if (by_descriptor.st_nlink == 0 || ::stat(path.c_str(), &by_name) != 0 ||
      by_name.st_ino != by_descriptor.st_ino || by_name.st_dev != by_descriptor.st_dev) {
    return Status::failure(ENOENT, PAWL_ERROR_NO_NAME,
                           "the file of descriptor " + std::to_string(descriptor) + " (" + path +
                               ") has no name any more; a file that cannot be found after "
                               "a crash cannot be mapped atomically");
  }
  auto base = open_base(link_to_descriptor(descriptor), O_RDWR | O_CLOEXEC);
  if (!base.ok()) {
    return base.status().prefixed(path + " cannot be opened again: ");
  }
  return checked(std::move(base.value()), path, false, purpose);
}

Status check_has_no_side_file(const std::string& path) {
  struct stat present{};
  if (::lstat((path + kJournalSuffix).c_str(), &present) != 0) return {};
  return Status::failure(EBUSY, PAWL_ERROR_COPY_TARGET_IN_USE,
                         path +
                             " has a journal: a program has it mapped, or a crash left it. "
                             "Choose another name, or recover it first (pawl recover)");
}

Status check_has_no_journal(int file, const std::string& path) {
  const std::string side = path + kJournalSuffix;
  const Descriptor opened(::open(side.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat held{};
  const int found = opened.valid() ? ::fstat(opened.get(), &held) : ::lstat(side.c_str(), &held);
  if (found != 0 || !S_ISREG(held.st_mode) || held.st_nlink > 1) return {};
  const auto rights = rights_of_file(file, path);
  if (!rights.ok()) return rights.status();
  const bool is_owners = is_shown_user(held.st_uid) &&
                         (held.st_uid == rights.value().user || held.st_uid == ::geteuid());
  const bool is_writers =
      is_owners || held.st_uid == 0 || may_write(rights.value(), held.st_uid) != MayWrite::no;
  if (!is_writers) return {};
  // Of one that this user may not read its owner has to be enough.
  if (opened.valid()) {
    if (!has_magic(opened.get())) return {};
    const auto of_side = rights_of_file(opened.get(), side);
    if (!of_side.ok()) return of_side.status();
    if (find_intruder(of_side.value(), rights.value(), ACL_WRITE, HiddenIds::may_differ)) return {};
  }
  return Status::failure(EBUSY, PAWL_ERROR_COPY_TARGET_IN_USE,
                         path + " has a journal beside it, " + side +
                             ": a program has it mapped, or a crash left it. Recover it first "
                             "(pawl recover); if the journal is none of this file's, remove it");
}

Status check_has_no_commits(int file, const std::string& path, WriterNotices& notices) {
  const auto refuse = [&](int error_number, pawl_error code, const char* reason) {
    return Status::failure(error_number, code, path + " " + reason);
  };
  if (::fgetxattr(file, kMarkAttribute, nullptr, 0) >= 0)
    return refuse(EBUSY, PAWL_ERROR_COPY_TARGET_IN_USE,
                  "carries the mark of a file that a program has mapped, or that a crash left. "
                  "Choose another name, or recover it first (pawl recover)");
  const bool can_mark = !attributes_unsupported(errno);
  if (has_magic(file))
    return refuse(EINVAL, PAWL_ERROR_INVALID_ARGUMENT,
                  "is a journal, which may have commits of its file; choose another name");
  struct stat status{};
  if (::fstat(file, &status) != 0) return FailedCall{errno, "cannot stat " + path};
  const auto has_writer = notices.others_have(status, Notice::opener);
  // Where its writer would have left a mark, whoever locks all notices keeps nobody from his work.
  if (!has_writer.ok())
    return can_mark ? Status{} : cannot_ask_for_writers(path, has_writer.status());
  if (has_writer.value())
    return refuse(EBUSY, PAWL_ERROR_COPY_TARGET_IN_USE,
                  "is mapped by a program, or is just opened by one; choose another name");
  return {};
}

Result<bool> is_left_by_crash(int file) {
  const auto has = [&](const char* name) -> Result<bool> {
    if (::fgetxattr(file, name, nullptr, 0) >= 0) return true;
    if (errno == ENODATA || attributes_unsupported(errno)) return false;
    return FailedCall{errno, "cannot find out whether " + name_of_descriptor(file) +
                                 " has commits in its journal"};
  };
  const auto is_marked = has(kMarkAttribute);
  if (!is_marked.ok()) return is_marked.status();
  const auto is_noticed = has(kNoticeAttribute);
  if (!is_noticed.ok()) return is_noticed.status();
  if (!is_marked.value() && !is_noticed.value()) return false;
  const std::string path = name_of_descriptor(file);
  struct stat status{};
  if (::fstat(file, &status) != 0) return FailedCall{errno, "cannot stat " + path};
  const NoFork no_fork;
  WriterNotices notices;
  const auto has_writer = notices.others_have(status, Notice::writer);
  if (!has_writer.ok()) return cannot_ask_for_writers(path, has_writer.status());
  if (has_writer.value()) return has_another_writer(path);
  return is_marked.value();
}

Result<NamedFile> open_named_file(const std::string& path, bool read_only) {
  auto base = open_base(path, (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK);
  if (!base.ok()) return base.status();
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  if (real == nullptr) return FailedCall{errno, "cannot find " + path};
  return checked(std::move(base.value()), real.get(), read_only,
                 read_only ? For::sections : For::journal);
}

}  // namespace pawl
