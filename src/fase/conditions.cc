// Condition variables.  To wait is to release the mutex: the FASE ends, and another begins when the
// mutex is held again.

#include <pthread.h>
#include <cerrno>
#include <cstdio>

#include "fase/abi.h"
#include "fase/lock_calls.h"
#include "fase/recovered_fase.h"
#include "fase/thread.h"
#include "fase/word_locks.h"
#include "mapping/border.h"
#include "pawl/fase.h"

namespace {

using pawl::Status;
using pawl::fase::check_usable;
using pawl::fase::EventKind;
using pawl::fase::is_in_window;
using pawl::fase::refuse;
using pawl::fase::run_of;
using pawl::fase::Thread;
using pawl::fase::Until;
using pawl::fase::WordCondition;
using pawl::fase::WordMutex;

static_assert(sizeof(WordCondition) <= sizeof(pthread_cond_t));

// Many programs do not look at what these functions return, and would go on for ever.
void say(const char* text) { std::fprintf(stderr, "pawl: %s\n", text); }

int refuse_aloud(int error_number, const char* text) {
  say(text);
  return refuse(error_number, PAWL_ERROR_INVALID_ARGUMENT, text);
}

int check_usable_aloud(const Thread& thread) {
  const int unusable = check_usable(thread);
  if (unusable != 0) say(::pawl_last_error());
  return unusable;
}

// A mutex for the time of a wait.
int release_mutex(const Thread& thread, void* mutex) {
  if (!is_in_window(mutex)) return ::pthread_mutex_unlock(static_cast<pthread_mutex_t*>(mutex));
  static_cast<WordMutex*>(mutex)->lock.unlock(run_of(thread));
  return 0;
}
void retake_mutex(const Thread& thread, void* mutex) {
  if (!is_in_window(mutex)) {
    ::pthread_mutex_lock(static_cast<pthread_mutex_t*>(mutex));
  } else {
    static_cast<WordMutex*>(mutex)->lock.lock(run_of(thread), {});
  }
}

// The FASE has ended.  One of undo that others may still take with them has to wait for these, and
// they may need the mutex: so it is released for that time.  True when it was, and what the program
// waits for may have happened: then it is as if it had been woken for no reason.
bool leave_before_wait(Thread& thread, void* mutex, std::uint64_t held) {
  if (!thread.is_unsettled()) {
    thread.fase_was_left();
    return false;
  }
  release_mutex(thread, mutex);
  thread.fase_was_left();
  retake_mutex(thread, mutex);
  thread.add_lock(held);
  return true;
}

// In the C library, with a mutex of its own.
int really_wait(void* condition, void* mutex, const std::optional<Until>& until) {
  auto* const real = static_cast<pthread_cond_t*>(condition);
  auto* const real_mutex = static_cast<pthread_mutex_t*>(mutex);
  if (!until) return ::pthread_cond_wait(real, real_mutex);
  // The clock that the condition was made for.
  if (until->clock < 0) return ::pthread_cond_timedwait(real, real_mutex, &until->time);
  return ::pthread_cond_clockwait(real, real_mutex, until->clock, &until->time);
}

constexpr clockid_t kOfCondition = -1;

int wait(void* condition, void* mutex, std::optional<Until> until) {
  Thread& thread = Thread::current();
  thread.reached(EventKind::wait, reinterpret_cast<std::uint64_t>(condition), nullptr);
  const bool is_ours = is_in_window(condition);
  if (is_ours || is_in_window(mutex)) {
    if (const int unusable = check_usable_aloud(thread)) return unusable;
  }
  const std::uint64_t held = thread.held_lock(reinterpret_cast<std::uint64_t>(mutex));
  if (held == 0) {
    if (!is_ours && !is_in_window(mutex) && thread.recovered() == nullptr)
      return really_wait(condition, mutex, until);
    return refuse_aloud(EPERM, "a thread waits for a condition with a mutex that it does not hold");
  }
  if (thread.locks().size() != 1) {
    return refuse_aloud(EPERM,
                        "a thread waits for a condition with more than the one mutex held: its "
                        "failure-atomic section cannot end there, and would be half done");
  }
  if (!is_ours && is_in_window(mutex)) {
    return refuse_aloud(
        EINVAL,
        "a condition that is not in the file is waited for with a mutex that is; put both "
        "into the file");
  }
  if (!is_ours) {
    thread.remove_lock(held, {}, nullptr);
    if (leave_before_wait(thread, mutex, held)) return 0;
    // No cancellation point, as a wait in the file is none: the compiler lets no section be left by
    // unwinding, so that the cleanup of the function that waits would be skipped.
    int cancel_state = PTHREAD_CANCEL_ENABLE;
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    const int outcome = really_wait(condition, mutex, until);
    thread.add_lock(held);
    ::pthread_setcancelstate(cancel_state, nullptr);
    return outcome;
  }
  auto* const words = static_cast<WordCondition*>(condition);
  if (until && until->clock == kOfCondition) until->clock = words->clock();
  const std::uint32_t run = run_of(thread);
  // In recovery the FASE ends here.
  thread.remove_lock(held, {}, nullptr);
  if (leave_before_wait(thread, mutex, held)) return 0;
  const std::uint32_t begun = words->begin_wait(run);
  release_mutex(thread, mutex);
  const int outcome = words->wait(run, begun, until);
  retake_mutex(thread, mutex);
  thread.add_lock(held);
  return outcome;
}

int wake(void* condition, bool all) {
  Thread& thread = Thread::current();
  // Nobody waits there.
  if (thread.recovered() != nullptr || thread.is_rehearsing()) return 0;
  if (!is_in_window(condition)) {
    auto* const real = static_cast<pthread_cond_t*>(condition);
    return all ? ::pthread_cond_broadcast(real) : ::pthread_cond_signal(real);
  }
  if (const int unusable = check_usable_aloud(thread)) return unusable;
  static_cast<WordCondition*>(condition)->wake(run_of(thread), all);
  return 0;
}

timespec time_of(const void* until) { return *static_cast<const timespec*>(until); }

}  // namespace

extern "C" {

PAWL_PUBLIC int pawl_fase_cond_init(void* condition, const void* attributes) {
  const auto* const wanted = static_cast<const pthread_condattr_t*>(attributes);
  Thread& thread = Thread::current();
  if (!is_in_window(condition)) {
    if (thread.recovered() != nullptr) return 0;
    return ::pthread_cond_init(static_cast<pthread_cond_t*>(condition), wanted);
  }
  if (const int unusable = check_usable_aloud(thread)) return unusable;
  clockid_t clock = CLOCK_REALTIME;
  if (wanted != nullptr) ::pthread_condattr_getclock(wanted, &clock);
  static_cast<WordCondition*>(condition)->init(clock);
  thread.stored_unchecked(condition, sizeof(WordCondition));
  return 0;
}

PAWL_PUBLIC int pawl_fase_cond_destroy(void* condition) {
  if (is_in_window(condition) || Thread::current().recovered() != nullptr) return 0;
  return ::pthread_cond_destroy(static_cast<pthread_cond_t*>(condition));
}

PAWL_PUBLIC int pawl_fase_cond_wait(void* condition, void* mutex) {
  return wait(condition, mutex, std::nullopt);
}
PAWL_PUBLIC int pawl_fase_cond_timedwait(void* condition, void* mutex, const void* until_timespec) {
  return wait(condition, mutex, Until{time_of(until_timespec), kOfCondition});
}
PAWL_PUBLIC int pawl_fase_cond_clockwait(void* condition, void* mutex, int clock,
                                         const void* until_timespec) {
  return wait(condition, mutex, Until{time_of(until_timespec), clock});
}
PAWL_PUBLIC int pawl_fase_cond_signal(void* condition) { return wake(condition, false); }
PAWL_PUBLIC int pawl_fase_cond_broadcast(void* condition) { return wake(condition, true); }

}  // extern "C"
