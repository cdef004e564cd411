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

#include "fase/crash/expectation.h"
#include "fase/crash/memory_states.h"

namespace pawl::test {

inline constexpr std::size_t kDepthMax = 3;

struct Life {
  const Subject* subject = nullptr;
  // By thread, in order.
  std::vector<std::vector<Operation>> operations;
};

// How far the threads are at a moment of a trace.
class Progress {
 public:
  explicit Progress(const Life& life) : attempts(life.operations.size()), life_(life) {}
  void pass(const MemoryEvent& event);

  std::vector<std::vector<Attempt>> attempts;

 private:
  const Life& life_;
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
  static std::string judge(const Found& found, const Subject& subject, const Progress& progress);

  const std::string directory_;
  const std::uint64_t exhaustive_max_;
  Random random_;
  Counts counts_;
};

}  // namespace pawl::test
