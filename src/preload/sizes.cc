// The size of a file: as this process sees it for a tracked one, durable with the next commit.
#include "preload/interpose.h"

#include <sys/sysmacros.h>

#include <cerrno>

#include "preload/contents.h"
#include "preload/inside.h"
#include "preload/lifecycle.h"
#include "preload/messages.h"
#include "preload/real.h"

namespace pawl::preload {
namespace {

std::optional<off_t> size_of_tracked(dev_t device, ino_t inode) {
  if (inside() || table::is_empty()) return std::nullopt;
  const Inside working;
  const TrackedFilePointer file = table::of_inode(device, inode);
  if (file == nullptr) return std::nullopt;
  const std::lock_guard guard(file->lock);
  if (file->mapping == nullptr) return std::nullopt;
  return static_cast<off_t>(file->mapping->size());
}

int corrected(int outcome, struct stat* status) {
  if (outcome == 0 && S_ISREG(status->st_mode)) {
    if (const auto size = size_of_tracked(status->st_dev, status->st_ino)) status->st_size = *size;
  }
  return outcome;
}

// On this platform the two are one layout under two names.
static_assert(sizeof(struct stat) == sizeof(struct stat64));
struct stat* narrow(struct stat64* status) { return reinterpret_cast<struct stat*>(status); }

bool is_writable(int descriptor) {
  const int flags = real().fcntl(descriptor, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

Status truncate_tracked(TrackedFile& file, off_t size) {
  PAWL_TRY(check_ours(file));
  return file.mapping->truncate(static_cast<std::uint64_t>(size));
}

// Calls work(file) for a tracked descriptor that is open for writing; `absent` when it is not
// tracked.
template <class Work>
std::optional<Status> with_tracked(int descriptor, const Work& work) {
  if (inside() || !table::may_be_tracked(descriptor)) return std::nullopt;
  const Inside working;
  const TrackedFilePointer file = table::of_descriptor(descriptor);
  if (file == nullptr) return std::nullopt;
  const std::lock_guard guard(file->lock);
  if (file->has_ended || file->mapping == nullptr) return std::nullopt;
  PAWL_TRY(check_ours(*file));
  return work(*file);
}

// An untracked file that a crash left is recovered before its size changes; `nothing` to report
// otherwise.
std::optional<Status> truncate_by_path(const char* path, off_t size) {
  if (inside() || path == nullptr) return std::nullopt;
  const Inside working;
  const int handle = real().open(path, O_PATH | O_CLOEXEC);
  if (handle < 0) return std::nullopt;
  struct stat status{};
  const bool known = real().fstat(handle, &status) == 0 && S_ISREG(status.st_mode);
  const auto name = path_of_descriptor(handle);
  real().close(handle);
  if (!known || access(path, W_OK) != 0) return std::nullopt;
  if (const TrackedFilePointer file = table::of_inode(status.st_dev, status.st_ino)) {
    const std::lock_guard guard(file->lock);
    if (!file->has_ended && file->mapping != nullptr) {
      if (size < 0) return Status::failure(EINVAL, "a size below 0");
      return truncate_tracked(*file, size);
    }
  }
  if (name) {
    if (const Status status_of_recovery = recover_if_left(*name); !status_of_recovery.ok())
      return status_of_recovery;
  }
  return std::nullopt;
}

int report(const char* call, const Status& status) {
  return status.ok() ? 0 : refuse(call, status);
}

}  // namespace
}  // namespace pawl::preload

using namespace pawl::preload;
using pawl::Status;

PAWL_INTERPOSE int ftruncate(int descriptor, off_t size) noexcept {
  const auto outcome = with_tracked(descriptor, [&](TrackedFile& file) {
    if (size < 0 || !is_writable(descriptor)) {
      return Status::failure(EINVAL,
                             "the size is below 0, or the descriptor is not open for writing");
    }
    return truncate_tracked(file, size);
  });
  return outcome ? report("ftruncate", *outcome) : real().ftruncate(descriptor, size);
}
PAWL_INTERPOSE int ftruncate64(int descriptor, off64_t size) noexcept {
  return ftruncate(descriptor, size);
}

PAWL_INTERPOSE int truncate(const char* path, off_t size) noexcept {
  const auto outcome = truncate_by_path(path, size);
  return outcome ? report("truncate", *outcome) : real().truncate(path, size);
}
PAWL_INTERPOSE int truncate64(const char* path, off64_t size) noexcept {
  return truncate(path, size);
}

PAWL_INTERPOSE int fallocate(int descriptor, int mode, off_t offset, off_t count) {
  const auto outcome = with_tracked(descriptor, [&](TrackedFile& file) {
    if (!is_writable(descriptor))
      return Status::failure(EBADF, "the descriptor is not open for writing");
    if (offset < 0 || count <= 0)
      return Status::failure(EINVAL, "the range is empty or starts below 0");
    return allocate(file, mode, static_cast<std::uint64_t>(offset),
                    static_cast<std::uint64_t>(count));
  });
  return outcome ? report("fallocate", *outcome)
                 : real().fallocate(descriptor, mode, offset, count);
}
PAWL_INTERPOSE int fallocate64(int descriptor, int mode, off64_t offset, off64_t count) {
  return fallocate(descriptor, mode, offset, count);
}

PAWL_INTERPOSE int posix_fallocate(int descriptor, off_t offset, off_t count) {
  const int error_number = errno;
  const auto outcome = with_tracked(descriptor, [&](TrackedFile& file) {
    if (!is_writable(descriptor))
      return Status::failure(EBADF, "the descriptor is not open for writing");
    if (offset < 0 || count <= 0)
      return Status::failure(EINVAL, "the range is empty or starts below 0");
    return allocate(file, 0, static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(count));
  });
  if (!outcome) return real().posix_fallocate(descriptor, offset, count);
  if (outcome->ok()) return 0;
  say("posix_fallocate", outcome->text());
  errno = error_number;  // this call returns its error
  return outcome->error_number();
}
PAWL_INTERPOSE int posix_fallocate64(int descriptor, off64_t offset, off64_t count) {
  return posix_fallocate(descriptor, offset, count);
}

PAWL_INTERPOSE int fstat(int descriptor, struct stat* status) noexcept {
  return corrected(real().fstat(descriptor, status), status);
}
PAWL_INTERPOSE int stat(const char* path, struct stat* status) noexcept {
  return corrected(real().stat(path, status), status);
}
PAWL_INTERPOSE int lstat(const char* path, struct stat* status) noexcept {
  return corrected(real().lstat(path, status), status);
}
PAWL_INTERPOSE int fstatat(int directory, const char* path, struct stat* status,
                           int flags) noexcept {
  return corrected(real().fstatat(directory, path, status, flags), status);
}
PAWL_INTERPOSE int fstat64(int descriptor, struct stat64* status) noexcept {
  return fstat(descriptor, narrow(status));
}
PAWL_INTERPOSE int stat64(const char* path, struct stat64* status) noexcept {
  return stat(path, narrow(status));
}
PAWL_INTERPOSE int lstat64(const char* path, struct stat64* status) noexcept {
  return lstat(path, narrow(status));
}
PAWL_INTERPOSE int fstatat64(int directory, const char* path, struct stat64* status,
                             int flags) noexcept {
  return fstatat(directory, path, narrow(status), flags);
}

PAWL_INTERPOSE int statx(int directory, const char* path, int flags, unsigned mask,
                         struct statx* status) noexcept {
  const int outcome = real().statx(directory, path, flags, mask, status);
  if (outcome == 0 && S_ISREG(status->stx_mode) && (status->stx_mask & STATX_SIZE) != 0) {
    const dev_t device = makedev(status->stx_dev_major, status->stx_dev_minor);
    if (const auto size = size_of_tracked(device, status->stx_ino))
      status->stx_size = static_cast<std::uint64_t>(*size);
  }
  return outcome;
}

// What programs built against an older C library call.

PAWL_INTERPOSE int __fxstat(int version, int descriptor, struct stat* status) {
  return corrected(real().__fxstat(version, descriptor, status), status);
}
PAWL_INTERPOSE int __xstat(int version, const char* path, struct stat* status) {
  return corrected(real().__xstat(version, path, status), status);
}
PAWL_INTERPOSE int __lxstat(int version, const char* path, struct stat* status) {
  return corrected(real().__lxstat(version, path, status), status);
}
PAWL_INTERPOSE int __fxstatat(int version, int directory, const char* path, struct stat* status,
                              int flags) {
  return corrected(real().__fxstatat(version, directory, path, status, flags), status);
}
PAWL_INTERPOSE int __fxstat64(int version, int descriptor, struct stat64* status) {
  return __fxstat(version, descriptor, narrow(status));
}
PAWL_INTERPOSE int __xstat64(int version, const char* path, struct stat64* status) {
  return __xstat(version, path, narrow(status));
}
PAWL_INTERPOSE int __lxstat64(int version, const char* path, struct stat64* status) {
  return __lxstat(version, path, narrow(status));
}
PAWL_INTERPOSE int __fxstatat64(int version, int directory, const char* path, struct stat64* status,
                                int flags) {
  return __fxstatat(version, directory, path, narrow(status), flags);
}
