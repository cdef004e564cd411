// The size of a file: as this process sees it for a tracked one, durable with the next commit.
#include "preload/interpose.h"

#include <sys/sysmacros.h>

#include <cerrno>

#include "medium/descriptor.h"
#include "preload/contents.h"
#include "preload/inside.h"
#include "preload/lifecycle.h"
#include "preload/messages.h"
#include "preload/named_files.h"
#include "preload/parents_files.h"
#include "preload/real.h"
#include "preload/with_tracked.h"
#include "track/kernel_store_guard.h"

namespace pawl::preload {
namespace {

int corrected(int outcome, struct stat* status) {
  if (outcome == 0 && S_ISREG(status->st_mode)) {
    if (const auto size = size_of_tracked(status->st_dev, status->st_ino)) status->st_size = *size;
  }
  return outcome;
}

// On this platform the two are one layout under two names.
static_assert(sizeof(struct stat) == sizeof(struct stat64));

bool is_writable(int descriptor) {
  const int flags = real().fcntl(descriptor, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

// In the kernel's order, which tells what is wrong where several things are.
Status allocate_through(int descriptor, TrackedFile& file, int mode, off_t offset, off_t count) {
  if (offset < 0 || count <= 0)
    return Status::failure(EINVAL, "the range is empty or starts below 0");
  PAWL_TRY(check_mode_of_allocation(file, mode));
  if (!is_writable(descriptor))
    return Status::failure(EBADF, "the descriptor is not open for writing");
  return allocate(file, mode, static_cast<std::uint64_t>(offset),
                  static_cast<std::uint64_t>(count));
}

Status truncate_tracked(TrackedFile& file, off_t size) {
  PAWL_TRY(check_ours(file));
  return file.mapping->truncate(static_cast<std::uint64_t>(size));
}

int report(const char* call, const Status& status) {
  if (status.ok()) return 0;
  if (!status.text().empty()) return refuse(call, status);
  errno = status.error_number();  // the kernel's own word
  return -1;
}

// What the name leads to is looked up once: whether that may be cut is found out, and that is cut,
// whatever has the name by then.  By a handle, as a descriptor that could cut it would take locks
// of the program along when it is closed.  Without one, or without /proc, the kernel looks again.
int truncate_by_path(const char* path, off_t size) {
  const Inside working;
  if (size < 0) return report("truncate", Status::failure(EINVAL, ""));
  const Descriptor handle(real().openat(AT_FDCWD, path, O_PATH | O_CLOEXEC));
  if (!handle.valid() && (errno == ENOENT || errno == EFAULT)) return -1;
  std::string name = path;
  Result<std::optional<NamedFile>> found = std::optional<NamedFile>();
  if (auto held = identify(handle.get()); held.ok()) {
    name = link_to_descriptor(handle.get());
    found = std::optional(std::move(held.value()));
  } else {
    found = look_up(AT_FDCWD, path, true);
  }
  const auto in_kernel = [&] { return real().truncate(name.c_str(), size); };
  if (!found.ok()) return report("truncate", found.status());
  const auto& named = found.value();
  if (named && !S_ISREG(named->status.st_mode)) {
    errno = S_ISDIR(named->status.st_mode) ? EISDIR : EINVAL;
    return -1;
  }
  // As truncate() asks: access() would ask for the real user.
  if (!named || faccessat(AT_FDCWD, name.c_str(), W_OK, AT_EACCESS) != 0) return in_kernel();
  if (const Held file = hold_inode(named->status.st_dev, named->status.st_ino);
      file && (file->mapping != nullptr || file->is_lost))
    return report("truncate", truncate_tracked(*file, size));
  // An untracked file that a crash left is recovered before its size changes.
  const Status recovered = recover_if_left(*named);
  const bool matters = is_in_use(recovered) || concerns_us(*named);
  return !recovered.ok() && matters ? report("truncate", recovered) : in_kernel();
}

}  // namespace

PAWL_INTERPOSE int ftruncate(int descriptor, off_t size) noexcept try {
  PAWL_PASS_OR_REFUSE("ftruncate", table::may_be_tracked(descriptor),
                      real().ftruncate(descriptor, size));
  const auto outcome = with_tracked(descriptor, [&](TrackedFile& file) {
    if (size < 0 || !is_writable(descriptor)) {
      return Status::failure(EINVAL,
                             "the size is below 0, or the descriptor is not open for writing");
    }
    return truncate_tracked(file, size);
  });
  PAWL_RETURN(outcome ? report("ftruncate", *outcome) : real().ftruncate(descriptor, size));
}
PAWL_OR_NO_MEMORY
PAWL_ALSO_KNOWN_AS(ftruncate64, ftruncate);

PAWL_INTERPOSE int truncate(const char* path, off_t size) noexcept try {
  PAWL_PASS(real().truncate(path, size));
  if (!in_own_process() && refuse_parents_file("truncate", AT_FDCWD, path, 0) != 0) PAWL_RETURN(-1);
  PAWL_RETURN(in_own_process() ? truncate_by_path(path, size) : real().truncate(path, size));
}
PAWL_OR_NO_MEMORY
PAWL_ALSO_KNOWN_AS(truncate64, truncate);

PAWL_INTERPOSE int fallocate(int descriptor, int mode, off_t offset, off_t count) try {
  PAWL_PASS_OR_REFUSE("fallocate", table::may_be_tracked(descriptor),
                      real().fallocate(descriptor, mode, offset, count));
  const auto outcome = with_tracked(descriptor, [&](TrackedFile& file) {
    return allocate_through(descriptor, file, mode, offset, count);
  });
  PAWL_RETURN(outcome ? report("fallocate", *outcome)
                      : real().fallocate(descriptor, mode, offset, count));
}
PAWL_OR_NO_MEMORY
PAWL_ALSO_KNOWN_AS(fallocate64, fallocate);

PAWL_INTERPOSE int posix_fallocate(int descriptor, off_t offset, off_t count) try {
  PAWL_PASS(real().posix_fallocate(descriptor, offset, count));
  const auto outcome = with_tracked(descriptor, [&](TrackedFile& file) {
    return allocate_through(descriptor, file, 0, offset, count);
  });
  if (!outcome) PAWL_RETURN(real().posix_fallocate(descriptor, offset, count));
  if (outcome->ok()) PAWL_RETURN(0);
  say("posix_fallocate", outcome->text());
  // This call returns its error, and no errno.
  PAWL_RETURN(outcome->error_number());
}
PAWL_OR_NO_MEMORY_AS_RESULT
PAWL_ALSO_KNOWN_AS(posix_fallocate64, posix_fallocate);

PAWL_INTERPOSE int fstat(int descriptor, struct stat* status) noexcept try {
  PAWL_PASS(real().fstat(descriptor, status));
  const KernelStoreGuard guard(status, sizeof *status);
  PAWL_RETURN(corrected(real().fstat(descriptor, status), status));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int stat(const char* path, struct stat* status) noexcept try {
  PAWL_PASS(real().stat(path, status));
  const KernelStoreGuard guard(status, sizeof *status);
  PAWL_RETURN(corrected(real().stat(path, status), status));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int lstat(const char* path, struct stat* status) noexcept try {
  PAWL_PASS(real().lstat(path, status));
  const KernelStoreGuard guard(status, sizeof *status);
  PAWL_RETURN(corrected(real().lstat(path, status), status));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int fstatat(int directory, const char* path, struct stat* status, int flags) noexcept
    try {
  PAWL_PASS(real().fstatat(directory, path, status, flags));
  const KernelStoreGuard guard(status, sizeof *status);
  PAWL_RETURN(corrected(real().fstatat(directory, path, status, flags), status));
}
PAWL_OR_NO_MEMORY
PAWL_ALSO_KNOWN_AS(fstat64, fstat);
PAWL_ALSO_KNOWN_AS(stat64, stat);
PAWL_ALSO_KNOWN_AS(lstat64, lstat);
PAWL_ALSO_KNOWN_AS(fstatat64, fstatat);

PAWL_INTERPOSE int statx(int directory, const char* path, int flags, unsigned mask,
                         struct statx* status) noexcept try {
  PAWL_PASS(real().statx(directory, path, flags, mask, status));
  const KernelStoreGuard guard(status, sizeof *status);
  const int outcome = real().statx(directory, path, flags, mask, status);
  if (outcome == 0 && S_ISREG(status->stx_mode) && (status->stx_mask & STATX_SIZE) != 0) {
    const dev_t device = makedev(status->stx_dev_major, status->stx_dev_minor);
    if (const auto size = size_of_tracked(device, status->stx_ino))
      status->stx_size = static_cast<std::uint64_t>(*size);
  }
  PAWL_RETURN(outcome);
}
PAWL_OR_NO_MEMORY

// What programs built against an older C library call.

PAWL_INTERPOSE int __fxstat(int version, int descriptor, struct stat* status) try {
  PAWL_KEEP_ERRNO();
  const KernelStoreGuard guard(status, sizeof *status);
  PAWL_RETURN(corrected(real().__fxstat(version, descriptor, status), status));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int __xstat(int version, const char* path, struct stat* status) try {
  PAWL_KEEP_ERRNO();
  const KernelStoreGuard guard(status, sizeof *status);
  PAWL_RETURN(corrected(real().__xstat(version, path, status), status));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int __lxstat(int version, const char* path, struct stat* status) try {
  PAWL_KEEP_ERRNO();
  const KernelStoreGuard guard(status, sizeof *status);
  PAWL_RETURN(corrected(real().__lxstat(version, path, status), status));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int __fxstatat(int version, int directory, const char* path, struct stat* status,
                              int flags) try {
  PAWL_KEEP_ERRNO();
  const KernelStoreGuard guard(status, sizeof *status);
  PAWL_RETURN(corrected(real().__fxstatat(version, directory, path, status, flags), status));
}
PAWL_OR_NO_MEMORY
PAWL_ALSO_KNOWN_AS(__fxstat64, __fxstat);
PAWL_ALSO_KNOWN_AS(__xstat64, __xstat);
PAWL_ALSO_KNOWN_AS(__lxstat64, __lxstat);
PAWL_ALSO_KNOWN_AS(__fxstatat64, __fxstatat);

}  // namespace pawl::preload
