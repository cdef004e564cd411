#include "cli/watch/answer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <set>
#include <sstream>
#include <utility>

#include "cli/text.h"
#include "cli/watch/globs.h"

namespace pawl::cli::watch {

namespace {

constexpr std::size_t kLineColumns = 96;
constexpr std::size_t kAlikeMin = 4;          // alike files from which on one block reports them
constexpr std::size_t kLikewiseNamesMax = 8;  // that such a block has

using Files = std::vector<FileJudgement>;

std::vector<std::string> names_of(const ProgramFacts& facts, const Files& files) {
  std::vector<std::string> names;
  for (const FileJudgement& file : files) {
    const std::vector<std::string>& some = facts.files.at(file.key).names;
    names.insert(names.end(), some.begin(), some.end());
  }
  return names;
}

bool is_refused(const FileJudgement& file) { return file.verdict == Weight::cannot; }
bool is_offered(const FileJudgement& file) { return !file.is_left_out && !file.is_in_doubt; }

// Of the line to type.
Files left_out(const Judgement& judgement) {
  Files files = judgement.files;
  std::erase_if(files, is_offered);
  return files;
}

// Of the files of the line to type.
Files offered(Files files) {
  std::erase_if(files, std::not_fn(is_offered));
  return files;
}

// For these, which are offered.
std::vector<std::string> suggested_globs(const ProgramFacts& facts, const Judgement& judgement,
                                         const Files& files) {
  Files refused = judgement.files;
  std::erase_if(refused, [](const auto& file) { return !is_refused(file) && !file.is_in_doubt; });
  return globs_for(
      names_of(facts, files), names_of(facts, left_out(judgement)), names_of(facts, refused),
      {facts.process_numbers, facts.random_names, facts.random_directories, facts.dates});
}

// Those of them that Pawl could take, and that the suggested line does not: a segment that was not
// used yet is called like the others.
std::vector<std::string> paths_to_leave_out(const ProgramFacts& facts, const Judgement& judgement) {
  const auto suggested = suggested_globs(facts, judgement, offered(judgement.files));
  const Globs line(suggested);
  std::vector<std::string> paths;
  for (const FileJudgement& file : left_out(judgement)) {
    const std::string& path = facts.files.at(file.key).path;
    const bool is_taken = !suggested.empty() && line.match(path);
    if (file.is_left_out && !is_refused(file) && !is_taken) paths.push_back(path);
  }
  return paths;
}

// The command that protects these of the judged files; empty where it would protect none.
std::string run_line(const ProgramFacts& facts, const Judgement& judgement, const Files& all,
                     const std::vector<std::string>& command) {
  const Files files = offered(all);
  if (files.empty()) return {};
  std::string line = "pawl run";
  if (std::ranges::any_of(files, &FileJudgement::is_asynchronous)) line += " --ms-async sync";
  // Always in quotes: a glob is for Pawl and not for the shell, and people change it.
  for (const std::string& glob : suggested_globs(facts, judgement, files)) {
    const std::string word = shell_word(glob);
    line += " --atomic " + (word.starts_with('\'') ? word : "'" + word + "'");
  }
  line += " --";
  for (const std::string& word : command) line += " " + shell_word(word);
  return line;
}

const char* verdict_text(const FileJudgement& file) {
  if (file.needs_nothing) return "It needs no protection:";
  switch (file.verdict) {
    case Weight::note:
      return "Pawl can protect it.";
    case Weight::but:
      return "Pawl can protect it, but:";
    case Weight::cannot:
      return "Pawl cannot protect it:";
  }
  return "";
}

std::string counts_text(const std::map<std::string, std::uint64_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count_text(count, "time"));
  }
  return text.empty() ? "never" : text;
}

// As the names that stand in a text must be: they are anybody's choice.
void print_line(const std::string& text) { fmt::print("{}\n", printable(text)); }

// Breaks a text at spaces, each line after `indent` spaces.
void print_wrapped(std::size_t indent, const std::string& text) {
  std::istringstream words(printable(text));
  std::string line;
  for (std::string word; words >> word;) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > kLineColumns) {
      fmt::print("{:{}}{}\n", "", indent, line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty()) fmt::print("{:{}}{}\n", "", indent, line);
}

void print_remark(const Remark& remark) {
  std::string seen = remark.seen;
  if (remark.count > 1) {
    seen += fmt::format("{}{} in all", seen.empty() ? "" : "; ", count_text(remark.count, "time"));
  }
  print_line(fmt::format("  {:<7} {}{}{}", weight_name(remark.weight), remark.code,
                         seen.empty() ? "" : ": ", seen));
  print_wrapped(10, remark.why + ".");
  print_wrapped(10, "What to do: " + remark.advice + ".");
}

// What is said of many at once is explained once.
void print_remarks_once(const std::vector<Remark>& remarks) {
  std::set<std::pair<std::string, std::string>> printed;
  for (const Remark& remark : remarks) {
    if (!printed.emplace(remark.code, remark.why).second) continue;
    print_remark(remark);
    std::size_t others = 0;
    for (const Remark& other : remarks) {
      if (other.code != remark.code || other.why != remark.why || &other == &remark) continue;
      if (++others <= kLikewiseNamesMax)
        print_wrapped(10,
                      fmt::format("Likewise {} ({})", other.seen, count_text(other.count, "time")));
    }
    if (others > kLikewiseNamesMax)
      print_wrapped(10, fmt::format("... and {} more", others - kLikewiseNamesMax));
  }
}

std::string ending_text(const Ending& ending) {
  if (ending.signal == 0) return fmt::format("ended with exit code {}", ending.exit_code);
  return fmt::format("was ended by signal {} ({})", ending.signal, ::strsignal(ending.signal));
}

void print_file(const FileFacts& file, const FileJudgement& judgement,
                const std::string& protecting_line) {
  fmt::print("\n");
  print_line(file.path);
  fmt::print("  mapped        {}, {}, at most {} at once\n", count_text(file.mappings, "time"),
             file.is_mapped_writable ? "shared and writable" : "shared, for reading",
             size_text(file.longest_mapping_bytes));
  fmt::print("  size          {} when it was first mapped, {} at the end\n",
             size_text(file.first_size_bytes), size_text(file.last_size_bytes));
  fmt::print("  changed       {}{}\n", file.is_mapped_writable ? "by stores; by calls: " : "",
             counts_text(file.changes));
  fmt::print("  synchronised  {}\n", counts_text(file.synchronisations));
  fmt::print("{}\n", verdict_text(judgement));
  for (const Remark& remark : judgement.remarks) print_remark(remark);
  if (!protecting_line.empty()) print_line("  " + protecting_line);
}

// Files of one directory of which the same is to be said.
bool are_alike(const ProgramFacts& facts, const FileJudgement& one, const FileJudgement& other) {
  const auto directory = [&](const FileJudgement& file) {
    const std::string& path = facts.files.at(file.key).path;
    return path.substr(0, path.rfind('/'));
  };
  return directory(one) == directory(other) &&
         std::ranges::equal(one.remarks, other.remarks, {}, &Remark::code, &Remark::code);
}

void print_likewise(const ProgramFacts& facts, const Files& files) {
  std::string text =
      fmt::format("Likewise {} of the same directory:", count_text(files.size(), "other file"));
  for (std::size_t i = 0; i < std::min(files.size(), kLikewiseNamesMax); ++i) {
    const std::string& path = facts.files.at(files[i].key).path;
    text += (i == 0 ? " " : ", ") + path.substr(path.rfind('/') + 1);
  }
  if (files.size() > kLikewiseNamesMax) text += " ...";
  print_wrapped(2, text);
}

// One block for many that are alike.
void print_files(const ProgramFacts& facts, const Judgement& judgement,
                 const std::vector<std::string>& command) {
  Files left = judgement.files;
  while (!left.empty()) {
    const FileJudgement first = left.front();
    Files alike;
    Files others;
    std::ranges::partition_copy(
        left, std::back_inserter(alike), std::back_inserter(others),
        [&](const FileJudgement& file) { return are_alike(facts, first, file); });
    if (alike.size() < kAlikeMin) {
      alike = {first};
      others.assign(left.begin() + 1, left.end());
    }
    left = std::move(others);
    print_file(facts.files.at(first.key), first, run_line(facts, judgement, alike, command));
    alike.erase(alike.begin());
    if (!alike.empty()) print_likewise(facts, alike);
  }
}

Json remarks_json(const std::vector<Remark>& remarks) {
  Json list = Json::array();
  for (const Remark& remark : remarks) {
    list.push_back({{"code", remark.code},
                    {"weight", weight_name(remark.weight)},
                    {"count", remark.count},
                    {"seen", remark.seen},
                    {"why", remark.why},
                    {"advice", remark.advice}});
  }
  return list;
}

const char* verdict_name(const FileJudgement& file) {
  if (file.needs_nothing) return "not needed";
  switch (file.verdict) {
    case Weight::note:
      return "can";
    case Weight::but:
      return "can, but";
    case Weight::cannot:
      return "cannot";
  }
  return "unknown";
}

const char* verdict_on_all(const Judgement& judgement) {
  const bool is_none_needed = std::ranges::all_of(judgement.files, &FileJudgement::needs_nothing);
  if (judgement.files.empty() || (is_none_needed && !judgement.is_fine))
    return "There is nothing here for 'pawl run' to protect: see above.";
  if (is_none_needed) return "None of it needs 'pawl run'.";
  if (std::ranges::any_of(judgement.files, is_refused)) return "Not as it is: see above.";
  if (judgement.is_fine) return "Pawl can protect all of it as it is.";
  return "Pawl can protect it; what is different then stands above.";
}

std::string last_lines(const Judgement& judgement) {
  std::string text = verdict_on_all(judgement);
  const bool is_yes = std::ranges::any_of(judgement.files, is_offered) &&
                      std::ranges::none_of(judgement.files, is_refused);
  if (is_yes) {
    text +=
        " Only what ran this time was judged: if two of these programs ever run at once on the "
        "same files, watch them together.";
  }
  return text;
}

}  // namespace

Json answer_json(const ProgramFacts& facts, const Judgement& judgement,
                 const std::vector<std::string>& command) {
  Json files = Json::array();
  for (const FileJudgement& one : judgement.files) {
    const FileFacts& file = facts.files.at(one.key);
    files.push_back({{"path", file.path},
                     {"verdict", verdict_name(one)},
                     {"names", file.names},
                     {"run", run_line(facts, judgement, {one}, command)},
                     {"mappings", file.mappings},
                     {"writable", file.is_mapped_writable},
                     {"longest_mapping_bytes", file.longest_mapping_bytes},
                     {"first_size_bytes", file.first_size_bytes},
                     {"last_size_bytes", file.last_size_bytes},
                     {"changes", file.changes},
                     {"synchronisations", file.synchronisations},
                     {"failed_synchronisations", file.failed_synchronisations},
                     {"sync_file_range", file.range_hints},
                     {"programs", file.programs},
                     {"findings", remarks_json(one.remarks)}});
  }
  return Json{{"command", command},
              {"ended",
               {{"exit_code", facts.ending.signal == 0 ? Json(facts.ending.exit_code) : Json()},
                {"signal", facts.ending.signal != 0 ? Json(facts.ending.signal) : Json()}}},
              {"processes", facts.processes},
              {"fine", judgement.is_fine},
              {"run", run_line(facts, judgement, judgement.files, command)},
              {"leave_out", paths_to_leave_out(facts, judgement)},
              {"files", files},
              {"findings", remarks_json(judgement.remarks)},
              {"limits", facts.limits}};
}

void print_answer(const ProgramFacts& facts, const Judgement& judgement,
                  const std::vector<std::string>& command) {
  print_line(fmt::format(
      "{} {}. {}, {}.", command.front(), ending_text(facts.ending),
      facts.processes == 1 ? "1 process" : fmt::format("{} processes", facts.processes),
      judgement.files.size() == 1 ? "1 file to judge"
                                  : fmt::format("{} files to judge", judgement.files.size())));
  print_files(facts, judgement, command);
  if (!judgement.remarks.empty()) {
    fmt::print("\nThe program as a whole:\n");
    print_remarks_once(judgement.remarks);
  }
  for (const std::string& limit : facts.limits) {
    fmt::print("\n");
    print_wrapped(0, "Not all was looked at: " + limit + ".");
  }
  if (std::ranges::count_if(judgement.files, is_offered) > 1) {
    fmt::print("\nAll that can be protected:\n");
    print_line("  " + run_line(facts, judgement, judgement.files, command));
  }
  if (const auto paths = paths_to_leave_out(facts, judgement); !paths.empty()) {
    std::string names;
    for (const std::string& path : paths) names += (names.empty() ? "" : ", ") + path;
    fmt::print("\n");
    print_wrapped(0,
                  "Leave out, for they need no protection or look like locks and shared state "
                  "(never synchronised, while another file is): " +
                      names + ".");
  }
  fmt::print("\n");
  print_wrapped(0, last_lines(judgement));
}

}  // namespace pawl::cli::watch
