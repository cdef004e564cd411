// pawl snapshot FILE TO: a copy of a file as its last durable commit left it, whoever has it
// mapped.
#include <fmt/core.h>

#include <memory>

#include "cli/look.h"
#include "cli/verbs.h"
#include "fase/closed_file.h"
#include "snapshot/committed_copy.h"

namespace pawl::cli {

namespace {

struct SnapshotArguments {
  std::string file;
  std::string to;
  bool force = false;
  bool json = false;
};

// Where the journal is what is wrong, the code is that of `pawl verify`.
int code_of_failure(const Status& failure, const std::string& file) {
  if (failure.error_number() != EBADMSG && failure.error_number() != ENODATA &&
      failure.error_number() != ENOTSUP)
    return kExitFailure;
  Progress progress("verifying " + file);
  const Result<Look> looked = look_at_file(file, false, progress, {});
  if (!looked.ok()) return kExitFailure;
  switch (looked.value().state) {
    case State::damaged_journal:
    case State::foreign_journal:
    case State::missing_journal:
    case State::newer_version:
      return exit_code_of(looked.value().state);
    default:
      return kExitFailure;
  }
}

int make_snapshot(const SnapshotArguments& arguments) {
  const Result<snapshot::Copied> made = snapshot::make_snapshot(
      arguments.file, arguments.to, arguments.force, fase::check_is_finished);
  if (!made.ok()) {
    complain("snapshot", made.status().text());
    return code_of_failure(made.status(), arguments.file);
  }
  const snapshot::Copied& copied = made.value();
  const char* const kind = copied.kind == snapshot::CopyKind::shared ? "shared" : "copied";
  if (arguments.json) {
    print_json(Json{{"file", arguments.file},
                    {"snapshot", arguments.to},
                    {"bytes", copied.bytes},
                    {"blocks", kind},
                    {"records_replayed", copied.records},
                    {"attempts", copied.attempts}});
  } else {
    fmt::print("{}: {} bytes, blocks {}, {} replayed\n", printable(arguments.to), copied.bytes,
               kind, count_text(copied.records, "record"));
  }
  return kExitOk;
}

}  // namespace

void add_snapshot(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SnapshotArguments>();
  CLI::App* verb = app.add_subcommand(
      "snapshot", "Copy a file as its last durable commit left it, while it is in use or not");
  verb->add_option("FILE", arguments->file, "The file (not its journal)")->required();
  verb->add_option("TO", arguments->to, "The copy: a plain file, there whole or not at all")
      ->required();
  verb->add_flag("--force", arguments->force, "Replace TO if there is one");
  verb->add_flag("--json", arguments->json, "Answer in JSON");
  verb->footer(
      "Example:\n  pawl snapshot accounts.db /backup/accounts.db\n"
      "FILE is not changed, and the program that has it mapped goes on committing. Exit codes:\n"
      "0, or as verify: 4 damaged journal, 5 foreign journal, 6 missing journal,\n"
      "8 newer version; 1 anything else.");
  verb->callback([arguments, &exit_code] { exit_code = make_snapshot(*arguments); });
}

}  // namespace pawl::cli
