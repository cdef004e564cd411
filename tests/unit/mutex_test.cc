// The mutex of what each commit locks: by one thread, and by many; and the lock that children take.
#include "medium/mutex.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "medium/fork_safe_lock.h"

namespace pawl {
namespace {

TEST(Mutex, IsFreeAgainAfterEachPair) {
  Mutex mutex;
  for (int i = 0; i < 3; ++i) const std::lock_guard lock(mutex);
}

// The first thread took it when there was no other.
TEST(Mutex, KeepsAThreadOutThatWasMadeWhileItWasHeld) {
  Mutex mutex;
  int value = 0;
  mutex.lock();
  std::thread other([&] {
    const std::lock_guard lock(mutex);
    value *= 2;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  value = 21;
  mutex.unlock();
  other.join();
  EXPECT_EQ(value, 42);
}

TEST(Mutex, LetsOneOfManyThreadsInAtATime) {
  constexpr int kThreads = 8;
  constexpr int kTurns = 20'000;
  Mutex mutex;
  long turns = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        const std::lock_guard lock(mutex);
        turns += 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(turns, long{kThreads} * kTurns);
}

// A child takes it, and learns that what it guards may be half changed; its parent goes on.
TEST(ForkSafeLock, IsTakenByAChildWhoseParentsThreadHeldIt) {
  constexpr unsigned kSecondsMax = 60;
  ForkSafeLock lock;
  std::atomic<bool> is_held{false};
  std::atomic<bool> may_end{false};
  std::thread holder([&] {
    EXPECT_FALSE(lock.lock());
    is_held = true;
    while (!may_end) std::this_thread::yield();
    lock.unlock();
  });
  while (!is_held) std::this_thread::yield();
  for (const auto make : {::fork, ::_Fork}) {
    const pid_t child = make();
    if (child == 0) {
      ::alarm(kSecondsMax);
      const bool is_inherited = lock.lock();
      lock.unlock();
      ::_exit(is_inherited && !lock.lock() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  may_end = true;
  holder.join();
  EXPECT_FALSE(lock.lock());
}

}  // namespace
}  // namespace pawl
