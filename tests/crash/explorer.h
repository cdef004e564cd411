// Looks for a state of the disk from which the wrong content is found: builds the states of every
// moment of a trace, recovers each, and checks what is found; records some of these recoveries, and
// does the same with their traces, to a depth of three.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "crash/disk_states.h"
#include "crash/recorder.h"
#include "crash/trace.h"

namespace pawl::test {

inline constexpr std::size_t kRecoveryDepthMax = 3;
// Where the states are counted that a recovery leaves of which an operation failed.
inline constexpr std::size_t kFailedRecovery = kRecoveryDepthMax + 1;

// Recovers a volume: pawl::recover(), or what else is under test.
using Recover = std::function<Status(Medium& medium)>;

struct Counts {
  // Different states from which was recovered: after a cut of the run, of its recovery, of that
  // one's recovery, and once more; and of a recovery that failed.
  std::array<std::uint64_t, kFailedRecovery + 1> states{};
  std::uint64_t built = 0;              // with those met before
  std::uint64_t traces = 0;             // of runs
  std::uint64_t moments = 0;            // at which something may be lost, in all traces
  std::uint64_t moments_exhausted = 0;  // of these: all states were tried
  std::uint64_t moments_of_lines = 0;   // all subsets of their lines, and chance tore some
  std::uint64_t moments_sampled = 0;    // chance chose
  std::uint64_t moments_passed = 0;     // chance chose none
  std::uint64_t recovery_faults = 0;    // recoveries in which an operation failed

  std::uint64_t all_states() const;
  void add(const Counts& other);
};

// A state from which the wrong content was found, and where it comes from.
struct Loss {
  Trace trace;
  std::string recipe;  // of each depth, separated by '+'
  std::string what;
};

class Explorer {
 public:
  // Windows of at most `exhaustive_max` recipes are tried in full.
  Explorer(Recover recover, std::uint64_t exhaustive_max, unsigned seed, bool is_memory = false);

  // Tries about so many states, all of them of the moments from event `from` on.
  std::optional<Loss> explore(const Trace& trace, std::uint64_t states, std::size_t from = 0);
  // One state, as its recipe says.  What is wrong with it; empty: nothing.
  std::string replay(const Trace& trace, const std::string& recipe);
  // A state of a moment chosen by chance, rather one at which much is under way, and what is found
  // there, by volume.
  struct Cut {
    std::vector<StoredDisk> disks;
    std::vector<Content> found;
    std::string recipe;
    std::string wrong;  // empty: nothing; else nothing is found
  };
  Cut cut_somewhere(const Trace& trace);
  // Every operation of the recovery fails once, in each way; the next recovery mends it.
  std::optional<Loss> fail_recoveries(const std::vector<StoredDisk>& disks, bool can_mark,
                                      const std::vector<Content>& wanted);

  const Counts& counts() const { return counts_; }
  // States are told apart from all those since the last call.
  void forget_states();
  // What is being tried: for the case that it ends the process.
  const Trace* trace_in_hand() const { return path_.empty() ? nullptr : root_; }
  std::string recipe_in_hand() const;

 private:
  // What was found in a volume: the content's checksum, or an error.
  struct Found {
    std::uint64_t checksum = 0;
    std::string error;
  };
  Found recover_volume(const StoredDisk& disk, bool can_mark, Content* content);
  std::string judge(const Trace& trace, const DiskStates& states,
                    const std::vector<StoredDisk>& disks);
  std::string explain(const Trace& trace, const DiskStates& states, std::size_t volume,
                      const StoredDisk& disk);
  Trace record_recovery(const std::vector<StoredDisk>& disks, bool can_mark);
  bool explore_trace(const Trace& trace, double budget, std::size_t from, std::size_t depth);
  bool try_state(const Trace& trace, const DiskStates& states, const StateRecipe& recipe,
                 std::size_t depth, double& credit, double deeper_budget);

  const Recover recover_;
  const std::uint64_t exhaustive_max_;
  const bool is_memory_;
  Random random_;
  Counts counts_;
  std::unordered_map<std::uint64_t, Found> found_;  // by the checksum of a volume
  std::unordered_set<std::uint64_t> known_;         // states of all volumes
  const Trace* root_ = nullptr;
  std::vector<StateRecipe> path_;
  std::string what_;
};

}  // namespace pawl::test
