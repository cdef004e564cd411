// Memory of Pawl's own: operator new does not ask malloc().  A signal handler may call open(),
// unlink() or _exit() where it interrupted its thread within malloc(), and what Pawl does for that
// call must not wait for the allocator's lock.  The C++ library is linked in for this; what it
// allocates in the program stays the program's.
//
// Each block has a head, and a size that is a power of two; what is freed is kept for blocks of the
// same size.  Larger ones than kKeptBytesMax are mappings of their own.
#ifdef PAWL_OWN_MEMORY
#include "preload/interpose.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "medium/fork_safe_lock.h"
#include "preload/inside.h"

namespace pawl::preload {
namespace {

constexpr std::size_t kKeptBytesMin = 64;
constexpr std::size_t kKeptBytesMax = std::size_t{1} << 20;
constexpr std::size_t kReserveBytes = 4 * kKeptBytesMax;
constexpr std::size_t kKindsMax = std::bit_width(kKeptBytesMax / kKeptBytesMin);

// Right before what the caller gets.
struct alignas(std::max_align_t) BlockHead {
  void* block;
  std::size_t bytes;  // of the block, this head included
};

struct FreeBlock {
  FreeBlock* next;
};

// A child of _Fork() or clone() takes it, too.
constinit ForkSafeLock memory_lock;
std::array<FreeBlock*, kKindsMax> kept;  // by size, in powers of two
std::byte* reserve = nullptr;            // what is left of the last mapping
std::size_t reserve_bytes = 0;

// A handler must not meet its own thread with the lock.  Who is inside has no signals.
class MemoryGuard {
 public:
  MemoryGuard() : is_inside_(inside()) {
    sigset_t all;
    sigfillset(&all);
    if (!is_inside_) pthread_sigmask(SIG_SETMASK, &all, &signals_);
    if (!memory_lock.lock()) return;
    // A thread of the parent may have been about to change this: it stays behind.
    kept = {};
    reserve_bytes = 0;
  }
  ~MemoryGuard() {
    memory_lock.unlock();
    if (!is_inside_) pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
  }
  MemoryGuard(const MemoryGuard&) = delete;
  MemoryGuard& operator=(const MemoryGuard&) = delete;

 private:
  const bool is_inside_;
  sigset_t signals_{};
};

// Null where there is none.
std::byte* map_memory(std::size_t bytes) {
  const long address =
      syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == -1) return nullptr;
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
}

std::size_t kind_of(std::size_t bytes) {
  return static_cast<std::size_t>(std::countr_zero(bytes / kKeptBytesMin));
}

std::byte* take_kept(std::size_t bytes) {
  const MemoryGuard guard;
  FreeBlock*& first = kept[kind_of(bytes)];
  if (first != nullptr) {
    FreeBlock* const block = first;
    first = block->next;
    return reinterpret_cast<std::byte*>(block);
  }
  if (reserve_bytes < bytes) {
    std::byte* const mapped = map_memory(kReserveBytes);
    if (mapped == nullptr) return nullptr;
    reserve = mapped;
    reserve_bytes = kReserveBytes;
  }
  reserve_bytes -= bytes;
  return std::exchange(reserve, reserve + bytes);
}

void* take(std::size_t asked, std::size_t alignment) {
  const std::size_t spare = sizeof(BlockHead) + (alignment > alignof(BlockHead) ? alignment : 0);
  if (asked > PTRDIFF_MAX - spare) return nullptr;
  const std::size_t needed = asked + spare;
  const bool is_kept = needed <= kKeptBytesMax;
  const std::size_t bytes = is_kept ? std::max(std::bit_ceil(needed), kKeptBytesMin) : needed;
  std::byte* const block = is_kept ? take_kept(bytes) : map_memory(bytes);
  if (block == nullptr) return nullptr;
  const auto first = reinterpret_cast<std::uintptr_t>(block) + sizeof(BlockHead);
  const auto aligned = (first + alignment - 1) & ~(alignment - 1);
  auto* const given = block + (aligned - reinterpret_cast<std::uintptr_t>(block));
  new (given - sizeof(BlockHead)) BlockHead{block, bytes};
  return given;
}

void give_back(void* given) {
  if (given == nullptr) return;
  const BlockHead head = *(static_cast<const BlockHead*>(given) - 1);
  if (head.bytes > kKeptBytesMax) {
    syscall(SYS_munmap, head.block, head.bytes);
    return;
  }
  const MemoryGuard guard;
  FreeBlock*& first = kept[kind_of(head.bytes)];
  first = new (head.block) FreeBlock{first};
}

void* take_or_throw(std::size_t asked, std::size_t alignment) {
  void* const given = take(asked, alignment);
  if (given == nullptr) throw std::bad_alloc();
  return given;
}

// The child of a fork has all that is kept.  Registered first, so locked last, and unlocked first.
__attribute__((constructor(101))) void keep_whole_in_a_fork() {
  pthread_atfork([] { memory_lock.lock(); }, [] { memory_lock.unlock(); },
                 [] { memory_lock.unlock(); });
}

}  // namespace
}  // namespace pawl::preload

void* operator new(std::size_t bytes) {
  return pawl::preload::take_or_throw(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return pawl::preload::take(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return pawl::preload::take_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return pawl::preload::take(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* given) noexcept { pawl::preload::give_back(given); }
void operator delete(void* given, std::size_t) noexcept { pawl::preload::give_back(given); }
void operator delete(void* given, std::align_val_t) noexcept { pawl::preload::give_back(given); }
void operator delete(void* given, std::size_t, std::align_val_t) noexcept {
  pawl::preload::give_back(given);
}
#endif
