// pawl verify FILE: are journal and mark whole, and do they belong together?  Changes nothing.
#include <fmt/core.h>

#include <memory>

#include "cli/look.h"
#include "cli/verbs.h"

namespace pawl::cli {

namespace {

struct VerifyArguments {
  std::string file;
  bool json = false;
};

int verify(const VerifyArguments& arguments) {
  Result<Look> looked = [&] {
    Progress progress("verifying " + arguments.file);
    return look_at_file(arguments.file, false, progress, {});
  }();
  if (!looked.ok()) {
    complain("verify", looked.status().text());
    return kExitFailure;
  }
  const Look& look = looked.value();
  const ExitCode code = exit_code_of(look.state);
  if (arguments.json) {
    print_json(Json{{"file", look.path},
                    {"state", state_name(look.state)},
                    {"exit_code", static_cast<int>(code)},
                    {"error", error_json(look.code)},
                    {"explanation", look.explanation},
                    {"records", look.record_count},
                    {"changed_bytes", look.changed_bytes},
                    {"end", look.end_reason}});
  } else {
    fmt::print("{}: {}: {}\n", printable(look.path), state_name(look.state),
               printable(look.explanation));
  }
  return code;
}

}  // namespace

void add_verify(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* verb = app.add_subcommand(
      "verify", "Check a file's journal and mark and their bond; change nothing");
  verb->add_option("FILE", arguments->file, "The file (not its journal)")->required();
  verb->add_flag("--json", arguments->json, "Answer in JSON");
  verb->footer(
      "Example:\n  pawl verify accounts.db || pawl recover accounts.db\n"
      "Exit codes: 0 clean, 3 needs recovery (and can be recovered), 4 damaged journal,\n"
      "5 foreign journal, 6 missing journal, 7 in use, 8 newer version, 1 cannot look.");
  verb->callback([arguments, &exit_code] { exit_code = verify(*arguments); });
}

}  // namespace pawl::cli
