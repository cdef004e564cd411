// The tables, the targets, and the file for scripts.
#pragma once

#include <string>
#include <vector>

#include "common/machine.h"
#include "common/report.h"
#include "snapshot/cases.h"

namespace pawl::bench {

void print_report(const Facts& machine, const SnapshotPlan& plan, const SnapshotResults& results,
                  const std::vector<Target>& targets);

// Throws std::runtime_error when the file cannot be written.
void write_json(const std::string& path, const Facts& machine, const SnapshotPlan& plan,
                const SnapshotResults& results, const std::vector<Target>& targets);

}  // namespace pawl::bench
