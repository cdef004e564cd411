// The scheme undo, with threads: who saw what is taken back is taken back with it, and says nothing
// was done before.  What the compiler would make is written by hand.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "fase/abi.h"
#include "fase/crash_everywhere.h"
#include "fase/format.h"
#include "pawl/fase.h"

namespace pawl {
namespace {

struct Data {
  pthread_mutex_t own;
  pthread_mutex_t handed_on;
  std::uint64_t first;
  std::uint64_t second;
  void* block;
};

const bool is_undo = [] {
  ::pawl_fase_use_scheme(PAWL_FASE_SCHEME_UNDO);
  return true;
}();

void lock(pthread_mutex_t& mutex) { ASSERT_EQ(::pawl_fase_mutex_lock(&mutex), 0); }
void unlock(pthread_mutex_t& mutex) {
  ASSERT_EQ(::pawl_fase_mutex_unlock(&mutex, nullptr, 0, nullptr), 0);
}
template <class T>
void store(T& at, T value) {
  ::pawl_fase_undo(&at, sizeof at);
  std::atomic_ref(at).store(value);
  ::pawl_fase_stored(&at, sizeof at);
}

class FaseUndone : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
    path_ = directory_ + "/file";
    pawl_fase* const fase = open();
    auto* const data = static_cast<Data*>(::pawl_fase_calloc(fase, 1, sizeof(Data)));
    ASSERT_EQ(::pawl_fase_set_root(fase, data), 0);
    ASSERT_EQ(::pawl_fase_close(fase), 0);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  pawl_fase* open() const {
    pawl_fase_options options;
    EXPECT_EQ(::pawl_fase_options_init(&options), 0);
    options.size_bytes_max = PAWL_FASE_SIZE_MIN;
    pawl_fase* const fase = ::pawl_fase_open(path_.c_str(), &options);
    EXPECT_NE(fase, nullptr) << ::pawl_last_error();
    return fase;
  }
  static Data& data_of(pawl_fase* fase) { return *static_cast<Data*>(::pawl_fase_root(fase)); }

  template <class Act>
  int run_in_child(Act act) const {
    const pid_t child = ::fork();
    if (child == 0) {
      act(data_of(open()));
      ::_exit(1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
  }
  void expect(std::uint64_t first, std::uint64_t second, std::uint64_t undone) const {
    pawl_fase* const fase = open();
    EXPECT_EQ(data_of(fase).first, first);
    EXPECT_EQ(data_of(fase).second, second);
    pawl_fase_statistics statistics;
    EXPECT_EQ(::pawl_fase_stats(fase, &statistics), 0);
    EXPECT_EQ(statistics.sections_recovered, undone);
    EXPECT_EQ(::pawl_fase_close(fase), 0);
  }

  // The first thread's section, up to where it has released one of its locks.
  static void begin_first(Data& data) {
    lock(data.own);
    lock(data.handed_on);
    store<std::uint64_t>(data.first, 1);
    unlock(data.handed_on);
  }
  // The second's, which sees that.  Returns when it is known to have happened.
  static void run_second(Data& data) {
    lock(data.handed_on);
    store(data.second, data.first + 1);
    store<std::uint64_t>(data.first, 5);
    unlock(data.handed_on);
  }

 private:
  std::string directory_ = "/dev/shm/pawl-test-XXXXXX";
  std::string path_;
};

constexpr useconds_t kLongUs = 50'000;  // for what does not happen

TEST_F(FaseUndone, ASectionThatSawAnotherIsUndoneWithIt) {
  EXPECT_EQ(run_in_child([](Data& data) {
              begin_first(data);
              std::atomic<bool> has_returned{false};
              std::thread second([&] {
                run_second(data);
                has_returned = true;
              });
              // It has its end, and does not tell.
              while (std::atomic_ref(data.first).load() != 5) std::this_thread::yield();
              ::usleep(kLongUs);
              ::_exit(has_returned ? 1 : 42);
            }),
            42);
  expect(0, 0, 2);
  expect(0, 0, 0);
}

TEST_F(FaseUndone, ItReturnsWhenTheOtherHasEnded) {
  EXPECT_EQ(run_in_child([](Data& data) {
              begin_first(data);
              std::thread second([&] { run_second(data); });
              while (std::atomic_ref(data.first).load() != 5) std::this_thread::yield();
              unlock(data.own);
              second.join();
              ::_exit(42);
            }),
            42);
  expect(5, 2, 0);
}

TEST_F(FaseUndone, ASectionThatTookNothingOfItStays) {
  EXPECT_EQ(run_in_child([](Data& data) {
              lock(data.own);
              // Nothing was stored yet.
              lock(data.handed_on);
              unlock(data.handed_on);
              std::thread([&] { run_second(data); }).join();
              ::pawl_fase_undo(&data.own, sizeof data.own);
              ::_exit(42);
            }),
            42);
  expect(5, 1, 1);
}

// Flush on fail: the same log, in the caches.
class FaseUndoneOnFail : public FaseUndone {
 protected:
  void SetUp() override {
    ASSERT_EQ(::setenv("PAWL_FASE_FLUSH", "on-fail", 1), 0);
    FaseUndone::SetUp();
  }
  void TearDown() override {
    FaseUndone::TearDown();
    ::unsetenv("PAWL_FASE_FLUSH");
  }
};

TEST_F(FaseUndoneOnFail, WhatADeathInterruptsIsUndoneAsEver) {
  EXPECT_EQ(run_in_child([](Data& data) {
              lock(data.own);
              store<std::uint64_t>(data.first, 7);
              unlock(data.own);
              lock(data.own);
              store<std::uint64_t>(data.first, 8);
              store<std::uint64_t>(data.second, 8);
              ::_exit(42);
            }),
            42);
  expect(7, 0, 1);
}

TEST_F(FaseUndoneOnFail, NothingIsFlushedOrWaitedFor) {
  pawl_fase* const fase = open();
  lock(data_of(fase).own);
  store<std::uint64_t>(data_of(fase).first, 1);
  data_of(fase).block = ::pawl_fase_malloc(fase, 100);
  unlock(data_of(fase).own);
  pawl_fase_statistics statistics;
  EXPECT_EQ(::pawl_fase_stats(fase, &statistics), 0);
  EXPECT_GT(statistics.frames, 0u);
  EXPECT_GT(statistics.bytes_logged, 0u);
  EXPECT_EQ(statistics.fences, 0u);
  EXPECT_EQ(statistics.lines_flushed, 0u);
  EXPECT_EQ(statistics.survives_power_loss, 0);
  EXPECT_EQ(::pawl_fase_close(fase), 0);
}

class FaseUndoneEverywhere : public test::FaseTest {
 protected:
  template <class T>
  void overwrite(std::uint64_t offset, const T& value) const {
    const int file = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_EQ(::pwrite(file, &value, sizeof value, static_cast<off_t>(offset)),
              static_cast<ssize_t>(sizeof value));
    ::close(file);
  }
};

// Lists of blocks that another scheme left have numbers as those of undo.
TEST_F(FaseUndoneEverywhere, WhatAnotherSchemeHasEndedIsNotUndone) {
  std::uint64_t block = 0;
  std::uint64_t used = 0;
  open_and([&](pawl_fase* fase) {
    block = reinterpret_cast<std::uint64_t>(::pawl_fase_malloc(fase, 100));
    used = blocks_used();
  });
  overwrite(offsetof(fase::Header, scheme), fase::SchemeRecord{0, 0, 0});
  overwrite(offsetof(fase::Header, logs_used), std::uint64_t{1});
  overwrite(fase::kLogsOffset, fase::BlockEntry{5, block});
  crash_everywhere([](pawl_fase*) {}, [&](pawl_fase*) { EXPECT_EQ(blocks_used(), used); });
}

// To read a hole through a mapping takes space, and where there is none it kills.
TEST_F(FaseUndoneEverywhere, LogsThatUndoNeverHadTakeNoSpace) {
  open_and([](pawl_fase*) {});
  overwrite(offsetof(fase::Header, logs_used), std::uint64_t{fase::kThreadsMax});
  const auto blocks = [this] {
    struct stat status{};
    EXPECT_EQ(::stat(path_.c_str(), &status), 0);
    return status.st_blocks;
  };
  const auto before = blocks();
  open_and([](pawl_fase*) {});
  open_and([](pawl_fase*) {});
  EXPECT_EQ(blocks(), before);
}

// A block takes another one's place, and two words are changed with it.
TEST_F(FaseUndoneEverywhere, ASectionHasHappenedOrNot) {
  std::uint64_t used = 0;
  open_and([&](pawl_fase* fase) {
    auto* const data = static_cast<Data*>(::pawl_fase_calloc(fase, 1, sizeof(Data)));
    store(data->block, ::pawl_fase_malloc(fase, 100));
    ASSERT_EQ(::pawl_fase_set_root(fase, data), 0);
    used = blocks_used();
  });
  std::uint64_t done = 0;
  crash_everywhere(
      [](pawl_fase* fase) {
        auto& data = *static_cast<Data*>(::pawl_fase_root(fase));
        lock(data.own);
        store<std::uint64_t>(data.first, 1);
        void* const before = data.block;
        store(data.block, ::pawl_fase_malloc(fase, 200));
        ::pawl_fase_free(fase, before);
        store<std::uint64_t>(data.second, 1);
        unlock(data.own);
      },
      [&](pawl_fase* fase) {
        const auto& data = *static_cast<const Data*>(::pawl_fase_root(fase));
        EXPECT_EQ(data.first, data.second);
        EXPECT_EQ(blocks_used(), used);
        EXPECT_EQ(::pawl_fase_usable_size(fase, data.block) >= 200, data.first == 1);
        done += data.first;
      });
  EXPECT_GT(done, 0u);
}

}  // namespace
}  // namespace pawl
