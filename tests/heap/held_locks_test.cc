// A lock in a heap that is held while the heap is synced would be locked in every later run: what
// verifies finds it, and takes nothing else for one.

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>
#include <random>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heap/heap_file.h"
#include "heap/held_locks.h"

namespace pawl::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::uint64_t kSizeBytesMax = std::uint64_t{1} << 30;
constexpr unsigned kTrials = 1'000'000;

class HeldLocks : public testing::Test {
 protected:
  HeapFile file_{kSizeBytesMax};

  void SetUp() override { file_.open(); }
  pawl_heap* heap() const { return file_.get(); }
  // With something before and behind it, as in a program's class.
  template <class Lock>
  struct Around {
    long before = 1;
    Lock lock;
    long behind = 2;
  };
  template <class Lock>
  Around<Lock>& make() const {
    return *::new (pawl_heap_calloc(heap(), 1, sizeof(Around<Lock>))) Around<Lock>;
  }
  std::vector<std::string> found() const {
    std::vector<std::string> texts;
    const long count = pawl_heap_verify(
        heap(),
        [](void* context, const char* text) {
          static_cast<std::vector<std::string>*>(context)->push_back(text);
        },
        &texts);
    EXPECT_EQ(count, static_cast<long>(texts.size())) << pawl_last_error();
    return texts;
  }
  std::string this_thread() const { return "thread " + std::to_string(::syscall(SYS_gettid)); }
  template <class Lock>
  void expect_found_while_held(const char* kind) const {
    Around<Lock>& made = make<Lock>();
    EXPECT_THAT(found(), IsEmpty());
    made.lock.lock();
    EXPECT_THAT(found(), ElementsAre(AllOf(HasSubstr(kind), HasSubstr("at its byte 8"),
                                           HasSubstr(this_thread()))));
    made.lock.unlock();
    EXPECT_THAT(found(), IsEmpty());
    // By another thread that lives.
    std::thread([&] {
      made.lock.lock();
      EXPECT_EQ(found().size(), 1u);
      made.lock.unlock();
    }).join();
    EXPECT_THAT(found(), IsEmpty());
  }
};

TEST_F(HeldLocks, AMutexWasSyncedWhileItWasLocked) {
  expect_found_while_held<std::mutex>("mutex");
  expect_found_while_held<std::timed_mutex>("mutex");
}

TEST_F(HeldLocks, ARecursiveMutexWasSyncedWhileItWasLocked) {
  expect_found_while_held<std::recursive_mutex>("mutex");
  Around<std::recursive_mutex>& made = make<std::recursive_mutex>();
  made.lock.lock();
  made.lock.lock();
  EXPECT_EQ(found().size(), 1u);
  made.lock.unlock();
  EXPECT_EQ(found().size(), 1u);
  made.lock.unlock();
}

TEST_F(HeldLocks, ASharedMutexWasSyncedWhileAWriterHeldIt) {
  expect_found_while_held<std::shared_mutex>("lock for readers and writers");
  expect_found_while_held<std::shared_timed_mutex>("lock for readers and writers");
  Around<std::shared_mutex>& made = make<std::shared_mutex>();
  made.lock.lock_shared();  // it names nobody, as docs/heap.md says
  EXPECT_THAT(found(), IsEmpty());
  made.lock.unlock_shared();
}

TEST_F(HeldLocks, MutexesOfEachKindOfPosix) {
  for (const int type : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                         PTHREAD_MUTEX_ADAPTIVE_NP}) {
    for (const int protocol : {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT}) {
      for (const int robust : {PTHREAD_MUTEX_STALLED, PTHREAD_MUTEX_ROBUST}) {
        pthread_mutexattr_t attributes;
        ::pthread_mutexattr_init(&attributes);
        ::pthread_mutexattr_settype(&attributes, type);
        ::pthread_mutexattr_setprotocol(&attributes, protocol);
        ::pthread_mutexattr_setpshared(
            &attributes, type % 2 == 0 ? PTHREAD_PROCESS_PRIVATE : PTHREAD_PROCESS_SHARED);
        ::pthread_mutexattr_setrobust(&attributes, robust);
        pthread_mutex_t& mutex = make<pthread_mutex_t>().lock;
        ASSERT_EQ(::pthread_mutex_init(&mutex, &attributes), 0);
        EXPECT_THAT(found(), IsEmpty());
        ASSERT_EQ(::pthread_mutex_lock(&mutex), 0);
        // A robust one points into its thread's memory, too.
        EXPECT_THAT(found(), Contains(HasSubstr("holds a mutex")))
            << type << " " << protocol << " " << robust;
        ::pthread_mutex_unlock(&mutex);
        EXPECT_THAT(found(), Not(Contains(HasSubstr("holds a mutex"))));
        ::memset(&mutex, 0, sizeof mutex);
      }
    }
  }
}

TEST_F(HeldLocks, AMutexForWhichOthersWaitIsFound) {
  Around<std::mutex>& made = make<std::mutex>();
  made.lock.lock();
  std::thread waiting([&] {
    made.lock.lock();
    made.lock.unlock();
  });
  ::usleep(20'000);
  EXPECT_EQ(found().size(), 1u);
  made.lock.unlock();
  waiting.join();
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(HeldLocks, ASyncThatVerifiesRefusesAHeldLock) {
  file_.close();
  file_.options.verify = 1;
  file_.open();
  Around<std::mutex>& made = make<std::mutex>();
  EXPECT_EQ(pawl_heap_sync(heap()), 0) << pawl_last_error();
  made.lock.lock();
  EXPECT_EQ(pawl_heap_sync(heap()), -1);
  EXPECT_EQ(errno, EDEADLK);
  EXPECT_EQ(pawl_last_error_code(), PAWL_ERROR_LOCK_HELD);
  EXPECT_THAT(pawl_last_error(), HasSubstr(this_thread()));
  made.lock.unlock();
  EXPECT_EQ(pawl_heap_sync(heap()), 0) << pawl_last_error();
}

// Of a thread that is there, in the place where it would stand.
TEST_F(HeldLocks, OtherDataIsNotTakenForALock) {
  const auto owners = LockOwners::of_this_process();
  ASSERT_TRUE(owners.ok());
  const auto thread = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  std::mt19937 random(14);
  std::array<std::uint32_t, 32> words;
  std::uint64_t taken = 0;
  for (unsigned trial = 0; trial < kTrials; ++trial) {
    for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random());
    if (trial % 2 == 0)  // small numbers, as most data is
      for (std::uint32_t& word : words) word %= 1000;
    words[random() % words.size()] = thread;
    const auto* const block = reinterpret_cast<const char*>(words.data());
    for (std::size_t at = 0; at < sizeof words; at += sizeof(std::uint64_t))
      if (owners.value().lock_owned_at(block, sizeof words, at).at != nullptr) ++taken;
  }
  EXPECT_EQ(taken, 0u);
}

// Its end may be the end of what can be read.
TEST_F(HeldLocks, WhatWouldLeadOutOfItsBlockIsNoLock) {
  const auto owners = LockOwners::of_this_process();
  ASSERT_TRUE(owners.ok());
  std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto* const bytes = reinterpret_cast<const char*>(&mutex);
  constexpr std::size_t kOwner = offsetof(pthread_mutex_t, __data.__owner);
  EXPECT_NE(owners.value().lock_owned_at(bytes, sizeof mutex, kOwner).at, nullptr);
  EXPECT_EQ(owners.value().lock_owned_at(bytes, sizeof mutex - 1, kOwner).at, nullptr);
  EXPECT_EQ(owners.value().lock_owned_at(bytes + kOwner, sizeof mutex - kOwner, 0).at, nullptr);
}

}  // namespace
}  // namespace pawl::test
