// pawl log FILE: one line a record.
#include <fmt/core.h>

#include <memory>

#include "cli/look.h"
#include "cli/verbs.h"

namespace pawl::cli {

namespace {

struct LogArguments {
  std::string file;
  bool json = false;
};

// Its files have numbers; pawl info says which is which.
bool is_of_group(const journal::RecordSummary& record) { return record.sizes.front().file != 0; }

Json size_json(const journal::FileSize& size) {
  Json json{{"file_size_bytes", size.size_bytes}, {"truncate_to", nullptr}};
  if (size.truncate_to != journal::kNoTruncation) json["truncate_to"] = size.truncate_to;
  return json;
}

Json record_json(const journal::RecordSummary& record) {
  const journal::RecordHeader& header = record.header;
  Json json{{"sequence", header.sequence},
            {"time_ns", header.time_ns},
            {"time", time_text(header.time_ns)},
            {"ranges", record.range_count},
            {"changed_bytes", record.changed_bytes},
            {"record_bytes", record.bytes},
            {"position", record.position},
            {"durable_sequence", header.durable_sequence},
            {"checksum", "ok"}};
  if (!is_of_group(record)) {
    json.update(size_json(record.sizes.front()));
    return json;
  }
  json["files"] = Json::array();
  for (const journal::FileSize& size : record.sizes) {
    Json file = size_json(size);
    file["number"] = size.file;
    json["files"].push_back(file);
  }
  return json;
}

std::string record_line(const journal::RecordSummary& record) {
  const journal::RecordHeader& header = record.header;
  std::string line = fmt::format(
      "{:>10}  {}  {:>8} {}  {:>12} bytes", header.sequence, time_text(header.time_ns),
      record.range_count, record.range_count == 1 ? "range " : "ranges", record.changed_bytes);
  for (const journal::FileSize& size : record.sizes) {
    line += is_of_group(record) ? fmt::format("  file {}: {}", size.file, size.size_bytes)
                                : fmt::format("  file {:>12}", size.size_bytes);
    if (size.truncate_to != journal::kNoTruncation)
      line += fmt::format(" (cut to {})", size.truncate_to);
  }
  return line + fmt::format("  at {}  checksum ok", record.position);
}

// "ok": the journal simply ends; "torn": in a commit that was never acknowledged, or was damaged.
const char* end_state(const Look& look) {
  if (look.state == State::damaged_journal) return "damaged";
  return look.end_reason.empty() ? "ok" : "torn";
}

std::string end_line(const Look& look) {
  if (look.state == State::clean) return "no journal: nothing to replay";
  std::string line =
      look.end_reason.empty()
          ? fmt::format("end: {}, {} of changes; nothing behind them",
                        count_text(look.record_count, "record"), size_text(look.changed_bytes))
          : "torn end: " + look.end_reason;
  if (look.state == State::in_use) line += " (in use: the journal moves on while it is read)";
  return line;
}

// A journal that could be read tells its log, even to a file that still needs recovery.
int exit_code_of_log(State state) {
  if (state == State::needs_recovery || state == State::in_use) return kExitOk;
  return exit_code_of(state);
}

int log(const LogArguments& arguments) {
  // Records are told one by one: a journal may hold more of them than fit into memory.
  std::uint64_t told = 0;
  if (arguments.json) fmt::print("{{\n  \"records\": [");
  const auto tell = [&](const journal::RecordSummary& record) {
    if (arguments.json) {
      fmt::print("{}\n    {}", told == 0 ? "" : ",", json_text(record_json(record), -1));
    } else {
      fmt::print("{}\n", record_line(record));
    }
    told += 1;
  };
  Result<Look> looked = [&] {
    Progress progress("reading the journal of " + arguments.file);
    return look_at_file(arguments.file, true, progress, tell);
  }();
  if (!looked.ok()) {
    if (arguments.json) {
      fmt::print("\n  ],\n  \"error\": {}\n}}\n", json_text(Json(looked.status().text()), -1));
    }
    complain("log", looked.status().text());
    return kExitFailure;
  }
  const Look& look = looked.value();
  if (arguments.json) {
    const Json end{{"state", end_state(look)}, {"reason", look.end_reason}};
    fmt::print(
        "{}],\n  \"end\": {},\n  \"file\": {},\n  \"state\": \"{}\",\n  \"explanation\": {}\n}}\n",
        told == 0 ? "" : "\n  ", json_text(end, -1), json_text(Json(look.path), -1),
        state_name(look.state), json_text(Json(look.explanation), -1));
  } else if (exit_code_of_log(look.state) != kExitOk) {
    complain("log", fmt::format("{}: {}", state_name(look.state), look.explanation));
  } else {
    fmt::print("{}\n", printable(end_line(look)));
  }
  return exit_code_of_log(look.state);
}

}  // namespace

void add_log(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<LogArguments>();
  CLI::App* verb = app.add_subcommand(
      "log", "Show the commits that the file may not have received yet, one line a record");
  verb->add_option("FILE", arguments->file, "The file (not its journal)")->required();
  verb->add_flag("--json", arguments->json, "Answer in JSON");
  verb->footer(
      "Example:\n  pawl log accounts.db\n"
      "Exit codes: 0 every record up to the end was read, else as 'pawl verify'.");
  verb->callback([arguments, &exit_code] { exit_code = log(*arguments); });
}

}  // namespace pawl::cli
