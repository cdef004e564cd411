#include "medium/held_journal.h"

#include <sys/stat.h>
#include <cerrno>

#include "medium/regular_file.h"

namespace pawl {

namespace {

// Of `length` records from `first` on; 0 for all of them.
struct flock lock_of_records(short type, off_t first, off_t length) {
  return {.l_type = type,
          .l_whence = SEEK_SET,
          .l_start = kWriterLockBytes + first,
          .l_len = length,
          .l_pid = 0};
}

}  // namespace

// The lock belongs to an open file, so the kernel names no process with it.
Result<bool> has_writer(int side, const std::string& journal_path) {
  struct flock lock = lock_of_writer();
  // As if to read: that meets who may write, and nobody who may only read.
  lock.l_type = F_RDLCK;
  if (::fcntl(side, F_OFD_GETLK, &lock) != 0)
    return FailedCall{errno, "cannot ask whether " + journal_path + " has a writer"};
  return lock.l_type != F_UNLCK;
}

Result<bool> has_writer(const std::string& journal_path) {
  const auto side = open_regular(journal_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (side.ok()) return has_writer(side.value().get(), journal_path);
  switch (side.status().error_number()) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENODEV:
    case ENAMETOOLONG:
      return false;
    default:
      return side.status();
  }
}

bool is_locked_by_reader(int side) {
  struct flock lock = lock_of_writer();
  return ::fcntl(side, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_RDLCK;
}

std::uint64_t first_held_record(int side) {
  constexpr std::uint64_t kAllAreHeld = 0;
  std::uint64_t first = kNoRecordIsHeld;
  // The kernel tells of any lock that is in the way: it is asked for those before, until there is
  // none.
  off_t length = 0;
  for (int locks = 0; locks <= kHeldLocksMax; ++locks) {
    struct flock lock = lock_of_records(F_WRLCK, 0, length);
    if (::fcntl(side, F_OFD_GETLK, &lock) != 0) return kAllAreHeld;
    if (lock.l_type == F_UNLCK) return first;
    if (lock.l_start <= kWriterLockBytes) return kAllAreHeld;
    length = lock.l_start - kWriterLockBytes;
    first = static_cast<std::uint64_t>(length);
  }
  return kAllAreHeld;
}

Result<HeldJournal> HeldJournal::hold(Descriptor side, const std::string& path) {
  struct flock lock = lock_of_records(F_RDLCK, 0, 0);
  if (::fcntl(side.get(), F_OFD_SETLK, &lock) != 0)
    return FailedCall{errno, "cannot ask the writer of " + path + " to keep its records"};
  return HeldJournal(std::make_unique<DescriptorFile>(std::move(side), path), path);
}

Status HeldJournal::keep_from(std::uint64_t sequence) {
  const auto kept = static_cast<off_t>(sequence);
  // What no writer comes to: all of them are kept.
  if (kept <= 0 || kept >= kWriterLockBytes - 1) return {};
  struct flock before = lock_of_records(F_UNLCK, 0, kept);
  struct flock behind = lock_of_records(F_UNLCK, kept + 1, 0);
  if (::fcntl(file_->descriptor(), F_OFD_SETLK, &before) != 0 ||
      ::fcntl(file_->descriptor(), F_OFD_SETLK, &behind) != 0)
    return FailedCall{errno, "cannot give a lock on " + path_ + " back"};
  return {};
}

// Not left to the close alone: a child that was forked meanwhile has the descriptor as well.
HeldJournal::~HeldJournal() {
  if (file_ == nullptr) return;
  struct flock lock = lock_of_records(F_UNLCK, 0, 0);
  [[maybe_unused]] const int ignored = ::fcntl(file_->descriptor(), F_OFD_SETLK, &lock);
}

bool HeldJournal::has_its_name() const {
  struct stat held{};
  struct stat named{};
  return ::fstat(file_->descriptor(), &held) == 0 && ::lstat(path_.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

void HeldJournal::forget_what_was_read() const {
  [[maybe_unused]] const int ignored =
      ::posix_fadvise(file_->descriptor(), 0, 0, POSIX_FADV_DONTNEED);
}

}  // namespace pawl
