// A stack whose pushes and pops are interrupted at each thing that they do to its file.
#include "fase/stack.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "fase/file_image.h"
#include "fase/simulated_crash.h"
#include "support/temporary_directory.h"

namespace pawl {
namespace {

using test::FileImage;
using test::Stack;
using test::Unfenced;
using Values = std::vector<std::uint64_t>;

constexpr std::uint64_t kSizeBytes = 1 << 20;

class FaseStack : public ::testing::Test {
 protected:
  FaseStack() {
    open_and([](pawl_fase* fase) { test::make_stack(fase); });
  }

  // Opens the file, which finishes what was interrupted.
  void open_and(const std::function<void(pawl_fase*)>& act) {
    pawl_fase_options options;
    ASSERT_EQ(pawl_fase_options_init(&options), 0);
    options.size_bytes_max = kSizeBytes;
    pawl_fase* const fase = pawl_fase_open(path_.c_str(), &options);
    ASSERT_NE(fase, nullptr) << pawl_last_error();
    act(fase);
    EXPECT_EQ(pawl_fase_close(fase), 0) << pawl_last_error();
  }
  void with_stack(const std::function<void(pawl_fase*, Stack*)>& act) {
    open_and([&](pawl_fase* fase) { act(fase, static_cast<Stack*>(pawl_fase_root(fase))); });
  }
  Values values() {
    Values found;
    with_stack([&](pawl_fase*, Stack* stack) { found = test::values_of(stack); });
    return found;
  }

  // Crashes `run` at each of its events, and recovers: what is found then must be one of `allowed`.
  // Every one of them must have been found.
  void crash_everywhere(const std::function<void(pawl_fase*, Stack*)>& run,
                        const std::set<Values>& allowed) {
    const FileImage before = FileImage::read(path_);
    std::set<Values> found;
    for (const Unfenced unfenced : {Unfenced::kept, Unfenced::lost, Unfenced::random}) {
      const int seeds = unfenced == Unfenced::random ? 8 : 1;
      for (int seed = 0; seed < seeds; ++seed) {
        for (std::uint64_t event = 1;; ++event) {
          SCOPED_TRACE("event " + std::to_string(event) + ", unfenced " +
                       std::to_string(static_cast<int>(unfenced)) + ", seed " +
                       std::to_string(seed));
          before.write(path_);
          if (!test::crashes(
                  before, [&] { with_stack(run); }, event, unfenced,
                  static_cast<std::uint64_t>(seed)))
            break;
          recover_with_crashes(unfenced, static_cast<std::uint64_t>(seed) + event);
          const Values now = values();
          EXPECT_TRUE(allowed.contains(now)) << ::testing::PrintToString(now);
          found.insert(now);
          if (HasFailure()) return;
        }
      }
    }
    EXPECT_EQ(found, allowed);
  }

  // Crashes a recovery, and the recovery after that.
  void recover_with_crashes(Unfenced unfenced, std::uint64_t seed) {
    for (std::uint64_t event = 1 + seed % 17; event < 40; event += 13) {
      const FileImage before = FileImage::read(path_);
      if (!test::crashes(
              before, [&] { with_stack([](pawl_fase*, Stack*) {}); }, event, unfenced, seed))
        return;
    }
  }

  test::TemporaryDirectory directory_{"/dev/shm"};
  const std::string path_ = directory_ / "stack";
};

TEST_F(FaseStack, KeepsItsValues) {
  with_stack([](pawl_fase* fase, Stack* stack) {
    for (std::uint64_t value = 1; value <= 5; ++value) test::push(fase, stack, value);
    EXPECT_EQ(test::pop(fase, stack), 5u);
    test::push_twice(fase, stack, 9);
  });
  EXPECT_EQ(values(), (Values{1, 2, 3, 4, 9, 9}));
}

TEST_F(FaseStack, APushIsDoneOrNotAtAll) {
  crash_everywhere([](pawl_fase* fase, Stack* stack) { test::push(fase, stack, 7); }, {{}, {7}});
}

TEST_F(FaseStack, APopIsDoneOrNotAtAll) {
  with_stack([](pawl_fase* fase, Stack* stack) {
    test::push(fase, stack, 1);
    test::push(fase, stack, 2);
  });
  crash_everywhere([](pawl_fase* fase, Stack* stack) { test::pop(fase, stack); }, {{1, 2}, {1}});
}

TEST_F(FaseStack, SeveralAreDoneInTheirOrder) {
  crash_everywhere(
      [](pawl_fase* fase, Stack* stack) {
        test::push(fase, stack, 1);
        test::push(fase, stack, 2);
        test::pop(fase, stack);
        test::push(fase, stack, 3);
      },
      {{}, {1}, {1, 2}, {1, 3}});
}

TEST_F(FaseStack, CallsAreFinishedByTheirCallers) {
  crash_everywhere([](pawl_fase* fase, Stack* stack) { test::push_twice(fase, stack, 4); },
                   {{}, {4, 4}});
}

}  // namespace
}  // namespace pawl
