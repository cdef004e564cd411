// Locks: those in the window are words of ours, all others those of the C library.  Which are held
// makes the FASE.

#include <pthread.h>
#include <cerrno>
#include <new>

#include "fase/abi.h"
#include "fase/lock_calls.h"
#include "fase/recovered_fase.h"
#include "fase/thread.h"
#include "fase/word_locks.h"
#include "mapping/border.h"
#include "medium/law.h"
#include "pawl/fase.h"

namespace {

using pawl::Law;
using pawl::Status;
using pawl::fase::check_usable;
using pawl::fase::EventKind;
using pawl::fase::File;
using pawl::fase::is_forked_child;
using pawl::fase::is_in_window;
using pawl::fase::kLockBits;
using pawl::fase::kReadingBit;
using pawl::fase::kRecursiveBit;
using pawl::fase::LockStep;
using pawl::fase::Patience;
using pawl::fase::RecoveredFase;
using pawl::fase::refuse;
using pawl::fase::ReleaseLock;
using pawl::fase::run_of;
using pawl::fase::Site;
using pawl::fase::Thread;
using pawl::fase::Until;
using pawl::fase::Waiting;
using pawl::fase::WordLock;
using pawl::fase::WordMutex;
using pawl::fase::WordReadWriteLock;

static_assert(sizeof(WordMutex) <= sizeof(pthread_mutex_t));
static_assert(offsetof(WordMutex, kind) == 16);
static_assert(sizeof(WordReadWriteLock) <= sizeof(pthread_rwlock_t));
static_assert(sizeof(WordLock) <= sizeof(pthread_spinlock_t));

std::uint64_t address_of(const void* lock) { return reinterpret_cast<std::uint64_t>(lock); }
// Of a lock as frames name it.
template <class Lock>
Lock* lock_at(std::uint64_t lock) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it was made from one
  return reinterpret_cast<Lock*>(lock & ~kLockBits);
}

// The lock's memory changed, by its making.
int made(Thread& thread, const void* lock, std::size_t count) {
  thread.stored_unchecked(lock, count);
  return 0;
}

// What POSIX puts into the type of a lock.
int kind_of(const void* mutex) {
  constexpr int kKindMask = 3;
  return static_cast<const WordMutex*>(mutex)->kind & kKindMask;
}

// The program makes the lock anew or gives its memory away: so the thread must not have it any
// more.
void give_up(Thread& thread, const void* lock) {
  if (thread.recovered() == nullptr && thread.has_put_off(address_of(lock)))
    thread.log_what_was_put_off();
}

Patience patience_of(const Waiting& waiting) {
  if (waiting.only_try) return Patience::none;
  return waiting.until ? Patience::limited : Patience::unlimited;
}
Patience patience_of(bool only_try) { return only_try ? Patience::none : Patience::unlimited; }

// Takes a lock: `really` does it where no recovery is.
template <class Really>
int take(Thread& current, std::uint64_t lock, Patience patience, Really really) {
  Thread& thread = current.lent_to_handler();
  thread.will_lock(lock);
  int outcome = 0;
  if (RecoveredFase* const recovered = thread.recovered()) {
    outcome = recovered->lock(lock, patience);
  } else {
    thread.log_lock(LockStep::intends, lock);
    outcome = really();
  }
  if (outcome == 0 || outcome == EOWNERDEAD) {
    thread.add_lock(lock);
    thread.log_lock(LockStep::owns, lock);
  }
  thread.return_to_handler();
  return outcome;
}

// Releases a lock that the thread holds.
int release(Thread& thread, std::uint64_t lock, const Site& site, ReleaseLock really) {
  int outcome = 0;
  thread.log_lock(LockStep::intends, lock);
  thread.log_lock(LockStep::lets_go, lock);
  // Rule 5.
  if (pawl::is_broken(Law::frame_before_unlock)) {
    outcome = thread.release_really(lock, really);
    thread.remove_lock(lock, site, really);
  } else if (thread.remove_lock(lock, site, really)) {
    outcome = thread.release_really(lock, really);
  }
  thread.fase_was_left();
  thread.return_to_handler();
  return outcome;
}

int lock_mutex(void* mutex, const Waiting& waiting) {
  Thread& thread = Thread::current();
  const std::uint64_t address = address_of(mutex);
  const std::uint64_t held = thread.held_lock(address);
  if (!is_in_window(mutex)) {
    auto* const real = static_cast<pthread_mutex_t*>(mutex);
    // In recovery its memory is gone; what is taken while it is held must be one that can be.
    const bool is_recursive = thread.recovered() != nullptr
                                  ? held != 0 && !waiting.only_try
                                  : kind_of(mutex) == PTHREAD_MUTEX_RECURSIVE_NP;
    return take(thread, held | address | (is_recursive ? kRecursiveBit : 0), patience_of(waiting),
                [&] {
                  if (waiting.only_try) return ::pthread_mutex_trylock(real);
                  if (!waiting.until) return ::pthread_mutex_lock(real);
                  return ::pthread_mutex_timedlock(real, &waiting.until->time);
                });
  }
  if (const int unusable = check_usable(thread)) return unusable;
  const int kind = kind_of(mutex);
  if (held != 0 && kind == PTHREAD_MUTEX_ERRORCHECK_NP && !waiting.only_try) return EDEADLK;
  const bool is_recursive = kind == PTHREAD_MUTEX_RECURSIVE_NP;
  return take(thread, address | (is_recursive ? kRecursiveBit : 0), patience_of(waiting), [&] {
    if (held != 0 && is_recursive) return 0;
    return static_cast<WordMutex*>(mutex)->lock.lock(run_of(thread), waiting);
  });
}

}  // namespace

// ------------------------------------------------------------------------------------------- mutex

extern "C" {

PAWL_PUBLIC int pawl_fase_mutex_init(void* mutex, const void* attributes) {
  const auto* const wanted = static_cast<const pthread_mutexattr_t*>(attributes);
  Thread& thread = Thread::current();
  give_up(thread, mutex);
  if (!is_in_window(mutex)) {
    if (thread.recovered() != nullptr) return 0;
    return ::pthread_mutex_init(static_cast<pthread_mutex_t*>(mutex), wanted);
  }
  if (const int unusable = check_usable(thread)) return unusable;
  int kind = PTHREAD_MUTEX_NORMAL;
  if (wanted != nullptr) {
    int protocol = PTHREAD_PRIO_NONE;
    int robust = PTHREAD_MUTEX_STALLED;
    ::pthread_mutexattr_getprotocol(wanted, &protocol);
    ::pthread_mutexattr_getrobust(wanted, &robust);
    if (protocol != PTHREAD_PRIO_NONE || robust != PTHREAD_MUTEX_STALLED)
      return refuse(ENOTSUP, PAWL_ERROR_INVALID_ARGUMENT,
                    "a mutex in persistent memory has no priority protocol and is not robust");
    ::pthread_mutexattr_gettype(wanted, &kind);
  }
  auto* const made_mutex = static_cast<WordMutex*>(mutex);
  made_mutex->lock.clear();
  made_mutex->kind = kind;
  return made(thread, mutex, sizeof(WordMutex));
}

PAWL_PUBLIC int pawl_fase_mutex_destroy(void* mutex) {
  Thread& thread = Thread::current();
  give_up(thread, mutex);
  if (thread.recovered() != nullptr) return 0;
  if (!is_in_window(mutex)) return ::pthread_mutex_destroy(static_cast<pthread_mutex_t*>(mutex));
  if (const int unusable = check_usable(thread)) return unusable;
  return static_cast<WordMutex*>(mutex)->lock.is_locked(run_of(thread)) ? EBUSY : 0;
}

PAWL_PUBLIC int pawl_fase_mutex_lock(void* mutex) { return lock_mutex(mutex, {}); }
PAWL_PUBLIC int pawl_fase_mutex_trylock(void* mutex) {
  return lock_mutex(mutex, {.only_try = true});
}
PAWL_PUBLIC int pawl_fase_mutex_timedlock(void* mutex, const void* until_timespec) {
  return lock_mutex(mutex, {.until = Until{*static_cast<const timespec*>(until_timespec)}});
}

PAWL_PUBLIC int pawl_fase_mutex_unlock(void* mutex, const struct pawl_fase_function* function,
                                       uint32_t region, const void* live_ins) {
  Thread& thread = Thread::current();
  const std::uint64_t address = address_of(mutex);
  const std::uint64_t held = thread.held_lock(address);
  const Site site{function, region, live_ins};
  if (!is_in_window(mutex)) {
    auto* const real = static_cast<pthread_mutex_t*>(mutex);
    // Taken by code that was compiled otherwise.
    if (held == 0) return thread.recovered() != nullptr ? EPERM : ::pthread_mutex_unlock(real);
    return release(thread, held, site, [](const Thread&, std::uint64_t named) {
      return ::pthread_mutex_unlock(lock_at<pthread_mutex_t>(named));
    });
  }
  if (const int unusable = check_usable(thread)) return unusable;
  if (held == 0)
    return refuse(EPERM, PAWL_ERROR_INVALID_ARGUMENT,
                  "the thread does not hold the mutex that it unlocks");
  return release(thread, held, site, [](const Thread& of, std::uint64_t named) {
    // A recursive one may still be held.
    const bool is_last = is_broken(Law::frame_before_unlock)
                             ? std::count(of.locks().begin(), of.locks().end(), named) == 1
                             : of.held_lock(named & ~kLockBits) == 0;
    if (is_last) lock_at<WordMutex>(named)->lock.unlock(run_of(of));
    return 0;
  });
}

// --------------------------------------------------------------------------------- read-write lock

PAWL_PUBLIC int pawl_fase_rwlock_init(void* lock, const void* attributes) {
  Thread& thread = Thread::current();
  give_up(thread, lock);
  if (!is_in_window(lock)) {
    if (thread.recovered() != nullptr) return 0;
    return ::pthread_rwlock_init(static_cast<pthread_rwlock_t*>(lock),
                                 static_cast<const pthread_rwlockattr_t*>(attributes));
  }
  if (const int unusable = check_usable(thread)) return unusable;
  static_cast<WordReadWriteLock*>(lock)->clear();
  return made(thread, lock, sizeof(WordReadWriteLock));
}

PAWL_PUBLIC int pawl_fase_rwlock_destroy(void* lock) {
  Thread& thread = Thread::current();
  give_up(thread, lock);
  if (thread.recovered() != nullptr) return 0;
  if (!is_in_window(lock)) return ::pthread_rwlock_destroy(static_cast<pthread_rwlock_t*>(lock));
  if (const int unusable = check_usable(thread)) return unusable;
  return static_cast<WordReadWriteLock*>(lock)->is_locked(run_of(thread)) ? EBUSY : 0;
}

}  // extern "C"

namespace {

int lock_rwlock(void* lock, bool reading, bool only_try) {
  Thread& thread = Thread::current();
  const std::uint64_t wanted = address_of(lock) | (reading ? kReadingBit : 0);
  if (!is_in_window(lock)) {
    auto* const real = static_cast<pthread_rwlock_t*>(lock);
    return take(thread, wanted, patience_of(only_try), [&] {
      if (reading)
        return only_try ? ::pthread_rwlock_tryrdlock(real) : ::pthread_rwlock_rdlock(real);
      return only_try ? ::pthread_rwlock_trywrlock(real) : ::pthread_rwlock_wrlock(real);
    });
  }
  if (const int unusable = check_usable(thread)) return unusable;
  if (const std::uint64_t held = thread.held_lock(address_of(lock));
      held != 0 && (!reading || (held & kReadingBit) == 0))
    return only_try ? EBUSY : EDEADLK;
  return take(thread, wanted, patience_of(only_try), [&] {
    auto* const words = static_cast<WordReadWriteLock*>(lock);
    const Waiting waiting{.only_try = only_try};
    return reading ? words->lock_for_reading(run_of(thread), waiting)
                   : words->lock_for_writing(run_of(thread), waiting);
  });
}

}  // namespace

extern "C" {

PAWL_PUBLIC int pawl_fase_rwlock_rdlock(void* lock) { return lock_rwlock(lock, true, false); }
PAWL_PUBLIC int pawl_fase_rwlock_tryrdlock(void* lock) { return lock_rwlock(lock, true, true); }
PAWL_PUBLIC int pawl_fase_rwlock_wrlock(void* lock) { return lock_rwlock(lock, false, false); }
PAWL_PUBLIC int pawl_fase_rwlock_trywrlock(void* lock) { return lock_rwlock(lock, false, true); }

PAWL_PUBLIC int pawl_fase_rwlock_unlock(void* lock, const struct pawl_fase_function* function,
                                        uint32_t region, const void* live_ins) {
  Thread& thread = Thread::current();
  const std::uint64_t held = thread.held_lock(address_of(lock));
  const Site site{function, region, live_ins};
  if (!is_in_window(lock)) {
    auto* const real = static_cast<pthread_rwlock_t*>(lock);
    if (held == 0) return thread.recovered() != nullptr ? EPERM : ::pthread_rwlock_unlock(real);
    return release(thread, held, site, [](const Thread&, std::uint64_t named) {
      return ::pthread_rwlock_unlock(lock_at<pthread_rwlock_t>(named));
    });
  }
  if (const int unusable = check_usable(thread)) return unusable;
  if (held == 0)
    return refuse(EPERM, PAWL_ERROR_INVALID_ARGUMENT,
                  "the thread does not hold the lock that it unlocks");
  return release(thread, held, site, [](const Thread& of, std::uint64_t named) {
    auto* const words = lock_at<WordReadWriteLock>(named);
    if ((named & kReadingBit) != 0) {
      words->unlock_reading(run_of(of));
    } else {
      words->unlock_writing(run_of(of));
    }
    return 0;
  });
}

// --------------------------------------------------------------------------------------- spin lock

PAWL_PUBLIC int pawl_fase_spin_init(void* lock, int shared) {
  Thread& thread = Thread::current();
  give_up(thread, lock);
  if (!is_in_window(lock)) {
    if (thread.recovered() != nullptr) return 0;
    return ::pthread_spin_init(static_cast<pthread_spinlock_t*>(lock), shared);
  }
  if (const int unusable = check_usable(thread)) return unusable;
  static_cast<WordLock*>(lock)->clear();
  return made(thread, lock, sizeof(WordLock));
}

PAWL_PUBLIC int pawl_fase_spin_destroy(void* lock) {
  Thread& thread = Thread::current();
  give_up(thread, lock);
  if (thread.recovered() != nullptr) return 0;
  if (!is_in_window(lock)) return ::pthread_spin_destroy(static_cast<pthread_spinlock_t*>(lock));
  if (const int unusable = check_usable(thread)) return unusable;
  return static_cast<WordLock*>(lock)->is_locked(run_of(thread)) ? EBUSY : 0;
}

}  // extern "C"

namespace {

int lock_spin(void* lock, bool only_try) {
  Thread& thread = Thread::current();
  if (!is_in_window(lock)) {
    auto* const real = static_cast<pthread_spinlock_t*>(lock);
    return take(thread, address_of(lock), patience_of(only_try), [&] {
      return only_try ? ::pthread_spin_trylock(real) : ::pthread_spin_lock(real);
    });
  }
  if (const int unusable = check_usable(thread)) return unusable;
  return take(thread, address_of(lock), patience_of(only_try), [&] {
    return static_cast<WordLock*>(lock)->lock(run_of(thread), {.only_try = only_try});
  });
}

}  // namespace

extern "C" {

PAWL_PUBLIC int pawl_fase_spin_lock(void* lock) { return lock_spin(lock, false); }
PAWL_PUBLIC int pawl_fase_spin_trylock(void* lock) { return lock_spin(lock, true); }

PAWL_PUBLIC int pawl_fase_spin_unlock(void* lock, const struct pawl_fase_function* function,
                                      uint32_t region, const void* live_ins) {
  Thread& thread = Thread::current();
  const std::uint64_t held = thread.held_lock(address_of(lock));
  const Site site{function, region, live_ins};
  if (!is_in_window(lock)) {
    auto* const real = static_cast<pthread_spinlock_t*>(lock);
    if (held == 0) return thread.recovered() != nullptr ? EPERM : ::pthread_spin_unlock(real);
    return release(thread, held, site, [](const Thread&, std::uint64_t named) {
      return ::pthread_spin_unlock(lock_at<volatile pthread_spinlock_t>(named));
    });
  }
  if (const int unusable = check_usable(thread)) return unusable;
  if (held == 0)
    return refuse(EPERM, PAWL_ERROR_INVALID_ARGUMENT,
                  "the thread does not hold the lock that it unlocks");
  return release(thread, held, site, [](const Thread& of, std::uint64_t named) {
    lock_at<WordLock>(named)->unlock(run_of(of));
    return 0;
  });
}

// ----------------------------------------------------------------------------------------- section

PAWL_PUBLIC void pawl_fase_section_begin(void) {
  take(Thread::current(), pawl::fase::kSectionLock, Patience::unlimited, [] { return 0; });
}

PAWL_PUBLIC void pawl_fase_section_end(const struct pawl_fase_function* function, uint32_t region,
                                       const void* live_ins) {
  Thread& thread = Thread::current();
  // The address of nobody's lock.
  if (thread.held_lock(0) == 0) return;
  release(thread, pawl::fase::kSectionLock, {function, region, live_ins},
          [](const Thread&, std::uint64_t) { return 0; });
}

}  // extern "C"
