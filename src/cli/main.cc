// The pawl command.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string_view>

#include "cli/exit_codes.h"
#include "cli/verbs.h"
#include "pawl/pawl.h"

namespace {

constexpr const char* kFooter =
    "run, wsp run and wsp restore otherwise answer with the program's own exit code.\n\n"
    "Example:\n  pawl run --atomic '*.db' -- ./server --data /srv/data\n"
    "'pawl VERB --help' shows an example for each verb; pawl(1) tells more.";

// Takes "--" and what follows it off the command line of `pawl run`, `pawl doctor` and `pawl wsp`.
pawl::cli::AfterDashes take_after_dashes(int& argc, char** argv) {
  if (argc < 2) return std::nullopt;
  const std::string_view verb = argv[1];
  if (verb != "run" && verb != "doctor" && verb != "wsp") return std::nullopt;
  for (int i = 2; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--") continue;
    std::vector<std::string> words(argv + i + 1, argv + argc);
    argc = i;
    return words;
  }
  return std::nullopt;
}

CLI::App* find_verb(CLI::App& app, std::string_view name) {
  for (CLI::App* verb : app.get_subcommands({})) {
    if (verb->get_name() == name) return verb;
  }
  return nullptr;
}

// Says which verb there is not, `pawl heap frobnicate`, if that is what is wrong.
bool refuses_verb(CLI::App& app, int argc, char** argv) {
  CLI::App* at = &app;
  std::string path = "pawl";
  for (int i = 1; i < argc && argv[i][0] != '-' && !at->get_subcommands({}).empty(); ++i) {
    CLI::App* const verb = find_verb(*at, argv[i]);
    if (verb == nullptr) {
      fmt::print(stderr, "{}: there is no verb {}; '{} --help' lists them\n", path, argv[i], path);
      return true;
    }
    at = verb;
    path += " " + verb->get_name();
  }
  return false;
}

// A file whose name begins with a dash is taken for an option.
std::string hint_for_dash(const CLI::App& app) {
  for (const std::string& word : app.remaining(true)) {
    if (word.starts_with('-') && ::access(word.c_str(), F_OK) == 0)
      return fmt::format("; {} is taken for an option: name the file ./{}", word, word);
  }
  return {};
}

int refuse_line(CLI::App& app, const CLI::ParseError& error, bool has_dashes) {
  if (error.get_exit_code() == 0) return app.exit(error);  // help, or the version
  std::string path = "pawl";
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  std::string text = error.what();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    text = "not understood:";
    for (const std::string& word : app.remaining(true)) text += " " + word;
    const bool takes_program = path.ends_with(" run") || path.ends_with("wsp check") ||
                               path.ends_with("vm check") || path.ends_with("vm restore");
    if (!has_dashes && takes_program)
      text += path.starts_with("pawl wsp vm") ? "; write '--' before QEMU's own options"
                                              : "; write '--' before the program";
  }
  text += hint_for_dash(app);
  fmt::print(stderr, "{}: {}\n'{} --help' tells more\n", path, text, path);
  return pawl::cli::kExitUsage;
}

int run_command(int argc, char** argv) {
  const pawl::cli::AfterDashes after_dashes = take_after_dashes(argc, argv);
  int exit_code = pawl::cli::kExitOk;
  CLI::App app(
      "Pawl: failure-atomic msync(). A mapped file moves from one consistent state to the "
      "next, whole or not at all, whatever crashes in between.",
      "pawl");
  app.set_version_flag("--version", fmt::format("pawl {}.{}.{}", PAWL_VERSION_MAJOR,
                                                PAWL_VERSION_MINOR, PAWL_VERSION_PATCH));
  app.require_subcommand(1);
  app.footer(pawl::cli::exit_codes_text() + kFooter);
  pawl::cli::add_run(app, exit_code, after_dashes);
  pawl::cli::add_info(app, exit_code);
  pawl::cli::add_recover(app, exit_code);
  pawl::cli::add_verify(app, exit_code);
  pawl::cli::add_log(app, exit_code);
  pawl::cli::add_doctor(app, exit_code, after_dashes);
  pawl::cli::add_snapshot(app, exit_code);
  pawl::cli::add_heap(app, exit_code);
  pawl::cli::add_fase(app, exit_code);
#ifdef PAWL_HAS_WSP
  pawl::cli::add_wsp(app, exit_code, after_dashes);
#endif
  pawl::cli::add_bench(app, exit_code);
  if (refuses_verb(app, argc, argv)) return pawl::cli::kExitUsage;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return refuse_line(app, error, after_dashes.has_value());
  }
  // An answer that did not arrive is no answer.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    fmt::print(stderr, "pawl: cannot write the answer\n");
    if (exit_code == pawl::cli::kExitOk) exit_code = pawl::cli::kExitFailure;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_command(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pawl: %s\n", error.what());
    return pawl::cli::kExitFailure;
  }
}
