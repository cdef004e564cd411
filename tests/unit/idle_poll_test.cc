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
#include <string>
#include <thread>

#include "medium/idle_poll.h"
#include "support/open_mapping.h"
#include "support/temporary_directory.h"

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
  wait_again_and_again(kLongUs);
  for (std::uint64_t wait = 1; wait <= 3; ++wait) {
    const IdlePoll::Wait waiting(kLongUs);
    await([&] { return poll_.polls() >= polls_ + wait; });
  }
  EXPECT_EQ(poll_.given_up(), given_up_);
}

TEST_F(IdlePollTest, GivesUpALongWait) {
  wait_again_and_again(1);
  for (std::uint64_t wait = 1; wait <= 3; ++wait) {
    const IdlePoll::Wait waiting(1);
    await([&] { return poll_.given_up() >= given_up_ + wait; });
  }
}

TEST_F(IdlePollTest, RunsOnlyWhereNothingElseWould) {
  wait_again_and_again(kLongUs);
  const IdlePoll::Wait waiting(kLongUs);
  await([&] { return poll_.polls() > polls_; });
  EXPECT_EQ(idle_threads([](int thread) { EXPECT_EQ(::sched_getscheduler(thread), SCHED_IDLE); }),
            1);
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
    wait_again_and_again(kLongUs);
    {
      const IdlePoll::Wait waiting(kLongUs);
      await([] { return idle_threads() == 1; });
    }
    await([] { return idle_threads() == 0; });
  }
}

TEST_F(IdlePollTest, AForkedChildHasItsOwn) {
  wait_again_and_again(kLongUs);
  const IdlePoll::Wait waiting(kLongUs);
  await([&] { return poll_.polls() > polls_; });
  const pid_t child = ::fork();
  if (child == 0) {
    wait_again_and_again(kLongUs);
    const IdlePoll::Wait waiting_too(kLongUs);
    await([] { return IdlePoll::process().polls() > 0; });
    ::_exit(0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// A mapping's option reaches it.
class IdlePollOfMappings : public IdlePollTest {
 protected:
  static int threads_after_many_commits(std::uint32_t idle_poll_us) {
    const test::TemporaryDirectory directory;
    Options options = test::options_for(ApplyChoice::eager);
    options.idle_poll_us = idle_poll_us;
    for (int file = 0; file < 3; ++file) {
      const std::string path = directory / std::to_string(file);
      std::ofstream(path) << std::string(kPageBytes, 'a');
      test::Opened opened(path, options);
      for (std::uint32_t i = 0; i <= IdlePoll::kWaitsBefore; ++i) {
        ++opened.bytes()[0];
        EXPECT_TRUE(opened.commit().ok());
      }
    }
    return idle_threads();
  }
};

TEST_F(IdlePollOfMappings, IsOneThreadForAllByDefault) {
  EXPECT_LE(threads_after_many_commits(kIdlePollDefaultUs), 1);
  // On a slow disk commits are not in succession.
  if (poll_.polls() == polls_) GTEST_SKIP() << "commits take too long here to be polled for";
}

TEST_F(IdlePollOfMappings, CanBeTurnedOff) { EXPECT_EQ(threads_after_many_commits(0), 0); }

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
