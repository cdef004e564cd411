// What the durability on-fail would need in a directory, and give there.
#pragma once

#include <string>

#include "cli/directory_findings.h"

namespace pawl::cli {

// Writes some MiB to a file without a name, to measure how fast the disk flushes.
Findings examine_on_fail(const std::string& directory);

}  // namespace pawl::cli
