// Locks and condition variables in the memory of those of POSIX, for files that are mapped again
// and again: whatever a crash left in them, they are free in the next run.
//
// A lock's word begins with the times that its file was opened; one of another time is free.  The
// words are stored and never flushed: nothing of them is needed after a crash.  Threads wait in the
// kernel (futex(2)).  A zeroed lock, and what the static initialisers of POSIX give, is a free one.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <optional>

namespace pawl::fase {

// When to stop waiting.
struct Until {
  timespec time;
  clockid_t clock = CLOCK_REALTIME;
};

// All of them: `run` is the file's lock_word().  0, or EBUSY when asked to try, or ETIMEDOUT, or
// EINVAL for a time that is none.
struct Waiting {
  bool only_try = false;
  std::optional<Until> until = {};
};

// Over pthread_mutex_t, pthread_spinlock_t and mtx_t.
class WordLock {
 public:
  int lock(std::uint32_t run, const Waiting& waiting);
  void unlock(std::uint32_t run);
  bool is_locked(std::uint32_t run) const;
  void clear() { word_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> word_;
};
static_assert(sizeof(WordLock) == 4);

// As glibc's pthread_mutex_t, so far as its static initialisers say something.
struct WordMutex {
  WordLock lock;
  std::uint32_t reserved[3];
  std::int32_t kind;  // PTHREAD_MUTEX_*_NP
};

// Over pthread_rwlock_t.  Writers may starve, as with those of POSIX.
class WordReadWriteLock {
 public:
  int lock_for_reading(std::uint32_t run, const Waiting& waiting);
  int lock_for_writing(std::uint32_t run, const Waiting& waiting);
  void unlock_reading(std::uint32_t run);
  void unlock_writing(std::uint32_t run);
  bool is_locked(std::uint32_t run) const;
  void clear() { word_.store(0, std::memory_order_relaxed); }

 private:
  template <class Change>
  int take(std::uint32_t run, const Waiting& waiting, Change change);
  void leave(std::uint32_t run, std::uint32_t taken);

  std::atomic<std::uint64_t> word_;  // times opened, then readers and flags
};

// Over pthread_cond_t and cnd_t.
class WordCondition {
 public:
  // Between begin_wait(), with the mutex held, and wait() the mutex is released.  Returns 0, also
  // when nobody signalled, ETIMEDOUT or EINVAL.
  std::uint32_t begin_wait(std::uint32_t run);
  int wait(std::uint32_t run, std::uint32_t begun, const std::optional<Until>& until);
  void wake(std::uint32_t run, bool all);
  void init(clockid_t clock) {
    signals_.store(0, std::memory_order_relaxed);
    waiters_.store(0, std::memory_order_relaxed);
    clock_ = static_cast<std::uint32_t>(clock);
  }
  clockid_t clock() const { return static_cast<clockid_t>(clock_); }

 private:
  void change_waiters(std::uint32_t run, int by);

  std::atomic<std::uint32_t> signals_;
  std::uint32_t clock_;                 // CLOCK_REALTIME is 0
  std::atomic<std::uint64_t> waiters_;  // times opened, then their number
};

}  // namespace pawl::fase
