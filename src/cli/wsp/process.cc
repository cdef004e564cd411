// pawl wsp run, save, restore, check, rehearse: one process that survives a power failure.
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/exit_codes.h"
#include "cli/program.h"
#include "cli/text.h"
#include "cli/wsp/operator.h"
#include "cli/wsp/options.h"
#include "cli/wsp/process_check.h"
#include "cli/wsp/verbs.h"
#include "wsp/process/control.h"
#include "wsp/process/kept_memory.h"
#include "wsp/process/process.h"
#include "wsp/process/records.h"
#include "wsp/process/restore.h"
#include "wsp/process/restore_rights.h"
#include "wsp/process/supervisor.h"
#include "wsp/process/time_space.h"

namespace pawl::cli {

namespace {

constexpr int kSignalExit = 128;  // as shells say it
constexpr const char* kDirectoryHelp = "Where memory and image are kept: on tmpfs, or XFS with DAX";

struct ProcessArguments {
  std::string directory;
  WspOptions wsp;
  bool json = false;
  int rehearsals = 100;
  int die_at_step = 0;
  bool discards = false;
};

int exit_code_of_wsp(const Status& status) {
  switch (status.error_number()) {
    case EBADMSG:
      return kExitDamaged;
    case ESTALE:
      return kExitForeign;
    case EALREADY:
    case ENODATA:
      return kExitMissing;
    case EBUSY:
      return kExitInUse;
    case ENOTEMPTY:
      return kExitSaveInTheWay;
    case EPROTONOSUPPORT:
      return kExitOtherVersion;
    default:
      return kExitFailure;
  }
}

// Of a program that did not start.
int exit_code_of_start(const Status& status) {
  const bool cannot_run = status.error_number() == ENOEXEC || status.error_number() == EACCES;
  return cannot_run ? kExitCannotRun : exit_code_of_wsp(status);
}

int refuse_wsp(const char* verb, const Status& status) {
  complain(verb, status.text());
  return exit_code_of_wsp(status);
}

void tell(const std::string& text) { tell_operator("wsp", text); }

// For tests: dies as if by the loss of power itself.
wsp::StepHook die_at(int step) {
  return [step](int now) {
    if (step == now) ::kill(::getpid(), SIGKILL);
  };
}

Result<wsp::SupervisorEars> open_ears(const wsp::KeptMemory& memory,
                                      const ProcessArguments& arguments) {
  return wsp::open_ears(memory.directory(),
                        {memory.directory().way_to("power"), arguments.wsp.serial_line,
                         arguments.directory + "/power"});
}

int watch_over(wsp::Process& process, wsp::SupervisorEars& ears, const char* verb,
               const ProcessArguments& arguments, bool dies_in_save) {
  Result<wsp::SupervisionEnding> ending =
      wsp::supervise(process, ears, arguments.wsp.window_ms * 1000, tell,
                     die_at(dies_in_save ? arguments.die_at_step : 0));
  if (!ending.ok()) return refuse_wsp(verb, ending.status());
  if (ending.value().was_saved) {
    const double took_us = ending.value().timing.total_us();
    tell_operator(verb,
                  fmt::format("saved in {:.2f} ms; go on with: pawl wsp restore {}", took_us / 1000,
                              shell_word(std::filesystem::absolute(arguments.directory).string())));
    if (took_us > arguments.wsp.window_ms * 1000)
      tell_operator(verb,
                    fmt::format("longer than the window of {:.2f} ms", arguments.wsp.window_ms));
    return kExitOk;
  }
  const wsp::ProgramEnding& program = ending.value().program;
  return program.signal != 0 ? kSignalExit + program.signal : program.exit_code;
}

// There is none; or what there is was restored, and ran on.
bool is_no_save(const Status& saved) {
  return saved.error_number() == ENODATA || saved.error_number() == EALREADY;
}

// What is no save has no value, and needs no room while the next program starts.
Result<bool> discard(const Status& opened, const wsp::KeptMemory& earlier) {
  return opened.error_number() == ENOENT ||
         (opened.ok() && is_no_save(wsp::read_saved(earlier).status()));
}

// A service starts with `run` at each boot: that must not lose what the failure before it saved. In
// the way is a valid save, and whatever is not known to be none.
Result<bool> refuse_to_lose(const Status& opened, const wsp::KeptMemory& earlier) {
  const std::string& directory = earlier.directory().path();
  const auto in_the_way = [&](const std::string& what) {
    return Status::failure(ENOTEMPTY,
                           fmt::format("{}: {}, or throw it away with --discard", directory, what));
  };
  if (opened.error_number() == ENOENT) return true;
  if (!opened.ok())
    return in_the_way("whether it holds a save cannot be told: " + opened.text() + "; mend that");
  const Status saved = wsp::read_saved(earlier).status();
  if (is_no_save(saved)) return true;
  if (!saved.ok())
    return in_the_way("a save is there that cannot be restored: " + saved.text() +
                      "; keep it for that");
  const Status found = wsp::check_restorable(earlier);
  if (found.ok()) return in_the_way("a valid save is there; restore it");
  return in_the_way("a valid save is there, which cannot be restored now: " + found.text() +
                    "; mend that");
}

bool is_own_directory(const std::string& path) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) &&
         facts.st_uid == ::geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Where only this user may write, in memory.  The variable may be another user's (su, sudo -E).
Result<std::string> own_default_directory(const std::string& program) {
  const std::string name = "/pawl-" + std::filesystem::path(program).filename().string();
  if (const char* const own = std::getenv("XDG_RUNTIME_DIR");
      own != nullptr && is_own_directory(own))
    return own + name;
  const std::string by_user = fmt::format("/run/user/{}", ::geteuid());
  if (is_own_directory(by_user)) return by_user + name;
  if (::geteuid() == 0) return "/run" + name;
  return Status::failure(ENOENT,
                         "there is no directory of your own in memory (XDG_RUNTIME_DIR names "
                         "none); name one with --directory, which is made: /dev/shm/NAME");
}

int run_process(ProcessArguments& arguments, const AfterDashes& after_dashes) {
  constexpr const char* kVerb = "wsp run";
  hold_standard_streams();
  if (!after_dashes || after_dashes->empty()) {
    complain(kVerb, "no program named; write: pawl wsp run [OPTIONS] -- PROGRAM ARGS...");
    return kExitUsage;
  }
  Result<std::string> path = find_program(after_dashes->front());
  if (!path.ok()) {
    complain(kVerb, path.status().text());
    return path.status().error_number() == ENOENT ? kExitNotFound : kExitCannotRun;
  }
  if (arguments.directory.empty()) {
    Result<std::string> own = own_default_directory(path.value());
    if (!own.ok()) return refuse_wsp(kVerb, own.status());
    arguments.directory = own.value();
  }
  Result<wsp::KeptMemory> memory =
      wsp::KeptMemory::create(arguments.directory, arguments.discards ? discard : refuse_to_lose);
  if (!memory.ok()) return refuse_wsp(kVerb, memory.status());
  Result<wsp::SupervisorEars> ears = open_ears(memory.value(), arguments);
  if (!ears.ok()) return refuse_wsp(kVerb, ears.status());
  Result<std::unique_ptr<wsp::Process>> process =
      wsp::Process::start(memory.value(), {path.value(), *after_dashes}, tell);
  if (!process.ok()) {
    complain(kVerb, process.status().text());
    return exit_code_of_start(process.status());
  }
  // What fails before costs no save.
  if (const Status placed = memory.value().take_place(); !placed.ok())
    return refuse_wsp(kVerb, placed);
  if (const Status rights = wsp::check_restore_rights(arguments.directory); !rights.ok())
    tell_operator(kVerb, "this user cannot restore what is saved: " + rights.text());
  if (const Status clocks = wsp::foresee_clocks(); !clocks.ok())
    tell_operator(kVerb, clocks.text());
  if (memory.value().is_mounted_noexec()) {
    tell_operator(kVerb,
                  fmt::format("{} is mounted noexec: the program may not execute memory that "
                              "it fills itself, as those do that compile at run time; name "
                              "another directory, or mount -o remount,exec",
                              arguments.directory));
  }
  return watch_over(*process.value(), ears.value(), kVerb, arguments, true);
}

int restore_process(const ProcessArguments& arguments, bool dies_in_save) {
  constexpr const char* kVerb = "wsp restore";
  hold_standard_streams();
  Result<wsp::KeptMemory> memory = wsp::KeptMemory::open(arguments.directory);
  if (!memory.ok()) return refuse_wsp(kVerb, memory.status());
  Result<wsp::SupervisorEars> ears = open_ears(memory.value(), arguments);
  if (!ears.ok()) return refuse_wsp(kVerb, ears.status());
  Result<std::unique_ptr<wsp::Process>> process =
      wsp::restore(memory.value(), tell, die_at(dies_in_save ? 0 : arguments.die_at_step));
  if (!process.ok()) return refuse_wsp(kVerb, process.status());
  return watch_over(*process.value(), ears.value(), kVerb, arguments, dies_in_save);
}

// The supervisor may be another user's, and say anything.
Status broken_answer() { return Status::failure(EPROTO, "the supervisor's answer is broken"); }

Result<Json> ask(const std::string& directory, const std::string& command, int wait_ms) {
  Result<std::string> answer = wsp::command_supervisor(directory, command, wait_ms);
  if (!answer.ok()) return answer.status();
  Json parsed = Json::parse(answer.value(), nullptr, false);
  if (!parsed.is_object()) return broken_answer();
  const auto reason = parsed.find("reason");
  if (reason == parsed.end()) return parsed;
  if (!reason->is_string()) return broken_answer();
  return Status::failure(ECANCELED, reason->get<std::string>());
}

// What rehearse_process() is answered.
Result<wsp::Rehearsals> rehearsals_in(const Json& answer) {
  wsp::Rehearsals rehearsals;
  try {
    for (const Json& one : answer.at("rehearsals")) {
      wsp::SaveTiming timing;
      for (const Json& step : one) {
        timing.steps.push_back(
            {printable(step.at("name").get<std::string>()), step.at("took_us").get<double>()});
        if (timing.steps.size() > wsp::kSaveStepsMax) return broken_answer();
      }
      if (timing.steps.empty()) return broken_answer();
      rehearsals.add(std::move(timing));
    }
  } catch (const Json::exception&) {
    return broken_answer();
  }
  return rehearsals;
}

int save_process(const ProcessArguments& arguments) {
  const Result<Json> answer = ask(arguments.directory, "save", kSaveAnswerMsMax);
  if (!answer.ok()) return refuse_wsp("wsp save", answer.status());
  const auto took_us = answer.value().find("took_us");
  if (took_us == answer.value().end() || !took_us->is_number())
    return refuse_wsp("wsp save", broken_answer());
  fmt::print("saved in {:.2f} ms\n", took_us->get<double>() / 1000);
  return kExitOk;
}

int rehearse_process(const ProcessArguments& arguments) {
  const Result<Json> answer = ask(
      arguments.directory, fmt::format("rehearse {}", arguments.rehearsals), kRehearsalAnswerMsMax);
  if (!answer.ok()) return refuse_wsp("wsp rehearse", answer.status());
  const Result<wsp::Rehearsals> rehearsals = rehearsals_in(answer.value());
  if (!rehearsals.ok()) return refuse_wsp("wsp rehearse", rehearsals.status());
  const wsp::BudgetFindings found = rehearsals.value().judge(arguments.wsp.window_ms * 1000);
  if (arguments.json) {
    print_json(as_json(found));
  } else {
    print_budget(found);
  }
  return found.holds ? kExitOk : kExitWindowTooShort;
}

void add_directory(CLI::App& verb, ProcessArguments& arguments) {
  verb.add_option("DIR", arguments.directory, kDirectoryHelp)->required();
}

void add_die_at_step(CLI::App& verb, const char* name, ProcessArguments& arguments) {
  verb.add_option(name, arguments.die_at_step)->group("");
}

}  // namespace

void add_wsp_process(CLI::App& wsp, int& exit_code, const AfterDashes& after_dashes) {
  auto arguments = std::make_shared<ProcessArguments>();
  CLI::App* run = wsp.add_subcommand("run", "Run a program that survives a power failure");
  run->add_option("--directory", arguments->directory, kDirectoryHelp)->type_name("DIR");
  add_wsp_options(*run, arguments->wsp);
  run->add_flag("--discard", arguments->discards, "Start even if a valid save would be lost");
  add_die_at_step(*run, "--die-at-save-step", *arguments);
  run->footer(
      "Example:\n  pawl wsp run --directory /dev/shm/cache -- memcached -u memcache -m 4096\n\n"
      "The exit code is the program's, or 128 and the number of the signal that ended it; 0 after "
      "a\n"
      "save. Before it runs: 1 failed, 2 bad arguments, 11 a valid save is in the way, 7 a "
      "program\n"
      "runs in DIR, 126 the program cannot be run, 127 there is none.");
  run->callback([arguments, &after_dashes, &exit_code] {
    exit_code = run_process(*arguments, after_dashes);
  });

  CLI::App* restore = wsp.add_subcommand("restore", "Let a program go on that was saved");
  add_directory(*restore, *arguments);
  add_wsp_options(*restore, arguments->wsp);
  add_die_at_step(*restore, "--die-at-restore-step", *arguments);
  auto dies_in_save = std::make_shared<int>(0);
  restore->add_option("--die-at-save-step", *dies_in_save)->group("");
  restore->callback([arguments, dies_in_save, &exit_code] {
    if (*dies_in_save != 0) arguments->die_at_step = *dies_in_save;
    exit_code = restore_process(*arguments, *dies_in_save != 0);
  });

  CLI::App* save = wsp.add_subcommand("save", "Save a running program now, and end it");
  add_directory(*save, *arguments);
  save->callback([arguments, &exit_code] { exit_code = save_process(*arguments); });

  CLI::App* rehearse = wsp.add_subcommand(
      "rehearse", "Do a save's work without ending the program, and judge the time it takes");
  add_directory(*rehearse, *arguments);
  rehearse->add_option("N", arguments->rehearsals, "How often")
      ->check(number_from_to(1, wsp::kRehearsalsMax))
      ->capture_default_str();
  add_window_option(*rehearse, arguments->wsp.window_ms);
  rehearse->add_flag("--json", arguments->json, "Answer in JSON");
  rehearse->callback([arguments, &exit_code] { exit_code = rehearse_process(*arguments); });

  add_wsp_process_check(wsp, exit_code, after_dashes);
}

}  // namespace pawl::cli
