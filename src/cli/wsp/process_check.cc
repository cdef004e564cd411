#include "cli/wsp/process_check.h"

#include <fmt/core.h>

#include <cerrno>
#include <memory>

#include "cli/exit_codes.h"
#include "cli/program.h"
#include "cli/text.h"
#include "wsp/process/kept_memory.h"
#include "wsp/process/refusals.h"
#include "wsp/process/restore.h"

namespace pawl::cli {

namespace {

int check_saved(const std::string& directory) {
  Result<wsp::KeptMemory> memory = wsp::KeptMemory::open(directory);
  if (!memory.ok()) {
    complain("wsp check", memory.status().text());
    return memory.status().error_number() == EBUSY ? kExitInUse : kExitFailure;
  }
  const Status found = wsp::check_restorable(memory.value());
  if (found.ok()) {
    fmt::print("{}: saved, and can be restored\n", directory);
    return kExitOk;
  }
  fmt::print("{}: cannot be restored: {}\n", directory, found.text());
  return kExitUnsafe;
}

void print_refusals() {
  for (const wsp::Refusal& refusal : wsp::refusals())
    fmt::print("{:24} {}\n", refusal.name, refusal.reason);
}

}  // namespace

void add_wsp_process_check(CLI::App& wsp, int& exit_code, const AfterDashes& after_dashes) {
  (void)after_dashes;
  CLI::App* check = wsp.add_subcommand("check", "Say whether a saved program can be restored");
  auto directory = std::make_shared<std::string>();
  auto lists = std::make_shared<bool>(false);
  check->add_option("DIR", *directory, "Where the program was kept");
  check->add_flag("--refused", *lists, "List the system calls that a kept program may not make");
  check->callback([directory, lists, &exit_code] {
    if (*lists) {
      print_refusals();
      return;
    }
    if (directory->empty()) {
      complain("wsp check", "name the directory of a program, or ask for --refused");
      exit_code = kExitUsage;
      return;
    }
    exit_code = check_saved(*directory);
  });
}

}  // namespace pawl::cli
