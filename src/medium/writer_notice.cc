#include "medium/writer_notice.h"

#include <fcntl.h>
#include <cerrno>
#include <cstdint>
#include <string>

namespace pawl {
namespace {

// A kernel has the first, or none of its processes has: Linux 5.6.
constexpr const char* kFiles[] = {"/proc/thread-self/ns/time", "/proc/thread-self/ns/user"};

// Of the 2^63 bytes that a lock can be on, half are for either notice.  Which one of these is a
// file's is as good as drawn (the finalizer of MurmurHash3, twice): two files that meet are refused
// for no reason, once in 2^62.
constexpr std::uint64_t kBytesOfANotice = std::uint64_t{1} << 62;

std::uint64_t stir(std::uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdU;
  value ^= value >> 33;
  value *= 0xc4ceb9fe1a85ec53U;
  return value ^ value >> 33;
}

struct flock lock_of(const struct stat& user, Notice notice, short type) {
  return {.l_type = type,
          .l_whence = SEEK_SET,
          .l_start = static_cast<off_t>(WriterNotices::byte_of(user, notice)),
          .l_len = 1,
          .l_pid = 0};
}

}  // namespace

std::uint64_t WriterNotices::byte_of(const struct stat& user, Notice notice) {
  return stir(stir(user.st_dev) ^ user.st_ino) % (kBytesOfANotice - 1) +
         (notice == Notice::writer ? kBytesOfANotice : 0);
}

Status WriterNotices::open() {
  if (file_.is_open()) return {};
  for (const char* const path : kFiles) {
    file_ = Descriptor(::open(path, O_RDONLY | O_CLOEXEC));
    if (file_.valid()) return {};
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
      return FailedCall{errno, std::string("cannot open ") + path};
  }
  return Status::failure(
      ENOTSUP, PAWL_ERROR_WRITERS_UNKNOWN,
      "/proc/self/ns cannot be read, where the writers of files are asked for; mount "
      "/proc");
}

Status WriterNotices::put(const struct stat& user, Notice notice) {
  PAWL_TRY(open());
  struct flock lock = lock_of(user, notice, F_RDLCK);
  if (::fcntl(file_.get(), F_OFD_SETLK, &lock) == 0) return {};
  return FailedCall{errno, "cannot put the notice of a writer"};
}

Result<bool> WriterNotices::others_have(const struct stat& user, Notice notice) {
  PAWL_TRY(open());
  return ask(user, notice);
}

Result<bool> WriterNotices::ask(const struct stat& user, Notice notice) const {
  // As if to write: that meets who reads.
  struct flock lock = lock_of(user, notice, F_WRLCK);
  const off_t byte = lock.l_start;
  if (::fcntl(file_.get(), F_OFD_GETLK, &lock) != 0)
    return FailedCall{errno, "cannot ask for the notice of a writer"};
  if (lock.l_type == F_UNLCK) return false;
  if (lock.l_start == byte && lock.l_len == 1) return true;
  return Status::failure(EBUSY, PAWL_ERROR_WRITERS_UNKNOWN,
                         "somebody has locked /proc/self/ns/time, where the writers of files are "
                         "asked for; docs/journal-format.md (Locks) says how root finds the "
                         "process");
}

void WriterNotices::withdraw() {
  if (!file_.is_open()) return;
  struct flock all = {
      .l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
  [[maybe_unused]] const int ignored = ::fcntl(file_.get(), F_OFD_SETLK, &all);
  file_.reset(-1);
}

}  // namespace pawl
