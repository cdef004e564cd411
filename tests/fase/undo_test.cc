// The scheme undo, part by part: what depends on what, what a log says, and what is taken back.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "fase/undo_dependences.h"
#include "fase/undo_recovery.h"
#include "medium/unflushed_memory.h"

namespace pawl {
namespace {

using fase::fase_name;
using fase::FoundUndo;
using fase::UndoDependences;
using fase::UndoLog;

constexpr std::uint64_t kLock = 0x120000000000;
constexpr std::uint64_t kOtherLock = kLock + 64;

class Dependences : public ::testing::Test {
 protected:
  const std::unique_ptr<UndoDependences> of_ = std::make_unique<UndoDependences>();
};

TEST_F(Dependences, AFaseWithoutAnyIsSettledAtOnce) {
  of_->taken(0, kLock);
  EXPECT_FALSE(of_->has_any(0));
  of_->ended(fase_name(0, 1));
  EXPECT_TRUE(of_->try_settle(fase_name(0, 1)));
}

TEST_F(Dependences, WhoTakesWhatWasReleasedBeforeTheEndWaitsForIt) {
  of_->will_release(fase_name(0, 1), kLock);
  of_->taken(1, kLock);
  EXPECT_TRUE(of_->has_any(1));
  EXPECT_GT(of_->clock(1), of_->clock(0));
  EXPECT_EQ(of_->all_of(1), std::vector{fase_name(0, 1)});
  of_->ended(fase_name(1, 1));
  EXPECT_FALSE(of_->try_settle(fase_name(1, 1)));
  of_->ended(fase_name(0, 1));
  EXPECT_TRUE(of_->try_settle(fase_name(1, 1)));
  EXPECT_FALSE(of_->has_any(1));
}

TEST_F(Dependences, TheyGoThroughOthers) {
  of_->will_release(fase_name(0, 1), kLock);
  of_->taken(1, kLock);
  of_->will_release(fase_name(1, 1), kOtherLock);
  of_->taken(2, kOtherLock);
  of_->ended(fase_name(1, 1));
  of_->ended(fase_name(2, 1));
  EXPECT_FALSE(of_->try_settle(fase_name(2, 1)));
  EXPECT_EQ(of_->all_of(2).size(), 2u);
  of_->ended(fase_name(0, 1));
  EXPECT_TRUE(of_->try_settle(fase_name(2, 1)));
}

TEST_F(Dependences, ThoseThatSawEachOtherAreSettledTogether) {
  of_->will_release(fase_name(0, 1), kLock);
  of_->will_release(fase_name(1, 1), kOtherLock);
  of_->taken(1, kLock);
  of_->taken(0, kOtherLock);
  of_->ended(fase_name(0, 1));
  EXPECT_FALSE(of_->try_settle(fase_name(0, 1)));
  of_->ended(fase_name(1, 1));
  EXPECT_TRUE(of_->try_settle(fase_name(1, 1)));
  EXPECT_TRUE(of_->try_settle(fase_name(0, 1)));
}

TEST_F(Dependences, WhatIsSettledIsNoneAnyMore) {
  of_->will_release(fase_name(0, 1), kLock);
  of_->ended(fase_name(0, 1));
  EXPECT_TRUE(of_->try_settle(fase_name(0, 1)));
  of_->taken(1, kLock);
  EXPECT_FALSE(of_->has_any(1));
}

TEST_F(Dependences, ASecondReleaseOfALockLosesNone) {
  of_->will_release(fase_name(0, 1), kLock);
  // Without having taken it: another lock may have the same place.
  of_->will_release(fase_name(1, 1), kLock);
  of_->taken(2, kLock);
  EXPECT_EQ(of_->all_of(2).size(), 2u);
}

// Whoever finds a section in the place of a lock finds with it those that it has driven out there.
TEST_F(Dependences, WhoIsDrivenOutOfItsPlaceIsNeverMissed) {
  constexpr std::uint64_t kTurns = 2000;
  constexpr std::uint32_t kOthers = 200;
  for (std::uint64_t turn = 1; turn <= kTurns; ++turn) {
    const fase::FaseName first = fase_name(0, turn);
    const fase::FaseName second = fase_name(1, turn);
    of_->will_release(first, kLock);
    std::atomic<bool> begins{false};
    std::thread other([&] {
      begins = true;
      of_->will_release(second, kLock);
    });
    while (!begins) {
    }
    // Each looks once, and is none of those that found the first one in its place.
    for (std::uint32_t log = 2; log < kOthers; ++log) {
      of_->taken(log, kLock);
      const auto found = of_->all_of(log);
      EXPECT_NE(std::ranges::find(found, first), found.end());
      if (std::ranges::find(found, second) != found.end()) break;
    }
    other.join();
    for (std::uint32_t log = 0; log < kOthers; ++log) of_->ended(fase_name(log, turn));
    for (std::uint32_t log = 0; log < kOthers; ++log)
      EXPECT_TRUE(of_->try_settle(fase_name(log, turn)));
    ASSERT_FALSE(HasFailure());
  }
}

// -------------------------------------------------------------------------------------------- logs

class Logs : public ::testing::Test {
 protected:
  Logs() : memory_(std::make_unique<UnflushedMemory>(), nullptr) {}

  FoundUndo read(std::uint64_t undone_below = 0) const {
    return fase::read_undo_log(*area_, *log_area_, undone_below);
  }

  fase::DirectMemory memory_;
  const std::unique_ptr<fase::UndoArea> area_ = std::make_unique<fase::UndoArea>();
  const std::unique_ptr<fase::LogArea> log_area_ = std::make_unique<fase::LogArea>();
  UndoLog log_{*area_, memory_};
};

TEST_F(Logs, SayWhatWasThere) {
  std::uint64_t word = 11;
  std::array<char, 100> text{};
  text.fill('x');
  log_.begin(7);
  EXPECT_EQ(log_.put(&word, sizeof word, 1), 1u);
  EXPECT_EQ(log_.put(text.data() + 1, text.size() - 1, 2), 3u);
  word = 12;
  // It was logged.
  EXPECT_EQ(log_.put(&word, sizeof word, 3), 0u);
  FoundUndo found = read();
  EXPECT_EQ(found.number, 7u);
  EXPECT_FALSE(found.has_ended);
  ASSERT_EQ(found.entries.size(), 4u);
  EXPECT_EQ(found.entries[0].address, reinterpret_cast<std::uint64_t>(&word));
  EXPECT_EQ(std::to_integer<int>(found.entries[0].bytes[0]), 11);
  EXPECT_EQ(found.entries[3].bytes.size(), text.size() - 1 - 2 * fase::kUndoBytesMax);
  EXPECT_EQ(found.entries[3].clock, 2u);

  const std::vector<fase::FaseName> depends_on(20, fase_name(3, 5));
  log_.put_end(depends_on);
  found = read();
  EXPECT_TRUE(found.has_ended);
  EXPECT_EQ(found.depends_on, depends_on);
  // One line of it is of another end: it is none.
  area_->end[1][0] = 0;
  EXPECT_FALSE(read().has_ended);
}

// What Atlas logs, and recovery needs not.
TEST_F(Logs, SayWhichLocksAreTaken) {
  std::uint64_t word = 11;
  log_.begin(7);
  EXPECT_EQ(log_.put_lock(kLock, UndoLog::LockNote::taken, 1), 1u);
  EXPECT_TRUE(log_.has_entries());
  EXPECT_EQ(log_.put(&word, sizeof word, 1, true), 1u);
  EXPECT_EQ(log_.put(&word, sizeof word, 1, true), 1u);
  EXPECT_EQ(log_.put_lock(kLock, UndoLog::LockNote::released, 1), 1u);
  EXPECT_EQ(area_->entries[0].address, kLock);
  EXPECT_NE(area_->entries[3].address, kLock);
  const FoundUndo found = read();
  EXPECT_EQ(found.number, 7u);
  EXPECT_EQ(found.entries.size(), 2u);
}

TEST_F(Logs, AreVoidBelowANumber) {
  std::uint64_t word = 11;
  log_.begin(7);
  log_.put(&word, sizeof word, 1);
  EXPECT_EQ(read(7).number, 7u);
  EXPECT_EQ(read(8).number, 0u);
  EXPECT_EQ(fase::next_undo_number(*area_), 8u);
}

TEST_F(Logs, HaveOneFase) {
  std::array<std::uint64_t, 2> words{11, 12};
  log_.begin(7);
  log_.put(&words[0], sizeof words[0], 1);
  log_.put(&words[1], sizeof words[1], 1);
  log_.put_end({});
  log_.begin(8);
  log_.put(&words[1], sizeof words[1], 1);
  const FoundUndo found = read();
  EXPECT_EQ(found.number, 8u);
  EXPECT_EQ(found.entries.size(), 1u);
  EXPECT_FALSE(found.has_ended);
}

TEST_F(Logs, AreNotTakenForThoseBeforeOnceTheyAreOverwritten) {
  std::array<std::uint64_t, 2> words{11, 12};
  log_.begin(7);
  log_.put(&words[0], sizeof words[0], 1);
  log_.put(&words[1], sizeof words[1], 1);
  log_.put_end({});
  log_.begin(8);
  log_.put(&words[1], sizeof words[1], 1);
  log_.put_end({});
  // The next one has begun to write its first entry.
  area_->entries[0].tag = 0;
  EXPECT_EQ(read().number, 8u);
  EXPECT_TRUE(read().has_ended);
}

TEST_F(Logs, AreFullAtSomeTime) {
  std::vector<std::uint64_t> words(fase::kUndoEntriesMax + 1);
  log_.begin(1);
  for (std::size_t i = 0; i < fase::kUndoEntriesMax; ++i)
    EXPECT_EQ(log_.put(&words[i], sizeof words[i], 1), 1u);
  EXPECT_EQ(log_.put(&words.back(), sizeof words.back(), 1), UndoLog::kFull);
  EXPECT_EQ(read().entries.size(), fase::kUndoEntriesMax);
}

// ------------------------------------------------------------------------------------- interrupted

FoundUndo ended(std::uint64_t number, std::vector<fase::FaseName> depends_on) {
  FoundUndo found;
  found.number = number;
  found.has_ended = true;
  found.depends_on = std::move(depends_on);
  return found;
}

FoundUndo open(std::uint64_t number) {
  FoundUndo found;
  found.number = number;
  return found;
}

using Indices = std::vector<std::size_t>;

TEST(Interrupted, AreThoseWithoutAnEnd) {
  const std::array logs{ended(1, {}), open(5), FoundUndo{}};
  EXPECT_EQ(fase::find_interrupted(logs), Indices{1});
}

TEST(Interrupted, AreThoseThatDependOnThem) {
  const std::array logs{ended(1, {fase_name(1, 1)}), ended(1, {fase_name(2, 9)}), open(9)};
  EXPECT_EQ(fase::find_interrupted(logs), (Indices{0, 1, 2}));
}

TEST(Interrupted, AreNotThoseThatDependOnOnesBefore) {
  const std::array logs{ended(1, {fase_name(1, 8)}), open(9)};
  EXPECT_EQ(fase::find_interrupted(logs), Indices{1});
}

TEST(Interrupted, AreNotThoseInACircleOfWhichAllHaveEnded) {
  const std::array logs{ended(1, {fase_name(1, 1)}), ended(1, {fase_name(0, 1)})};
  EXPECT_EQ(fase::find_interrupted(logs), Indices{});
}

}  // namespace
}  // namespace pawl
