#include "medium/next_function.h"

#include "medium/memory_functions.h"

#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "medium/inherited_memory.h"
#include "medium/medium.h"

namespace pawl::memory {
namespace {

// clang-format off: it indents such a list further each time it sees it.
#define PAWL_MEMORY_FUNCTIONS(X) \
  X(mmap) X(munmap) X(mprotect) X(pkey_mprotect) X(madvise) X(process_madvise) X(msync) X(mremap) \
  X(shmat) X(mlock) X(mlock2) X(mlockall)
// clang-format on
PAWL_DEFINE_NEXT_FUNCTIONS(PAWL_MEMORY_FUNCTIONS)

std::atomic<bool> has_locked_all{false};

thread_local std::uintptr_t spared_low = 0;
thread_local std::uintptr_t spared_high = 0;

bool is_spared(const void* address, std::size_t length) {
  const auto low = reinterpret_cast<std::uintptr_t>(address);
  return low < spared_high && spared_low < low + length;
}

}  // namespace

void* map(void* address, std::size_t length, int protection, int flags, int descriptor,
          off_t offset) {
  // Asked before: what is free then was never inherited.
  const bool is_in_child = inherited_memory::any();
  const bool replaces = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == MAP_FIXED;
  if (is_in_child && replaces) inherited_memory::let_go(address, length);
  void* const mapped = next().mmap(address, length, protection, flags, descriptor, offset);
  if (is_in_child && mapped != MAP_FAILED) inherited_memory::forget(mapped, length);
  return mapped;
}

int unmap(void* address, std::size_t length) {
  if (is_spared(address, length)) return 0;
  const bool is_in_child = inherited_memory::any();
  if (is_in_child) inherited_memory::let_go(address, length);
  const int outcome = next().munmap(address, length);
  if (is_in_child && outcome == 0) inherited_memory::forget(address, length);
  return outcome;
}

int protect(void* address, std::size_t length, int protection) {
  if (inherited_memory::any()) inherited_memory::let_go(address, length);
  return next().mprotect(address, length, protection);
}

int protect_with_key(void* address, std::size_t length, int protection, int key) {
  if (inherited_memory::any()) inherited_memory::let_go(address, length);
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
  if (!inherited_memory::any())
    return next().mremap(address, length, new_length, flags, new_address);
  // As the kernel takes them: what stays in its place ends with a page.
  length = round_up(length, kPageBytes);
  new_length = round_up(new_length, kPageBytes);
  inherited_memory::let_go(address, length);
  if ((flags & MREMAP_FIXED) != 0) inherited_memory::let_go(new_address, new_length);
  void* const moved = next().mremap(address, length, new_length, flags, new_address);
  if (moved == MAP_FAILED) return moved;
  // What stays in its place is what it was.
  const std::size_t stays = moved == address ? std::min(length, new_length) : 0;
  inherited_memory::forget(static_cast<char*>(address) + stays, length - stays);
  inherited_memory::forget(static_cast<char*>(moved) + stays, new_length - stays);
  return moved;
}

void* attach_shared(int id, const void* address, int flags) {
  shmid_ds segment{};
  if (!inherited_memory::any() || shmctl(id, IPC_STAT, &segment) != 0)
    return next().shmat(id, address, flags);
  if ((flags & SHM_REMAP) != 0) inherited_memory::let_go(address, segment.shm_segsz);
  void* const attached = next().shmat(id, address, flags);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): as shmat() says that it failed
  if (attached != reinterpret_cast<void*>(-1))
    inherited_memory::forget(attached, segment.shm_segsz);
  return attached;
}

// The kernel may be one, or a filter may be, that knows the older call alone.
int lock(const void* address, std::size_t length, unsigned flags) {
  return flags == 0 ? next().mlock(address, length) : next().mlock2(address, length, flags);
}

int lock_all(int flags) {
  has_locked_all = true;
  return next().mlockall(flags);
}

bool locks_all() { return has_locked_all; }

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
