#include "heap/held_locks.h"

#include <linux/futex.h>
#include <pthread.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace pawl {
namespace {

// As glibc has them in __kind, beside the type: robust 16, by priority 32 and 64, shared between
// processes 128, with or without elision 256 and 512.
constexpr int kTypes = 3;
constexpr int kLockHoldsOwner = 16 | 32;
constexpr int kHasCeiling = 64;
constexpr int kRobust = 16;
constexpr int kElision = 256 | 512;
constexpr int kKinds = kTypes | kLockHoldsOwner | kHasCeiling | 128 | kElision;
constexpr unsigned kCeilingShift = 19;

// As glibc has them in __readers and __wrphase_futex.
constexpr unsigned kWritePhase = 1;
constexpr unsigned kWriteLocked = 2;
constexpr unsigned kFutexValuesMax = 3;
constexpr unsigned kHandOver = 1u << 31;  // in __writers, beside how many wait

constexpr std::size_t kMutexOwner = offsetof(pthread_mutex_t, __data.__owner);
constexpr std::size_t kRwlockOwner = offsetof(pthread_rwlock_t, __data.__cur_writer);
static_assert(kMutexOwner % sizeof(std::uint64_t) == 0 &&
              kRwlockOwner % sizeof(std::uint64_t) == 0);

template <class Lock>
bool load_around(const char* block, std::size_t size_bytes, std::size_t offset,
                 std::size_t owner_at, Lock& lock) {
  if (offset < owner_at || size_bytes - (offset - owner_at) < sizeof lock) return false;
  std::memcpy(&lock, block + offset - owner_at, sizeof lock);
  return true;
}

// Which only some processors have.
template <class Data>
int elision_of(const Data& mutex) {
  if constexpr (requires { mutex.__elision; }) return mutex.__elision;
  return 0;
}

bool is_locked(unsigned lock) { return lock == 1 || lock == 2; }

// The owner is asked before.
bool is_held(const pthread_mutex_t& mutex, std::size_t threads) {
  const auto& is = mutex.__data;
  const int type = is.__kind & kTypes;
  const auto lock = static_cast<unsigned>(is.__lock);
  if ((is.__kind & ~kKinds) != 0 || is.__nusers == 0 || is.__nusers > threads) return false;
  const bool is_counted =
      type == PTHREAD_MUTEX_RECURSIVE || (is.__kind & (kLockHoldsOwner | kHasCeiling)) != 0;
  if (is_counted != (is.__count != 0)) return false;
  if (type != PTHREAD_MUTEX_ADAPTIVE_NP && is.__spins != 0) return false;
  if ((is.__kind & kElision) == 0 && elision_of(is) != 0) return false;
  if ((is.__kind & kRobust) == 0 && (is.__list.__prev != nullptr || is.__list.__next != nullptr))
    return false;
  if ((is.__kind & kLockHoldsOwner) != 0)
    return (lock & FUTEX_TID_MASK) == static_cast<unsigned>(is.__owner);
  return is_locked((is.__kind & kHasCeiling) != 0 ? lock & ((1u << kCeilingShift) - 1) : lock);
}

bool is_held(const pthread_rwlock_t& rwlock, std::size_t threads) {
  const auto& is = rwlock.__data;
  constexpr unsigned kHeld = kWritePhase | kWriteLocked;
  return (is.__readers & kHeld) == kHeld && (is.__wrphase_futex & kWritePhase) != 0 &&
         is.__wrphase_futex <= kFutexValuesMax && is.__writers_futex <= kFutexValuesMax &&
         (is.__writers & ~kHandOver) <= threads && (is.__shared == 0 || is.__shared == 1) &&
         is.__pad3 == 0 && is.__pad4 == 0 && is.__pad2 == 0 &&
         is.__flags <= PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
}

}  // namespace

Result<LockOwners> LockOwners::of_this_process() {
  std::vector<pid_t> threads;
  std::error_code failure;
  for (auto entry = std::filesystem::directory_iterator("/proc/self/task", failure);
       !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
    const std::string name = entry->path().filename();
    pid_t thread = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), thread).ec == std::errc())
      threads.push_back(thread);
  }
  if (failure)
    return FailedCall{failure.value(), "cannot look at this process's threads (/proc/self/task)"};
  std::sort(threads.begin(), threads.end());
  return LockOwners(std::move(threads));
}

LockOwners::HeldLock LockOwners::lock_owned_at(const char* block, std::size_t size_bytes,
                                               std::size_t offset) const {
  pid_t owner = 0;
  std::memcpy(&owner, block + offset, sizeof owner);
  // Most words are no thread's number, and a look at the ends tells.
  if (threads_.empty() || owner < threads_.front() || owner > threads_.back() ||
      !std::binary_search(threads_.begin(), threads_.end(), owner))
    return {};
  pthread_mutex_t mutex;
  if (load_around(block, size_bytes, offset, kMutexOwner, mutex) && is_held(mutex, threads_.size()))
    return {block + offset - kMutexOwner, "mutex", owner};
  pthread_rwlock_t rwlock;
  if (load_around(block, size_bytes, offset, kRwlockOwner, rwlock) &&
      is_held(rwlock, threads_.size()))
    return {block + offset - kRwlockOwner, "lock for readers and writers", owner};
  return {};
}

}  // namespace pawl
