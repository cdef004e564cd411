// libc's calls on memory, by mapping/memory_calls.h, and those that open libraries, whose calls are
// to come here.  The preload library brings its own instead,
// which go on to the same functions.
#include "medium/next_function.h"

#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/uio.h>

#include <cstdarg>

#include "mapping/border.h"
#include "mapping/memory_calls.h"

namespace calls = pawl::memory_calls;

void calls::link_wrappers() {}

// The sanitizers' libraries call mmap() before they are able to run what they check.
#ifndef PAWL_SANITIZED

namespace {

#define PAWL_WRAPPED(X) X(dlopen) X(dlmopen)
PAWL_DEFINE_NEXT_FUNCTIONS(PAWL_WRAPPED)

}  // namespace

PAWL_WRAPPER void* mmap(void* address, size_t length, int protection, int flags, int descriptor,
                        off_t offset) noexcept {
  return calls::map(address, length, protection, flags, descriptor, offset);
}
PAWL_WRAPPER void* mmap64(void* address, size_t length, int protection, int flags, int descriptor,
                          off64_t offset) noexcept {
  return calls::map(address, length, protection, flags, descriptor, offset);
}
PAWL_WRAPPER int munmap(void* address, size_t length) noexcept {
  return calls::unmap(address, length);
}
PAWL_WRAPPER int mprotect(void* address, size_t length, int protection) noexcept {
  return calls::protect(address, length, protection);
}
PAWL_WRAPPER int pkey_mprotect(void* address, size_t length, int protection, int key) noexcept {
  return calls::protect_with_key(address, length, protection, key);
}
PAWL_WRAPPER int madvise(void* address, size_t length, int advice) noexcept {
  return calls::advise(address, length, advice);
}
PAWL_WRAPPER ssize_t process_madvise(int process, const iovec* vectors, size_t count, int advice,
                                     unsigned flags) noexcept {
  return calls::advise_process(process, vectors, count, advice, flags);
}
PAWL_WRAPPER int msync(void* address, size_t length, int flags) {
  pawl::cancellation_point();
  return calls::synchronise(address, length, flags);
}
PAWL_WRAPPER void* mremap(void* address, size_t length, size_t new_length, int flags,
                          ...) noexcept {
  void* new_address = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    new_address = va_arg(arguments, void*);
    va_end(arguments);
  }
  return calls::remap(address, length, new_length, flags, new_address);
}
PAWL_WRAPPER void* shmat(int id, const void* address, int flags) noexcept {
  return calls::attach_shared(id, address, flags);
}
PAWL_WRAPPER int mlock(const void* address, size_t length) noexcept {
  return calls::lock(address, length, 0);
}
PAWL_WRAPPER int mlock2(const void* address, size_t length, unsigned flags) noexcept {
  return calls::lock(address, length, flags);
}
PAWL_WRAPPER int mlockall(int flags) noexcept { return calls::lock_all(flags); }

// A library that binds its calls to the C library first would bypass these wrappers.  Both end in a
// jump: libc's function finds its caller, whose DT_RUNPATH it obeys, by the return address.
PAWL_WRAPPER void* dlopen(const char* file, int mode) noexcept {
  return next().dlopen(file, mode & ~RTLD_DEEPBIND);
}
PAWL_WRAPPER void* dlmopen(Lmid_t name_space, const char* file, int mode) noexcept {
  return next().dlmopen(name_space, file, mode & ~RTLD_DEEPBIND);
}

#endif
