// pawl run [OPTIONS] -- PROGRAM ARGS...: an unmodified program with the preload face before it.
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "cli/exit_codes.h"
#include "cli/program.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "mapping/options.h"

namespace pawl::cli {

namespace {

constexpr std::size_t kGlobsMax = 256;  // the preload face takes no more

struct RunArguments {
  std::vector<std::string> globs;
  std::string tracker;
  std::string apply;
  std::string journal_size;
  std::string ms_async;
  std::string group;
};

Result<std::string> join_globs(const std::vector<std::string>& globs) {
  if (globs.size() > kGlobsMax) {
    return Status::failure(EINVAL, fmt::format("--atomic: at most {} globs", kGlobsMax));
  }
  std::string joined;
  for (const std::string& glob : globs) {
    if (glob.empty() || glob.find(':') != std::string::npos) {
      return Status::failure(EINVAL,
                             "--atomic: '" + glob +
                                 "' is empty or holds a colon, which separates globs; write "
                                 "'?' in its place");
    }
    if (!joined.empty()) joined += ':';
    joined += glob;
  }
  return joined;
}

// An empty value leaves what the environment says.
void set_unless_empty(const char* name, const std::string& value) {
  if (!value.empty()) ::setenv(name, value.c_str(), 1);
}

int refuse(int code, const Status& status) {
  complain("run", status.text());
  return code;
}

// What stands before "--" is ours as far as it has options; the first word that is none begins the
// program, whose own "--" is then its business.
Result<std::vector<std::string>> command_line(std::vector<std::string> words,
                                              const AfterDashes& after_dashes) {
  if (!words.empty() && words.front().starts_with('-')) {
    return Status::failure(EINVAL, "unknown option " + words.front() +
                                       "; an option of the program's stands behind '--'");
  }
  if (after_dashes.has_value()) {
    if (!words.empty()) words.emplace_back("--");
    words.insert(words.end(), after_dashes->begin(), after_dashes->end());
  }
  return words;
}

// The shell has made several words of a glob, of which the first only is the option's.
constexpr const char* kQuoteGlobs =
    "; if it is one of the files that a glob matches, put the glob in quotes: --atomic '*.db'";

int run(const RunArguments& arguments, const std::vector<std::string>& command,
        bool may_begin_with_files) {
  if (command.empty()) {
    complain("run", "no program named; write: pawl run [OPTIONS] -- PROGRAM ARGS...");
    return kExitUsage;
  }
  Result<std::string> globs = join_globs(arguments.globs);
  if (!globs.ok()) return refuse(kExitUsage, globs.status());
  set_unless_empty("PAWL_ATOMIC", globs.value());
  const char* const named = std::getenv("PAWL_ATOMIC");
  const bool names_files = named != nullptr && *named != '\0';
  if (!names_files && !arguments.group.empty()) {
    complain("run",
             "--group without --atomic GLOB: no files are named that are to commit together; add "
             "--atomic, with the glob in quotes");
    return kExitUsage;
  }
  set_unless_empty("PAWL_TRACKER", arguments.tracker);
  set_unless_empty("PAWL_APPLY", arguments.apply);
  set_unless_empty("PAWL_JOURNAL_SIZE", arguments.journal_size);
  set_unless_empty("PAWL_MS_ASYNC", arguments.ms_async);
  // The program may go elsewhere before it maps its first file.
  if (!arguments.group.empty())
    set_unless_empty("PAWL_GROUP", std::filesystem::absolute(arguments.group).string());
  // What the program would refuse at its first mapping is better refused here.
  if (Result<Options> options = Options::from_environment(); !options.ok()) {
    return refuse(kExitUsage, options.status());
  }

  Result<std::string> program = find_program(command.front());
  if (!program.ok()) {
    const char* const hint = may_begin_with_files ? kQuoteGlobs : "";
    return refuse(exit_code_without_program(program.status()),
                  program.status().with_text(program.status().text() + hint));
  }
  if (const Status status = check_preloadable(program.value()); !status.ok()) {
    return refuse(kExitCannotRun, status);
  }
  Result<std::string> library = find_preload_library();
  if (!library.ok()) return refuse(kExitCannotRun, library.status());
  if (!names_files) {
    complain("run",
             "no --atomic GLOB: only mappings that ask for MAP_ATOMIC are protected, of which a "
             "program that does not know Pawl has none");
  }
  const char* const others = std::getenv("LD_PRELOAD");
  const bool has_others = others != nullptr && *others != '\0';
  set_unless_empty("LD_PRELOAD", has_others ? library.value() + ":" + others : library.value());

  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(program.value().c_str(), argv.data());
  const Status failure = FailedCall{errno, "cannot run " + program.value()};
  return refuse(exit_code_without_program(failure), failure);
}

}  // namespace

void add_run(CLI::App& app, int& exit_code, const AfterDashes& after_dashes) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* verb = app.add_subcommand(
      "run", "Run a program unmodified, with its shared file mappings made atomic");
  verb->add_option("--atomic", arguments->globs,
                   "Make shared writable mappings of files that match GLOB atomic (repeatable). A "
                   "glob with a '/' is matched against the file's absolute real path (a relative "
                   "one counts from here), one without against its name; '*' stops at '/'")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  verb->add_option(
          "--tracker", arguments->tracker,
          "How stores are found: auto, scan, fault, or store (programs compiled by pawl-clang)")
      ->check(CLI::IsMember({"auto", "scan", "fault", "store"}))
      ->type_name("T");
  verb->add_option("--apply", arguments->apply,
                   "When committed bytes go into the file: async, eager")
      ->check(CLI::IsMember({"async", "eager"}))
      ->type_name("A");
  verb->add_option("--journal-size", arguments->journal_size,
                   "Size to which each journal may grow, with K, M or G (default: 32M)")
      ->type_name("N");
  verb->add_option("--ms-async", arguments->ms_async,
                   "When msync(MS_ASYNC) of a file that matches GLOB returns: async, before its "
                   "commit is durable; sync, after that")
      ->check(CLI::IsMember({"async", "sync"}))
      ->type_name("M");
  verb->add_option("--group", arguments->group,
                   "Commit all files of the program that are mapped atomically together: each "
                   "msync of one makes what changed in all of them durable by one record. FILE is "
                   "empty, and made if there is none; it names the group, whose journal stands "
                   "beside it")
      ->type_name("FILE");
  verb->prefix_command();
  verb->footer(
      "Write: pawl run [OPTIONS] -- PROGRAM ARGS...\n\n"
      "Example:\n  pawl run --atomic '*.kch' -- kchashmgr set casket.kch key value\n"
      "Without --atomic, only mappings that ask for MAP_ATOMIC are atomic. Sets LD_PRELOAD,\n"
      "PAWL_ATOMIC, PAWL_TRACKER, PAWL_APPLY, PAWL_JOURNAL_SIZE, PAWL_MS_ASYNC and PAWL_GROUP, "
      "and\n"
      "becomes the program: the exit code is the program's, or 126 when it cannot be run under "
      "Pawl, 127 when\n"
      "there is none, 2 for bad options.");
  verb->callback([arguments, verb, after_dashes, &exit_code] {
    Result<std::vector<std::string>> command = command_line(verb->remaining(), after_dashes);
    const bool may_begin_with_files =
        !arguments->globs.empty() && !verb->remaining().empty() && after_dashes.has_value();
    exit_code = command.ok() ? run(*arguments, command.value(), may_begin_with_files)
                             : refuse(kExitUsage, command.status());
  });
}

}  // namespace pawl::cli
