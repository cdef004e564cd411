// pawl recover FILE...: brings files that a crash left to their last durable state.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cli/look.h"
#include "cli/verbs.h"
#include "journal/replay.h"
#include "mapping/mapping.h"
#include "medium/block_medium.h"

namespace pawl::cli {

namespace {

struct RecoverArguments {
  std::vector<std::string> files;
  bool json = false;
  bool accept_loss = false;
};

struct Outcome {
  std::string file;
  int code = kExitOk;
  std::uint64_t records = 0;
  std::string text;
};

Outcome failed(const std::string& file, int code, std::string text) {
  return Outcome{file, code, 0, std::move(text)};
}

// What a person gives up is what was looked at.
Result<std::unique_ptr<Medium>> open_what_was_looked_at(const Look& look) {
  Result<std::unique_ptr<Medium>> medium = open_block_medium(look.path, false);
  if (!medium.ok()) return medium;
  Medium& found = *medium.value();
  const Result<FileIdentity> journal = found.journal_identity();
  if (!journal.ok()) return journal.status();
  if (found.device() == look.device && found.identity() == look.identity &&
      journal.value() == look.journal_identity)
    return medium;
  return Status::failure(
      EBUSY, PAWL_ERROR_REPLACED,
      look.path +
          ", or its journal, was replaced while it was looked at, or a program has "
          "opened it; nothing was changed. Try again");
}

// With the file's side file acquired: a mark that comes now is another writer's.
Status clear_mark(Medium& medium) {
  PAWL_TRY(medium.clear_mark());
  return medium.base().flush();
}

// The person has said that what cannot be read is lost.
Result<std::string> recover_what_is_left(const Look& look, Outcome& outcome) {
  Result<std::unique_ptr<Medium>> medium = open_what_was_looked_at(look);
  if (!medium.ok()) return medium.status();
  if (look.state == State::missing_journal) {
    const Result<std::uint64_t> given_up = recover(*medium.value(), true);
    if (!given_up.ok()) return given_up.status();
    return std::string("accepted the loss of the missing journal's commits; the mark is cleared");
  }
  if (look.state == State::foreign_journal) {
    const Result<std::uint64_t> records = recover(*medium.value(), true);
    if (!records.ok()) return records.status();
    outcome.records = records.value();
    return fmt::format("accepted the journal as it is: replayed {}",
                       count_text(outcome.records, "record"));
  }
  Result<JournalFile> journal = medium.value()->acquire_journal(false);
  if (!journal.ok()) return journal.status();
  Result<journal::Replayed> replayed =
      journal::replay(*medium.value(), *journal.value().file, true);
  // Damage to the header is what leaves nothing to replay; anything else is in the way.
  if (!replayed.ok() && replayed.status().error_number() != EBADMSG) return replayed.status();
  if (replayed.ok()) outcome.records = replayed.value().records;
  Result<std::optional<Mark>> mark = medium.value()->mark();
  if (!mark.ok()) return mark.status();
  if (mark.value().has_value()) PAWL_TRY(journal::check_is_lost(*medium.value(), *mark.value()));
  Result<std::string> kept = medium.value()->keep_journal_aside(Kept::itself);
  if (!kept.ok()) return kept.status();
  if (mark.value().has_value()) PAWL_TRY(clear_mark(*medium.value()));
  return fmt::format(
      "accepted the loss: replayed {}, and kept the damaged journal as {}; the file may hold parts "
      "of the lost commits",
      count_text(outcome.records, "record"), kept.value());
}

// A group gives up what is damaged, and files that are missing; a file of one, what only its group
// had.
Result<std::string> recover_what_is_left_of_group(const Look& look, Outcome& outcome) {
  Result<std::unique_ptr<Medium>> medium = open_what_was_looked_at(look);
  if (!medium.ok()) return medium.status();
  std::string kept_text;
  if (look.state == State::damaged_journal && look.listed.role == journal::Role::group) {
    Result<JournalFile> journal = medium.value()->acquire_journal(false);
    if (!journal.ok()) return journal.status();
    // The journal itself is needed until the files have what it holds.
    Result<std::string> kept = medium.value()->keep_journal_aside(Kept::copy);
    if (!kept.ok()) return kept.status();
    kept_text = ", and kept a copy of the damaged journal as " + kept.value();
  }
  Result<std::uint64_t> records = recover(*medium.value(), true);
  if (!records.ok()) return records.status();
  outcome.records = records.value();
  return fmt::format("accepted what may be lost: replayed {}{}",
                     count_text(outcome.records, "record"), kept_text);
}

std::string cannot_write(const Status& failure) {
  if (failure.error_number() != EROFS) return failure.text();
  return failure.text() +
         "; mount it for writing, or make a recovered copy elsewhere: pawl snapshot FILE TO";
}

int exit_code_of_failure(const Status& failure, const Look& look) {
  if (failure.error_number() == EBUSY) return kExitInUse;
  const bool expected = look.state != State::clean && look.state != State::needs_recovery;
  return expected ? exit_code_of(look.state) : kExitFailure;
}

Outcome recover_one(const std::string& file, bool accept_loss) {
  Progress progress("recovering " + file);
  Result<Look> looked = look_at_file(file, false, progress, {});
  if (!looked.ok()) return failed(file, kExitFailure, looked.status().text());
  const Look& look = looked.value();
  progress.at(0, 0);

  Outcome outcome{file, kExitOk, 0, {}};
  const bool is_of_group = look.listed.role != journal::Role::file;
  if (accept_loss &&
      (is_of_group || look.state == State::damaged_journal ||
       look.state == State::missing_journal || look.state == State::foreign_journal)) {
    Result<std::string> text = is_of_group ? recover_what_is_left_of_group(look, outcome)
                                           : recover_what_is_left(look, outcome);
    if (!text.ok())
      return failed(file, exit_code_of_failure(text.status(), look), text.status().text());
    outcome.text = text.value();
    return outcome;
  }
  if (look.state == State::clean) {
    outcome.text = "nothing to recover";
    return outcome;
  }

  Result<std::unique_ptr<Medium>> medium = open_block_medium(look.path, false);
  if (!medium.ok()) return failed(file, kExitFailure, cannot_write(medium.status()));
  Result<std::uint64_t> records = recover(*medium.value());
  if (!records.ok()) {
    return failed(file, exit_code_of_failure(records.status(), look), records.status().text());
  }
  outcome.records = records.value();
  outcome.text = fmt::format("recovered, {} replayed", count_text(outcome.records, "record"));
  if (!look.end_reason.empty()) {
    outcome.text +=
        "; a commit that was not whole was dropped (not acknowledged, unless the journal was "
        "damaged since)";
  }
  return outcome;
}

// A glob of the shell takes in the journals of the files that it names; they go with their files.
bool is_journal_of_one_of(const std::vector<std::string>& files, const std::string& name) {
  return name.ends_with(kJournalSuffix) &&
         std::find(files.begin(), files.end(),
                   name.substr(0, name.size() - std::strlen(kJournalSuffix))) != files.end();
}

int recover_all(const RecoverArguments& arguments) {
  int code = kExitOk;
  Json results = Json::array();
  for (const std::string& file : arguments.files) {
    if (is_journal_of_one_of(arguments.files, file)) continue;
    const Outcome outcome = recover_one(file, arguments.accept_loss);
    if (code == kExitOk) code = outcome.code;
    if (arguments.json) {
      results.push_back({{"file", outcome.file},
                         {"exit_code", outcome.code},
                         {"records_replayed", outcome.records},
                         {"text", outcome.text}});
    }
    if (outcome.code != kExitOk) {
      complain("recover", outcome.text);
    } else if (!arguments.json) {
      fmt::print("{}: {}\n", printable(outcome.file), printable(outcome.text));
    }
  }
  if (arguments.json) print_json(results);
  return code;
}

}  // namespace

void add_recover(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<RecoverArguments>();
  CLI::App* verb = app.add_subcommand(
      "recover", "Bring files that a crash left behind to their last durable state");
  verb->add_option("FILE", arguments->files, "The files (not their journals)")->required();
  verb->add_flag("--json", arguments->json, "Answer in JSON");
  verb->add_flag(
      "--accept-loss", arguments->accept_loss,
      "Where a journal is damaged or missing, or a copy: keep what can be read, put the "
      "damaged journal aside and clear the mark. Commits are lost, and the file may hold parts "
      "of them");
  verb->footer(
      "Example:\n  pawl recover accounts.db ledger.db\n"
      "Mapping a file recovers it as well. Exit code: 0, or that of the first file that\n"
      "failed: 4 damaged journal, 5 foreign journal, 6 missing journal, 7 in use,\n"
      "8 newer version, 1 anything else. All files are tried.");
  verb->callback([arguments, &exit_code] { exit_code = recover_all(*arguments); });
}

}  // namespace pawl::cli
