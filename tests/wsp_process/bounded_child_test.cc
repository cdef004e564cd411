// A child that tries what may wait for ever is waited for as long as it gets on.
#include "wsp/process/bounded_child.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace pawl::wsp
