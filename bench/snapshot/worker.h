// The systems' processes.  They get turns, one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/process.h"
#include "snapshot/kinds.h"
#include "snapshot/structure.h"

namespace pawl::bench {

struct SnapshotTurn {
  std::uint32_t task = 0;  // of all_tasks()
  std::uint32_t samples = 0;
  std::uint32_t requests = 0;  // of a sample
};

struct SnapshotTurnResult {
  std::vector<double> times_us;  // of an operation, the mean of each sample
  double operations = 0;         // of all samples together
  double settle_us = 0;
  MediumUse use;  // by the turn
};

class SnapshotWorker {
 public:
  // Starts the process, which makes the structure and fills it with so many items.  Files are made
  // in `directory`, which is the worker's own.
  SnapshotWorker(const SnapshotKind& kind, const Profile& profile, Form form, std::uint64_t items,
                 const std::string& directory);

  const SnapshotKind& kind() const { return kind_; }
  const std::string& unavailable() const { return process_.unavailable(); }
  // Throws std::runtime_error when the process failed, or read what it should not.
  SnapshotTurnResult take(const SnapshotTurn& turn);

 private:
  const SnapshotKind& kind_;
  Process process_;
};

}  // namespace pawl::bench
