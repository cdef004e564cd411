#include "torture/driver.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "torture/processes.h"
#include "torture/records_text.h"

namespace pawl::retrofit {
namespace {

constexpr unsigned kDelayMicrosecondsMax = 120'000;  // from a writer's first line to its death
constexpr int kFirstLineMilliseconds = 60'000;
constexpr std::size_t kWordsMin = 1000;
constexpr std::streamsize kPageBytes = 4096;
constexpr unsigned kKillsPerWholeSession = 4;
constexpr unsigned long kOperationsOfWholeSession = 8;

Command under(const Torture& torture, const Command& program) {
  if (!torture.under_pawl()) return program;
  Command all = {torture.pawl, "run", "--atomic", torture.kind.glob, "--"};
  all.insert(all.end(), program.begin(), program.end());
  return all;
}

Model load_words(const Torture& torture) {
  Model model;
  std::ifstream words(torture.words);
  unsigned long number = 0;
  for (std::string word; std::getline(words, word); ++number) {
    if (!word.empty()) model.emplace(word, std::to_string(number));
  }
  if (model.size() < kWordsMin) die("no words in " + torture.words);
  const std::string records = torture.directory + "/words.tsv";
  std::ofstream out(records);
  write_records(model, out);
  out.close();
  // With all that a store made beside its file.
  for (const auto& entry : std::filesystem::directory_iterator(torture.directory)) {
    if (entry.path().filename().string().starts_with(torture.kind.file))
      std::filesystem::remove_all(entry.path());
  }
  const Outcome outcome =
      run(under(torture, {torture.self, "load", torture.kind.name, torture.path(), records}));
  if (outcome.status != 0) die("cannot load the words");
  return model;
}

struct Found {
  bool opened = false;  // and its own check passed
  bool repaired = false;
  bool checked = false;  // by the store's program
  Model records;
};

Found look_at(const Torture& torture) {
  Found found;
  const Outcome outcome =
      run(under(torture, {torture.self, "dump", torture.kind.name, torture.path()}));
  found.opened = outcome.status == 0;
  std::istringstream text(outcome.output);
  std::string first;
  std::getline(text, first);
  found.repaired = first == "repaired";
  found.records = read_records(text);
  found.checked = torture.kind.check_command == nullptr ||
                  run(under(torture, torture.kind.check_command(torture.path()))).status == 0;
  return found;
}

Command writer(const Torture& torture, unsigned long first) {
  return {torture.self,
          "write",
          torture.kind.name,
          torture.path(),
          std::to_string(torture.seed),
          std::to_string(first)};
}

// A session that ends as it should.  What a store writes into its file when it is closed must not
// harm it after a later crash.
void write_and_close(const Torture& torture, unsigned long first) {
  Command command = writer(torture, first);
  command.push_back(std::to_string(kOperationsOfWholeSession));
  if (run(under(torture, command)).status != 0) die("a writer that nobody killed failed");
}

// Kills the writer after a while and returns the number of operations it acknowledged.
unsigned long write_and_kill(const Torture& torture, unsigned long first, std::mt19937_64& random) {
  const Child child = start(under(torture, writer(torture, first)));
  // Now and then within the opening, mostly among the operations.
  if (random() % 8 != 0) {
    pollfd first_line{child.output, POLLIN, 0};
    poll(&first_line, 1, kFirstLineMilliseconds);
  }
  usleep(static_cast<useconds_t>(random() % kDelayMicrosecondsMax));
  kill(child.process, SIGKILL);
  const std::string output = read_all(child.output);
  int status = 0;
  waitpid(child.process, &status, 0);
  if (!WIFSIGNALED(status)) die("the writer ended by itself, before it was killed");
  return static_cast<unsigned long>(std::count(output.begin(), output.end(), '\n'));
}

struct Counts {
  unsigned long one_more = 0;
  unsigned long repaired = 0;
  unsigned long not_opened = 0;
  unsigned long check_failed = 0;
  unsigned long other_content = 0;
  unsigned long damaged = 0;  // any of the four before, once
};

// What is wrong, in words; empty when nothing is.
std::string verdict(const Torture& torture, const Found& found, bool content_holds,
                    Counts& counts) {
  std::string wrong;
  const auto count = [&wrong](bool is_wrong, const char* what, unsigned long& counter) {
    if (!is_wrong) return;
    wrong += std::string(" ") + what;
    ++counter;
  };
  count(!found.opened, "not opened, or refused by its own check;", counts.not_opened);
  if (torture.under_pawl() && torture.kind.may_repair_itself && found.repaired) {
    ++counts.repaired;
  } else {
    count(found.repaired, "repaired;", counts.repaired);
  }
  count(!found.checked, "refused by its program's check;", counts.check_failed);
  count(found.opened && !content_holds, "other content than acknowledged;", counts.other_content);
  return wrong;
}

void report(const Torture& torture, const std::string& trials, unsigned long operations,
            const Counts& counts) {
  std::cout << torture.kind.name << ": " << torture.kills << " " << trials << ", " << operations
            << " operations, " << counts.one_more << " times one more than acknowledged, "
            << counts.damaged << " times damaged (" << counts.not_opened
            << " not opened or refused by its own check, " << counts.repaired << " repaired, "
            << counts.check_failed << " refused by its program's check, " << counts.other_content
            << " with other content)" << std::endl;
}

// PATH becomes, page by page, either of PATH.before and PATH.after.
void mix_pages(const std::string& path, std::mt19937_64& random) {
  std::ifstream before(path + ".before", std::ios::binary);
  std::ifstream after(path + ".after", std::ios::binary);
  std::ofstream mixed(path, std::ios::binary | std::ios::trunc);
  std::string new_page(kPageBytes, '\0');
  while (after.read(new_page.data(), kPageBytes) || after.gcount() > 0) {
    // What the file did not have before is zeros until it is written.
    std::string old_page(kPageBytes, '\0');
    before.read(old_page.data(), kPageBytes);
    const std::string& page = random() % 2 == 0 ? old_page : new_page;
    mixed.write(page.data(), after.gcount());
  }
  if (!mixed.flush()) die("cannot write " + path);
}

Model begin(const Torture& torture) {
  Model model = load_words(torture);
  std::cout << torture.kind.name << ": " << model.size() << " records loaded, seed " << torture.seed
            << std::endl;
  return model;
}

}  // namespace

int torture_store(const Torture& torture) {
  std::mt19937_64 random(torture.seed);
  Model model = begin(torture);
  unsigned long next = 0;
  Counts counts;
  for (unsigned long kill_number = 0; kill_number < torture.kills; ++kill_number) {
    if (random() % kKillsPerWholeSession == 0) {
      write_and_close(torture, next);
      for (unsigned long i = 0; i < kOperationsOfWholeSession; ++i)
        perform(operation(torture.seed, next++), model);
    }
    const unsigned long acknowledged = write_and_kill(torture, next, random);
    for (unsigned long i = 0; i < acknowledged; ++i)
      perform(operation(torture.seed, next++), model);
    const Found found = look_at(torture);
    bool content_holds = found.records == model;
    if (!content_holds) {
      Model with_one_more = model;
      perform(operation(torture.seed, next), with_one_more);
      content_holds = found.records == with_one_more;
      if (content_holds) {
        model = std::move(with_one_more);
        ++next;
        ++counts.one_more;
      }
    }
    const std::string wrong = verdict(torture, found, content_holds, counts);
    if (wrong.empty()) continue;
    if (torture.under_pawl()) {
      std::cerr << "kill " << kill_number << " after operation " << next << ":" << wrong
                << " (seed " << torture.seed << ")\n";
      return 1;
    }
    // Without Pawl: count it, and start over.
    ++counts.damaged;
    ++next;
    model = load_words(torture);
  }
  if (next == 0) die("not one operation was acknowledged: nothing was tried");
  report(torture, "kills", next, counts);
  return 0;
}

int cut_power(const Torture& torture) {
  if (torture.under_pawl() || !torture.kind.synchronises_at_once)
    die("that is for a store that synchronises at once, without Pawl");
  std::mt19937_64 random(torture.seed);
  Model model = begin(torture);
  unsigned long next = 0;
  Counts counts;
  for (unsigned long cut = 0; cut < torture.kills; ++cut) {
    Command command = writer(torture, next);
    command[1] = "leave";
    if (run(command).status != 0) die("a writer that nobody killed failed");
    perform(operation(torture.seed, next++), model);
    mix_pages(torture.path(), random);
    const Found found = look_at(torture);
    Model with_one_more = model;
    perform(operation(torture.seed, next), with_one_more);
    const bool has_one_more = found.records == with_one_more;
    const bool content_holds = has_one_more || found.records == model;
    if (verdict(torture, found, content_holds, counts).empty()) {
      if (!has_one_more) continue;
      model = std::move(with_one_more);
      ++next;
      ++counts.one_more;
      continue;
    }
    ++counts.damaged;
    ++next;
    model = load_words(torture);
  }
  report(torture, "power cuts", next, counts);
  return 0;
}

}  // namespace pawl::retrofit
