// The power fails beneath a heap, at every write and flush; operations of its disk fail.  What is
// found is exactly what some sync left, never older than the last acknowledged one, and in it the
// allocator's bookkeeping is whole and each block has its bytes.

#include <algorithm>
#include <cerrno>

#include <gtest/gtest.h>

#include "crash/explorer.h"
#include "crash/heap_life.h"
#include "crash/program.h"
#include "crash/repeatable.h"
#include "crash/seeds.h"
#include "support/test_size.h"

namespace pawl::test {
namespace {

constexpr unsigned kSeedsByDefault = at_size(2U, 6U);
constexpr unsigned kSteps = 160;
constexpr unsigned kStepsWithFault = 40;
constexpr std::uint64_t kStatesOfLife = 500;
constexpr std::uint64_t kStatesOfLaterLife = 150;
constexpr std::uint64_t kStatesOfFault = 3;
constexpr std::uint64_t kStatesOfCreation = 1'500;
constexpr std::uint64_t kExhaustiveMax = 256;
constexpr unsigned kCuts = 3;             // of each life: opened, audited, lived on
constexpr std::uint64_t kFaultEvery = 3;  // of the operations

HeapLifeOptions options_for(unsigned seed) {
  HeapLifeOptions options;
  options.seed = seed;
  options.steps = kSteps;
  options.can_mark = seed % 5 != 4;
  options.is_memory = seed % 3 == 0;
  options.heap.size_bytes_max = std::uint64_t{64} << 20;
  Options& mapping = options.heap.mapping;
  mapping = Options::from_environment().value();
  mapping.journal_size_bytes = kJournalSizeMin << seed % 3;
  mapping.apply = seed % 2 == 0 ? ApplyChoice::async : ApplyChoice::eager;
  mapping.tracker = seed / 2 % 2 == 0 ? TrackerChoice::automatic : TrackerChoice::fault;
  if (seed % 4 == 3) mapping.tracker = TrackerChoice::store;
  mapping.apply_threshold_pages = seed % 3 == 0 ? 2 : 128;
  return options;
}

class HeapCrash : public testing::Test {
 protected:
  std::uint64_t states_ = 0;

  void TearDown() override { RecordProperty("states", std::to_string(states_)); }

  void examine(Explorer& explorer, const HeapLifeEnd& end, std::uint64_t states,
               const std::string& where) {
    ASSERT_EQ(end.wrong, "") << where;
    auto loss = explorer.explore(end.trace, states, end.failed_before.value_or(0));
    if (loss.has_value()) {
      const std::string path = "crash_heap.trace";
      loss->trace.save(path);
      FAIL() << where << ": " << loss->what << "\nthe state's recipe in " << path << ": "
             << loss->recipe;
    }
  }

  // Which commit it is, by its bytes.
  static std::size_t commit_of(const Trace& trace, const Content& content) {
    const auto& commits = trace.volumes[0].commits;
    const auto found = std::find_if(commits.rbegin(), commits.rend(), [&](const Content& commit) {
      return !commit.first_difference(content).has_value();
    });
    return static_cast<std::size_t>(commits.rend() - found) - 1;
  }

  // Opens what some cuts left, and lives on there.
  void live_on(Explorer& explorer, const HeapLifeEnd& before, HeapLifeOptions options) {
    for (unsigned number = 0; number < kCuts; ++number) {
      const auto cut = explorer.cut_somewhere(before.trace);
      ASSERT_EQ(cut.wrong, "");
      const HeapModel& model = before.models.at(commit_of(before.trace, cut.found[0]));
      ASSERT_EQ(audit(cut.disks[0], options.can_mark, options.heap, model), "") << cut.recipe;
      options.seed = options.seed * 7 + number + 1;
      const HeapLifeEnd later = live(options, cut.disks[0], cut.found[0], model);
      ASSERT_NO_FATAL_FAILURE(examine(explorer, later, kStatesOfLaterLife, "a later life"));
    }
  }
};

TEST_F(HeapCrash, APowerCutLeavesWhatSomeSyncLeft) {
  run_seeds(kSeedsByDefault, [&](unsigned seed) {
    const HeapLifeOptions options = options_for(seed);
    Explorer explorer(recover_pawl, kExhaustiveMax, seed, options.is_memory);
    const StoredDisk start = new_heap(options.heap);
    const HeapLifeEnd first = live(options, start, start.base, {});
    ASSERT_NO_FATAL_FAILURE(examine(explorer, first, kStatesOfLife, "the first life"));
    // By another way than the bytes: what each sync left is a heap without faults.
    for (std::size_t number = 0; number < first.models.size(); ++number) {
      const StoredDisk disk{first.trace.volumes[0].commits[number], {}, {}};
      ASSERT_EQ(audit(disk, options.can_mark, options.heap, first.models[number]), "") << number;
    }
    ASSERT_NO_FATAL_FAILURE(live_on(explorer, first, options));
    states_ += explorer.counts().all_states();
  });
}

TEST_F(HeapCrash, APowerCutWhileAHeapIsMadeLeavesNoneOrAllOfIt) {
  run_seeds(kSeedsByDefault, [&](unsigned seed) {
    const HeapLifeOptions options = options_for(seed);
    Explorer explorer(recover_pawl, kExhaustiveMax, seed, options.is_memory);
    const HeapLifeEnd made = make_and_raise(options);
    ASSERT_NO_FATAL_FAILURE(examine(explorer, made, kStatesOfCreation, "making a heap"));
    for (unsigned number = 0; number < kCuts; ++number) {
      const auto cut = explorer.cut_somewhere(made.trace);
      ASSERT_EQ(cut.wrong, "");
      ASSERT_EQ(audit(cut.disks[0], options.can_mark, options.heap, {}), "");  // perhaps made anew
    }
    states_ += explorer.counts().all_states();
  });
}

TEST_F(HeapCrash, AFailingDiskLosesNothingThatWasSynced) {
  static const std::vector<Fault> kWays = {{.error_number = EIO},
                                           {.error_number = EIO, .lasting = true},
                                           {.error_number = ENOSPC},
                                           {.error_number = ENOSPC, .lasting = true}};
  run_seeds(kSeedsByDefault / 2, [&](unsigned seed) {
    HeapLifeOptions options = options_for(seed);
    options.steps = kStepsWithFault;
    options.pauses = Pauses::never;
    Explorer explorer(recover_pawl, kExhaustiveMax, seed, options.is_memory);
    const StoredDisk start = new_heap(options.heap);
    for (const Fault& way : kWays) {
      options.fault = way;
      for (std::uint64_t operation = seed % kFaultEvery;; operation += kFaultEvery) {
        options.fault.operation = operation;
        const HeapLifeEnd end = live(options, start, start.base, {});
        if (!end.failed_before.has_value() && operation >= end.operations) break;
        ASSERT_NO_FATAL_FAILURE(
            examine(explorer, end, kStatesOfFault, "operation " + std::to_string(operation)));
      }
    }
    states_ += explorer.counts().all_states();
  });
}

}  // namespace
}  // namespace pawl::test
