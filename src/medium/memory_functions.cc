#include "medium/next_function.h"

#include "medium/memory_functions.h"

#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/uio.h>

#include <cstdint>

namespace pawl::memory {
namespace {

// clang-format off: it indents such a list further each time it sees it.
#define PAWL_MEMORY_FUNCTIONS(X) \
  X(mmap) X(munmap) X(mprotect) X(pkey_mprotect) X(madvise) X(process_madvise) X(msync) X(mremap) \
  X(shmat) X(mlock) X(mlock2) X(mlockall)
// clang-format on
PAWL_DEFINE_NEXT_FUNCTIONS(PAWL_MEMORY_FUNCTIONS)

thread_local std::uintptr_t spared_low = 0;
thread_local std::uintptr_t spared_high = 0;

bool is_spared(const void* address, std::size_t length) {
  const auto low = reinterpret_cast<std::uintptr_t>(address);
  return low < spared_high && spared_low < low + length;
}

}  // namespace

void* map(void* address, std::size_t length, int protection, int flags, int descriptor,
          off_t offset) {
  return next().mmap(address, length, protection, flags, descriptor, offset);
}

int unmap(void* address, std::size_t length) {
  return is_spared(address, length) ? 0 : next().munmap(address, length);
}

int protect(void* address, std::size_t length, int protection) {
  return next().mprotect(address, length, protection);
}

int protect_with_key(void* address, std::size_t length, int protection, int key) {
  return next().pkey_mprotect(address, length, protection, key);
}

int advise(void* address, std::size_t length, int advice) {
  return next().madvise(address, length, advice);
}

ssize_t advise_process(int process, const iovec* vectors, std::size_t count, int advice,
                       unsigned flags) {
  return next().process_madvise(process, vectors, count, advice, flags);
}

int synchronise(void* address, std::size_t length, int flags) {
  return next().msync(address, length, flags);
}

void* remap(void* address, std::size_t length, std::size_t new_length, int flags,
            void* new_address) {
  return next().mremap(address, length, new_length, flags, new_address);
}

void* attach_shared(int id, const void* address, int flags) {
  return next().shmat(id, address, flags);
}

// The kernel may be one, or a filter may be, that knows the older call alone.
int lock(const void* address, std::size_t length, unsigned flags) {
  return flags == 0 ? next().mlock(address, length) : next().mlock2(address, length, flags);
}

int lock_all(int flags) { return next().mlockall(flags); }

Spared::Spared(const void* address, std::size_t length)
    : low_before_(spared_low), high_before_(spared_high) {
  spared_low = reinterpret_cast<std::uintptr_t>(address);
  spared_high = spared_low + length;
}

Spared::~Spared() {
  spared_low = low_before_;
  spared_high = high_before_;
}

// Where it cannot be protected, it goes all the same.
void LeftPlace::take(void* address, std::size_t length) {
  address_ = address;
  length_ = length;
  protect(address, length, PROT_NONE);
}

LeftPlace::~LeftPlace() {
  if (length_ > 0) unmap(address_, length_);
}

}  // namespace pawl::memory
