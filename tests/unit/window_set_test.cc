// Which addresses are in windows: exact, and at every moment.
#include "mapping/window_set.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace pawl {
namespace {

AddressRange pages(std::uintptr_t first, std::uintptr_t end) {
  return {first * kPageBytes, end * kPageBytes};
}

void become(WindowSet& set, const std::vector<AddressRange>& windows) {
  set.become([&](const auto& take) {
    for (const AddressRange& window : windows) take(window);
  });
}

TEST(WindowSet, WhatLiesBetweenTwoWindowsIsInNone) {
  const auto set = std::make_unique<WindowSet>();
  become(*set, {pages(10, 20), pages(30, 40)});
  EXPECT_FALSE(set->intersects(pages(20, 30)));
  EXPECT_FALSE(set->intersects(pages(1, 10)));
  EXPECT_FALSE(set->intersects(pages(40, 50)));
  EXPECT_TRUE(set->intersects(pages(19, 30)));
  EXPECT_TRUE(set->intersects(pages(20, 31)));
  EXPECT_TRUE(set->intersects(pages(1, 50)));
}

TEST(WindowSet, WhatWentIsInNoneAndItsRoomIsUsedAgain) {
  const auto set = std::make_unique<WindowSet>();
  for (std::uintptr_t round = 0; round < 3 * WindowSet::kWindowsMax; ++round) {
    const std::uintptr_t at = 100 + round % 7 * 20;
    become(*set, {pages(10, 20), pages(at, at + 10)});
    ASSERT_TRUE(set->intersects(pages(at, at + 1)));
    ASSERT_FALSE(set->intersects(pages(20, 100)));
    ASSERT_EQ(set->intersects(pages(100, 110)), at == 100);
  }
  become(*set, {});
  EXPECT_FALSE(set->intersects(pages(0, 1000)));
}

TEST(WindowSet, WithMoreThanItHasRoomForNoneIsMissed) {
  const auto set = std::make_unique<WindowSet>();
  std::vector<AddressRange> windows;
  for (std::uintptr_t i = 0; i <= WindowSet::kWindowsMax; ++i)
    windows.push_back(pages(10 * i, 10 * i + 5));
  become(*set, windows);
  for (const AddressRange& window : windows) ASSERT_TRUE(set->intersects(window));
  windows.pop_back();
  become(*set, windows);
  EXPECT_FALSE(set->intersects(pages(5, 10)));
}

TEST(WindowSet, AWindowThatStaysIsFoundWhileOthersComeAndGo) {
  const auto set = std::make_unique<WindowSet>();
  become(*set, {pages(10, 20)});
  std::atomic<bool> is_over{false};
  std::thread changes([&] {
    for (std::uintptr_t round = 0; round < 20'000; ++round) {
      const std::uintptr_t at = 100 + round % 5 * 20;
      if (round % 3 == 0) become(*set, {pages(10, 20)});
      if (round % 3 == 1) become(*set, {pages(at, at + 10), pages(10, 20)});
      if (round % 3 == 2) become(*set, {pages(at, at + 10), pages(10, 20), pages(300, 310)});
    }
    is_over = true;
  });
  bool is_missed = false;
  bool is_wrong = false;
  while (!is_over) {
    if (!set->intersects(pages(19, 20))) is_missed = true;
    if (set->intersects(pages(20, 100))) is_wrong = true;
  }
  changes.join();
  EXPECT_FALSE(is_missed);
  EXPECT_FALSE(is_wrong);
}

}  // namespace
}  // namespace pawl
