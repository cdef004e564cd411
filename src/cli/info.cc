// pawl info FILE: what is beside a file, who has it, and what the next open will do.
#include <fmt/core.h>

#include <memory>

#include "cli/look.h"
#include "cli/verbs.h"

namespace pawl::cli {

namespace {

struct InfoArguments {
  std::string file;
  bool json = false;
};

Json as_json(const Look& look) {
  Json json{{"file", look.path},
            {"file_size_bytes", look.file_size_bytes},
            {"state", state_name(look.state)},
            {"error", error_json(look.code)},
            {"explanation", look.explanation},
            {"mark", nullptr},
            {"journal", nullptr}};
  if (look.mark.has_value()) {
    json["mark"] = {{"journal_id", describe_journal_id(look.mark->journal_id)},
                    {"journal_path", look.mark->journal_path}};
  }
  if (look.has_journal) {
    json["journal"] = {{"path", look.journal_path},
                       {"size_bytes", look.journal_size_bytes},
                       {"locked", look.is_locked},
                       {"header", nullptr},
                       {"other_header_damaged", look.other_slot_damaged},
                       {"records", look.record_count},
                       {"ranges", look.range_count},
                       {"changed_bytes", look.changed_bytes},
                       {"record_bytes", look.record_bytes},
                       {"last_sequence", look.last_sequence},
                       {"end", look.end_reason}};
    if (look.header.has_value()) json["journal"]["header"] = header_json(*look.header);
    if (look.listed.role != journal::Role::file) {
      Json files = Json::array();
      for (const journal::GroupFile& file : look.listed.files)
        files.push_back({{"number", file.number}, {"name", file.name}});
      const bool is_group = look.listed.role == journal::Role::group;
      json["journal"][is_group ? "group_files" : "group"] = is_group ? files : files.front();
    }
  }
  json["recovered_size_bytes"] = look.recovered_size_bytes;
  return json;
}

void print_text(const Look& look) {
  fmt::print("file        {}\n", printable(look.path));
  fmt::print("size        {} ({})\n", look.file_size_bytes, size_text(look.file_size_bytes));
  if (look.mark.has_value()) {
    fmt::print("mark        journal {} at {}\n", describe_journal_id(look.mark->journal_id),
               printable(look.mark->journal_path));
  } else {
    fmt::print("mark        {}\n",
               look.can_mark ? "none" : "none (the file system has no user attributes)");
  }
  if (look.has_journal) {
    fmt::print("journal     {}, {}\n", printable(look.journal_path),
               size_text(look.journal_size_bytes));
  } else {
    fmt::print("journal     none\n");
  }
  if (look.header.has_value()) {
    const journal::Header& header = *look.header;
    fmt::print("header      version {}, generation {}, id {}, epoch {:016x}\n", header.version,
               header.generation, describe_journal_id(header.journal_id), header.epoch);
    if (look.other_slot_damaged)
      fmt::print("            the other header slot is torn or damaged\n");
    for (const journal::GroupFile& file : look.listed.files) {
      if (look.listed.role == journal::Role::group) {
        fmt::print("group       file {} is {}\n", file.number, printable(file.name));
      } else {
        fmt::print("group       {}, in which it is file {}\n", printable(file.name), file.number);
      }
    }
    fmt::print("blocks      {} bytes{}\n", header.block_bytes,
               header.block_bytes == kLineBytes ? " (written as memory)" : "");
    const FileIdentity bound_to{header.file_inode, header.file_birth_time_ns};
    fmt::print("bound to    inode {}, {}\n", bound_to.inode,
               bound_to.is_proof() ? "born " + time_text(bound_to.birth_time_ns)
                                   : fmt::format("generation {}", bound_to.birth_time_ns));
    fmt::print("tail        record {} at byte {}\n", header.tail_sequence, header.tail_offset);
    if (header.writer_process != 0) {
      fmt::print("writer      process {}{}\n", header.writer_process,
                 look.is_locked ? ", which has it now" : ", which has let go");
    }
    fmt::print("records     {} pending, {} of changes, {} of journal\n", look.record_count,
               size_text(look.changed_bytes), size_text(look.record_bytes));
    if (!look.end_reason.empty()) fmt::print("end         {}\n", look.end_reason);
    if (look.record_count > 0 && look.recovered_size_bytes != look.file_size_bytes) {
      fmt::print("recovered   the file will have {} bytes\n", look.recovered_size_bytes);
    }
  }
  fmt::print("state       {}: {}\n", state_name(look.state), printable(look.explanation));
}

int info(const InfoArguments& arguments) {
  Result<Look> look = [&] {
    Progress progress("reading the journal of " + arguments.file);
    return look_at_file(arguments.file, true, progress, {});
  }();
  if (!look.ok()) {
    complain("info", look.status().text());
    return kExitFailure;
  }
  if (arguments.json) {
    print_json(as_json(look.value()));
  } else {
    print_text(look.value());
  }
  return kExitOk;
}

}  // namespace

void add_info(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<InfoArguments>();
  CLI::App* verb = app.add_subcommand(
      "info", "Show a file's mark and journal, who has it, and what the next open will do");
  verb->add_option("FILE", arguments->file, "The file (not its journal)")->required();
  verb->add_flag("--json", arguments->json, "Answer in JSON");
  verb->footer(
      "Example:\n  pawl info accounts.db\n"
      "Exits with 0 whatever the state is; 'pawl verify' answers with it.");
  verb->callback([arguments, &exit_code] { exit_code = info(*arguments); });
}

}  // namespace pawl::cli
