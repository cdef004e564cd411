// Wrappers of the calls that read from a descriptor into memory or look at a file, for the fault
// tracker; docs/kernel-stores.md lists them.  The preload face brings its own instead.
#include "medium/next_function.h"

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "track/guarded_vectors.h"
#include "track/kernel_store_guard.h"
#include "track/kernel_stores.h"

// What fortified programs call, and no header declares to others.
extern "C" {
ssize_t __read_chk(int, void*, size_t, size_t);
ssize_t __pread_chk(int, void*, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void*, size_t, off64_t, size_t);
}

namespace {

using pawl::GuardedVectors;
using pawl::KernelStoreGuard;

// clang-format off: it indents such a list further each time it sees it.
#define PAWL_WRAPPED(X) \
  X(read) X(__read_chk) X(pread) X(pread64) X(__pread_chk) X(__pread64_chk) X(readv) X(preadv) \
  X(preadv64) X(preadv2) X(preadv64v2) X(stat) X(stat64) X(lstat) X(lstat64) X(fstat) X(fstat64) \
  X(fstatat) X(fstatat64) X(statx)
// clang-format on
PAWL_DEFINE_NEXT_FUNCTIONS(PAWL_WRAPPED)

}  // namespace

void pawl::link_kernel_stores_io() {}

PAWL_WRAPPER ssize_t read(int descriptor, void* buffer, size_t count) {
  KernelStoreGuard guard(buffer, count);
  return guard.stored(next().read(descriptor, buffer, count));
}
PAWL_WRAPPER ssize_t __read_chk(int descriptor, void* buffer, size_t count, size_t size) {
  KernelStoreGuard guard(buffer, count);
  return guard.stored(next().__read_chk(descriptor, buffer, count, size));
}
PAWL_WRAPPER ssize_t pread(int descriptor, void* buffer, size_t count, off_t offset) {
  KernelStoreGuard guard(buffer, count);
  return guard.stored(next().pread(descriptor, buffer, count, offset));
}
PAWL_WRAPPER ssize_t pread64(int descriptor, void* buffer, size_t count, off64_t offset) {
  KernelStoreGuard guard(buffer, count);
  return guard.stored(next().pread64(descriptor, buffer, count, offset));
}
PAWL_WRAPPER ssize_t __pread_chk(int descriptor, void* buffer, size_t count, off_t offset,
                                 size_t size) {
  KernelStoreGuard guard(buffer, count);
  return guard.stored(next().__pread_chk(descriptor, buffer, count, offset, size));
}
PAWL_WRAPPER ssize_t __pread64_chk(int descriptor, void* buffer, size_t count, off64_t offset,
                                   size_t size) {
  KernelStoreGuard guard(buffer, count);
  return guard.stored(next().__pread64_chk(descriptor, buffer, count, offset, size));
}

PAWL_WRAPPER ssize_t readv(int descriptor, const iovec* vectors, int count) {
  GuardedVectors guard(vectors, count);
  return guard.stored(next().readv(descriptor, vectors, count));
}
PAWL_WRAPPER ssize_t preadv(int descriptor, const iovec* vectors, int count, off_t offset) {
  GuardedVectors guard(vectors, count);
  return guard.stored(next().preadv(descriptor, vectors, count, offset));
}
PAWL_WRAPPER ssize_t preadv64(int descriptor, const iovec* vectors, int count, off64_t offset) {
  GuardedVectors guard(vectors, count);
  return guard.stored(next().preadv64(descriptor, vectors, count, offset));
}
PAWL_WRAPPER ssize_t preadv2(int descriptor, const iovec* vectors, int count, off_t offset,
                             int flags) {
  GuardedVectors guard(vectors, count);
  return guard.stored(next().preadv2(descriptor, vectors, count, offset, flags));
}
PAWL_WRAPPER ssize_t preadv64v2(int descriptor, const iovec* vectors, int count, off64_t offset,
                                int flags) {
  GuardedVectors guard(vectors, count);
  return guard.stored(next().preadv64v2(descriptor, vectors, count, offset, flags));
}

PAWL_WRAPPER int stat(const char* path, struct stat* status) noexcept {
  const KernelStoreGuard guard(status, sizeof *status);
  return next().stat(path, status);
}
PAWL_WRAPPER int stat64(const char* path, struct stat64* status) noexcept {
  const KernelStoreGuard guard(status, sizeof *status);
  return next().stat64(path, status);
}
PAWL_WRAPPER int lstat(const char* path, struct stat* status) noexcept {
  const KernelStoreGuard guard(status, sizeof *status);
  return next().lstat(path, status);
}
PAWL_WRAPPER int lstat64(const char* path, struct stat64* status) noexcept {
  const KernelStoreGuard guard(status, sizeof *status);
  return next().lstat64(path, status);
}
PAWL_WRAPPER int fstat(int descriptor, struct stat* status) noexcept {
  const KernelStoreGuard guard(status, sizeof *status);
  return next().fstat(descriptor, status);
}
PAWL_WRAPPER int fstat64(int descriptor, struct stat64* status) noexcept {
  const KernelStoreGuard guard(status, sizeof *status);
  return next().fstat64(descriptor, status);
}
PAWL_WRAPPER int fstatat(int directory, const char* path, struct stat* status, int flags) noexcept {
  const KernelStoreGuard guard(status, sizeof *status);
  return next().fstatat(directory, path, status, flags);
}
PAWL_WRAPPER int fstatat64(int directory, const char* path, struct stat64* status,
                           int flags) noexcept {
  const KernelStoreGuard guard(status, sizeof *status);
  return next().fstatat64(directory, path, status, flags);
}
PAWL_WRAPPER int statx(int directory, const char* path, int flags, unsigned mask,
                       struct statx* status) noexcept {
  const KernelStoreGuard guard(status, sizeof *status);
  return next().statx(directory, path, flags, mask, status);
}
