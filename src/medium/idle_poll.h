// Keeps the machine awake while a commit waits for the device.
//
// A processor with nothing to run halts, and the interrupt that ends the wait has to wake it first.
// On a virtual machine, most of all when all its processors sleep, that costs more than all that a
// commit computes (docs/benchmarks.md).  Linux has the same remedy for guests, the cpuidle governor
// haltpoll, by default for as long (200 us); but it is up to whoever runs the machine.
//
// One thread polls, under SCHED_IDLE, so that whatever else wants the processor comes first.  It is
// left to the scheduler where: bound to the processor from which the caller waits it was as good
// for a program that only commits, but a server and its client were moved about by it.
// Where such a thread cannot be had nothing is polled, and nothing else changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace pawl {

inline constexpr const char* kIdlePollThreadName = "pawl-idle";

class IdlePoll {
 public:
  // A wait is polled for at most `longest_us`; 0: never.
  explicit IdlePoll(std::uint32_t longest_us);
  // Does not wait for the thread: on a busy machine its turn may come late.
  ~IdlePoll();
  IdlePoll(const IdlePoll&) = delete;
  IdlePoll& operator=(const IdlePoll&) = delete;

  // A wait lasts as long as one of these lives.  One at a time.
  class Wait {
   public:
    explicit Wait(IdlePoll& poll) : poll_(poll) { poll_.begin(); }
    ~Wait() { poll_.end(); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    IdlePoll& poll_;
  };

  // Waits during which the thread has polled, and those of them that it gave up, in all.
  std::uint64_t waits_polled() const;
  std::uint64_t waits_given_up() const;

 private:
  // Shared with the thread, which may be the last to leave.
  struct State;
  void begin();
  void end();
  void start();
  static void run(State& state);
  static bool poll(State& state, int turn);

  const std::uint32_t longest_us_;
  const std::shared_ptr<State> state_;
  bool started_ = false;
};

}  // namespace pawl
