// What was measured, in rows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "snapshot/worker.h"

namespace pawl::bench {

// Of one operation; each sample is the mean of a few.
struct SnapshotRow {
  std::string workload;
  std::string profile;
  std::string system;
  std::string operation;
  bool writes = false;
  std::uint64_t samples = 0;
  double operations_of_sample = 0;
  double median_us = 0;
  double p99_us = 0;
  double mean_us = 0;
  double settle_us = 0;  // after turns, until nothing was left to do in the background
  double lines = 0;      // written back, by libpmemobj
  double fences = 0;
  double logged_bytes = 0;  // by Pawl
};

// A program that was compiled plainly, and with marks; times of one run.
struct InstrumentationRow {
  std::string program;
  std::uint64_t samples = 0;
  double plain_us = 0;  // medians
  double marked_us = 0;
};

// A commit of one line on a block file.
struct BlockRow {
  std::string system;
  std::uint64_t mapping_bytes = 0;
  std::uint64_t samples = 0;
  double median_us = 0;
  double p99_us = 0;
};

// A commit of so many updates of Kyoto Cabinet.
struct KyotoRow {
  std::string system;
  std::uint32_t updates = 0;
  std::uint64_t samples = 0;
  double median_us = 0;
  double p99_us = 0;
};

struct SnapshotResults {
  std::vector<SnapshotRow> rows;
  std::vector<InstrumentationRow> instrumentation;
  std::vector<BlockRow> block;
  std::vector<KyotoRow> kyoto;
  std::map<std::string, std::string> skipped;  // what, and why
};

// Null when there is none.
const SnapshotRow* find(const std::vector<SnapshotRow>& rows, const std::string& workload,
                        const std::string& operation, const std::string& profile,
                        const std::string& system);
const BlockRow* find(const std::vector<BlockRow>& rows, const std::string& system,
                     std::uint64_t mapping_bytes);

}  // namespace pawl::bench
