#include "medium/idle_poll.h"

#include <sched.h>

#include <chrono>
#include <thread>

#include "medium/medium.h"
#include "medium/quiet_thread.h"

namespace pawl {
namespace {

constexpr int kStop = -1;
constexpr int kTurnMask = 0x7fffffff;
// Between two looks at the clock.
constexpr int kPausesAtOnce = 16;

void pause_processor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

struct IdlePoll::State {
  explicit State(std::uint32_t longest_us) : longest(longest_us) {}

  const std::chrono::microseconds longest;
  // Odd while a wait is under way; kStop at the end.
  std::atomic<int> turn{0};
  std::atomic<std::uint64_t> waits_polled{0};
  std::atomic<std::uint64_t> waits_given_up{0};
};

IdlePoll::IdlePoll(std::uint32_t longest_us)
    : longest_us_(longest_us), state_(std::make_shared<State>(longest_us)) {}

IdlePoll::~IdlePoll() {
  state_->turn.store(kStop);
  state_->turn.notify_one();
}

std::uint64_t IdlePoll::waits_polled() const { return state_->waits_polled.load(); }

std::uint64_t IdlePoll::waits_given_up() const { return state_->waits_given_up.load(); }

void IdlePoll::start() {
  started_ = true;
  Result<std::thread> thread =
      start_quiet_thread(kIdlePollThreadName, [state = state_] { run(*state); });
  if (thread.ok()) thread.value().detach();
}

void IdlePoll::begin() {
  if (longest_us_ == 0) return;
  if (!started_) start();
  const int turn = state_->turn.load(std::memory_order_relaxed);
  PAWL_ASSERT(turn != kStop && (turn & 1) == 0);
  state_->turn.store((turn + 1) & kTurnMask);
  state_->turn.notify_one();
}

void IdlePoll::end() {
  if (longest_us_ == 0) return;
  const int turn = state_->turn.load(std::memory_order_relaxed);
  PAWL_ASSERT(turn != kStop && (turn & 1) == 1);
  state_->turn.store((turn + 1) & kTurnMask);
}

void IdlePoll::run(State& state) {
  const sched_param lowest{};
  if (::sched_setscheduler(0, SCHED_IDLE, &lowest) != 0) return;
  int turn = state.turn.load();
  while (turn != kStop) {
    const bool is_over = (turn & 1) == 1 && poll(state, turn);
    if (!is_over) state.turn.wait(turn);
    turn = state.turn.load();
  }
}

// False when the wait outlasted the polling.
bool IdlePoll::poll(State& state, int turn) {
  state.waits_polled.fetch_add(1, std::memory_order_relaxed);
  const auto end = std::chrono::steady_clock::now() + state.longest;
  do {
    for (int i = 0; i < kPausesAtOnce; ++i) pause_processor();
    if (state.turn.load() != turn) return true;
  } while (std::chrono::steady_clock::now() < end);
  state.waits_given_up.fetch_add(1, std::memory_order_relaxed);
  return false;
}

}  // namespace pawl
