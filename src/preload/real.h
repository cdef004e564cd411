// The next definitions of the calls that the face takes over: libc's own.
//
// real() finds all of them at its first use, which may come before any constructor has run, and
// only reads afterwards; it is safe from any thread and, once the library is loaded, from a signal
// handler.
#pragma once

#include "preload/interpose.h"

#include <aio.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

// What libc exports for old or fortified programs and no header declares.
extern "C" {
int __xstat(int version, const char* path, struct stat* status);
int __lxstat(int version, const char* path, struct stat* status);
int __fxstat(int version, int fd, struct stat* status);
int __fxstatat(int version, int directory, const char* path, struct stat* status, int flags);
int __vdprintf_chk(int fd, int flag, const char* format, va_list arguments);
int __vasprintf_chk(char** text, int flag, const char* format, va_list arguments);
void __chk_fail() __attribute__((noreturn));
}

namespace pawl::preload {

// One line for each call; the type is that of libc's declaration.
// clang-format off: it indents such a list further each time it sees it.
#define PAWL_REAL_CALLS(X) \
  X(mmap) X(munmap) X(msync) X(mremap) X(mprotect) X(pkey_mprotect) X(madvise) X(mlock) X(mlock2) \
  X(mlockall) X(remap_file_pages) \
  X(read) X(pread) X(readv) X(preadv) X(preadv2) X(write) X(pwrite) X(writev) X(pwritev) \
  X(pwritev2) X(lseek) X(copy_file_range) X(sendfile) X(splice) X(ioctl) X(aio_read) X(aio_write) \
  X(aio_fsync) X(lio_listio) X(ftruncate) X(truncate) X(fallocate) X(posix_fallocate) X(fstat) \
  X(stat) X(lstat) X(fstatat) X(statx) X(__xstat) X(__lxstat) X(__fxstat) X(__fxstatat) X(fsync) \
  X(fdatasync) X(sync) X(syncfs) X(sync_file_range) X(open) X(openat) X(open_by_handle_at) X(close) X(close_range) \
  X(closefrom) X(dup) X(dup2) X(dup3) X(fcntl) X(flock) X(lockf) X(unlink) X(unlinkat) X(remove) \
  X(rename) X(renameat) X(renameat2) X(link) X(linkat) X(fopen) X(fdopen) X(freopen) X(fclose) X(execve) X(execvpe) \
  X(fexecve) X(execveat) X(posix_spawn) X(posix_spawnp) X(_exit) X(pthread_create) X(dlopen) X(dlmopen) X(vdprintf) \
  X(__vdprintf_chk) X(opendir) X(fdopendir) X(readdir) X(readdir64_r) X(glob)
// clang-format on

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // programs call those, too
struct RealCalls {
#define PAWL_REAL_MEMBER(name) decltype(&::name) name = nullptr;
  PAWL_REAL_CALLS(PAWL_REAL_MEMBER)
#undef PAWL_REAL_MEMBER
};
#pragma GCC diagnostic pop

namespace detail {
extern RealCalls real_calls;
extern std::atomic<bool> real_calls_found;
void find_real_calls();
}  // namespace detail

// libc's dlsym() and dlvsym(), which the face takes over too: how the others are found.
using FindSymbol = void* (*)(void* handle, const char* name) noexcept;
using FindVersion = void* (*)(void* handle, const char* name, const char* version) noexcept;
FindSymbol real_dlsym();
FindVersion real_dlvsym();

inline const RealCalls& real() {
  if (!detail::real_calls_found.load(std::memory_order_acquire)) detail::find_real_calls();
  return detail::real_calls;
}

}  // namespace pawl::preload
