// The table, the targets, and the file for scripts.
#pragma once

#include <string>

#include "common/machine.h"
#include "msync/cases.h"
#include "msync/targets.h"

namespace pawl::bench {

void print_report(const Facts& machine, const Results& results, const std::vector<Target>& targets);

// Throws std::runtime_error when the file cannot be written.
void write_json(const std::string& path, const Facts& machine, const Results& results,
                const std::vector<Target>& targets);

}  // namespace pawl::bench
