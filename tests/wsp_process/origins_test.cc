// What is noted of memory's origin, against a map of single addresses.
#include "wsp/process/origins.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace pawl::wsp {
namespace {

constexpr std::uint64_t kEnd = 64;
using Noted = std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>>;  // inode, offset

void erase(Noted& noted, std::uint64_t start, std::uint64_t bytes) {
  noted.erase(noted.lower_bound(start), noted.lower_bound(start + bytes));
}

Noted spread(const std::vector<Origin>& origins) {
  Noted noted;
  for (const Origin& origin : origins) {
    EXPECT_GT(origin.bytes, 0u);
    for (std::uint64_t at = origin.start; at < origin.end(); ++at)
      EXPECT_TRUE(noted.try_emplace(at, origin.inode, origin.offset_of(at)).second);
  }
  return noted;
}

TEST(Origins, AreKnownOfEachAddress) {
  std::mt19937 random(7);
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  Origins origins;
  Noted noted;
  for (int round = 0; round < 20000; ++round) {
    const std::uint64_t start = below(kEnd);
    const std::uint64_t bytes = 1 + below(12);
    switch (below(3)) {
      case 0: {
        const Origin origin{start, bytes, true, 1000 + below(100), below(5), "file"};
        origins.set(origin);
        for (std::uint64_t at = start; at < start + bytes; ++at)
          noted[at] = {origin.inode, origin.offset_of(at)};
        break;
      }
      case 1:
        origins.erase(start, bytes);
        erase(noted, start, bytes);
        break;
      default: {
        const std::uint64_t to = kEnd + 12 + below(kEnd);
        Noted moved;
        for (std::uint64_t at = start; at < start + bytes; ++at) {
          if (noted.contains(at)) moved[at - start + to] = noted[at];
        }
        origins.move(start, to, bytes);
        erase(noted, start, bytes);
        erase(noted, to, bytes);
        noted.insert(moved.begin(), moved.end());
      }
    }
    ASSERT_EQ(spread(origins.within(0, 4 * kEnd)), noted) << round;
    Noted part(noted.lower_bound(start), noted.lower_bound(start + bytes));
    ASSERT_EQ(spread(origins.within(start, bytes)), part) << round;
  }
}

TEST(Origins, ThatGoOnInEachOtherAreOne) {
  Origins origins;
  for (std::uint64_t page = 0; page < kOriginsMax + 2; ++page)
    origins.set({page, 1, true, 7 + page, 3, "file"});
  EXPECT_FALSE(origins.is_full());
  ASSERT_EQ(origins.within(0, 2 * kOriginsMax).size(), 1u);
  // From the end, and between two.
  origins.erase(5, 2);
  origins.set({6, 1, true, 13, 3, "file"});
  EXPECT_EQ(origins.within(0, 10).size(), 2u);
  origins.set({5, 1, true, 12, 3, "file"});
  EXPECT_EQ(origins.within(0, 10).size(), 1u);
  // Not what only looks like it.
  origins.set({5, 1, true, 12, 4, "file"});
  EXPECT_EQ(origins.within(0, 10).size(), 3u);
  origins.set({5, 1, true, 13, 3, "file"});
  EXPECT_EQ(origins.within(0, 10).size(), 3u);
  origins.set({5, 1, false, 0, 0, {}});
  EXPECT_EQ(origins.within(0, 10).size(), 3u);
}

}  // namespace
}  // namespace pawl::wsp
