// What is measured, and how long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "snapshot/kinds.h"
#include "snapshot/rows.h"

namespace pawl::bench {

inline constexpr const char* kPartStructures = "structures";
inline constexpr const char* kPartInstrumentation = "instrumentation";
inline constexpr const char* kPartBlock = "block";
inline constexpr const char* kPartKyoto = "kyoto";

struct SnapshotPlan {
  std::string directory;             // on the disk
  std::string memory_directory;      // on tmpfs
  std::vector<std::string> systems;  // only these; none: all
  std::vector<Profile> profiles = all_profiles();
  std::vector<std::string> workloads;  // only these; none: all
  std::uint64_t items = 100'000;       // nodes or pairs of a structure at first
  std::uint32_t rounds = 20;
  std::uint32_t samples = 30;      // of a turn
  std::uint32_t samples_slow = 2;  // of a turn of a system that waits for a disk
  std::uint32_t instrumentation_rounds = 15;
  double block_seconds = 20;
  std::vector<std::uint64_t> block_bytes = {std::uint64_t{64} << 20, std::uint64_t{1} << 30,
                                            std::uint64_t{16} << 30};
  std::uint32_t kyoto_rounds = 7;
  std::uint32_t kyoto_commits = 40;  // of a turn
  std::uint64_t kyoto_records = 10'000;
  std::vector<std::uint32_t> kyoto_updates = {1, 2, 4, 8, 16, 32, 64, 128};
};

// Each throws std::runtime_error when a system fails, or a signal came.
void measure_structures(const SnapshotPlan& plan, SnapshotResults& results);
void measure_instrumentation(const SnapshotPlan& plan, SnapshotResults& results);
void measure_block(const SnapshotPlan& plan, SnapshotResults& results);
void measure_kyoto(const SnapshotPlan& plan, SnapshotResults& results);

}  // namespace pawl::bench
