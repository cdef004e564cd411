// The table, the targets, and the file for scripts.
#pragma once

#include <string>
#include <vector>

#include "common/machine.h"
#include "stores/cases.h"
#include "stores/targets.h"

namespace pawl::bench {

void print_report(const Facts& machine, const Plan& plan, const Results& results,
                  const std::vector<Target>& targets);

// Throws std::runtime_error when the file cannot be written.
void write_json(const std::string& path, const Facts& machine, const Plan& plan,
                const Results& results, const std::vector<Target>& targets);

}  // namespace pawl::bench
