#include "cli/wsp/process_check.h"

#include <fmt/core.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

#include "cli/exit_codes.h"
#include "cli/program.h"
#include "cli/text.h"
#include "wsp/process/kept_memory.h"
#include "wsp/process/refusals.h"
#include "wsp/process/restore.h"
#include "wsp/process/time_space.h"

namespace pawl::cli {

namespace {

int check_saved(const std::string& directory) {
  Result<wsp::KeptMemory> memory = wsp::KeptMemory::open(directory, wsp::KeptMemory::Use::to_look);
  if (!memory.ok()) {
    complain("wsp check", memory.status().text());
    return memory.status().error_number() == EBUSY ? kExitInUse : kExitFailure;
  }
  const Status found = wsp::check_restorable(memory.value());
  if (found.ok()) {
    const Status later = wsp::foresee_clocks();
    fmt::print("{}: saved, and can be restored{}\n", directory,
               later.ok() ? "" : "; " + later.text());
    return kExitOk;
  }
  fmt::print("{}: cannot be restored: {}\n", directory, found.text());
  return kExitUnsafe;
}

// What its file tells; what it will do is refused when it does it.
int check_program(const std::string& name) {
  Result<std::string> path = find_program(name);
  if (!path.ok()) {
    complain("wsp check", path.status().text());
    return path.status().error_number() == ENOENT ? kExitNotFound : kExitCannotRun;
  }
  if (const std::string shell = shell_of(path.value()); !shell.empty()) {
    fmt::print(
        "{}: cannot be kept, unless all it does is to 'exec' a program: it is a script of {}, "
        "which forks for each command, and fork is refused\n",
        path.value(), shell);
    return kExitUnsafe;
  }
  const Preloadability found = preloadability_of(path.value());
  // The memory of a static program is kept as that of any other.
  if (found.obstacle == Obstacle::none || found.obstacle == Obstacle::static_linking) {
    fmt::print("{}: can be kept, unless it makes one of the calls of 'pawl wsp check --refused'\n",
               path.value());
    return kExitOk;
  }
  fmt::print("{}: cannot be kept: {}\n", path.value(),
             found.obstacle == Obstacle::privileges
                 ? "it gains privileges when it is executed; start it as the user that it becomes"
                 : found.status.text());
  return kExitUnsafe;
}

void print_refusals() {
  std::string_view before;  // one call may have several rules
  for (const wsp::RefusedCall& refusal : wsp::refusals()) {
    if (refusal.name != before) fmt::print("{:35} {}\n", refusal.name, refusal.reason);
    before = refusal.name;
  }
}

}  // namespace

void add_wsp_process_check(CLI::App& wsp, int& exit_code, const AfterDashes& after_dashes) {
  CLI::App* check = wsp.add_subcommand(
      "check", "Say whether a saved program can be restored, or a program be kept");
  auto directory = std::make_shared<std::string>();
  auto lists = std::make_shared<bool>(false);
  check->add_option("DIR", *directory, "Where the program was kept");
  check->add_flag("--refused", *lists, "List the system calls that a kept program may not make");
  check->footer("Examples:\n  pawl wsp check /dev/shm/cache\n  pawl wsp check -- memcached");
  check->callback([directory, lists, &after_dashes, &exit_code] {
    if (*lists) {
      print_refusals();
      return;
    }
    if (after_dashes && !after_dashes->empty()) {
      exit_code = check_program(after_dashes->front());
      return;
    }
    if (directory->empty()) {
      complain("wsp check", "name a directory, or a program behind '--', or ask for --refused");
      exit_code = kExitUsage;
      return;
    }
    exit_code = check_saved(*directory);
  });
}

}  // namespace pawl::cli
