#include "wsp/process/address_space.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>

namespace pawl::wsp {
namespace {

constexpr std::uint64_t kStart = 1000;
constexpr std::uint64_t kEnd = 1200;

TEST(AddressSpace, GivesNeighboursInOrder) {
  AddressSpace space(kStart, kEnd);
  EXPECT_EQ(space.take(10), 1000U);
  EXPECT_EQ(space.take(20), 1010U);
  EXPECT_EQ(space.take(1), 1030U);
}

TEST(AddressSpace, DoesNotGiveAPlaceAgainSoon) {
  AddressSpace space(kStart, kEnd);
  ASSERT_EQ(space.take(10), 1000U);
  space.mark_free(1000, 10);
  EXPECT_EQ(space.take(10), 1010U);
}

TEST(AddressSpace, ComesBackToTheStartWhenTheRestIsTooShort) {
  AddressSpace space(kStart, kEnd);
  ASSERT_EQ(space.take(150), 1000U);
  space.mark_free(1000, 60);
  EXPECT_EQ(space.take(60), 1000U);
  EXPECT_EQ(space.take(51), std::nullopt);
  EXPECT_EQ(space.take(50), 1150U);
  EXPECT_EQ(space.take(1), std::nullopt);
}

TEST(AddressSpace, IgnoresWhatIsNotItsOwn) {
  AddressSpace space(kStart, kEnd);
  space.mark_used(0, 500);
  space.mark_free(0, 500);
  space.mark_free(1190, 1000);
  EXPECT_EQ(space.take(201), std::nullopt);
  EXPECT_EQ(space.take(200), kStart);
}

TEST(AddressSpace, TakesExactlyOnlyWhatIsFree) {
  AddressSpace space(kStart, kEnd);
  EXPECT_TRUE(space.take_exactly(1050, 10));
  EXPECT_FALSE(space.take_exactly(1059, 10));
  EXPECT_FALSE(space.take_exactly(1195, 10));
  EXPECT_FALSE(space.take_exactly(10, 10));
  EXPECT_TRUE(space.take_exactly(1060, 140));
}

// Against a set of all free addresses.
TEST(AddressSpace, AgreesWithAModel) {
  constexpr unsigned kSeed = 7;
  constexpr int kRounds = 20000;
  std::mt19937 random(kSeed);
  AddressSpace space(kStart, kEnd);
  std::set<std::uint64_t> free;
  for (std::uint64_t at = kStart; at < kEnd; ++at) free.insert(at);
  const auto is_free = [&](std::uint64_t start, std::uint64_t length) {
    for (std::uint64_t at = start; at < start + length; ++at) {
      if (!free.contains(at)) return false;
    }
    return true;
  };
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t length = 1 + random() % 30;
    const std::uint64_t place = 980 + random() % 240;
    switch (random() % 4) {
      case 0: {
        const auto given = space.take(length);
        if (given) {
          ASSERT_TRUE(is_free(*given, length));
          for (std::uint64_t at = *given; at < *given + length; ++at) free.erase(at);
        } else {
          for (std::uint64_t at = kStart; at < kEnd; ++at) ASSERT_FALSE(is_free(at, length));
        }
        break;
      }
      case 1: {
        const bool expected = is_free(place, length);
        ASSERT_EQ(space.take_exactly(place, length), expected);
        for (std::uint64_t at = place; expected && at < place + length; ++at) free.erase(at);
        break;
      }
      case 2:
        space.mark_used(place, length);
        for (std::uint64_t at = place; at < place + length; ++at) free.erase(at);
        break;
      default:
        space.mark_free(place, length);
        for (std::uint64_t at = place; at < place + length; ++at) {
          if (at >= kStart && at < kEnd) free.insert(at);
        }
    }
  }
}

}  // namespace
}  // namespace pawl::wsp
