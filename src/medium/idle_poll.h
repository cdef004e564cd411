// Keeps the machine awake while a commit waits for the device.
//
// A processor with nothing to run halts, and the interrupt that ends the wait has to wake it first.
// On a virtual machine, most of all when all its processors sleep, that costs more than all that a
// commit computes (docs/benchmarks.md).  Linux has the same remedy for guests, the cpuidle governor
// haltpoll, by default for as long (200 us); but it is up to whoever runs the machine.
//
// One thread for the process polls, under SCHED_IDLE, so that whatever else its session or
// container has to run comes first.  It is left to the scheduler where: bound to the processor from
// which the caller waits it was as good for a program that only commits, but a server and its
// client were moved about by it.
//
// Such a thread needs processor time to end, too, so exit(2) and execve(2) wait for it, and on a
// busy machine its turn comes late.  So it is there only for those who commit again and again: it
// starts behind kWaitsBefore waits in close succession, and ends when there was none for a while.
// Where it cannot be had nothing is polled, and nothing else changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace pawl {

inline constexpr const char* kIdlePollThreadName = "pawl-idle";

class IdlePoll {
 public:
  // That of the process; a forked child has its own.
  static IdlePoll& process();

  static constexpr std::uint32_t kWaitsBefore = 64;

  // A wait lasts as long as one of these lives, and is polled for at most `longest_us`, and a
  // little behind it, for the next one; 0: not at all.  Any thread may wait, many at once.  Throws
  // nothing.
  class Wait {
   public:
    explicit Wait(std::uint32_t longest_us) noexcept;
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    IdlePoll* poll_ = nullptr;
  };

  // Work of some 10 us that the thread does first in each wait, so that the next commit need not.
  static void do_meanwhile(void (*work)() noexcept) { meanwhile_.store(work); }

  // Times that the thread has polled, and those of them that it gave up, in all.
  std::uint64_t polls() const { return polls_.load(); }
  std::uint64_t given_up() const { return given_up_.load(); }

 private:
  IdlePoll() = default;
  bool in_succession(std::int64_t now_ns);
  void begin(std::uint32_t longest_us) noexcept;
  void start() noexcept;
  void run();
  void poll(std::uint32_t begun);
  bool ends(std::uint32_t begun);

  static inline std::atomic<void (*)() noexcept> meanwhile_{nullptr};

  std::atomic<std::uint32_t> begun_{0};  // waits; the thread sleeps on it
  std::atomic<std::uint32_t> under_way_{0};
  std::atomic<std::int64_t> deadline_ns_{0};  // of the wait that began last
  std::atomic<std::int64_t> last_begin_ns_{0};
  std::atomic<std::uint32_t> successive_{0};
  std::atomic<bool> running_{false};
  std::mutex thread_mutex_;  // guards the thread's start and end
  std::atomic<std::uint64_t> polls_{0};
  std::atomic<std::uint64_t> given_up_{0};
};

}  // namespace pawl
