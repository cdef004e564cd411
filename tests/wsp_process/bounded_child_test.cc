// A child that tries what may wait for ever is waited for as long as it gets on.
#include "wsp/process/bounded_child.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <thread>

namespace pawl::wsp {
namespace {

TEST(BoundedChild, ManyStepsWereGivenTheTimeOfOne) {
  const Status done = try_restoring_each(4, [](std::size_t) -> Status {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    return {};
  });
  EXPECT_TRUE(done.ok()) << done.text();
}

TEST(BoundedChild, ManyLateStepsTogetherHadNoBound) {
  const auto began = std::chrono::steady_clock::now();
  const Status done = try_restoring_each(1000, [](std::size_t) -> Status {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return {};
  });
  EXPECT_EQ(done.error_number(), ECANCELED) << done.text();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(35));
}

TEST(BoundedChild, AStepThatWaitsForEverIsGivenUp) {
  const Status done = try_restoring_each(3, [](std::size_t index) -> Status {
    if (index == 1) std::this_thread::sleep_for(std::chrono::hours(1));
    return {};
  });
  EXPECT_EQ(done.error_number(), ECANCELED) << done.text();
}

TEST(BoundedChild, AStepThatFailsIsTheLast) {
  const Status done = try_restoring_each(3, [](std::size_t index) -> Status {
    return index == 0 ? Status{} : Status::failure(index == 1 ? ENOTSUP : EIO, "as asked");
  });
  EXPECT_EQ(done.error_number(), ENOTSUP) << done.text();
}

// As a server would: who traces a process has to take note of its end before its parent can.
Status is_held_for_three_seconds() {
  const pid_t work = ::getpid();
  // The parent has no descriptor left for it.
  rlimit none{};
  ::getrlimit(RLIMIT_NOFILE, &none);
  none.rlim_cur = 0;
  ::prlimit(::getppid(), RLIMIT_NOFILE, &none, nullptr);
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  if (::fork() == 0) {
    ::ptrace(PTRACE_SEIZE, work, nullptr, nullptr);
    ::sleep(3);
    ::_exit(0);
  }
  for (;;) ::pause();
}

TEST(BoundedChild, AHeldOneWithoutADescriptorWasForgotten) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto nothing = [] { return Status{}; };
  const Status held = try_in_child(std::chrono::seconds(1), is_held_for_three_seconds);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(held.error_number(), ETIMEDOUT) << held.text();
  EXPECT_EQ(try_in_child(std::chrono::milliseconds(100), nothing).error_number(), ETIMEDOUT);
  const Status tried = try_in_child(std::chrono::seconds(20), nothing);
  EXPECT_TRUE(tried.ok()) << tried.text();
}

}  // namespace
}  // namespace pawl::wsp
