// What a file may hold after a crash: known from what its writer acknowledged, and from nothing
// that the file, its journal or Pawl could say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workload/script.h"

namespace pawl::test {

// A writer that found `start`, took the steps of `seed`, and was heard to have begun and to have
// acknowledged so many commits.
struct WriterHistory {
  Content start;
  std::uint64_t seed = 0;
  std::uint64_t begun = 0;
  std::uint64_t acknowledged = 0;
};

class Oracle {
 public:
  Oracle(const Workload& workload, WriterHistory history);
  Oracle(const Workload& workload, Content start) : Oracle(workload, {std::move(start), 0, 0, 0}) {}

  // Nothing when this may be found; else what is wrong.  What was found once must be found again,
  // until another writer has been at it.
  std::optional<std::string> find(const Content& found);
  std::optional<std::string> find_checksum(std::uint64_t found);

  // A writer was at it, and is gone.  What it found is known already.
  void writer_was(std::uint64_t seed, std::uint64_t begun, std::uint64_t acknowledged);

  const WriterHistory& history() const { return history_; }
  const Workload& workload() const { return workload_; }

 private:
  struct Possible {
    std::uint64_t commit;
    Content content;
  };
  void note_possible();
  void settle_on(std::size_t index);
  std::string complaint(const std::string& found,
                        const std::optional<std::uint64_t>& earlier) const;

  const Workload& workload_;
  WriterHistory history_;
  std::vector<Possible> possible_;
};

}  // namespace pawl::test
