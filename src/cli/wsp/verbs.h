// The two forms of `pawl wsp`: each adds its verbs under it.
#pragma once

#include "cli/verbs.h"

namespace pawl::cli {

void add_wsp_process(CLI::App& wsp, int& exit_code, const AfterDashes& after_dashes);
void add_wsp_vm(CLI::App& wsp, int& exit_code, const AfterDashes& after_dashes);

}  // namespace pawl::cli
