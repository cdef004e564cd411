// Looks for a state of the file from which the wrong content is recovered: builds the states of
// every moment of a trace, recovers each in a process of its own, and compares what is found there
// with what the operations that were acknowledged, and those under way, leave.  Records some of the
// recoveries, and does the same with their traces.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fase/crash/memory_states.h"
#include "fase/crash/subjects.h"

namespace pawl::test {

inline constexpr std::size_t kDepthMax = 3;

struct Life {
  const Subject* subject = nullptr;
  // In the order in which they took effect; of these an operation of number n is the n-th.
  std::vector<Operation> operations;
};

// How far the operations are at a moment of a trace.
struct Progress {
  std::uint64_t begun = 0;               // operations below this number may have happened
  std::vector<std::uint64_t> under_way;  // of these, those that were not acknowledged yet

  void pass(const MemoryEvent& event);
};

struct Found {
  bool is_recovered = false;
  std::string error;  // when it is not
  Contents contents;
};

struct Counts {
  std::array<std::uint64_t, kDepthMax> states{};  // by depth: of runs, of recoveries, ...
  std::uint64_t moments = 0;
  std::uint64_t moments_exhausted = 0;
};

class Explorer {
 public:
  // `directory` is of persistent memory, for files of its own.
  Explorer(std::string directory, std::uint64_t exhaustive_max, unsigned seed);

  // Tries at most about so many states of the trace, and of the recoveries from them.  What was
  // wrong, with the state; nothing when all was well.
  std::optional<std::string> explore(const MemoryTrace& trace, const Life& life,
                                     std::uint64_t states);
  const Counts& counts() const { return counts_; }

 private:
  std::optional<std::string> explore_depth(const MemoryTrace& trace, const Life& life,
                                           std::uint64_t states, std::size_t depth,
                                           Progress progress);
  static Found recover(const std::string& path, const Subject& subject,
                       const std::string& trace_path);
  static std::string judge(const Found& found, const Life& life, const Progress& progress);

  const std::string directory_;
  const std::uint64_t exhaustive_max_;
  Random random_;
  Counts counts_;
};

}  // namespace pawl::test
