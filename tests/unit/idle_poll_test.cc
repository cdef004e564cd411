// The thread that keeps a processor awake: it polls while a wait lasts, no longer than it may, and
// is never in the way.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <thread>

#include "medium/idle_poll.h"
#include "support/memory_medium.h"
#include "support/open_mapping.h"

namespace pawl {
namespace {

constexpr std::uint32_t kLongUs = 60'000'000;

// Threads of this process with the name of the one that polls; `each` sees their numbers.
int idle_threads(const std::function<void(int)>& each = nullptr) {
  int found = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    if (name != kIdlePollThreadName) continue;
    ++found;
    if (each) each(std::stoi(task.path().filename()));
  }
  return found;
}

// Waits for what another thread does sooner or later.
template <class Condition>
void await(Condition condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void wait_again_and_again(std::uint32_t longest_us) {
  for (std::uint32_t i = 0; i < IdlePoll::kWaitsBefore; ++i) const IdlePoll::Wait wait(longest_us);
}

// Holds a wait that is polled for until the condition is met.  On a busy machine waits may not be
// in close succession: then another is tried.
template <class Condition>
void wait_until(std::uint32_t longest_us, Condition condition) {
  for (;;) {
    wait_again_and_again(longest_us);
    const IdlePoll::Wait wait(longest_us);
    for (int ms = 0; ms < 500; ++ms) {
      if (condition()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

class IdlePollTest : public ::testing::Test {
 protected:
  // One of an earlier test may be on its way out.
  IdlePollTest() {
    await([] { return idle_threads() == 0; });
  }

  IdlePoll& poll_ = IdlePoll::process();
  const std::uint64_t polls_ = poll_.polls();
  const std::uint64_t given_up_ = poll_.given_up();
};

TEST_F(IdlePollTest, PollsWhileAWaitLasts) {
  for (std::uint64_t wait = 1; wait <= 3; ++wait)
    wait_until(kLongUs, [&] { return poll_.polls() >= polls_ + wait; });
  EXPECT_EQ(poll_.given_up(), given_up_);
}

TEST_F(IdlePollTest, GivesUpALongWait) {
  for (std::uint64_t wait = 1; wait <= 3; ++wait)
    wait_until(1, [&] { return poll_.given_up() >= given_up_ + wait; });
}

TEST_F(IdlePollTest, RunsOnlyWhereNothingElseWould) {
  wait_until(kLongUs, [&] {
    if (poll_.polls() == polls_) return false;
    const auto is_lowest = [](int thread) { EXPECT_EQ(::sched_getscheduler(thread), SCHED_IDLE); };
    EXPECT_EQ(idle_threads(is_lowest), 1);
    return true;
  });
}

TEST_F(IdlePollTest, HasNoThreadForFewWaits) {
  // Another test's waits may count.
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  for (std::uint32_t i = 0; i + 1 < IdlePoll::kWaitsBefore; ++i) const IdlePoll::Wait wait(kLongUs);
  EXPECT_EQ(idle_threads(), 0);
}

TEST_F(IdlePollTest, ZeroNeverStartsAThread) {
  wait_again_and_again(0);
  {
    const IdlePoll::Wait waiting(0);
  }
  EXPECT_EQ(idle_threads(), 0);
}

TEST_F(IdlePollTest, TheThreadLeavesInTheEndAndComesBack) {
  for (int round = 0; round < 2; ++round) {
    wait_until(kLongUs, [] { return idle_threads() == 1; });
    await([] { return idle_threads() == 0; });
  }
}

TEST_F(IdlePollTest, AForkedChildHasItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer permits no threads in a forked child";
#endif
  wait_until(kLongUs, [&] { return poll_.polls() > polls_; });
  const pid_t child = ::fork();
  if (child == 0) {
    wait_until(kLongUs, [] { return IdlePoll::process().polls() > 0; });
    ::_exit(0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// A mapping's option reaches it.  On a disk in memory commits are in close succession.
class IdlePollOfMappings : public IdlePollTest {
 protected:
  static void commit_again_and_again(std::uint32_t idle_poll_us) {
    Options options = test::options_for(ApplyChoice::eager);
    options.idle_poll_us = idle_poll_us;
    test::MemoryDisk disk({});
    auto opened = Mapping::open(disk.open(), options);
    ASSERT_TRUE(opened.ok()) << opened.status().text();
    for (std::uint32_t i = 0; i <= IdlePoll::kWaitsBefore; ++i) {
      ASSERT_TRUE(opened.value()->write(0, std::as_bytes(std::span(&i, 1))).ok());
      ASSERT_TRUE(opened.value()->commit_all().ok());
    }
  }
};

TEST_F(IdlePollOfMappings, IsOneThreadForAllByDefault) {
  await([] {
    commit_again_and_again(kIdlePollDefaultUs);
    return idle_threads() > 0;
  });
  for (int mapping = 0; mapping < 3; ++mapping) commit_again_and_again(kIdlePollDefaultUs);
  EXPECT_LE(idle_threads(), 1);
}

TEST_F(IdlePollOfMappings, CanBeTurnedOff) {
  commit_again_and_again(0);
  EXPECT_EQ(idle_threads(), 0);
  EXPECT_EQ(poll_.polls(), polls_);
}

TEST_F(IdlePollOfMappings, TakesNoMoreThanItsBound) {
  Options options;
  options.idle_poll_us = kIdlePollMaxUs + 1;
  EXPECT_EQ(options.validate().error_number(), EINVAL);
}

TEST_F(IdlePollOfMappings, IsReadFromTheEnvironment) {
  ::setenv("PAWL_IDLE_POLL_US", "37", 1);
  const Result<Options> options = Options::from_environment();
  ::setenv("PAWL_IDLE_POLL_US", "10001", 1);
  const Result<Options> refused = Options::from_environment();
  ::unsetenv("PAWL_IDLE_POLL_US");
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options.value().idle_poll_us, 37u);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().text().find("PAWL_IDLE_POLL_US"), std::string::npos);
}

}  // namespace
}  // namespace pawl
