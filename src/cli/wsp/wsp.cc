// pawl wsp: whole-system persistence, of a process or of a machine.
#include "cli/wsp/verbs.h"

namespace pawl::cli {

namespace {

constexpr const char* kFooter =
    "run and restore of a program otherwise answer with its own exit code.\n\n"
    "Examples:\n"
    "  pawl wsp run --directory /dev/shm/cache -- memcached -u memcache -m 4096\n"
    "  pawl wsp restore /dev/shm/cache\n"
    "  pawl wsp vm run /mnt/pmem/shop --memory 4G --disk shop.img -- -nodefaults -nographic\n"
    "pawl-wsp-run(1) and pawl-wsp-vm(1) tell more.";

}  // namespace

void add_wsp(CLI::App& app, int& exit_code, const AfterDashes& after_dashes) {
  CLI::App* wsp = app.add_subcommand(
      "wsp", "Keep a whole process or machine through a power failure, saved when it happens");
  wsp->require_subcommand(1);
  wsp->footer(exit_codes_text() +
              kFooter);  // and that of all verbs below, which have none of their own
  add_wsp_process(*wsp, exit_code, after_dashes);
  add_wsp_vm(*wsp, exit_code, after_dashes);
}

}  // namespace pawl::cli
