// A stack whose pushes and pops are interrupted at each thing that they do to its file.
#include "fase/stack.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "fase/closed_file.h"
#include "fase/crash_everywhere.h"
#include "fase/hand_made.h"

namespace pawl {
namespace {

using test::Stack;
using Values = std::vector<std::uint64_t>;

Stack* stack_of(pawl_fase* fase) { return static_cast<Stack*>(pawl_fase_root(fase)); }

class FaseStack : public test::FaseTest {
 protected:
  FaseStack() {
    open_and([](pawl_fase* fase) { test::make_stack(fase); });
  }

  using ActOnStack = std::function<void(pawl_fase*, Stack*)>;

  void with_stack(const ActOnStack& act) {
    open_and([&](pawl_fase* fase) { act(fase, stack_of(fase)); });
  }
  // Of crashes of `run` something of `allowed` is left, and all of it is left by some.
  void expect_outcomes(const ActOnStack& run, const std::set<Values>& allowed) {
    std::set<Values> found;
    crash_everywhere([&](pawl_fase* fase) { run(fase, stack_of(fase)); },
                     [&](pawl_fase* fase) {
                       const Values values = test::values_of(stack_of(fase));
                       EXPECT_TRUE(allowed.contains(values)) << ::testing::PrintToString(values);
                       found.insert(values);
                       // No block is lost, and none is used that the stack has not.
                       EXPECT_EQ(blocks_used(), values.size() + 1);
                     });
    if (!HasFailure()) {
      EXPECT_EQ(found, allowed);
    }
  }
};

TEST_F(FaseStack, KeepsItsValues) {
  with_stack([](pawl_fase* fase, Stack* stack) {
    for (std::uint64_t value = 1; value <= 5; ++value) test::push(fase, stack, value);
    EXPECT_EQ(test::pop(fase, stack), 5u);
    test::push_twice(fase, stack, 9);
  });
  with_stack([](pawl_fase*, Stack* stack) {
    EXPECT_EQ(test::values_of(stack), (Values{1, 2, 3, 4, 9, 9}));
  });
}

TEST_F(FaseStack, APushIsDoneOrNotAtAll) {
  expect_outcomes([](pawl_fase* fase, Stack* stack) { test::push(fase, stack, 7); }, {{}, {7}});
}

TEST_F(FaseStack, APopIsDoneOrNotAtAll) {
  with_stack([](pawl_fase* fase, Stack* stack) {
    test::push(fase, stack, 1);
    test::push(fase, stack, 2);
  });
  expect_outcomes([](pawl_fase* fase, Stack* stack) { test::pop(fase, stack); }, {{1, 2}, {1}});
}

TEST_F(FaseStack, SeveralAreDoneInTheirOrder) {
  expect_outcomes(
      [](pawl_fase* fase, Stack* stack) {
        test::push(fase, stack, 1);
        test::push(fase, stack, 2);
        test::pop(fase, stack);
        test::push(fase, stack, 3);
      },
      {{}, {1}, {1, 2}, {1, 3}});
}

std::uint64_t fences_of(pawl_fase* fase, const std::function<void()>& act) {
  pawl_fase_statistics before;
  pawl_fase_statistics after;
  EXPECT_EQ(pawl_fase_stats(fase, &before), 0);
  act();
  EXPECT_EQ(pawl_fase_stats(fase, &after), 0);
  return after.fences - before.fences;
}

// For the frame, for what was stored, for the end; a push stores to its node before the frame.
TEST_F(FaseStack, APopTakesThreeFences) {
  with_stack([](pawl_fase* fase, Stack* stack) {
    test::push(fase, stack, 1);
    test::push(fase, stack, 2);
    test::pop(fase, stack);
    EXPECT_EQ(fences_of(fase, [&] { test::pop(fase, stack); }), 3u);
    EXPECT_EQ(fences_of(fase, [&] { test::push(fase, stack, 2); }), 4u);
  });
}

// A block that is none of the stack's nodes.
void allocate_spare(pawl_fase* fase) {
  Stack* const stack = stack_of(fase);
  void* const block = pawl_fase_malloc(fase, sizeof(test::StackNode));
  test::store(stack->spare, block);
  pawl_fase_persist(&stack->spare, sizeof stack->spare);
}

// What a section allocates behind its last frame is in its list before it is marked as used: else
// the block that a crash leaves marked is nobody's.
TEST_F(FaseStack, WhatIsAllocatedBehindTheLastFrameIsNotLost) {
  crash_everywhere([](pawl_fase* fase) { test::keep_spare(fase, stack_of(fase)); },
                   [](pawl_fase* fase) {
                     EXPECT_EQ(blocks_used(), stack_of(fase)->spare == nullptr ? 1u : 2u);
                   });
}

void expect_spare_is_used(const Stack* stack, std::uint64_t blocks) {
  const std::uint64_t values = test::values_of(stack).size();
  EXPECT_GE(blocks, values + 1);
  // It is allocated before it is stored.
  EXPECT_LE(blocks, values + 2);
  if (stack->spare != nullptr) {
    EXPECT_EQ(blocks, values + 2);
  }
}

// The end that frees a block may be read after a crash, until there is another one.
TEST_F(FaseStack, WhatIsAllocatedBehindAPopIsNotFreedAgain) {
  with_stack([](pawl_fase* fase, Stack* stack) {
    test::push(fase, stack, 1);
    test::push(fase, stack, 2);
  });
  crash_everywhere(
      [](pawl_fase* fase) {
        test::pop(fase, stack_of(fase));
        allocate_spare(fase);
      },
      [](pawl_fase* fase) { expect_spare_is_used(stack_of(fase), blocks_used()); });
}

// The same where the pop's process has died, and the block is allocated by another.
TEST_F(FaseStack, WhatIsAllocatedBehindARecoveryIsNotFreedAgain) {
  with_stack([](pawl_fase* fase, Stack* stack) {
    test::push(fase, stack, 1);
    test::push(fase, stack, 2);
  });
  ASSERT_EQ(std::fflush(nullptr), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    pawl_fase* const fase = open();
    test::pop(fase, stack_of(fase));
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  crash_everywhere(allocate_spare,
                   [](pawl_fase* fase) { expect_spare_is_used(stack_of(fase), blocks_used()); });
}

// What is freed by one of many pops is found again, and nothing is lost.
TEST_F(FaseStack, PopsOneAfterTheOther) {
  with_stack([](pawl_fase* fase, Stack* stack) {
    for (std::uint64_t value = 1; value <= 3; ++value) test::push(fase, stack, value);
  });
  expect_outcomes(
      [](pawl_fase* fase, Stack* stack) {
        test::pop(fase, stack);
        test::pop(fase, stack);
        test::push(fase, stack, 7);
        test::pop(fase, stack);
      },
      {{1, 2, 3}, {1, 2}, {1}, {1, 7}});
}

// One thread has ended a section that freed a block, and is in another one; in recovery that one
// waits for the lock of a section which allocates and ends before.  Until the other has an end of
// its own, the one that frees the block is read by each recovery.
TEST_F(FaseStack, WhatAnEndFreedIsNobodysUntilTheSectionBehindItHasEnded) {
  static pawl_fase* opened = nullptr;
  static Stack* second = nullptr;
  with_stack([](pawl_fase* fase, Stack* first) {
    second = static_cast<Stack*>(pawl_fase_calloc(fase, 1, sizeof(Stack)));
    test::store(first->spare, static_cast<void*>(second));
    pawl_fase_persist(&first->spare, sizeof first->spare);
  });
  // The block is of the memory that the other thread allocates from.
  static std::atomic<int> stage{0};
  static std::thread other;
  const auto run = [this] {
    with_stack([](pawl_fase* fase, Stack* first) {
      opened = fase;
      other = std::thread([first] {
        test::push(opened, first, 1);
        stage = 1;
        while (stage != 2) std::this_thread::yield();
        test::push_twice(opened, second, 4);
      });
      while (stage != 1) std::this_thread::yield();
      test::pop(fase, first);
      test::hold_and_wait(first, second, [] {
        stage = 2;
        other.join();
      });
    });
  };
  const test::FileImage before = test::FileImage::read(path_);
  // The second thread has logged its first frame; it has one block, and will allocate another.
  std::size_t open_sections = 0;
  for (std::uint64_t event = 1; open_sections < 2; ++event) {
    before.write(path_);
    ASSERT_TRUE(test::crashes(before, run, event, test::Unfenced::kept, 0));
    open_sections = fase::look_at_file(path_).value().unfinished.size();
  }
  const test::FileImage interrupted = test::FileImage::read(path_);
  for (const test::Unfenced unfenced : {test::Unfenced::kept, test::Unfenced::lost}) {
    for (std::uint64_t event = 1;; ++event) {
      SCOPED_TRACE("event " + std::to_string(event));
      interrupted.write(path_);
      if (!test::crashes(interrupted, [this] { open_and([](pawl_fase*) {}); }, event, unfenced, 0))
        break;
      with_stack([](pawl_fase*, Stack* first) {
        EXPECT_EQ(test::values_of(first), Values{});
        EXPECT_EQ(test::values_of(second), (Values{4, 4}));
        EXPECT_EQ(blocks_used(), 4u);
      });
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST_F(FaseStack, CallsAreFinishedByTheirCallers) {
  expect_outcomes([](pawl_fase* fase, Stack* stack) { test::push_twice(fase, stack, 4); },
                  {{}, {4, 4}});
}

}  // namespace
}  // namespace pawl
