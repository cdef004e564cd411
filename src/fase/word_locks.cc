#include "fase/word_locks.h"

#include <linux/futex.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <climits>

#include "fase/format.h"
#include "medium/status.h"

namespace pawl::fase {
namespace {

constexpr std::uint32_t kStateMask = (1u << kLockStateBits) - 1;
constexpr std::uint32_t kLocked = 1;
constexpr std::uint32_t kContended = 2;  // somebody may wait
constexpr int kSpins = 100;
constexpr long kNsOfSecond = 1'000'000'000;

// 0, ETIMEDOUT or EINVAL; 0 also when the word is another one, or for no reason.
int futex_wait(const void* word, std::uint32_t value, const std::optional<Until>& until) {
  if (until && (until->time.tv_nsec < 0 || until->time.tv_nsec >= kNsOfSecond)) return EINVAL;
  const int clock = until && until->clock == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0;
  const long done =
      ::syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | clock, value,
                until ? &until->time : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
  return done != 0 && (errno == ETIMEDOUT || errno == EINVAL) ? errno : 0;
}

void futex_wake(const void* word, int count) {
  ::syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, nullptr, nullptr, 0);
}

void pause_processor() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

std::uint32_t state_of(std::uint32_t word, std::uint32_t run) {
  return (word & ~kStateMask) == run ? word & kStateMask : 0;
}

}  // namespace

// ------------------------------------------------------------------------------------------- mutex

// In a process of one thread there is nobody to be quicker, and no locked instruction is needed
// (docs/fase-design.md).
int WordLock::lock(std::uint32_t run, const Waiting& waiting) {
  if (__libc_single_threaded != 0 && state_of(word_.load(std::memory_order_relaxed), run) == 0) {
    word_.store(run | kLocked, std::memory_order_relaxed);
    return 0;
  }
  std::uint32_t taken = kLocked;
  for (int round = 0;; ++round) {
    std::uint32_t word = word_.load(std::memory_order_relaxed);
    const std::uint32_t state = state_of(word, run);
    if (state == 0) {
      if (word_.compare_exchange_weak(word, run | taken, std::memory_order_acquire)) return 0;
      continue;
    }
    if (waiting.only_try) return EBUSY;
    if (round < kSpins) {
      pause_processor();
      continue;
    }
    // From now on there may be others who wait, whom this thread knows nothing of.
    taken = kContended;
    if (state != kContended &&
        !word_.compare_exchange_weak(word, run | kContended, std::memory_order_relaxed))
      continue;
    if (const int failure = futex_wait(&word_, run | kContended, waiting.until)) return failure;
  }
}

void WordLock::unlock(std::uint32_t run) {
  if (__libc_single_threaded != 0) return word_.store(run, std::memory_order_relaxed);
  const std::uint32_t before = word_.exchange(run, std::memory_order_release);
  if (state_of(before, run) == kContended) futex_wake(&word_, 1);
}

bool WordLock::is_locked(std::uint32_t run) const {
  return state_of(word_.load(std::memory_order_relaxed), run) != 0;
}

// --------------------------------------------------------------------------------- read-write lock

namespace {

constexpr std::uint32_t kWriter = 1u << 31;
constexpr std::uint32_t kWaiters = 1u << 30;
constexpr std::uint32_t kReaders = kWaiters - 1;

std::uint32_t rw_state_of(std::uint64_t word, std::uint32_t run) {
  return static_cast<std::uint32_t>(word >> 32) == run ? static_cast<std::uint32_t>(word) : 0;
}
std::uint64_t rw_word(std::uint32_t run, std::uint32_t state) {
  return std::uint64_t{run} << 32 | state;
}

}  // namespace

// change() gives the state with the lock taken, or the same one when it cannot be.
template <class Change>
int WordReadWriteLock::take(std::uint32_t run, const Waiting& waiting, Change change) {
  for (int round = 0;; ++round) {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    const std::uint32_t state = rw_state_of(word, run);
    if (const std::uint32_t taken = change(state); taken != state) {
      if (word_.compare_exchange_weak(word, rw_word(run, taken), std::memory_order_acquire))
        return 0;
      continue;
    }
    if (waiting.only_try) return EBUSY;
    if (round < kSpins) {
      pause_processor();
      continue;
    }
    if ((state & kWaiters) == 0 &&
        !word_.compare_exchange_weak(word, rw_word(run, state | kWaiters),
                                     std::memory_order_relaxed))
      continue;
    // The word's lower half comes first in memory.
    if (const int failure = futex_wait(&word_, state | kWaiters, waiting.until)) return failure;
  }
}

int WordReadWriteLock::lock_for_reading(std::uint32_t run, const Waiting& waiting) {
  return take(run, waiting,
              [](std::uint32_t state) { return (state & kWriter) != 0 ? state : state + 1; });
}

int WordReadWriteLock::lock_for_writing(std::uint32_t run, const Waiting& waiting) {
  return take(run, waiting, [](std::uint32_t state) {
    return (state & (kWriter | kReaders)) != 0 ? state : state | kWriter;
  });
}

void WordReadWriteLock::leave(std::uint32_t run, std::uint32_t taken) {
  for (;;) {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    const std::uint32_t state = rw_state_of(word, run);
    std::uint32_t left = state - taken;
    const bool wakes = (left & (kWriter | kReaders)) == 0 && (left & kWaiters) != 0;
    if (wakes) left = 0;
    if (!word_.compare_exchange_weak(word, rw_word(run, left), std::memory_order_release)) continue;
    if (wakes) futex_wake(&word_, INT_MAX);
    return;
  }
}

void WordReadWriteLock::unlock_reading(std::uint32_t run) { leave(run, 1); }
void WordReadWriteLock::unlock_writing(std::uint32_t run) { leave(run, kWriter); }

bool WordReadWriteLock::is_locked(std::uint32_t run) const {
  return (rw_state_of(word_.load(std::memory_order_relaxed), run) & (kWriter | kReaders)) != 0;
}

// --------------------------------------------------------------------------------------- condition

void WordCondition::change_waiters(std::uint32_t run, int by) {
  for (;;) {
    std::uint64_t word = waiters_.load(std::memory_order_relaxed);
    const std::uint32_t count = rw_state_of(word, run);
    if (waiters_.compare_exchange_weak(word, rw_word(run, count + static_cast<std::uint32_t>(by))))
      return;
  }
}

std::uint32_t WordCondition::begin_wait(std::uint32_t run) {
  change_waiters(run, 1);
  return signals_.load();
}

int WordCondition::wait(std::uint32_t run, std::uint32_t begun, const std::optional<Until>& until) {
  const int outcome = futex_wait(&signals_, begun, until);
  change_waiters(run, -1);
  return outcome;
}

void WordCondition::wake(std::uint32_t run, bool all) {
  signals_.fetch_add(1);
  if (rw_state_of(waiters_.load(), run) == 0) return;
  futex_wake(&signals_, all ? INT_MAX : 1);
}

}  // namespace pawl::fase
