// The thread that keeps a processor awake: it polls while a wait lasts, no longer than it may, and
// is never in the way.
#include <gtest/gtest.h>
#include <sched.h>
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

class IdlePollTest : public ::testing::Test {
 protected:
  // One of an earlier test may be on its way out.
  IdlePollTest() {
    await([] { return idle_threads() == 0; });
  }
};

TEST_F(IdlePollTest, PollsWhileAWaitLasts) {
  IdlePoll poll(kLongUs);
  for (std::uint64_t wait = 1; wait <= 3; ++wait) {
    const IdlePoll::Wait waiting(poll);
    await([&] { return poll.waits_polled() == wait; });
  }
  EXPECT_EQ(poll.waits_given_up(), 0u);
}

TEST_F(IdlePollTest, GivesUpALongWait) {
  IdlePoll poll(1);
  for (std::uint64_t wait = 1; wait <= 3; ++wait) {
    const IdlePoll::Wait waiting(poll);
    await([&] { return poll.waits_given_up() == wait; });
  }
}

TEST_F(IdlePollTest, RunsOnlyWhereNothingElseWould) {
  IdlePoll poll(kLongUs);
  const IdlePoll::Wait waiting(poll);
  await([&] { return poll.waits_polled() == 1; });
  EXPECT_EQ(idle_threads([](int thread) { EXPECT_EQ(::sched_getscheduler(thread), SCHED_IDLE); }),
            1);
}

TEST_F(IdlePollTest, ZeroNeverStartsAThread) {
  IdlePoll poll(0);
  {
    const IdlePoll::Wait waiting(poll);
  }
  EXPECT_EQ(idle_threads(), 0);
}

TEST_F(IdlePollTest, TheThreadLeavesInTheEnd) {
  {
    IdlePoll poll(kLongUs);
    const IdlePoll::Wait waiting(poll);
    await([&] { return poll.waits_polled() == 1; });
    EXPECT_EQ(idle_threads(), 1);
  }
  await([] { return idle_threads() == 0; });
}

// A mapping's option reaches it.
class IdlePollOfAMapping : public IdlePollTest {
 protected:
  static int threads_after_a_commit(std::uint32_t idle_poll_us) {
    const test::TemporaryDirectory directory;
    const std::string path = directory / "file";
    std::ofstream(path) << std::string(kPageBytes, 'a');
    Options options = test::options_for(ApplyChoice::eager);
    options.idle_poll_us = idle_poll_us;
    test::Opened opened(path, options);
    opened.bytes()[0] = 'b';
    EXPECT_TRUE(opened.commit().ok());
    return idle_threads();  // as many as the open mapping has
  }
};

TEST_F(IdlePollOfAMapping, IsThereByDefault) {
  EXPECT_EQ(threads_after_a_commit(kIdlePollDefaultUs), 1);
}

TEST_F(IdlePollOfAMapping, CanBeTurnedOff) { EXPECT_EQ(threads_after_a_commit(0), 0); }

TEST_F(IdlePollOfAMapping, TakesNoMoreThanItsBound) {
  Options options;
  options.idle_poll_us = kIdlePollMaxUs + 1;
  EXPECT_EQ(options.validate().error_number(), EINVAL);
}

TEST_F(IdlePollOfAMapping, IsReadFromTheEnvironment) {
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
