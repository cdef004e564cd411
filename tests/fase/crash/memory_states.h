// The states in which a loss of power may leave a direct mapping, at each moment of a trace.
//
// What was written back and fenced is there.  Of what was not, each word of the program for itself
// is there or not: a line may be evicted at any time, and in which order words of a line were
// stored is not known.  Words of the log are there up to some point in the order of their line.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "fase/crash/memory_trace.h"
#include "workload/random.h"

namespace pawl::test {

class MemoryStates {
 public:
  explicit MemoryStates(const MemoryTrace& trace)
      : trace_(trace), durable_(trace.at_first), now_(trace.at_first) {}

  // Goes past the next event; false at the trace's end.
  bool advance();
  std::size_t moment() const { return moment_; }

  // So many states are possible now, or more than `bound`.
  std::uint64_t count(std::uint64_t bound) const;
  // The state of that number, below count().
  std::vector<std::byte> state(std::uint64_t number) const;
  // One that chance chose: all, none, or some of what may be there.
  std::vector<std::byte> state(Random& random) const;
  // As the death of the process leaves it: all.
  const std::vector<std::byte>& memory() const { return now_; }

 private:
  struct Store {
    std::uint64_t offset;
    std::uint64_t value;
    bool is_log;
    std::vector<std::uint32_t> written_back_by;
  };
  using Line = std::vector<Store>;  // what is not durable, oldest first

  // What of a line is independent of the rest: a word's stores, or the log's in the line.
  struct Choice {
    std::vector<const Store*> stores;  // the first n of them are there
  };
  std::vector<Choice> choices() const;
  static void put(std::vector<std::byte>& into, const Store& store);

  const MemoryTrace& trace_;
  std::size_t moment_ = 0;
  std::vector<std::byte> durable_;
  std::vector<std::byte> now_;
  std::map<std::uint64_t, Line> pending_;
};

}  // namespace pawl::test
