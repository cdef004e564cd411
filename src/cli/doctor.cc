// pawl doctor [DIR]: what Pawl will do here, and what is unsafe about it.
// pawl doctor PROGRAM: whether its stores are marked, for the store tracker.
// pawl doctor -- COMMAND: whether the preload face can protect the files of a program.
#include <fmt/core.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <system_error>
#include <vector>

#include "cli/directory_findings.h"
#include "cli/exit_codes.h"
#include "cli/file_system.h"
#include "cli/marks.h"
#include "cli/on_fail_findings.h"
#include "cli/program.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "track/tracker.h"
#ifdef PAWL_CAN_WATCH
#include "cli/watch/watch.h"
#endif

namespace pawl::cli {

namespace {

struct DoctorArguments {
  std::string directory = ".";
  bool json = false;
  std::vector<std::string> globs;  // with a command only
};

std::string number_in(const char* path) {
  std::ifstream file(path);
  std::string number;
  file >> number;
  return number.empty() ? "unknown" : number;
}

std::uint64_t kibibytes_in_meminfo(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name + ":")) continue;
    std::istringstream fields(line.substr(name.size() + 1));
    std::uint64_t value = 0;
    fields >> value;
    return value;
  }
  return 0;
}

void examine_kernel(Findings& findings) {
  struct utsname system{};
  const bool named = ::uname(&system) == 0;
  findings.push_back({"kernel", named ? fmt::format("{} {}", system.sysname, system.release)
                                      : std::string("unknown")});
  const TrackerSupport support = probe_trackers();
  findings.push_back({"scan", support.scan ? "available" : "not available",
                      support.scan ? Level::fine : Level::note, support.scan_reason});
  findings.push_back({"fault log", support.fault_log ? "available" : "not available",
                      support.fault_log ? Level::fine : Level::note,
                      support.fault_log
                          ? ""
                          : support.fault_log_reason +
                                "; without it a commit scans the whole mapping, which shows in "
                                "large ones"});
  findings.push_back({"fault", "available"});
  findings.push_back({"auto chooses", support.scan ? "scan" : "fault"});
}

void examine_memory(Findings& findings) {
  const std::uint64_t memory = kibibytes_in_meminfo("MemTotal") * 1024;
  const std::uint64_t swap = kibibytes_in_meminfo("SwapTotal") * 1024;
  findings.push_back({"memory", size_text(memory)});
  findings.push_back(
      {"swap", swap == 0 ? "none" : size_text(swap), swap == 0 ? Level::note : Level::fine,
       swap == 0 ? "uncommitted changes live in memory only: a transaction has to fit "
                   "into it"
                 : ""});
  const std::string maps = number_in("/proc/sys/vm/max_map_count");
  const bool few = maps != "unknown" && std::stoull(maps) < 65530;
  findings.push_back({"max_map_count", maps, few ? Level::note : Level::fine,
                      few ? "the fault tracker may split a mapping into many pieces; raise "
                            "vm.max_map_count to 65530 or more"
                          : ""});
}

Json as_json(const Findings& findings, const std::string& directory) {
  Json list = Json::array();
  bool safe = true;
  for (const Finding& finding : findings) {
    list.push_back({{"name", finding.name},
                    {"value", finding.value},
                    {"level", level_name(finding.level)},
                    {"why", finding.why}});
    safe = safe && finding.level != Level::unsafe;
  }
  return Json{{"directory", directory}, {"safe", safe}, {"findings", list}};
}

// A name that stands in them may be anybody's choice.
void print_text(const Findings& findings, const std::string& directory) {
  fmt::print("{}\n\n", printable(directory));
  for (const Finding& finding : findings) {
    fmt::print("{:<8} {:<14} {}\n", finding.level == Level::fine ? "" : level_name(finding.level),
               finding.name, printable(finding.value));
    if (!finding.why.empty()) fmt::print("{:<24}{}\n", "", printable(finding.why));
  }
}

bool store_is_chosen() {
  const char* const tracker = std::getenv("PAWL_TRACKER");
  return tracker != nullptr && std::string(tracker) == "store";
}

// As the program's first mapping with the tracker answers (check_stores_are_marked()).
Findings examine_marks(const Marks& marks) {
  Findings findings;
  findings.push_back({"marks", marks.found ? marks.marked : "none"});
  if (!marks.without.empty()) {
    findings.push_back(
        {"no marks", marks.without, Level::note,
         "what these store into a mapping the store tracker does not see; compile with pawl-clang "
         "those that do"});
  }
  if (!marks.not_read.empty()) {
    findings.push_back(
        {"not read", marks.not_read, Level::note, "whether these have marks is not known"});
  }
  const char* const without_marks =
      marks.not_read.empty() ? "refused, unless it opens a library with marks before it maps"
                             : "refused, unless a library that was not read has marks";
  findings.push_back({"store", marks.found ? "available" : without_marks,
                      marks.found         ? Level::fine
                      : store_is_chosen() ? Level::unsafe
                                          : Level::note,
                      marks.found ? ""
                                  : "nothing marks its stores, so each commit would be empty; "
                                    "compile with pawl-clang, or choose another tracker "
                                    "(PAWL_TRACKER=auto)"});
  return findings;
}

// The answer, of a program or a directory.
int answer(const Findings& findings, const std::string& subject, bool json) {
  bool safe = true;
  for (const Finding& finding : findings) safe = safe && finding.level != Level::unsafe;
  if (json) {
    print_json(as_json(findings, subject));
  } else {
    print_text(findings, subject);
    fmt::print("\n{}\n", safe ? "Nothing here is unsafe." : "Unsafe: see above.");
  }
  return safe ? kExitOk : kExitUnsafe;
}

int examine_program(const std::string& path, bool json) {
  const Result<Marks> marks = find_marks(path);
  if (!marks.ok()) {
    complain("doctor", marks.status().text());
    return kExitFailure;
  }
  return answer(examine_marks(marks.value()), path, json);
}

int doctor(const DoctorArguments& arguments) {
  // What cannot be looked at is no program, and look_at_directory() says why.
  std::error_code of_no_concern;
  if (std::filesystem::is_regular_file(arguments.directory, of_no_concern))
    return examine_program(arguments.directory, arguments.json);
  Result<FileSystemFacts> facts = look_at_directory(arguments.directory);
  if (!facts.ok()) {
    complain("doctor", facts.status().text());
    return kExitFailure;
  }
  Findings findings;
  examine_kernel(findings);
  examine_memory(findings);
  Findings of_directory = examine_directory(facts.value());
  findings.insert(findings.end(), of_directory.begin(), of_directory.end());
  const Findings of_battery = examine_on_fail(facts.value().directory);
  findings.insert(findings.end(), of_battery.begin(), of_battery.end());

  return answer(findings, facts.value().directory, arguments.json);
}

// Under 'pawl run' the program would be refused its first mapping.
[[maybe_unused]] bool is_refused_for_marks(const std::string& name) {
  if (!store_is_chosen()) return false;
  const Result<std::string> program = find_program(name);
  if (!program.ok()) return false;
  const Result<Marks> marks = find_marks(program.value());
  if (!marks.ok() || marks.value().found) return false;
  const std::string& not_read = marks.value().not_read;
  complain("doctor",
           "with PAWL_TRACKER=store every mapping is refused, for there are no marks in " +
               marks.value().without +
               (not_read.empty() ? "" : ", unless there are in what was not read: " + not_read) +
               "; compile with pawl-clang, or choose another tracker "
               "(PAWL_TRACKER=auto)");
  return true;
}

int watch_command(const DoctorArguments& arguments, const std::vector<std::string>& command) {
  if (command.empty()) {
    complain("doctor", "no program named; write: pawl doctor [OPTIONS] -- PROGRAM ARGS...");
    return kExitUsage;
  }
#ifdef PAWL_CAN_WATCH
  const int verdict = watch::watch({command, arguments.globs, arguments.json});
  const bool is_yes = verdict == kExitOk || verdict == kExitProtectedBut;
  return is_yes && is_refused_for_marks(command.front()) ? kExitUnsafe : verdict;
#else
  complain("doctor",
           "watching a program works on x86-64 only; run it under 'pawl run', which says what it "
           "refuses when it happens");
  return kExitFailure;
#endif
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code, const AfterDashes& after_dashes) {
  auto arguments = std::make_shared<DoctorArguments>();
  CLI::App* verb =
      app.add_subcommand("doctor",
                         "Say what the kernel, the file system and the disk allow, and what is "
                         "unsafe here; or watch a "
                         "program run, and say whether 'pawl run' can protect its files");
  CLI::Option* directory = verb->add_option("DIR", arguments->directory,
                                            "The directory that holds, or will hold, the files; "
                                            "or a program: does it mark its stores?")
                               ->capture_default_str();
  CLI::Option* globs =
      verb->add_option("--atomic", arguments->globs,
                       "With a program: judge only files that match GLOB (repeatable), as 'pawl "
                       "run' would take them")
          ->type_name("GLOB")
          ->allow_extra_args(false);
  verb->add_flag("--json", arguments->json,
                 "Answer in JSON; a program's own output then goes to standard error");
  verb->footer(
      "Write: pawl doctor [DIR] [--json]\n"
      "   or: pawl doctor PROGRAM [--json]\n"
      "   or: pawl doctor [--atomic GLOB]... [--json] -- PROGRAM ARGS...\n\n"
      "Example:\n  pawl doctor /srv/data\n"
      "  pawl doctor --atomic '*.kch' -- kchashmgr set casket.kch key value\n"
      "The program runs as it does without Pawl, not protected, and slower. The answer comes when\n"
      "it and all that it started have ended.\n"
      "Exit codes: 0 nothing here is unsafe, or each file can be protected or needs no "
      "protection;\n"
      "13 all can be protected, but something is lost or different unless it is seen to;\n"
      "9 something is unsafe, or Pawl cannot protect all as it is, or no file was mapped and "
      "there\n"
      "is nothing to protect; 1 cannot look; 126 and 127 as those of 'pawl run'.");
  verb->callback([arguments, directory, globs, after_dashes, &exit_code] {
    if (after_dashes.has_value()) {
      if (directory->count() > 0) {
        complain("doctor", "name a directory, or a program behind '--', not both");
        exit_code = kExitUsage;
        return;
      }
      exit_code = watch_command(*arguments, *after_dashes);
    } else if (globs->count() > 0) {
      complain("doctor", "--atomic is for a program; name one behind '--'");
      exit_code = kExitUsage;
    } else {
      exit_code = doctor(*arguments);
    }
  });
}

}  // namespace pawl::cli
