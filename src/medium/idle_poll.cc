#include "medium/idle_poll.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <new>
#include <thread>

#include "medium/quiet_thread.h"

namespace pawl {
namespace {

// Waits that are further apart are not in succession.
constexpr std::int64_t kSuccessionNs = 20'000'000;
constexpr timespec kStaysWithoutWork = {.tv_sec = 1, .tv_nsec = 0};
// Behind a wait: whoever commits without pause waits again before the thread sleeps, and need not
// wake its processor, which costs 7 us here.
constexpr std::int64_t kLingersNs = 50'000;
// Between two looks at the clock.
constexpr int kPausesAtOnce = 16;

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void pause_processor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
  static_assert(sizeof word == sizeof value);
  return ::syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, timeout, nullptr, 0);
}

IdlePoll* of_process = nullptr;  // the parent's is left behind by a forked child

}  // namespace

IdlePoll& IdlePoll::process() {
  static const bool made = [] {
    of_process = new IdlePoll;
    // The child has no thread, and another thread of the parent may have held the lock.
    ::pthread_atfork(nullptr, nullptr, [] { of_process = new IdlePoll; });
    return true;
  }();
  (void)made;
  return *of_process;
}

IdlePoll::Wait::Wait(std::uint32_t longest_us) noexcept {
  if (longest_us == 0) return;
  try {
    poll_ = &IdlePoll::process();
  } catch (const std::bad_alloc&) {
    return;
  }
  poll_->begin(longest_us);
}

IdlePoll::Wait::~Wait() {
  if (poll_ != nullptr) poll_->under_way_.fetch_sub(1);
}

// Threads that wait at once may miscount each other's succession, which only shifts the start.
bool IdlePoll::in_succession(std::int64_t now) {
  const std::int64_t last = last_begin_ns_.exchange(now, std::memory_order_relaxed);
  if (now - last > kSuccessionNs) successive_.store(0, std::memory_order_relaxed);
  if (successive_.load(std::memory_order_relaxed) >= kWaitsBefore) return true;
  successive_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void IdlePoll::begin(std::uint32_t longest_us) noexcept {
  under_way_.fetch_add(1);
  const std::int64_t now = now_ns();
  if (!in_succession(now)) return;
  deadline_ns_.store(now + std::int64_t{longest_us} * 1000);
  begun_.fetch_add(1);
  if (running_.load())
    futex(begun_, FUTEX_WAKE, 1, nullptr);
  else
    start();
}

void IdlePoll::start() noexcept {
  const std::unique_lock lock(thread_mutex_, std::try_to_lock);
  if (!lock.owns_lock() || running_.load()) return;
  running_.store(true);
  Result<std::thread> thread = start_quiet_thread(kIdlePollThreadName, [this] { run(); });
  if (thread.ok())
    thread.value().detach();
  else
    running_.store(false);
}

void IdlePoll::run() {
  const sched_param lowest{};
  // As any other thread it would be in the way: then there is none, for ever.
  if (::sched_setscheduler(0, SCHED_IDLE, &lowest) != 0) return;
  for (std::uint32_t begun = begun_.load();;) {
    poll(begun);
    if (begun_.load() == begun && futex(begun_, FUTEX_WAIT, begun, &kStaysWithoutWork) != 0 &&
        errno == ETIMEDOUT && ends(begun))
      return;
    begun = begun_.load();
  }
}

// Until no wait is under way, and was not for kLingersNs, another has begun, or the last has lasted
// too long.
void IdlePoll::poll(std::uint32_t begun) {
  if (under_way_.load() == 0) return;
  polls_.fetch_add(1);
  if (void (*const work)() noexcept = meanwhile_.load(); work != nullptr) work();
  std::int64_t lingers_until_ns = 0;
  for (;;) {
    for (int i = 0; i < kPausesAtOnce; ++i) pause_processor();
    if (begun_.load() != begun) return;
    const std::int64_t now = now_ns();
    if (under_way_.load() != 0) {
      if (now < deadline_ns_.load()) continue;
      given_up_.fetch_add(1);
      return;
    }
    if (lingers_until_ns == 0) lingers_until_ns = now + kLingersNs;
    if (now >= lingers_until_ns) return;
  }
}

// Whether nothing has begun since.  Whoever begins from now on starts another thread.
bool IdlePoll::ends(std::uint32_t begun) {
  const std::lock_guard lock(thread_mutex_);
  if (begun_.load() != begun) return false;
  running_.store(false);
  return true;
}

}  // namespace pawl
