// A FASE that a crash interrupted, on its way to its end: by one thread of the recovery.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fase/log.h"
#include "fase/recovery_locks.h"
#include "fase/sink.h"
#include "fase/thread.h"

namespace pawl::fase {

class RecoveredFase final : public LockOwner {
 public:
  // `chain` is of this program, and sound.
  RecoveredFase(File& file, std::uint32_t log, const FoundLog& found, RecoveryLocks& locks);

  // The locks that its frame names.  EUCLEAN: another FASE's names one of them, too.
  Status retake_locks();

  // By a thread of its own.  Returns when the FASE has ended, or cannot.
  void run();
  // Of run(): why it cannot.
  const Status& outcome() const { return outcome_; }
  // What its last frame says, for messages.
  std::string where() const;

  // --- for the run-time's calls of the resumed functions ---
  // 0, EBUSY or ETIMEDOUT.
  int lock(std::uint64_t lock, Patience patience);
  void unlock(std::uint64_t lock);
  void* sink(std::size_t count);
  // Leave the resumed functions: what they have on the stack is dropped, and not destroyed.
  [[noreturn]] void leave();
  // Before it leaves: why it could not finish.
  void give_up(Status why) { outcome_ = std::move(why); }

 private:
  void resume();

  RecoveryLocks& locks_;
  const pawl_fase_function* const function_;
  const std::uint32_t region_;
  std::vector<std::byte> live_ins_;
  Sink sink_;
  const std::unique_ptr<Thread> thread_ = std::make_unique<Thread>();
  Status outcome_;
  std::jmp_buf out_;
};

// EUCLEAN when the program has no such functions and regions, or they take other live-ins.
Status check_chain(std::span<const FoundFrame> chain);

}  // namespace pawl::fase
