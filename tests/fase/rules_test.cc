// What a section must not do, and what is said of it; locks and conditions.
#include <gtest/gtest.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include "fase/closed_file.h"
#include "fase/crash_everywhere.h"
#include "fase/file.h"
#include "fase/hand_made.h"
#include "fase/thread.h"

namespace pawl {
namespace {

using test::LiveIns;
using test::store;
using test::Words;

struct Locks {
  pthread_mutex_t mutex;
  pthread_mutex_t recursive;
  pthread_mutex_t checked;
  pthread_rwlock_t rwlock;
  pthread_spinlock_t spin;
  pthread_cond_t condition;
  std::uint64_t value;
  std::uint64_t done;
};

extern const pawl_fase_function functions[];
enum : std::uint32_t { kLoads, kOther, kFunctions };

// A section that loads what `mode` says, when it is armed.
enum Mode : std::uint64_t { kOfProgram, kOfStack, kConstant, kCallsUnknown, kStoresOutside };
void not_compiled() {}
int of_program = 5;
const int constant = 5;

void loads_rest(Locks* locks, std::uint64_t mode, const void* at) {
  store(locks->value, std::uint64_t{7});
  if (mode == kCallsUnknown) {
    const LiveIns live_ins(locks, mode, at);
    pawl_fase_call_indirect(&functions[kLoads], 0, &live_ins,
                            reinterpret_cast<const void*>(&not_compiled));
    pawl_fase_return();
  } else if (mode == kStoresOutside) {
    void* const target = pawl_fase_volatile_target(const_cast<void*>(at), sizeof(int));
    *static_cast<int*>(target) = 6;
  } else {
    pawl_fase_volatile_load(&functions[kLoads], 77, at);
  }
  const LiveIns live_ins(locks);
  pawl_fase_cut(&functions[kLoads], 1, &live_ins);
  store(locks->done, std::uint64_t{1});
  pawl_fase_mutex_unlock(&locks->mutex, nullptr, 0, nullptr);
}

void resume_loads(std::uint32_t region, const void* live_ins, const void*, void*) {
  const Words words(live_ins);
  auto* const locks = words.get<Locks*>(0);
  if (region == 0) return loads_rest(locks, words.get<std::uint64_t>(1), words.get<const void*>(2));
  store(locks->done, std::uint64_t{1});
  pawl_fase_mutex_unlock(&locks->mutex, nullptr, 0, nullptr);
}

void loads(Locks* locks, std::uint64_t mode, const void* at) {
  pawl_fase_mutex_lock(&locks->mutex);
  const LiveIns live_ins(locks, mode, at);
  pawl_fase_cut(&functions[kLoads], 0, &live_ins);
  loads_rest(locks, mode, at);
}

// Has one region, which is never resumed.
void other() {}
void resume_other(std::uint32_t, const void*, const void*, void*) { std::abort(); }

constexpr pawl_fase_region kLoadsRegions[] = {{1, 24, PAWL_FASE_AT_CUT}, {2, 8, PAWL_FASE_AT_CUT}};
constexpr pawl_fase_region kOtherRegions[] = {{9, 0, PAWL_FASE_AT_CUT}};
const pawl_fase_function functions[] = {
    {test::address_of(&loads), resume_loads, "loads", "rules.c", kLoadsRegions, 2, 0},
    {test::address_of(&other), resume_other, "other", "rules.c", kOtherRegions, 1, 0},
};
[[maybe_unused]] const bool registered = [] {
  pawl_fase_register(functions, functions + kFunctions);
  return true;
}();

// The lock of POSIX is volatile in C.
void* spin_of(Locks* locks) { return const_cast<int*>(&locks->spin); }

Locks* locks_of(pawl_fase* fase) { return static_cast<Locks*>(pawl_fase_root(fase)); }

class FaseRules : public test::FaseTest {
 protected:
  FaseRules() {
    open_and([](pawl_fase* fase) {
      auto* const locks = static_cast<Locks*>(pawl_fase_calloc(fase, 1, sizeof(Locks)));
      pthread_mutexattr_t kind;
      pthread_mutexattr_init(&kind);
      pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
      EXPECT_EQ(pawl_fase_mutex_init(&locks->recursive, &kind), 0);
      pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
      EXPECT_EQ(pawl_fase_mutex_init(&locks->checked, &kind), 0);
      EXPECT_EQ(pawl_fase_set_root(fase, locks), 0);
    });
  }
  // In a process of its own; the status as waitpid() has it.
  int run(const Act& act) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      act(open());
      ::_exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }
  void with_locks(const std::function<void(Locks*)>& act) {
    open_and([&](pawl_fase* fase) { act(locks_of(fase)); });
  }
};

bool was_aborted(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT; }

// ------------------------------------------------------------------------------- what is refused

// The section comes to its end, and then the program does.
TEST_F(FaseRules, ALoadOfVolatileMemoryEndsTheProgramBehindTheSection) {
  EXPECT_TRUE(
      was_aborted(run([](pawl_fase* fase) { loads(locks_of(fase), kOfProgram, &of_program); })));
  EXPECT_TRUE(fase::look_at_file(path_).value().unfinished.empty());
  with_locks([](Locks* locks) { EXPECT_EQ(locks->done, 1u); });
}

TEST_F(FaseRules, AConstantMayBeLoaded) {
  EXPECT_EQ(run([](pawl_fase* fase) { loads(locks_of(fase), kConstant, &constant); }), 0);
}

TEST_F(FaseRules, ACallOfAnUnknownFunctionEndsTheProgramBehindTheSection) {
  EXPECT_TRUE(
      was_aborted(run([](pawl_fase* fase) { loads(locks_of(fase), kCallsUnknown, nullptr); })));
  with_locks([](Locks* locks) { EXPECT_EQ(locks->done, 1u); });
}

TEST_F(FaseRules, AStoreWithoutAFrameEndsTheProgram) {
  EXPECT_TRUE(was_aborted(run([](pawl_fase* fase) {
    Locks* const locks = locks_of(fase);
    pawl_fase_mutex_lock(&locks->mutex);
    store(locks->value, std::uint64_t{1});
  })));
  // And so does one behind a lock that no frame names yet.
  EXPECT_TRUE(was_aborted(run([](pawl_fase* fase) {
    Locks* const locks = locks_of(fase);
    pawl_fase_mutex_lock(&locks->mutex);
    pawl_fase_cut(&functions[kOther], 0, nullptr);
    pawl_fase_spin_lock(spin_of(locks));
    store(locks->value, std::uint64_t{1});
  })));
}

TEST_F(FaseRules, TheProgramEndsWhereItWasNotCompiledForSections) {
  EXPECT_TRUE(was_aborted(run([](pawl_fase*) { pawl_fase_begin(); })));
  EXPECT_TRUE(was_aborted(run([](pawl_fase*) { pawl_fase_end(); })));
}

// ------------------------------------------------------------------------- what cannot be
// recovered

TEST_F(FaseRules, WhatLoadsVolatileMemoryStaysUnfinished) {
  // Interrupted before it loads.
  const test::FileImage before = test::FileImage::read(path_);
  bool refused = false;
  for (std::uint64_t event = 1; !refused; ++event) {
    before.write(path_);
    ASSERT_TRUE(test::crashes(
        before, [&] { loads(locks_of(open()), kOfStack, &event); }, event, test::Unfenced::kept,
        0));
    if (fase::look_at_file(path_).value().unfinished.empty()) continue;
    // As often as it is tried.
    for (int attempt = 0; attempt < 2; ++attempt) {
      EXPECT_EQ(open(), nullptr);
      EXPECT_EQ(errno, ENOTRECOVERABLE);
      EXPECT_EQ(pawl_last_error_code(), PAWL_ERROR_SECTIONS_UNFINISHED);
      EXPECT_NE(std::string(pawl_last_error()).find("rules.c:77: in loads: a load of volatile"),
                std::string::npos)
          << pawl_last_error();
      EXPECT_EQ(fase::look_at_file(path_).value().unfinished.size(), 1u);
    }
    refused = true;
  }
}

TEST_F(FaseRules, StoresIntoVolatileMemoryGoNowhereInRecovery) {
  static int outside = 5;
  crash_everywhere([](pawl_fase* fase) { loads(locks_of(fase), kStoresOutside, &outside); },
                   [](pawl_fase* fase) {
                     EXPECT_EQ(outside, 5);
                     EXPECT_EQ(locks_of(fase)->done, locks_of(fase)->value / 7);
                   });
}

// ------------------------------------------------------------------------------------------- locks

TEST_F(FaseRules, ASectionThatStoresNothingCostsNoFence) {
  open_and([](pawl_fase* fase) {
    Locks* const locks = locks_of(fase);
    pawl_fase_statistics before;
    pawl_fase_statistics after;
    ASSERT_EQ(pawl_fase_stats(fase, &before), 0);
    pawl_fase_mutex_lock(&locks->mutex);
    pawl_fase_spin_lock(spin_of(locks));
    const LiveIns live_ins(locks);
    pawl_fase_mutex_unlock(&locks->mutex, &functions[kLoads], 1, &live_ins);
    pawl_fase_spin_unlock(spin_of(locks), nullptr, 0, nullptr);
    ASSERT_EQ(pawl_fase_stats(fase, &after), 0);
    EXPECT_EQ(after.fences, before.fences);
    EXPECT_EQ(after.frames, before.frames);
    EXPECT_EQ(after.sections, before.sections + 1);
    EXPECT_EQ(after.sections_armed, before.sections_armed);
  });
}

TEST_F(FaseRules, ASectionWithOneCutTakesThreeFences) {
  open_and([](pawl_fase* fase) {
    Locks* const locks = locks_of(fase);
    pawl_fase_statistics before;
    pawl_fase_statistics after;
    ASSERT_EQ(pawl_fase_stats(fase, &before), 0);
    pawl_fase_mutex_lock(&locks->mutex);
    const LiveIns live_ins(locks);
    pawl_fase_cut(&functions[kLoads], 1, &live_ins);
    store(locks->done, std::uint64_t{1});
    pawl_fase_mutex_unlock(&locks->mutex, nullptr, 0, nullptr);
    ASSERT_EQ(pawl_fase_stats(fase, &after), 0);
    // And one for the first use of a log.
    EXPECT_LE(after.fences - before.fences, 4u);
    ASSERT_EQ(pawl_fase_stats(fase, &before), 0);
    pawl_fase_mutex_lock(&locks->mutex);
    pawl_fase_cut(&functions[kLoads], 1, &live_ins);
    store(locks->done, std::uint64_t{1});
    pawl_fase_mutex_unlock(&locks->mutex, nullptr, 0, nullptr);
    ASSERT_EQ(pawl_fase_stats(fase, &after), 0);
    EXPECT_EQ(after.fences - before.fences, 3u);
  });
}

// A section that stores under two locks and releases one before the other.
void store_under_both(Locks* locks, const std::function<void()>& between) {
  pawl_fase_mutex_lock(&locks->mutex);
  pawl_fase_spin_lock(spin_of(locks));
  const LiveIns live_ins(locks);
  pawl_fase_cut(&functions[kLoads], 1, &live_ins);
  store(locks->done, std::uint64_t{1});
  pawl_fase_spin_unlock(spin_of(locks), &functions[kLoads], 1, &live_ins);
  between();
  pawl_fase_mutex_unlock(&locks->mutex, nullptr, 0, nullptr);
}

bool is_taken(Locks* locks) {
  bool taken = false;
  std::thread([&] {
    taken = pawl_fase_spin_trylock(spin_of(locks)) != 0;
    if (!taken) pawl_fase_spin_unlock(spin_of(locks), nullptr, 0, nullptr);
  }).join();
  return taken;
}

TEST_F(FaseRules, AReleaseNeedsNoFrameOfItsOwnBeforeTheEnd) {
  with_locks([](Locks* locks) {
    store_under_both(locks, [] {});
    pawl_fase_statistics before;
    pawl_fase_statistics after;
    ASSERT_EQ(pawl_fase_stats(reinterpret_cast<pawl_fase*>(fase::open_file()->address()), &before),
              0);
    store_under_both(locks, [&] { EXPECT_TRUE(is_taken(locks)); });
    EXPECT_FALSE(is_taken(locks));
    ASSERT_EQ(pawl_fase_stats(reinterpret_cast<pawl_fase*>(fase::open_file()->address()), &after),
              0);
    EXPECT_EQ(after.fences - before.fences, 3u);
    EXPECT_EQ(after.frames - before.frames, 2u);
  });
}

TEST_F(FaseRules, AReleaseThatWasPutOffIsDoneWhereControlLeavesTheFunction) {
  with_locks([](Locks* locks) {
    const LiveIns live_ins(locks);
    store_under_both(locks, [&] {
      pawl_fase_call(&functions[kLoads], 1, &live_ins);
      EXPECT_FALSE(is_taken(locks));
      pawl_fase_return();
    });
    // And with the next cut.
    store_under_both(locks, [&] {
      pawl_fase_cut(&functions[kLoads], 1, &live_ins);
      EXPECT_FALSE(is_taken(locks));
    });
    // And before its memory is made a lock again.
    store_under_both(locks, [&] {
      EXPECT_EQ(pawl_fase_spin_destroy(spin_of(locks)), 0);
      EXPECT_EQ(pawl_fase_spin_init(spin_of(locks), PTHREAD_PROCESS_PRIVATE), 0);
    });
    EXPECT_FALSE(is_taken(locks));
  });
}

TEST_F(FaseRules, AStoreBehindAReleaseThatWasPutOffEndsTheProgram) {
  EXPECT_TRUE(was_aborted(run([](pawl_fase* fase) {
    Locks* const locks = locks_of(fase);
    store_under_both(locks, [&] { store(locks->value, std::uint64_t{1}); });
  })));
}

TEST_F(FaseRules, MutexesAreOfTheirKinds) {
  with_locks([](Locks* locks) {
    EXPECT_EQ(pawl_fase_mutex_lock(&locks->recursive), 0);
    EXPECT_EQ(pawl_fase_mutex_lock(&locks->recursive), 0);
    EXPECT_EQ(pawl_fase_mutex_trylock(&locks->recursive), 0);
    const LiveIns live_ins(locks);
    EXPECT_EQ(pawl_fase_mutex_unlock(&locks->recursive, &functions[kLoads], 1, &live_ins), 0);
    EXPECT_EQ(pawl_fase_mutex_unlock(&locks->recursive, &functions[kLoads], 1, &live_ins), 0);
    std::thread([&] { EXPECT_EQ(pawl_fase_mutex_trylock(&locks->recursive), EBUSY); }).join();
    EXPECT_EQ(pawl_fase_mutex_unlock(&locks->recursive, nullptr, 0, nullptr), 0);
    EXPECT_EQ(pawl_fase_mutex_unlock(&locks->recursive, nullptr, 0, nullptr), EPERM);
    EXPECT_EQ(pawl_fase_mutex_lock(&locks->checked), 0);
    EXPECT_EQ(pawl_fase_mutex_lock(&locks->checked), EDEADLK);
    EXPECT_EQ(pawl_fase_mutex_trylock(&locks->checked), EBUSY);
    EXPECT_EQ(pawl_fase_mutex_destroy(&locks->checked), EBUSY);
    EXPECT_EQ(pawl_fase_mutex_unlock(&locks->checked, nullptr, 0, nullptr), 0);
    EXPECT_EQ(pawl_fase_mutex_lock(&locks->mutex), 0);
    std::thread([&] {
      timespec until{};
      ::clock_gettime(CLOCK_REALTIME, &until);
      EXPECT_EQ(pawl_fase_mutex_timedlock(&locks->mutex, &until), ETIMEDOUT);
      until.tv_nsec = -1;
      EXPECT_EQ(pawl_fase_mutex_timedlock(&locks->mutex, &until), EINVAL);
    }).join();
    EXPECT_EQ(pawl_fase_mutex_unlock(&locks->mutex, nullptr, 0, nullptr), 0);
  });
}

TEST_F(FaseRules, ReadersShareAndWritersDoNot) {
  with_locks([](Locks* locks) {
    EXPECT_EQ(pawl_fase_rwlock_rdlock(&locks->rwlock), 0);
    std::thread([&] {
      EXPECT_EQ(pawl_fase_rwlock_tryrdlock(&locks->rwlock), 0);
      EXPECT_EQ(pawl_fase_rwlock_unlock(&locks->rwlock, nullptr, 0, nullptr), 0);
      EXPECT_EQ(pawl_fase_rwlock_trywrlock(&locks->rwlock), EBUSY);
    }).join();
    std::atomic<bool> has_written{false};
    std::thread writer([&] {
      EXPECT_EQ(pawl_fase_rwlock_wrlock(&locks->rwlock), 0);
      has_written = true;
      EXPECT_EQ(pawl_fase_rwlock_unlock(&locks->rwlock, nullptr, 0, nullptr), 0);
    });
    EXPECT_FALSE(has_written);
    EXPECT_EQ(pawl_fase_rwlock_unlock(&locks->rwlock, nullptr, 0, nullptr), 0);
    writer.join();
    EXPECT_TRUE(has_written);
  });
}

// As many as there are: each adds to what only the lock protects.
TEST_F(FaseRules, LocksExclude) {
  constexpr int kThreads = 4;
  constexpr int kTurns = 20000;
  with_locks([](Locks* locks) {
    std::uint64_t sums[3] = {};
    std::vector<std::thread> threads;
    for (int number = 0; number < kThreads; ++number) {
      threads.emplace_back([&] {
        for (int turn = 0; turn < kTurns; ++turn) {
          pawl_fase_mutex_lock(&locks->mutex);
          ++sums[0];
          pawl_fase_mutex_unlock(&locks->mutex, nullptr, 0, nullptr);
          pawl_fase_spin_lock(spin_of(locks));
          ++sums[1];
          pawl_fase_spin_unlock(spin_of(locks), nullptr, 0, nullptr);
          pawl_fase_rwlock_wrlock(&locks->rwlock);
          ++sums[2];
          pawl_fase_rwlock_unlock(&locks->rwlock, nullptr, 0, nullptr);
        }
      });
    }
    for (auto& thread : threads) thread.join();
    for (const std::uint64_t sum : sums) EXPECT_EQ(sum, std::uint64_t{kThreads * kTurns});
  });
}

TEST_F(FaseRules, AWaitIsWokenAndTimesOut) {
  with_locks([](Locks* locks) {
    std::atomic<int> stage{0};
    std::thread waiter([&] {
      pawl_fase_mutex_lock(&locks->mutex);
      stage = 1;
      while (stage != 2) EXPECT_EQ(pawl_fase_cond_wait(&locks->condition, &locks->mutex), 0);
      pawl_fase_mutex_unlock(&locks->mutex, nullptr, 0, nullptr);
    });
    while (stage != 1) std::this_thread::yield();
    pawl_fase_mutex_lock(&locks->mutex);
    stage = 2;
    EXPECT_EQ(pawl_fase_cond_signal(&locks->condition), 0);
    pawl_fase_mutex_unlock(&locks->mutex, nullptr, 0, nullptr);
    waiter.join();
    pawl_fase_mutex_lock(&locks->mutex);
    timespec until{};
    ::clock_gettime(CLOCK_REALTIME, &until);
    EXPECT_EQ(pawl_fase_cond_timedwait(&locks->condition, &locks->mutex, &until), ETIMEDOUT);
    ::clock_gettime(CLOCK_MONOTONIC, &until);
    EXPECT_EQ(pawl_fase_cond_clockwait(&locks->condition, &locks->mutex, CLOCK_MONOTONIC, &until),
              ETIMEDOUT);
    // Its section could not end there.
    pawl_fase_spin_lock(spin_of(locks));
    EXPECT_EQ(pawl_fase_cond_wait(&locks->condition, &locks->mutex), EPERM);
    pawl_fase_spin_unlock(spin_of(locks), &functions[kOther], 0, nullptr);
    pawl_fase_mutex_unlock(&locks->mutex, nullptr, 0, nullptr);
  });
}

// Waits until it is told; nothing cleans up behind it.
struct Waiting {
  Locks* locks;
  bool is_told = false;
  std::atomic<bool> has_begun = false;
};
void* wait_until_told(void* waiting) {
  auto* const of = static_cast<Waiting*>(waiting);
  pawl_fase_mutex_lock(&of->locks->mutex);
  of->has_begun = true;
  while (!of->is_told) pawl_fase_cond_wait(&of->locks->condition, &of->locks->mutex);
  pawl_fase_mutex_unlock(&of->locks->mutex, nullptr, 0, nullptr);
  for (;;) ::pause();
}

TEST_F(FaseRules, AThreadCancelledInAWaitKeptTheMutex) {
  with_locks([](Locks* in_file) {
    static Locks in_memory{};
    for (Locks* const locks : {in_file, &in_memory}) {
      Waiting waiting{locks};
      pthread_t thread{};
      ASSERT_EQ(::pthread_create(&thread, nullptr, wait_until_told, &waiting), 0);
      while (!waiting.has_begun) std::this_thread::yield();
      // It waits, or is just about to.
      pawl_fase_mutex_lock(&locks->mutex);
      pawl_fase_mutex_unlock(&locks->mutex, nullptr, 0, nullptr);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ASSERT_EQ(::pthread_cancel(thread), 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ASSERT_EQ(pawl_fase_mutex_trylock(&locks->mutex), 0);
      waiting.is_told = true;
      pawl_fase_cond_broadcast(&locks->condition);
      EXPECT_EQ(pawl_fase_mutex_unlock(&locks->mutex, nullptr, 0, nullptr), 0);
      void* result = nullptr;
      ASSERT_EQ(::pthread_join(thread, &result), 0);
      EXPECT_EQ(result, PTHREAD_CANCELED);
      EXPECT_EQ(pawl_fase_mutex_trylock(&locks->mutex), 0);
      EXPECT_EQ(pawl_fase_mutex_unlock(&locks->mutex, nullptr, 0, nullptr), 0);
    }
  });
}

TEST_F(FaseRules, LocksOfVolatileMemoryMakeSectionsToo) {
  open_and([](pawl_fase* fase) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    Locks* const locks = locks_of(fase);
    pawl_fase_mutex_lock(&mutex);
    EXPECT_EQ(::pthread_mutex_trylock(&mutex), EBUSY);
    const LiveIns live_ins(locks);
    pawl_fase_cut(&functions[kLoads], 1, &live_ins);
    store(locks->done, std::uint64_t{1});
    pawl_fase_mutex_unlock(&mutex, nullptr, 0, nullptr);
    EXPECT_EQ(::pthread_mutex_trylock(&mutex), 0);
    // Taken by code that was not compiled for sections.
    EXPECT_EQ(pawl_fase_mutex_unlock(&mutex, nullptr, 0, nullptr), 0);
  });
}

TEST_F(FaseRules, ThreadsThatEndGiveTheirLogsBack) {
  open_and([](pawl_fase* fase) {
    Locks* const locks = locks_of(fase);
    for (std::uint64_t i = 0; i < 2 * PAWL_FASE_THREADS_MAX; ++i) {
      std::thread([&] {
        pawl_fase_section_begin();
        const LiveIns live_ins(locks);
        pawl_fase_cut(&functions[kLoads], 1, &live_ins);
        store(locks->value, i);
        pawl_fase_section_end(nullptr, 0, nullptr);
      }).join();
    }
    pawl_fase_statistics statistics;
    ASSERT_EQ(pawl_fase_stats(fase, &statistics), 0);
    EXPECT_EQ(statistics.sections_armed, 2 * PAWL_FASE_THREADS_MAX);
  });
  EXPECT_LE(fase::look_at_file(path_).value().header.logs_used, 2u);
}

// ------------------------------------------------------------------------------------------ blocks

TEST_F(FaseRules, BlocksOfASectionThatStoresNothingAreAllocatedWithIt) {
  open_and([](pawl_fase* fase) {
    const std::uint64_t before = blocks_used();
    pawl_fase_section_begin();
    void* const block = pawl_fase_malloc(fase, 10);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(blocks_used(), before);
    pawl_fase_section_end(nullptr, 0, nullptr);
    EXPECT_EQ(blocks_used(), before + 1);
    EXPECT_GE(pawl_fase_usable_size(fase, block), 10u);
    EXPECT_EQ(pawl_fase_free(fase, block), 0);
    EXPECT_EQ(blocks_used(), before);
    EXPECT_EQ(pawl_fase_free(fase, block), -1);
    EXPECT_EQ(errno, EINVAL);
  });
}

TEST_F(FaseRules, ManyBlocksAreFreedInALongSection) {
  open_and([](pawl_fase* fase) {
    Locks* const locks = locks_of(fase);
    const std::uint64_t before = blocks_used();
    pawl_fase_section_begin();
    const LiveIns live_ins(locks);
    for (int i = 0; i < 3 * int{PAWL_FASE_BLOCKS_MAX}; ++i) {
      pawl_fase_cut(&functions[kLoads], 1, &live_ins);
      void* const block = pawl_fase_malloc(fase, 100);
      ASSERT_NE(block, nullptr) << pawl_last_error();
      ASSERT_EQ(pawl_fase_free(fase, block), 0) << pawl_last_error();
    }
    pawl_fase_section_end(nullptr, 0, nullptr);
    EXPECT_EQ(blocks_used(), before);
  });
}

// More than an end has room for, and one that is too large to wait for the next section.
TEST_F(FaseRules, ManyBlocksAreFreedByAnEnd) {
  const auto frees = [](pawl_fase* fase, int count, std::size_t size) {
    Locks* const locks = locks_of(fase);
    std::vector<void*> blocks;
    for (int i = 0; i < count; ++i) blocks.push_back(pawl_fase_malloc(fase, size));
    pawl_fase_section_begin();
    const LiveIns live_ins(locks);
    pawl_fase_cut(&functions[kLoads], 1, &live_ins);
    store(locks->done, std::uint64_t{1});
    for (void* const block : blocks) EXPECT_EQ(pawl_fase_free(fase, block), 0);
    pawl_fase_section_end(nullptr, 0, nullptr);
  };
  open_and([&](pawl_fase* fase) {
    const std::uint64_t before = blocks_used();
    for (const int count : {1, 32, 33, 100}) {
      frees(fase, count, 100);
      EXPECT_EQ(blocks_used(), before) << count;
    }
    frees(fase, 1, 70'000);
    EXPECT_EQ(blocks_used(), before);
    // It can be had at once.
    void* const large = pawl_fase_malloc(fase, 900'000);
    EXPECT_NE(large, nullptr) << pawl_last_error();
  });
}

// What the last section of a thread freed waits for the next one; when there is none, for its end.
TEST_F(FaseRules, ThreadsThatEndGiveBlocksBack) {
  constexpr std::size_t kBytes = 30'000;
  open_and([](pawl_fase* fase) {
    Locks* const locks = locks_of(fase);
    for (std::size_t i = 0; i < 2 * kSizeBytes / kBytes; ++i) {
      std::thread([&] {
        void* const block = pawl_fase_malloc(fase, kBytes);
        ASSERT_NE(block, nullptr) << pawl_last_error();
        pawl_fase_section_begin();
        const LiveIns live_ins(locks);
        pawl_fase_cut(&functions[kLoads], 1, &live_ins);
        store(locks->done, std::uint64_t{1});
        EXPECT_EQ(pawl_fase_free(fase, block), 0);
        pawl_fase_section_end(nullptr, 0, nullptr);
      }).join();
    }
  });
}

// What others have is freed with the section that takes it from them, or not at all: also when an
// inner lock is released before the first frame.
TEST_F(FaseRules, WhatIsFreedBeforeTheFirstFrameIsFreedWithTheSection) {
  void* block = nullptr;
  std::uint64_t before = 0;
  open_and([&](pawl_fase* fase) {
    block = pawl_fase_malloc(fase, 100);
    before = blocks_used();
  });
  crash_everywhere(
      [&](pawl_fase* fase) {
        Locks* const locks = locks_of(fase);
        const LiveIns live_ins(locks);
        pawl_fase_mutex_lock(&locks->mutex);
        pawl_fase_spin_lock(spin_of(locks));
        EXPECT_EQ(pawl_fase_free(fase, block), 0) << pawl_last_error();
        pawl_fase_spin_unlock(spin_of(locks), &functions[kLoads], 1, &live_ins);
        pawl_fase_cut(&functions[kLoads], 1, &live_ins);
        store(locks->done, std::uint64_t{1});
        pawl_fase_mutex_unlock(&locks->mutex, nullptr, 0, nullptr);
      },
      [&](pawl_fase* fase) { EXPECT_EQ(blocks_used(), before - locks_of(fase)->done); });
}

// The same of so many that the first cut publishes them.
TEST_F(FaseRules, ManyBlocksFreedBeforeTheFirstFrameAreFreedWithTheSection) {
  constexpr std::uint64_t kBlocks = 600;
  constexpr std::uint64_t kEventStep = 211;
  std::vector<void*> blocks;
  std::uint64_t used = 0;
  open_and([&](pawl_fase* fase) {
    for (std::uint64_t i = 0; i < kBlocks; ++i) blocks.push_back(pawl_fase_malloc(fase, 100));
    used = blocks_used();
  });
  const test::FileImage before = test::FileImage::read(path_);
  std::uint64_t done = 0;
  for (std::uint64_t event = 1; done == 0; event += kEventStep) {
    SCOPED_TRACE("event " + std::to_string(event));
    before.write(path_);
    const auto run = [&](pawl_fase* fase) {
      Locks* const locks = locks_of(fase);
      const LiveIns live_ins(locks);
      pawl_fase_mutex_lock(&locks->mutex);
      for (void* const block : blocks) EXPECT_EQ(pawl_fase_free(fase, block), 0);
      pawl_fase_cut(&functions[kLoads], 1, &live_ins);
      store(locks->done, std::uint64_t{1});
      pawl_fase_mutex_unlock(&locks->mutex, nullptr, 0, nullptr);
    };
    const bool has_crashed =
        test::crashes(before, [&] { open_and(run); }, event, test::Unfenced::kept, 0);
    open_and([&](pawl_fase* fase) {
      done = locks_of(fase)->done;
      EXPECT_EQ(blocks_used(), used - kBlocks * done);
    });
    ASSERT_FALSE(HasFailure());
    ASSERT_TRUE(has_crashed || done == 1);
  }
}

TEST_F(FaseRules, TooManyBlocksOfARegionAreRefused) {
  open_and([](pawl_fase* fase) {
    const std::uint64_t before = blocks_used();
    pawl_fase_section_begin();
    for (int i = 0; i < PAWL_FASE_BLOCKS_MAX; ++i) {
      ASSERT_NE(pawl_fase_malloc(fase, 100), nullptr) << pawl_last_error();
    }
    EXPECT_EQ(pawl_fase_malloc(fase, 100), nullptr);
    EXPECT_EQ(errno, ENOSPC);
    EXPECT_EQ(pawl_last_error_code(), PAWL_ERROR_TOO_MANY);
    pawl_fase_section_end(nullptr, 0, nullptr);
    EXPECT_EQ(blocks_used(), before + PAWL_FASE_BLOCKS_MAX);
  });
}

}  // namespace
}  // namespace pawl
