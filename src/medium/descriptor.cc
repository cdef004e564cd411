#include "medium/descriptor.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "medium/extents.h"
#include "medium/free_space.h"
#include "medium/law.h"
#include "medium/size_limit.h"
#include "medium/sole_closer.h"

namespace pawl {

namespace {
constexpr std::uint64_t kLargeReservationBytes = std::uint64_t{64} << 20;
constexpr unsigned kSharedCallsMax = 64;  // for a file in very many pieces
constexpr std::uint64_t kLargestFileBytes = std::numeric_limits<off_t>::max();

constexpr const char* kLinks = "/proc/thread-self/fd/";

std::atomic<bool> is_sole_closer{false};

// As OpenFile::anonymous.  Without memory: those that are closed for want of it are asked, too.
std::uint64_t number_of_anonymous(int number, mode_t mode) {
  if ((mode & S_IFMT) != 0) return 0;
  std::array<char, 40> link{};
  std::array<char, 64> name{};
  std::snprintf(link.data(), link.size(), "%s%d", kLinks, number);
  const ssize_t length = ::readlink(link.data(), name.data(), name.size());
  if (length <= 0) return 0;
  const std::string_view kind(name.data(), static_cast<std::size_t>(length));
  std::uint64_t event = 0;
  if (kind.ends_with("[perf_event]")) ::ioctl(number, PERF_EVENT_IOC_ID, &event);
  return std::hash<std::string_view>{}(kind) + event;
}

// Where there is no /proc (in a chroot) the kind is not known, and the number is believed.
bool is_of_kind(const OpenFile& found, const OpenFile& known) {
  return found.anonymous == known.anonymous || found.anonymous == 0 || known.anonymous == 0;
}

// False: it is not open, or cannot be asked, as errno tells.
bool look_at(OpenFile& file, OpenFile::Seen* seen = nullptr) {
  // Not the times: who asks for them makes the next write change them (Linux 6.13), and where ext4
  // has no journal that is a write of its own.
  struct statx found{};
  constexpr unsigned kAsked = STATX_INO | STATX_MODE | STATX_UID | STATX_GID | STATX_NLINK;
  // Which file it is does not change: for that no server is asked (NFS, FUSE), which may be gone.
  const int how = AT_EMPTY_PATH | (seen == nullptr ? AT_STATX_DONT_SYNC : 0);
  if (::statx(file.number, "", how, kAsked, &found) == 0) {
    file.device = ::makedev(found.stx_dev_major, found.stx_dev_minor);
    file.inode = found.stx_ino;
    file.anonymous = number_of_anonymous(file.number, found.stx_mode);
    if (seen != nullptr) {
      *seen = {.rights = rights_of(found.stx_mode, found.stx_uid, found.stx_gid),
               .has_name = (found.stx_mask & STATX_NLINK) == 0 || found.stx_nlink != 0};
    }
    return true;
  }
  // A sandbox may know fstat() only.
  struct stat status{};
  if (errno == EBADF || ::fstat(file.number, &status) != 0) return false;
  file.device = status.st_dev;
  file.inode = status.st_ino;
  file.anonymous = number_of_anonymous(file.number, status.st_mode);
  if (seen != nullptr) {
    *seen = {.rights = rights_of(status.st_mode, status.st_uid, status.st_gid),
             .has_name = status.st_nlink != 0};
  }
  return true;
}

// File systems that flush what is written with RWF_DSYNC before the write answers.  The kernel
// takes the flag on any: FUSE with direct I/O hands it on to its server, which need not look at it,
// and asks that for no flush.
bool honours_dsync(int descriptor) {
  struct statfs file_system{};
  if (descriptor < 0 || ::fstatfs(descriptor, &file_system) != 0) return false;
  switch (static_cast<std::uint32_t>(file_system.f_type)) {
    case BTRFS_SUPER_MAGIC:
    case EXT4_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case XFS_SUPER_MAGIC:
      return true;
    default:
      return false;
  }
}

Status cannot_reserve(int error_number, std::uint64_t length, const std::string& path) {
  const FailedCall failed{error_number,
                          "cannot reserve " + std::to_string(length) + " bytes for " + path};
  if (error_number == EOPNOTSUPP) {
    return Status::failure(error_number, PAWL_ERROR_UNSUPPORTED_FILE_SYSTEM,
                           failed.text() +
                               ". The file system has no fallocate(2); keep the file "
                               "on one that has it: ext4, XFS, f2fs, btrfs");
  }
  if (!is_want_of_space(error_number)) return failed;
  return Status(failed).with_text(failed.text() + ". Free some space and try again");
}

// Whether a descriptor is still that of the file.
Status cannot_be_told(int error_number, int number, const std::string& path) {
  const FailedCall failed{error_number, "cannot find out whether the descriptor (number " +
                                            std::to_string(number) + ") is still that of " + path};
  const bool is_refused = error_number == EPERM || error_number == EACCES || error_number == ENOSYS;
  return Status::failure(EIO, PAWL_ERROR_DESCRIPTOR_CLOSED,
                         failed.text() + "; nothing was written" +
                             (is_refused ? ". A sandbox of the program refuses fcntl(), or statx() "
                                           "and fstat(): let them pass"
                                         : ""));
}

// NFS, and servers of FUSE, may know no mode but that which lengthens the file: within its length
// that does the same.
int take_space(int descriptor, std::uint64_t offset, std::uint64_t length) {
  const auto take = [&](int mode) {
    return ::fallocate(descriptor, mode, static_cast<off_t>(offset), static_cast<off_t>(length));
  };
  if (take(FALLOC_FL_KEEP_SIZE) == 0) return 0;
  if (errno != EOPNOTSUPP) return -1;
  struct stat file{};
  const bool is_within = ::fstat(descriptor, &file) == 0 &&
                         offset + length <= static_cast<std::uint64_t>(file.st_size);
  errno = EOPNOTSUPP;
  return is_within ? take(0) : -1;
}
}  // namespace

OpenFile OpenFile::of(int number) {
  OpenFile file{number};
  if (number >= 0) look_at(file);
  return file;
}

OpenFile::State OpenFile::state(Seen* seen) const {
  const int errno_before = errno;
  OpenFile found{number};
  State state = State::gone;
  if (number < 0) return state;
  const bool was_seen = device != 0 || inode != 0;
  const bool is_seen = look_at(found, seen);
  if (is_seen && was_seen)
    state = found.device == device && found.inode == inode && is_of_kind(found, *this)
                ? State::open
                : State::gone;
  else if (is_seen || errno != EBADF) {
    state = State::hidden;
    if (seen != nullptr) seen->failure = is_seen ? EIO : errno;  // it was not, when it was opened
  }
  errno = errno_before;
  return state;
}

void set_sole_closer(bool is_sole) { is_sole_closer = is_sole; }

void Descriptor::reset(int number) {
  own_descriptors::remove(file_.number);
  const bool is_ours = is_sole_closer && valid();
  if (is_ours || file_.state() != OpenFile::State::gone) ::close(file_.number);
  take(number);
}

void Descriptor::take(int number) {
  if (number >= 0 && number <= STDERR_FILENO) {
    const int moved = ::fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int failure = errno;
    ::close(number);
    errno = failure;
    number = moved;
  }
  file_ = OpenFile::of(number);
  own_descriptors::add(number);
}

// By system calls, past who interposes the functions and would give them other numbers.
StandardNumbersTaken::StandardNumbersTaken() {
  for (;;) {
    const long number = ::syscall(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC);
    if (number < 0) return;
    if (number > STDERR_FILENO) {
      ::syscall(SYS_close, number);
      return;
    }
    are_taken_[static_cast<std::size_t>(number)] = true;
  }
}

StandardNumbersTaken::~StandardNumbersTaken() {
  const int kept = errno;
  for (std::size_t number = 0; number < are_taken_.size(); ++number) {
    if (are_taken_[number]) ::syscall(SYS_close, number);
  }
  errno = kept;
}

std::string link_to_descriptor(int number) { return kLinks + std::to_string(number); }

std::string name_of_descriptor(int number) {
  std::string name(PATH_MAX, '\0');
  const ssize_t length = ::readlink(link_to_descriptor(number).c_str(), name.data(), name.size());
  name.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  return name;
}

std::string name_in_force(int number) {
  struct stat held{};
  struct stat named{};
  std::string name = name_of_descriptor(number);
  const bool is_there = !name.empty() && ::fstat(number, &held) == 0 &&
                        ::stat(name.c_str(), &named) == 0 && named.st_dev == held.st_dev &&
                        named.st_ino == held.st_ino;
  return is_there ? name : std::string();
}

DescriptorFile::DescriptorFile(Descriptor descriptor, std::string path)
    : descriptor_(std::move(descriptor)),
      honours_dsync_(honours_dsync(descriptor_.get())),
      path_(std::move(path)) {}

void DescriptorFile::Held::hold(const OpenFile& file) {
  device = file.device;
  inode = file.inode;
  number.store(file.number);
}

void DescriptorFile::write_only_with(const OpenFile& lock, const OpenFile& notice) {
  lock_.hold(lock);
  notice_.hold(notice);
}

void DescriptorFile::write_without_lock() {
  lock_.number.store(-1);
  notice_.number.store(-1);
}

// Asked before each write and flush, and before a commit reads the base: 0.3 us for each of the
// three where a flush takes 70.  A number that changes hands between this and the call is beyond
// it.
Status DescriptorFile::check_open() {
  OpenFile::Seen file;
  OpenFile::Seen locked;
  return check_open(file, locked);
}

Status DescriptorFile::check_open(OpenFile::Seen& file, OpenFile::Seen& locked) {
  OpenFile::State state = descriptor_.state(&file);
  if (is_broken(Law::keep_the_descriptors)) return {};
  // The same file under the same number may be the program's own opening of it, which may append
  // what is to be overwritten.
  int failure = file.failure;
  if (state == OpenFile::State::open) {
    const int flags = ::fcntl(descriptor_.get(), F_GETFL);
    failure = flags < 0 ? errno : 0;
    if (flags < 0 && failure != EBADF)
      state = OpenFile::State::hidden;
    else if (flags < 0 || (flags & O_APPEND) != 0)
      state = OpenFile::State::gone;
  }
  const bool has_file = state == OpenFile::State::open;
  int number = descriptor_.get();
  for (const Held* const held : {&lock_, &notice_}) {
    const OpenFile other = held->file();
    if (state != OpenFile::State::open || other.number < 0) continue;
    OpenFile::Seen seen;
    number = other.number;
    state = other.state(&seen);
    failure = seen.failure;
    if (held == &lock_) locked = seen;
  }
  if (state == OpenFile::State::open) return {};
  if (state == OpenFile::State::hidden) return cannot_be_told(failure, number, path_);
  return Status::failure(
      EIO, PAWL_ERROR_DESCRIPTOR_CLOSED,
      "the program closed the descriptor (number " + std::to_string(number) +
          ") by which Pawl has " + path_ + (has_file ? " locked" : " open") +
          ", or gave its number to another file; nothing was written to that. Close the "
          "program's own descriptors only, or all at once with closefrom() or close_range()");
}

Status DescriptorFile::check_named() {
  struct statx found{};
  if (::statx(descriptor_.get(), "", AT_EMPTY_PATH, STATX_NLINK, &found) != 0 ||
      (found.stx_mask & STATX_NLINK) == 0 || found.stx_nlink != 0)
    return {};
  return Status::failure(ESTALE, PAWL_ERROR_JOURNAL_REMOVED,
                         path_ + " was removed while it was in use");
}

Status DescriptorFile::read(std::uint64_t offset, std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t got =
        ::pread(descriptor_.get(), into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailedCall{errno, "cannot read " + path_};
    if (got == 0) {
      std::memset(into.data(), 0, into.size());
      return {};
    }
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return {};
}

// Some file systems accept O_DIRECT at open and refuse the write.
bool DescriptorFile::leave_direct_io() {
  const int flags = ::fcntl(descriptor_.get(), F_GETFL);
  return flags >= 0 && (flags & O_DIRECT) != 0 &&
         ::fcntl(descriptor_.get(), F_SETFL, flags & ~O_DIRECT) == 0;
}

Status DescriptorFile::write(std::uint64_t offset, std::span<const std::byte> from) {
  PAWL_TRY(check_open());
  while (!from.empty()) {
    const ssize_t done = without_size_signal([&] {
      return ::pwrite(descriptor_.get(), from.data(), from.size(), static_cast<off_t>(offset));
    });
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno == EINVAL && leave_direct_io()) continue;
    if (done < 0) {
      const int failure = errno;
      return FailedCall{failure, "cannot write " + path_,
                        code_of_size(failure, offset + from.size())};
    }
    if (done == 0)
      return Status::failure(EIO, "cannot write " + path_ + ": the device took no bytes");
    from = from.subspan(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
  return {};
}

Status DescriptorFile::flush() {
  const std::lock_guard lock(flush_mutex_);
  PAWL_TRY(check_open());
  if (flush_error_ == 0) {
    const std::uint64_t changes = metadata_.made();
    const bool is_full = metadata_.any(changes) && !is_broken(Law::flush_the_mark);
    const int outcome = is_full ? ::fsync(descriptor_.get()) : ::fdatasync(descriptor_.get());
    if (outcome == 0) {
      metadata_.flushed(changes);
      return {};
    }
    flush_error_ = errno;
  }
  // Whatever a flush answers but success means that bytes may be gone, and the kernel answers so
  // once: no space, too, is final here.
  const Status cause = FailedCall{flush_error_, "cannot flush " + path_};
  return Status::failure(EIO, cause.text());
}

namespace {

// An interruption, a file system without this flag, and what a sandbox answers to a call that it
// does not know, leave the two steps, as a short write does; any other error may be the flush's.
// (No file system of honours_dsync() answers EPERM or ENOSYS behind the first byte.)
bool is_refused_whole(int error_number) {
  switch (error_number) {
    case EINTR:
    case EINVAL:
    case EOPNOTSUPP:
    case EPERM:
    case ENOSYS:
      return true;
    default:
      return false;
  }
}

}  // namespace

// One call instead of two saves 2 to 6 us of some 80 (measured, 4 KiB).
Status DescriptorFile::write_durably(std::uint64_t offset, std::span<const std::byte> from) {
  if (!honours_dsync_) return MediumFile::write_durably(offset, from);
  PAWL_TRY(check_open());
  const iovec piece{const_cast<std::byte*>(from.data()), from.size()};
  const ssize_t done = without_size_signal([&] {
    return ::pwritev2(descriptor_.get(), &piece, 1, static_cast<off_t>(offset), RWF_DSYNC);
  });
  if (done == static_cast<ssize_t>(from.size())) return {};
  if (done < 0 && !is_refused_whole(errno))
    return FailedCall{errno, "cannot write and flush " + path_};
  return MediumFile::write_durably(offset, from);
}

Result<std::uint64_t> DescriptorFile::size() {
  struct stat status{};
  if (::fstat(descriptor_.get(), &status) != 0)
    return FailedCall{errno, "cannot read the size of " + path_};
  return static_cast<std::uint64_t>(status.st_size);
}

Status DescriptorFile::resize(std::uint64_t size_bytes) {
  PAWL_TRY(check_open());
  while (without_size_signal(
             [&] { return ::ftruncate(descriptor_.get(), static_cast<off_t>(size_bytes)); }) != 0) {
    const int failure = errno;
    if (failure == EINTR) continue;
    return FailedCall{
        failure, "cannot set the size of " + path_ + " to " + std::to_string(size_bytes) + " bytes",
        code_of_size(failure, size_bytes)};
  }
  return {};
}

// The kernel tells of that bound only where somebody goes past it; nobody uses the position.
// It moves the position, which another file would have, too.
Status DescriptorFile::check_size(std::uint64_t size_bytes) {
  PAWL_TRY(check_open());
  if (::lseek(descriptor_.get(), static_cast<off_t>(size_bytes), SEEK_SET) >= 0 || errno != EINVAL)
    return {};
  return Status::failure(EFBIG, path_ + " cannot have " + std::to_string(size_bytes) +
                                    " bytes: more than a file of its file system can");
}

std::uint64_t DescriptorFile::free_bytes() {
  struct statvfs disk{};
  return ::fstatvfs(descriptor_.get(), &disk) == 0 ? free_bytes_of(disk) : kNotBounded;
}

// fallocate(2) takes what there is before it fails, and meanwhile others find the disk full: what
// cannot be there is not asked for.
// What no file can be is left to the kernel, which has its own word for it.
Status DescriptorFile::check_space(std::uint64_t offset, std::uint64_t length) {
  if (length < kLargeReservationBytes || length > kLargestFileBytes ||
      offset > kLargestFileBytes - length)
    return {};
  struct stat file{};
  if (::fstat(descriptor_.get(), &file) != 0) return {};
  const std::uint64_t has = static_cast<std::uint64_t>(file.st_blocks) * 512;
  if (length <= has || length - has <= free_bytes()) return {};
  return cannot_reserve(ENOSPC, length, path_);
}

Status DescriptorFile::reserve(std::uint64_t offset, std::uint64_t length) {
  // The kernel gives space past the limit, and refuses the write that needs it.
  if (const std::uint64_t limit = file_size_limit(); offset + length > limit)
    return FailedCall{EFBIG,
                      "cannot reserve space for " + path_ + " past " + std::to_string(limit) +
                          " bytes (RLIMIT_FSIZE)",
                      PAWL_ERROR_FILE_SIZE_LIMIT};
  return reserve_for_stores(offset, length);
}

Status DescriptorFile::reserve_for_stores(std::uint64_t offset, std::uint64_t length) {
  PAWL_TRY(check_open());
  PAWL_TRY(check_space(offset, length));
  while (take_space(descriptor_.get(), offset, length) != 0) {
    if (errno == EINTR) continue;
    return cannot_reserve(errno, length, path_);
  }
  return shared_.unshare(descriptor_.get(), path_, offset, offset + length);
}

// Where blocks are reserved already nothing is asked for: XFS wants free space for that, too.
Status DescriptorFile::reserve_holes(std::uint64_t offset, std::uint64_t length) {
  PAWL_TRY(check_open());
  const std::uint64_t end = offset + length;
  std::uint64_t hole = offset;
  for (std::uint64_t at = offset; at < end;) {
    std::vector<Extent> holes;
    const auto looked_to =
        visit_extents(descriptor_.get(), path_, at, end, [&](const Extent& extent) {
          if (extent.start > hole) holes.push_back({.start = hole, .end = extent.start});
          hole = std::max(hole, extent.end);
        });
    if (looked_to.status().error_number() == EOPNOTSUPP) return reserve_for_stores(offset, length);
    if (!looked_to.ok()) return looked_to.status();
    at = looked_to.value();
    if (at == end && hole < end) holes.push_back({.start = hole, .end = end});
    for (const Extent& missing : holes)
      PAWL_TRY(reserve_for_stores(missing.start, missing.end - missing.start));
  }
  return shared_.unshare(descriptor_.get(), path_, offset, end);
}

Result<std::uint64_t> DescriptorFile::find_shared(std::uint64_t offset, std::uint64_t end,
                                                  const FoundShared& found) {
  return shared_.find(descriptor_.get(), path_, offset, end, found);
}

std::uint64_t DescriptorFile::find_data(std::uint64_t offset) {
  const off_t data = ::lseek(descriptor_.get(), static_cast<off_t>(offset), SEEK_DATA);
  if (data < 0) return errno == ENXIO ? kNoData : offset;
  return static_cast<std::uint64_t>(data);
}

Status DescriptorFile::punch(std::uint64_t offset, std::uint64_t length) {
  PAWL_TRY(check_open());
  while (::fallocate(descriptor_.get(), FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE,
                     static_cast<off_t>(offset), static_cast<off_t>(length)) != 0) {
    if (errno == EINTR) continue;
    return FailedCall{errno,
                      "cannot punch a hole of " + std::to_string(length) + " bytes into " + path_};
  }
  return {};
}

Status DescriptorFile::zero(std::uint64_t offset, std::uint64_t length) {
  PAWL_TRY(check_open());
  while (::fallocate(descriptor_.get(), FALLOC_FL_KEEP_SIZE | FALLOC_FL_ZERO_RANGE,
                     static_cast<off_t>(offset), static_cast<off_t>(length)) != 0) {
    if (errno == EINTR) continue;
    if (errno != EOPNOTSUPP)
      return FailedCall{errno, "cannot zero " + std::to_string(length) + " bytes of " + path_};
    static constexpr std::array<std::byte, 16 * kPageBytes> kZeros{};
    for (std::uint64_t done = 0; done < length;) {
      const std::uint64_t piece = std::min<std::uint64_t>(kZeros.size(), length - done);
      PAWL_TRY(write(offset + done, std::span(kZeros).first(piece)));
      done += piece;
    }
    return {};
  }
  return {};
}

Result<std::uint64_t> DescriptorFile::written_prefix_bytes() {
  PAWL_TRY(check_open());
  const off_t hole = ::lseek(descriptor_.get(), 0, SEEK_HOLE);
  if (hole < 0 && errno == ENXIO) return std::uint64_t{0};  // an empty file
  if (hole < 0) return FailedCall{errno, "cannot find the holes of " + path_};
  return static_cast<std::uint64_t>(hole);
}

Result<std::uint64_t> DescriptorFile::allocated_prefix_bytes() {
  auto written = written_prefix_bytes();
  if (!written.ok()) return written;
  std::uint64_t end = written.value();
  std::uint64_t looked_to = 0;
  for (unsigned call = 0; call < kSharedCallsMax && looked_to < end; ++call) {
    auto next = find_shared(looked_to, end, [&](std::uint64_t start, std::uint64_t /*end*/) {
      end = std::min(end, start);
    });
    if (!next.ok()) return next;
    looked_to = next.value();
  }
  return std::min(end, looked_to);
}

}  // namespace pawl
