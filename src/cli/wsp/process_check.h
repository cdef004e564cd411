// pawl wsp check: what stands in the way of keeping a program, or of restoring a saved one.
#pragma once

#include "cli/verbs.h"

namespace pawl::cli {

void add_wsp_process_check(CLI::App& wsp, int& exit_code, const AfterDashes& after_dashes);

}  // namespace pawl::cli
