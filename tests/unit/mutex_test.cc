// The mutex of what each commit locks: by one thread, and by many.
#include "medium/mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

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

}  // namespace
}  // namespace pawl
