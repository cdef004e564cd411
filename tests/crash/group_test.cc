// A power cut leaves all files of a group as one commit left them, or none.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <iostream>

#include <gtest/gtest.h>

#include "crash/disk_states.h"
#include "crash/group_life.h"
#include "support/test_size.h"

namespace pawl::test {
namespace {

constexpr unsigned kSeedsByDefault = at_size(1U, 12U);  // PAWL_GROUP_SEEDS
constexpr std::uint64_t kExhaustiveMax = 48;            // states of a moment that are all tried
constexpr unsigned kSamples = 6;                        // of a moment that has more
constexpr unsigned kDeeperEvery = 23;  // states, of which one's recovery is cut as well
constexpr unsigned kDeeperSamples = 2;
constexpr unsigned kCuts = 2;  // from which another life goes on

unsigned seeds_asked_for() {
  const char* const asked = std::getenv("PAWL_GROUP_SEEDS");
  return asked != nullptr ? static_cast<unsigned>(std::strtoul(asked, nullptr, 10))
                          : kSeedsByDefault;
}

bool same(const GroupContents& a, const GroupContents& b) {
  for (std::size_t volume = 0; volume < kGroupVolumes; ++volume) {
    if (a[volume].first_difference(b[volume]).has_value()) return false;
  }
  return true;
}

GroupContents commit_of(const Trace& trace, std::size_t number) {
  GroupContents contents;
  for (std::size_t volume = 0; volume < kGroupVolumes; ++volume)
    contents[volume] = trace.volumes[volume].commits.at(number);
  return contents;
}

class GroupCrash : public testing::Test {
 protected:
  ~GroupCrash() override { std::cout << states_ << " states, " << deeper_ << " of recoveries\n"; }

  // Calls visit(recipe) for states of each moment of the trace.
  template <class Visit>
  void for_states(const Trace& trace, unsigned samples, Random& random, const Visit& visit) {
    for (DiskStates states(trace); !states.at_end();) {
      if (!states.advance() && !states.at_end()) continue;
      const std::uint64_t count = states.count(kExhaustiveMax);
      if (samples == kSamples && count <= kExhaustiveMax) {
        for (std::uint64_t number = 0; number < count; ++number)
          ASSERT_NO_FATAL_FAILURE(visit(states, states.recipe(number)));
        continue;
      }
      ASSERT_NO_FATAL_FAILURE(visit(states, states.nothing_kept()));
      ASSERT_NO_FATAL_FAILURE(visit(states, states.all_kept()));
      for (unsigned i = 0; i < samples; ++i)
        ASSERT_NO_FATAL_FAILURE(visit(states, states.sample(random)));
    }
  }

  void examine(const Trace& trace, unsigned seed) {
    Random random(seed);
    for_states(trace, kSamples, random, [&](const DiskStates& states, const StateRecipe& recipe) {
      const GroupDisks disks = states.build(recipe);
      const Way way = kWays[states_ % kWays.size()];
      const std::string where =
          "moment " + std::to_string(states.moment()) + ", state " + recipe.text();
      const FoundGroup found = recover_group(disks, way);
      ASSERT_EQ(found.wrong, "") << where;
      ASSERT_TRUE(is_acceptable(trace, states, found.contents)) << where;
      states_ += 1;
      if (states_ % kDeeperEvery != 0) return;
      ASSERT_NO_FATAL_FAILURE(cut_recovery(disks, way, found.contents, random)) << where;
    });
  }

  // One commit, the same for all files.
  static bool is_acceptable(const Trace& trace, const DiskStates& states,
                            const GroupContents& found) {
    const auto numbers = states.acceptable(1);
    return std::any_of(numbers.begin(), numbers.end(),
                       [&](std::size_t number) { return same(found, commit_of(trace, number)); });
  }

  // A recovery that is cut is followed by another, which finds the same.
  void cut_recovery(const GroupDisks& disks, Way way, const GroupContents& wanted, Random& random) {
    const Trace trace = record_recovery(disks, way, static_cast<unsigned>(states_));
    for_states(
        trace, kDeeperSamples, random, [&](const DiskStates& states, const StateRecipe& recipe) {
          const FoundGroup found =
              recover_group(states.build(recipe), kWays[deeper_ % kWays.size()]);
          const std::string where =
              "in recovery, moment " + std::to_string(states.moment()) + ", state " + recipe.text();
          ASSERT_EQ(found.wrong, "") << where;
          ASSERT_TRUE(same(found.contents, wanted)) << where;
          deeper_ += 1;
        });
  }

  // The program is started anew on what some cuts left.
  void live_on(const Trace& trace, GroupLifeOptions options) {
    Random random(options.seed);
    for (unsigned cut = 0; cut < kCuts; ++cut) {
      DiskStates states(trace);
      const std::size_t moment = 1 + below(random, trace.events.size());
      while (!states.at_end() && states.moment() < moment) states.advance();
      const GroupDisks disks = states.build(states.sample(random));
      const FoundGroup found = recover_group(disks, Way::whole);
      ASSERT_EQ(found.wrong, "");
      options.seed = options.seed * 7 + cut + 1;
      const GroupLifeEnd later = live(options, disks, found.contents);
      ASSERT_EQ(later.wrong, "") << "seed " << options.seed;
      ASSERT_NO_FATAL_FAILURE(examine(later.trace, options.seed)) << "seed " << options.seed;
    }
  }

  std::uint64_t states_ = 0;
  std::uint64_t deeper_ = 0;
};

TEST_F(GroupCrash, APowerCutLeavesAllFilesAtOneCommit) {
  for (unsigned seed = 1; seed <= seeds_asked_for(); ++seed) {
    const GroupLifeOptions options{.seed = seed, .steps = 40, .fault = {}};
    const GroupDisks start = new_group(seed);
    const GroupLifeEnd first = live(options, start, {start[0].base, start[1].base, start[2].base});
    ASSERT_EQ(first.wrong, "") << "seed " << seed;
    ASSERT_NO_FATAL_FAILURE(examine(first.trace, seed)) << "seed " << seed;
    ASSERT_NO_FATAL_FAILURE(live_on(first.trace, options)) << "seed " << seed;
  }
}

TEST_F(GroupCrash, AFailingDiskLosesNothingThatWasCommitted) {
  static const std::vector<Fault> kFaults = {{.error_number = EIO},
                                             {.error_number = EIO, .lasting = true},
                                             {.error_number = ENOSPC},
                                             {.error_number = ENOSPC, .lasting = true}};
  constexpr std::uint64_t kFaultEvery = 5;
  for (unsigned seed = 1; seed <= seeds_asked_for() / 4; ++seed) {
    for (const Fault& kind : kFaults) {
      for (std::uint64_t operation = seed % kFaultEvery;; operation += kFaultEvery) {
        GroupLifeOptions options{.seed = seed, .steps = 16, .fault = kind};
        options.fault.operation = operation;
        const GroupDisks start = new_group(seed);
        const GroupLifeEnd end =
            live(options, start, {start[0].base, start[1].base, start[2].base});
        ASSERT_EQ(end.wrong, "") << "seed " << seed << ", operation " << operation;
        if (!end.failed_before.has_value() && operation >= end.operations) break;
        // Where the fault was: the rest was tried without it.
        DiskStates states(end.trace);
        while (!states.at_end()) states.advance();
        for (const StateRecipe& recipe : {states.nothing_kept(), states.all_kept()}) {
          const FoundGroup found = recover_group(states.build(recipe), kWays[states_ % 4]);
          ASSERT_EQ(found.wrong, "") << "seed " << seed << ", operation " << operation;
          ASSERT_TRUE(is_acceptable(end.trace, states, found.contents))
              << "seed " << seed << ", operation " << operation << ", " << recipe.text();
          states_ += 1;
        }
      }
    }
  }
}

}  // namespace
}  // namespace pawl::test
