// What the verbs of `pawl wsp vm` take, and how a machine is made of it.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "cli/wsp/options.h"
#include "medium/status.h"
#include "wsp/vm/description.h"
#include "wsp/vm/judgement.h"

namespace pawl::cli {

struct VmArguments {
  std::string directory;
  std::string memory = "1G";
  std::string qemu = "qemu-system-x86_64";
  std::vector<std::string> disks;
  std::uint32_t disk_requests = 0;  // 0: as many as the window allows
  WspOptions watching;
  std::optional<double> judged_window_ms;  // in place of the machine's, by `rehearse`
  bool discards = false;
  bool or_boots = false;
  bool trusts_memory = false;
  bool as_json = false;
  std::uint64_t rehearsals = 0;
  int fails_at_step = 0;
};

// --memory, --qemu, --disk, --disk-requests and those of watching: the machine.
void add_machine_options(CLI::App& verb, VmArguments& arguments);

// EINVAL where something cannot be.
Result<wsp::vm::MachineDescription> machine_of(const VmArguments& arguments,
                                               const AfterDashes& after_dashes);

int exit_code_of_refusal(wsp::vm::Refusal refusal);
int exit_code_of_vm_failure(const Status& failure);

// One verb each.
int vm_status(const VmArguments& arguments);
int vm_check(const VmArguments& arguments, const AfterDashes& after_dashes);

}  // namespace pawl::cli
