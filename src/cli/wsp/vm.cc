// pawl wsp vm: a machine that is saved when the power fails, by QEMU.
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "cli/exit_codes.h"
#include "cli/text.h"
#include "cli/wsp/operator.h"
#include "cli/wsp/verbs.h"
#include "cli/wsp/vm_arguments.h"
#include "wsp/budget/save_budget.h"
#include "wsp/vm/control.h"
#include "wsp/vm/steps.h"
#include "wsp/vm/supervisor.h"

namespace pawl::cli {

namespace {

int refuse_vm(const char* verb, const Status& failure) {
  complain(verb, failure.text());
  return exit_code_of_vm_failure(failure);
}

int run_vm(const char* verb, const VmArguments& arguments, wsp::vm::RunOptions options) {
  hold_standard_streams();
  Result<wsp::vm::MachineDirectory> directory = wsp::vm::MachineDirectory::open(
      arguments.directory, options.beginning != wsp::vm::Beginning::kRestore);
  if (!directory.ok()) return refuse_vm(verb, directory.status());
  options.trusts_memory = arguments.trusts_memory;
  options.rehearsals = arguments.rehearsals;
  options.fails_at_step = arguments.fails_at_step;
  options.tell = [verb](const std::string& sentence) { tell_operator(verb, sentence); };
  const Result<wsp::vm::Ending> ending = wsp::vm::run_machine(directory.value(), options);
  if (!ending.ok()) return refuse_vm(verb, ending.status());
  switch (ending.value().what) {
    case wsp::vm::Ending::What::kSaved:
      return kExitOk;
    case wsp::vm::Ending::What::kGuestEnded:
      tell_operator(verb, ending.value().reason);
      return kExitOk;
    case wsp::vm::Ending::What::kQemuFailed:
      tell_operator(verb, ending.value().reason);
      return kExitFailure;
    case wsp::vm::Ending::What::kSaveInTheWay:
      tell_operator(verb, ending.value().reason);
      return kExitSaveInTheWay;
    case wsp::vm::Ending::What::kRefused:
      tell_operator(verb, fmt::format("refused: {}: {}", wsp::vm::name_of(ending.value().refusal),
                                      ending.value().reason));
      return exit_code_of_refusal(ending.value().refusal);
  }
  return kExitFailure;
}

int run_cold(const VmArguments& arguments, const AfterDashes& after_dashes) {
  Result<wsp::vm::MachineDescription> machine = machine_of(arguments, after_dashes);
  if (!machine.ok()) return refuse_vm("wsp vm run", machine.status());
  wsp::vm::RunOptions options;
  options.beginning =
      arguments.discards ? wsp::vm::Beginning::kDiscardAndBoot : wsp::vm::Beginning::kBoot;
  options.description = std::move(machine.value());
  return run_vm("wsp vm run", arguments, std::move(options));
}

int run_restored(const VmArguments& arguments, const AfterDashes& after_dashes) {
  wsp::vm::RunOptions options;
  options.beginning =
      arguments.or_boots ? wsp::vm::Beginning::kRestoreOrBoot : wsp::vm::Beginning::kRestore;
  // Without options of QEMU's the machine is the one that the directory knows.
  if (after_dashes.has_value()) {
    Result<wsp::vm::MachineDescription> machine = machine_of(arguments, after_dashes);
    if (!machine.ok()) return refuse_vm("wsp vm restore", machine.status());
    options.description = std::move(machine.value());
  }
  return run_vm("wsp vm restore", arguments, std::move(options));
}

int ask_vm(const char* verb, const VmArguments& arguments, const wsp::vm::ControlRequest& request) {
  const Result<wsp::vm::MachineDirectory> directory =
      wsp::vm::MachineDirectory::open(arguments.directory, false);
  if (!directory.ok()) return refuse_vm(verb, directory.status());
  const bool saves = request.what == wsp::vm::ControlRequest::What::kSave;
  const Status asked = wsp::vm::ask_machine(directory.value(), request,
                                            saves ? kSaveAnswerMsMax : kRehearsalAnswerMsMax);
  if (!asked.ok()) return refuse_vm(verb, asked);
  return kExitOk;
}

int rehearse_vm(const VmArguments& arguments) {
  const int code = ask_vm("wsp vm rehearse", arguments,
                          {wsp::vm::ControlRequest::What::kRehearse, arguments.rehearsals});
  return code == kExitOk ? vm_status(arguments) : code;
}

using SharedArguments = std::shared_ptr<VmArguments>;

// For tests, which have everything fail at a step of a save or a restore; docs/wsp-vm.md lists
// them.
void add_failure_option(CLI::App& verb, VmArguments& arguments) {
  verb.add_option("--fail-at-step", arguments.fails_at_step)
      ->check([](const std::string& text) {
        char* end = nullptr;
        const long number = std::strtol(text.c_str(), &end, 10);
        const bool is_step = !text.empty() && *end == '\0' && number >= 0 && number <= 99 &&
                             wsp::vm::is_step(static_cast<int>(number));
        return is_step ? std::string()
                       : "--fail-at-step " + text +
                             " is no step: a save has 1 to 9, a restore 21 to 27";
      })
      ->group("");
}

SharedArguments add_vm_verb(CLI::App& vm, CLI::App*& verb, const char* name, const char* what) {
  auto arguments = std::make_shared<VmArguments>();
  verb = vm.add_subcommand(name, what);
  verb->add_option("DIR", arguments->directory, "The machine's directory")->required();
  return arguments;
}

void add_run_verb(CLI::App& vm, int& exit_code, const AfterDashes& after_dashes) {
  CLI::App* verb = nullptr;
  const SharedArguments arguments =
      add_vm_verb(vm, verb, "run", "Boot a machine, and save it when the power fails");
  add_machine_options(*verb, *arguments);
  verb->add_flag("--discard", arguments->discards, "Boot even if a save would be lost");
  verb->add_option("--rehearse", arguments->rehearsals, "Rehearse a save N times at the beginning")
      ->check(number_from_to(0, wsp::kRehearsalsMax))
      ->type_name("N");
  add_failure_option(*verb, *arguments);
  verb->footer(
      "Write: pawl wsp vm run DIR [OPTIONS] -- QEMU'S OPTIONS\n\n"
      "Example:\n  pawl wsp vm run /mnt/pmem/shop --memory 4G --disk shop.img -- -nodefaults \\\n"
      "    -nographic -serial mon:stdio\n"
      "Ends when the guest is switched off, or saved: by SIGPWR, a line \"failing\" in DIR/power,\n"
      "an 'F' on the serial line, SIGTERM, or 'pawl wsp vm save'.\n"
      "Exit codes: 0 saved, or switched off; 11 a save is there; 7 it runs already; 9 the\n"
      "machine cannot be saved; 2 bad options; 1 anything else.");
  verb->callback(
      [arguments, after_dashes, &exit_code] { exit_code = run_cold(*arguments, after_dashes); });
}

void add_restore_verb(CLI::App& vm, int& exit_code, const AfterDashes& after_dashes) {
  CLI::App* verb = nullptr;
  const SharedArguments arguments = add_vm_verb(
      vm, verb, "restore", "Let a saved machine run on, and save it when the power fails again");
  add_machine_options(*verb, *arguments);
  verb->add_flag("--or-boot", arguments->or_boots, "Boot cold where the save is refused");
  verb->add_flag("--trust-memory", arguments->trusts_memory,
                 "Somebody read DIR/memory since the save, and did not write it");
  add_failure_option(*verb, *arguments);
  verb->footer(
      "Write: pawl wsp vm restore DIR [OPTIONS] [-- QEMU'S OPTIONS]\n\n"
      "Example, of a service that starts with the host:\n"
      "  pawl wsp vm restore /mnt/pmem/shop --or-boot --memory 4G --disk shop.img -- -nodefaults\n"
      "Without '--' the machine is the one that DIR knows.\n"
      "Exit codes: as of 'run'; a refused save: 6 none, or half a one; 4 damaged; 5 of another\n"
      "machine, generation, memory or disk; 8 of a newer Pawl.");
  verb->callback([arguments, after_dashes, &exit_code] {
    exit_code = run_restored(*arguments, after_dashes);
  });
}

void add_asking_verbs(CLI::App& vm, int& exit_code) {
  CLI::App* verb = nullptr;
  const SharedArguments of_save =
      add_vm_verb(vm, verb, "save", "Save a running machine now, and end it");
  verb->callback([of_save, &exit_code] {
    exit_code = ask_vm("wsp vm save", *of_save, {wsp::vm::ControlRequest::What::kSave, 1});
  });

  const SharedArguments of_rehearse = add_vm_verb(
      vm, verb, "rehearse", "Save a running machine N times, and let it run on each time");
  of_rehearse->rehearsals = 100;
  verb->add_option("N", of_rehearse->rehearsals, "How often")
      ->check(number_from_to(1, wsp::kRehearsalsMax))
      ->capture_default_str();
  add_window_option(*verb, of_rehearse->watching.window_ms);
  CLI::Option* window = verb->get_option("--window-ms");
  window->default_str("the machine's");
  verb->add_flag("--json", of_rehearse->as_json, "Answer in JSON");
  verb->footer(
      "Exit codes: 0 saves fit into the window (the machine's, or the one that is named here, by\n"
      "which it is only judged now); 12 they take longer; 1 anything else.");
  verb->callback([of_rehearse, window, &exit_code] {
    if (window->count() > 0) of_rehearse->judged_window_ms = of_rehearse->watching.window_ms;
    exit_code = rehearse_vm(*of_rehearse);
  });

  const SharedArguments of_status = add_vm_verb(
      vm, verb, "status", "Does it run, is a save valid, and does a save fit into the window?");
  verb->add_flag("--json", of_status->as_json, "Answer in JSON");
  verb->footer(
      "Exit codes: 0 it runs, 11 a valid save is there, 12 it runs and its saves take longer than\n"
      "the window; where there is no valid save, as of 'restore'.");
  verb->callback([of_status, &exit_code] { exit_code = vm_status(*of_status); });
}

void add_check_verb(CLI::App& vm, int& exit_code, const AfterDashes& after_dashes) {
  CLI::App* verb = nullptr;
  const SharedArguments arguments = add_vm_verb(
      vm, verb, "check", "Can a machine with these options be saved here, and would it last?");
  add_machine_options(*verb, *arguments);
  verb->add_flag("--json", arguments->as_json, "Answer in JSON");
  verb->footer(
      "Write: pawl wsp vm check DIR [OPTIONS] -- QEMU'S OPTIONS\n\n"
      "DIR is the directory of a machine, or the one in which it would be. Starts QEMU, and does\n"
      "not let the guest run. Exit codes: 0 it can; 9 it cannot, or not everything would last.");
  verb->callback(
      [arguments, after_dashes, &exit_code] { exit_code = vm_check(*arguments, after_dashes); });
}

}  // namespace

void add_wsp_vm(CLI::App& wsp, int& exit_code, const AfterDashes& after_dashes) {
  CLI::App* vm = wsp.add_subcommand("vm", "A machine of QEMU's");
  vm->require_subcommand(1);
  add_run_verb(*vm, exit_code, after_dashes);
  add_restore_verb(*vm, exit_code, after_dashes);
  add_asking_verbs(*vm, exit_code);
  add_check_verb(*vm, exit_code, after_dashes);
}

}  // namespace pawl::cli
