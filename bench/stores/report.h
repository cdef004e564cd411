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

// Measures the cases, judges, prints, and writes the file.  `results` has what was skipped already.
void measure_and_report(const Plan& plan, const std::vector<std::string>& cases, Results results,
                        const std::string& json);

}  // namespace pawl::bench
