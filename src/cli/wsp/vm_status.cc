// pawl wsp vm status: does it run, is a save valid, and does a save fit into the window?
#include <fmt/core.h>

#include <cerrno>

#include "cli/exit_codes.h"
#include "cli/text.h"
#include "cli/wsp/options.h"
#include "cli/wsp/vm_arguments.h"
#include "wsp/budget/save_budget.h"
#include "wsp/vm/directory.h"
#include "wsp/vm/judgement.h"
#include "wsp/vm/marker.h"

namespace pawl::cli {

namespace {

struct VmFacts {
  bool runs = false;
  wsp::vm::Judgement verdict;
  wsp::BudgetFindings budget;
};

Result<VmFacts> look_at_vm(const VmArguments& arguments) {
  const std::string& path = arguments.directory;
  Result<wsp::vm::MachineDirectory> directory = wsp::vm::MachineDirectory::open(path, false);
  if (!directory.ok()) return directory.status();
  VmFacts facts;
  const Result<bool> runs = directory.value().is_locked();
  if (!runs.ok()) return runs.status();
  facts.runs = runs.value();
  if (!facts.runs && !directory.value().has_machine())
    return Status::failure(ENOENT, "nothing was ever started from " + path);
  Result<wsp::vm::MarkerFile> marker = wsp::vm::MarkerFile::open_to_read(directory.value());
  if (!marker.ok()) return marker.status();
  Result<wsp::vm::Judgement> verdict = wsp::vm::judge(directory.value(), marker.value(), {});
  if (!verdict.ok()) return verdict.status();
  facts.verdict = std::move(verdict.value());
  Result<wsp::Rehearsals> rehearsals = wsp::Rehearsals::read(directory.value().files());
  if (!rehearsals.ok()) return rehearsals.status();
  const double machines_ms = facts.verdict.description.has_value()
                                 ? facts.verdict.description->window_ms
                                 : kWindowMsDefault;
  facts.budget = rehearsals.value().judge(arguments.judged_window_ms.value_or(machines_ms) * 1000);
  return facts;
}

const char* state_of_vm(const VmFacts& facts) {
  if (facts.runs) return "running";
  if (!facts.verdict.unseen.ok()) return "unknown";
  return facts.verdict.is_valid() ? "saved" : "not saved";
}

int exit_code_of_vm(const VmFacts& facts) {
  if (!facts.runs && !facts.verdict.unseen.ok()) return kExitFailure;
  if (!facts.runs)
    return facts.verdict.is_valid() ? kExitSaveInTheWay
                                    : exit_code_of_refusal(facts.verdict.refusal);
  return facts.budget.rehearsals > 0 && !facts.budget.holds ? kExitWindowTooShort : kExitOk;
}

void print_vm(const std::string& directory, const VmFacts& facts) {
  fmt::print("machine      {}\n", directory);
  fmt::print("state        {}\n", state_of_vm(facts));
  if (!facts.runs && !facts.verdict.unseen.ok())
    fmt::print("not seen     {}\n", facts.verdict.unseen.text());
  else if (!facts.runs && !facts.verdict.is_valid())
    fmt::print("refused      {}: {}\n", wsp::vm::name_of(facts.verdict.refusal),
               facts.verdict.reason);
  fmt::print("generation   {}\n", facts.verdict.marker.generation);
  if (!facts.runs && facts.verdict.is_valid()) {
    fmt::print("saved at     {}\n", time_text(facts.verdict.marker.saved_at_ns));
    fmt::print("device state {}\n", size_text(facts.verdict.marker.device_state_bytes));
  }
  if (facts.verdict.description.has_value())
    fmt::print("memory       {}\n", size_text(facts.verdict.description->memory_bytes));
  print_budget(facts.budget);
}

Json vm_as_json(const std::string& directory, const VmFacts& facts) {
  const bool refused = !facts.runs && facts.verdict.refusal != wsp::vm::Refusal::kNone;
  const std::string reason = refused      ? facts.verdict.reason
                             : facts.runs ? ""
                                          : facts.verdict.unseen.text();
  return {{"directory", directory},
          {"state", state_of_vm(facts)},
          {"refusal", refused ? Json(wsp::vm::name_of(facts.verdict.refusal)) : Json()},
          {"reason", reason.empty() ? Json() : Json(reason)},
          {"generation", facts.verdict.marker.generation},
          {"saved_at", time_text(facts.runs ? 0 : facts.verdict.marker.saved_at_ns)},
          {"device_state_bytes", facts.verdict.marker.device_state_bytes},
          {"budget", as_json(facts.budget)}};
}

int say_no_machine(const VmArguments& arguments, const std::string& reason) {
  if (arguments.as_json) {
    print_json({{"directory", arguments.directory},
                {"state", "no machine"},
                {"refusal", wsp::vm::name_of(wsp::vm::Refusal::kNoSave)},
                {"reason", reason}});
  } else {
    fmt::print("machine      {}\nstate        there is no machine: {}\n", arguments.directory,
               reason);
  }
  return exit_code_of_refusal(wsp::vm::Refusal::kNoSave);
}

}  // namespace

int vm_status(const VmArguments& arguments) {
  const Result<VmFacts> facts = look_at_vm(arguments);
  if (!facts.ok() && facts.status().error_number() == ENOENT)
    return say_no_machine(arguments, facts.status().text());
  if (!facts.ok()) {
    complain("wsp vm status", facts.status().text());
    return exit_code_of_vm_failure(facts.status());
  }
  if (arguments.as_json) {
    print_json(vm_as_json(arguments.directory, facts.value()));
  } else {
    print_vm(arguments.directory, facts.value());
  }
  return exit_code_of_vm(facts.value());
}

}  // namespace pawl::cli
