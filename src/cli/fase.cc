// pawl fase info, pawl fase recover: files of failure-atomic sections.
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "cli/exit_codes.h"
#include "cli/fase_functions.h"
#include "cli/look.h"
#include "cli/program.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "fase/closed_file.h"
#include "fase/program.h"
#include "fase/recovery_by_order.h"

namespace pawl::cli {

namespace {

using fase::ClosedFile;
using fase::FoundFrame;

struct Arguments {
  std::string file;
  std::string binary;
  bool json = false;
};

const char* state_name(const ClosedFile& file) {
  if (file.is_in_use) return "in use";
  return file.is_clean() ? "clean" : "needs recovery";
}

int exit_code_of_sections(const ClosedFile& file) {
  if (file.is_in_use) return kExitInUse;
  return file.is_clean() ? kExitOk : kExitNeedsRecovery;
}

const char* scheme_name(const fase::Header& header) {
  constexpr std::array kNames{"ido", "justdo", "undo", "unprotected"};
  return header.scheme.scheme < kNames.size() ? kNames[header.scheme.scheme] : "unknown";
}

// Where the section goes on, as the program's file says it, or by numbers.
std::string place_of(const FoundFrame& frame, const std::optional<FaseFunctions>& functions) {
  const std::string place =
      functions.has_value() ? functions->place(frame.function, frame.region) : std::string();
  return place.empty() ? fmt::format("function {}, region {}", frame.function, frame.region)
                       : printable(place);
}

Json as_json(const Arguments& arguments, const ClosedFile& file,
             const std::optional<FaseFunctions>& functions) {
  const fase::Header& header = file.header;
  Json sections = Json::array();
  if (!file.is_in_use) {
    for (const auto& chain : file.unfinished) {
      const FoundFrame& innermost = chain.back();
      sections.push_back({{"function", innermost.function},
                          {"region", innermost.region},
                          {"place", place_of(innermost, functions)},
                          {"depth", innermost.depth},
                          {"locks", innermost.locks.size()}});
    }
  }
  return {{"file", arguments.file},
          {"state", state_name(file)},
          {"version", header.identity.version},
          {"address", header.identity.address},
          {"size_bytes", header.identity.size_bytes},
          {"opened", header.opens},
          {"program", fase::fingerprint_text(file.fingerprint)},
          {"root", header.root},
          {"logs_used", header.logs_used},
          {"scheme", scheme_name(header)},
          {"interrupted_sections", sections},
          {"sections_to_undo", file.is_in_use ? 0 : file.to_undo}};
}

void print_text(const Arguments& arguments, const ClosedFile& file,
                const std::optional<FaseFunctions>& functions) {
  const fase::Header& header = file.header;
  const auto line = [](const char* name, const std::string& text) {
    fmt::print("{:<13} {}\n", name, text);
  };
  line("file", arguments.file);
  line("state", state_name(file));
  line("format", fmt::format("version {}", header.identity.version));
  line("address", fmt::format("{:#x}", header.identity.address));
  line("size", size_text(header.identity.size_bytes));
  line("opened", count_text(header.opens, "time"));
  line("program", "build-id " + fase::fingerprint_text(file.fingerprint));
  line("scheme", scheme_name(header));
  line("root", header.root == 0 ? "none" : fmt::format("{:#x}", header.root));
  line("logs", fmt::format("{} of {} used", header.logs_used, fase::kThreadsMax));
  if (file.is_in_use) return;
  if (file.to_undo > 0) line("interrupted", count_text(file.to_undo, "section") + " to undo");
  for (const auto& chain : file.unfinished) {
    const FoundFrame& innermost = chain.back();
    line("interrupted", fmt::format("{}, in {}, with {}", place_of(innermost, functions),
                                    count_text(innermost.depth, "call"),
                                    count_text(innermost.locks.size(), "lock")));
  }
}

// Another program numbers its functions otherwise.
Status check_was_last(const std::string& program, const ClosedFile& file) {
  const auto fingerprint = fase::fingerprint_of_file(program);
  if (!fingerprint.ok()) return fingerprint.status();
  if (!fingerprint.value().empty() && fingerprint.value() == file.fingerprint) return {};
  return Status::failure(
      ENOEXEC, fmt::format("{} is not the program that was interrupted: its build-id is {}, and "
                           "that one's {}",
                           program, fase::fingerprint_text(fingerprint.value()),
                           fase::fingerprint_text(file.fingerprint)));
}

int info(const Arguments& arguments) {
  const Result<ClosedFile> looked = fase::look_at_file(arguments.file);
  if (!looked.ok()) {
    complain("fase info", looked.status().text());
    return exit_code_of(looked.status());
  }
  std::optional<FaseFunctions> functions;
  if (!arguments.binary.empty()) {
    const Result<std::string> program = find_program(arguments.binary);
    if (!program.ok()) {
      complain("fase info", program.status().text());
      return exit_code_without_program(program.status());
    }
    const Status was_last = check_was_last(program.value(), looked.value());
    Result<FaseFunctions> read = was_last.ok() ? FaseFunctions::read(program.value()) : was_last;
    if (!read.ok()) {
      complain("fase info", read.status().text());
      return kExitFailure;
    }
    functions = std::move(read.value());
  }
  if (arguments.json) {
    print_json(as_json(arguments, looked.value(), functions));
  } else {
    print_text(arguments, looked.value(), functions);
  }
  return exit_code_of_sections(looked.value());
}

// It recovers before its main(), and ends.
int run_for_recovery(const std::string& program, const std::string& file) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    std::string name = program;
    std::array<char*, 2> arguments{name.data(), nullptr};
    if (::setenv(fase::kRecoverVariable, file.c_str(), 1) == 0)
      ::execv(program.c_str(), arguments.data());
    ::_exit(kExitCannotRun);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) {
    complain("fase recover", "cannot run " + program);
    return kExitFailure;
  }
  if (!WIFEXITED(status)) {
    complain("fase recover", fmt::format("{} was ended by signal {}; the file stays as it is for "
                                         "another try",
                                         program, WTERMSIG(status)));
    return kExitFailure;
  }
  return WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kExitCannotRun ? WEXITSTATUS(status)
                                                                           : kExitFailure;
}

int recover(const Arguments& arguments) {
  const Result<ClosedFile> looked = fase::look_at_file(arguments.file);
  if (!looked.ok()) {
    complain("fase recover", looked.status().text());
    return exit_code_of(looked.status());
  }
  if (looked.value().is_in_use) {
    complain("fase recover", arguments.file + " is in use");
    return kExitInUse;
  }
  const Result<std::string> program = find_program(arguments.binary);
  if (!program.ok()) {
    complain("fase recover", program.status().text());
    return exit_code_without_program(program.status());
  }
  if (looked.value().is_clean()) {
    fmt::print("{}: nothing to recover\n", arguments.file);
    return kExitOk;
  }
  // Another program knows nothing of the order, and would begin its work.
  if (const Status was_last = check_was_last(program.value(), looked.value()); !was_last.ok()) {
    complain("fase recover", was_last.text());
    return kExitFailure;
  }
  return run_for_recovery(program.value(), arguments.file);
}

}  // namespace

void add_fase(CLI::App& app, int& exit_code) {
  CLI::App* verb =
      app.add_subcommand("fase", "Look at a file of failure-atomic sections; recover it");
  verb->require_subcommand(1);
  verb->footer(
      "Example:\n  pawl fase info orders.fase\n"
      "'pawl fase VERB --help' says what the exit codes mean.");

  auto of_info = std::make_shared<Arguments>();
  CLI::App* add_info =
      verb->add_subcommand("info", "Show what a file is, and what a crash left there");
  add_info->add_option("FILE", of_info->file, "The file")->required();
  add_info->add_option("--binary", of_info->binary,
                       "The program that was interrupted: names the functions and lines of the "
                       "sections (default: they are numbers)");
  add_info->add_flag("--json", of_info->json, "Answer in JSON");
  add_info->footer(
      "Example:\n  pawl fase info orders.fase\n"
      "Exit codes: 0 clean, 3 sections were interrupted, 7 in use, 8 newer version, 127 there is\n"
      "no such program, 1 anything else.");
  add_info->callback([of_info, &exit_code] { exit_code = info(*of_info); });

  auto of_recover = std::make_shared<Arguments>();
  CLI::App* add_recover = verb->add_subcommand(
      "recover", "Finish what a crash interrupted, by the program that was interrupted");
  add_recover->add_option("FILE", of_recover->file, "The file")->required();
  add_recover
      ->add_option("--binary", of_recover->binary,
                   "The program as it was at the crash; it is started, and ends before its main()")
      ->required();
  add_recover->footer(
      "Example:\n  pawl fase recover --binary ./server.old orders.fase\n"
      "The same program recovers the file when it opens it; this is for a program that was\n"
      "replaced since. Exit codes: 0 done, or there was nothing to do; 7 in use, 8 newer\n"
      "version, 126 the program cannot be run, 127 there is none, 1 anything else.");
  add_recover->callback([of_recover, &exit_code] { exit_code = recover(*of_recover); });
}

}  // namespace pawl::cli
