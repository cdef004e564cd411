// pawl wsp: whole-system persistence, of a process or of a machine.
#include "cli/wsp/verbs.h"

namespace pawl::cli {

void add_wsp(CLI::App& app, int& exit_code, const AfterDashes& after_dashes) {
  CLI::App* wsp = app.add_subcommand(
      "wsp", "Keep a whole process or machine through a power failure, saved when it happens");
  wsp->require_subcommand(1);
  add_wsp_process(*wsp, exit_code, after_dashes);
  add_wsp_vm(*wsp, exit_code, after_dashes);
}

}  // namespace pawl::cli
