// Kyoto Cabinet, killed at random, again and again.
//
//   kyoto_writer torture hash|tree DIRECTORY KILLS WORDS PAWL
//       Loads WORDS (one record a line) into a database under `PAWL run`, then KILLS times: starts
//       a writer under it, kills it (SIGKILL) at random, and checks that the database opens without
//       repair, that Kyoto Cabinet's own check passes, and that it holds exactly the acknowledged
//       operations, or one more.  PAWL may be "none": then nothing is asserted, and it prints how
//       many databases came out damaged.
//   kyoto_writer write hash|tree PATH SEED FIRST
//       Does operation FIRST, FIRST + 1, ... with one synchronize(true) each, and says so on
//       stdout.
//   kyoto_writer dump hash|tree PATH
//       Opens the database as any program would, and prints what it finds.
//   kyoto_writer make hash|tree PATH RECORDS
//       Makes a database of that many records.
//   kyoto_writer audit hash|tree PATH SEED ACKNOWLEDGED RECORDS
//       Opens a database that `make` made and `write` worked on, from operation 0 on, and says
//       "found N": it holds operations 0 to N - 1, where N is ACKNOWLEDGED or one more.  Ends with
//       1 and says why when it does not, or when it had to be repaired.
#include <fcntl.h>
#include <kchashdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using Model = std::map<std::string, std::string>;

constexpr int kMapBytes = 64 << 20;
constexpr unsigned kKeysChanged = 2000;              // besides the words
constexpr unsigned kDelayMicrosecondsMax = 120'000;  // from the start of a writer to its death

[[noreturn]] void die(const std::string& what) {
  std::cerr << "kyoto_writer: " << what << '\n';
  std::exit(1);
}

// ---------------------------------------------------------------------------------- operations

struct Operation {
  enum class Kind { set, append, remove } kind;
  std::string key;
  std::string value;
};

// The same for the same seed and number: the writer does it, and the driver knows what it did.
Operation operation(unsigned long seed, unsigned long number) {
  std::mt19937_64 random(seed * 1'000'003 + number);
  Operation made;
  made.key = "torture-" + std::to_string(random() % kKeysChanged);
  const unsigned kind = static_cast<unsigned>(random() % 10);
  made.kind = kind < 6   ? Operation::Kind::set
              : kind < 8 ? Operation::Kind::append
                         : Operation::Kind::remove;
  // Mostly small, at times larger than a page, so that records move and the file grows.
  const std::size_t size = random() % 20 == 0 ? random() % 9000 : random() % 300;
  made.value =
      std::to_string(number) + ":" + std::string(size, static_cast<char>('a' + number % 26));
  return made;
}

void perform(const Operation& operation, Model& model) {
  switch (operation.kind) {
    case Operation::Kind::set:
      model[operation.key] = operation.value;
      break;
    case Operation::Kind::append:
      model[operation.key] += operation.value;
      break;
    case Operation::Kind::remove:
      model.erase(operation.key);
      break;
  }
}

template <class Database>
bool perform(const Operation& operation, Database& database) {
  switch (operation.kind) {
    case Operation::Kind::set:
      return database.set(operation.key, operation.value);
    case Operation::Kind::append:
      return database.append(operation.key, operation.value);
    case Operation::Kind::remove:
      return database.remove(operation.key) ||
             database.error() == kyotocabinet::BasicDB::Error::NOREC;
  }
  return false;
}

// -------------------------------------------------------------------- in the processes under test

// Kyoto Cabinet's tree keeps to itself whether its file was repaired; its log does not.  "Trimming"
// is no repair: synchronize() is an msync() of the file with its slack, then an ftruncate() and an
// fsync(), and a crash between the two commits leaves the slack, whole records before it.
class RepairLog : public kyotocabinet::BasicDB::Logger {
 public:
  void log(const char*, int32_t, const char*, Kind, const char* message) override {
    const std::string text = message;
    for (const char* const sign : {"recovered", "reorganiz", "broken"}) {
      if (text.find(sign) != std::string::npos) repaired_ = true;
    }
  }
  bool repaired() const { return repaired_; }

 private:
  bool repaired_ = false;
};

template <class Database>
void open_database(Database& database, RepairLog& log, const std::string& path, unsigned mode) {
  database.tune_logger(&log);
  database.tune_map(kMapBytes);
  if (!database.open(path, mode)) die("cannot open " + path + ": " + database.error().message());
}

template <class Database>
int write_operations(const std::string& path, unsigned long seed, unsigned long first) {
  RepairLog log;
  Database database;
  open_database(database, log, path, Database::OWRITER);
  for (unsigned long number = first;; ++number) {
    if (!perform(operation(seed, number), database))
      die(std::string("operation: ") + database.error().message());
    if (!database.synchronize(true)) die(std::string("synchronize: ") + database.error().message());
    const std::string line = std::to_string(number) + "\n";
    if (write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      return 0;
  }
}

template <class Database>
Model records_of(Database& database) {
  Model records;
  const std::unique_ptr<kyotocabinet::BasicDB::Cursor> cursor(database.cursor());
  std::string key;
  std::string value;
  for (bool more = cursor->jump(); more;) {
    more = cursor->get(&key, &value, true);
    if (more) records[key] = value;
  }
  return records;
}

template <class Database>
int dump(const std::string& path) {
  RepairLog log;
  Database database;
  open_database(database, log, path, Database::OWRITER);
  std::cout << (log.repaired() ? "repaired" : "whole") << '\n';
  for (const auto& [key, value] : records_of(database)) std::cout << key << '\t' << value << '\n';
  return database.close() ? 0 : 1;
}

Model made_records(unsigned long count) {
  Model records;
  for (unsigned long number = 0; number < count; ++number)
    records["record-" + std::to_string(number)] = std::to_string(number);
  return records;
}

template <class Database>
int make(const std::string& path, unsigned long records) {
  RepairLog log;
  Database database;
  open_database(database, log, path, Database::OWRITER | Database::OCREATE);
  for (const auto& [key, value] : made_records(records)) {
    if (!database.set(key, value)) die(std::string("set: ") + database.error().message());
  }
  if (!database.synchronize(true) || !database.close())
    die(std::string("close: ") + database.error().message());
  return 0;
}

template <class Database>
int audit(const std::string& path, unsigned long seed, unsigned long acknowledged,
          unsigned long records) {
  RepairLog log;
  Database database;
  open_database(database, log, path, Database::OWRITER);
  if (log.repaired()) die("the database had to be repaired");
  const Model found = records_of(database);
  Model expected = made_records(records);
  unsigned long number = 0;
  for (; number < acknowledged; ++number) perform(operation(seed, number), expected);
  if (found != expected) perform(operation(seed, number++), expected);
  if (found != expected)
    die("the database holds " + std::to_string(found.size()) + " records, which are not those of " +
        std::to_string(acknowledged) + " operations, and not those of one more");
  std::cout << "found " << number << std::endl;
  return database.close() ? 0 : 1;
}

// ------------------------------------------------------------------------------------- the driver

struct Torture {
  std::string kind;
  std::string directory;
  unsigned long kills;
  std::string words;
  std::string pawl;
  std::string self;
  unsigned long seed;

  bool under_pawl() const { return pawl != "none"; }
  std::string path() const { return directory + "/torture." + (kind == "hash" ? "kch" : "kct"); }
  std::string manager() const { return kind == "hash" ? "kchashmgr" : "kctreemgr"; }

  std::vector<std::string> command(std::vector<std::string> program) const {
    if (!under_pawl()) return program;
    std::vector<std::string> all = {pawl, "run", "--atomic", "*.kch", "--atomic", "*.kct", "--"};
    all.insert(all.end(), program.begin(), program.end());
    return all;
  }
};

struct Child {
  pid_t process;
  int output;
};

Child start(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) die("pipe");
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t process = fork();
  if (process < 0) die("fork");
  if (process == 0) {
    dup2(ends[1], STDOUT_FILENO);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(ends[1]);
  return {process, ends[0]};
}

std::string read_all(int descriptor) {
  std::string text;
  char buffer[1 << 16];
  for (ssize_t got = read(descriptor, buffer, sizeof(buffer)); got > 0;
       got = read(descriptor, buffer, sizeof(buffer))) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  close(descriptor);
  return text;
}

struct Outcome {
  int status;
  std::string output;
};

Outcome run(const std::vector<std::string>& command) {
  const Child child = start(command);
  Outcome outcome{0, read_all(child.output)};
  waitpid(child.process, &outcome.status, 0);
  return outcome;
}

struct Dump {
  bool opened = false;
  bool repaired = false;
  Model records;
};

Dump dump_of(const Torture& torture) {
  const Outcome outcome =
      run(torture.command({torture.self, "dump", torture.kind, torture.path()}));
  Dump dump;
  dump.opened = outcome.status == 0;
  std::size_t at = outcome.output.find('\n');
  dump.repaired = outcome.output.substr(0, at) != "whole";
  while (at != std::string::npos && at + 1 < outcome.output.size()) {
    const std::size_t end = outcome.output.find('\n', at + 1);
    const std::string line = outcome.output.substr(at + 1, end - at - 1);
    const std::size_t tab = line.find('\t');
    if (tab != std::string::npos) dump.records[line.substr(0, tab)] = line.substr(tab + 1);
    at = end;
  }
  return dump;
}

Model load_words(const Torture& torture) {
  Model model;
  std::ifstream words(torture.words);
  const std::string records = torture.directory + "/words.tsv";
  std::ofstream out(records);
  unsigned long number = 0;
  for (std::string word; std::getline(words, word); ++number) {
    if (word.empty() || !model.emplace(word, std::to_string(number)).second) continue;
    out << word << '\t' << number << '\n';
  }
  out.close();
  if (model.size() < 1000) die("no words in " + torture.words);
  unlink(torture.path().c_str());
  const Outcome outcome =
      run(torture.command({torture.manager(), "import", torture.path(), records}));
  if (outcome.status != 0) die("cannot import the words: " + outcome.output.substr(0, 200));
  return model;
}

// Kills the writer after a while and returns the number of operations it acknowledged.
unsigned long write_and_kill(const Torture& torture, unsigned long first, std::mt19937_64& random) {
  const Child child = start(torture.command({torture.self, "write", torture.kind, torture.path(),
                                             std::to_string(torture.seed), std::to_string(first)}));
  // Now and then within the opening, mostly among the operations.
  if (random() % 8 != 0) {
    pollfd first_line{child.output, POLLIN, 0};
    poll(&first_line, 1, 60'000);
  }
  usleep(static_cast<useconds_t>(random() % kDelayMicrosecondsMax));
  kill(child.process, SIGKILL);
  const std::string output = read_all(child.output);
  int status = 0;
  waitpid(child.process, &status, 0);
  if (!WIFSIGNALED(status)) die("the writer ended by itself, before it was killed");
  unsigned long lines = 0;
  for (const char byte : output) lines += byte == '\n' ? 1 : 0;
  return lines;
}

int torture_database(const Torture& torture) {
  std::mt19937_64 random(torture.seed);
  Model model = load_words(torture);
  std::cout << torture.kind << ": " << model.size() << " records loaded, seed " << torture.seed
            << std::endl;
  unsigned long next = 0;
  unsigned long one_more = 0;
  unsigned long damaged = 0;
  for (unsigned long kill_number = 0; kill_number < torture.kills; ++kill_number) {
    const unsigned long acknowledged = write_and_kill(torture, next, random);
    for (unsigned long i = 0; i < acknowledged; ++i)
      perform(operation(torture.seed, next++), model);
    const Dump dump = dump_of(torture);
    const bool as_acknowledged = dump.records == model;
    bool has_one_more = false;
    if (!as_acknowledged) {
      Model with_one_more = model;
      perform(operation(torture.seed, next), with_one_more);
      has_one_more = dump.records == with_one_more;
      if (has_one_more) {
        model = std::move(with_one_more);
        ++next;
        ++one_more;
      }
    }
    const bool checked =
        run(torture.command({torture.manager(), "check", torture.path()})).status == 0;
    if (dump.opened && !dump.repaired && checked && (as_acknowledged || has_one_more)) continue;
    const std::string verdict =
        std::string(dump.opened ? "" : " not opened") + (dump.repaired ? " repaired" : "") +
        (checked ? "" : " check failed") +
        (as_acknowledged || has_one_more ? "" : " other content than acknowledged");
    if (torture.under_pawl()) {
      std::cerr << "kill " << kill_number << " after operation " << next << ":" << verdict
                << " (seed " << torture.seed << ")\n";
      return 1;
    }
    // Without Pawl: count it, and start over.
    ++damaged;
    next += 1;
    model = load_words(torture);
  }
  std::cout << torture.kind << ": " << torture.kills << " kills, " << next << " operations, "
            << one_more << " times one more than acknowledged, " << damaged
            << " times damaged or repaired" << std::endl;
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> given(arguments + 1, arguments + count);
  if (given.size() == 6 && given[0] == "torture") {
    const char* const chosen = std::getenv("PAWL_TORTURE_SEED");
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    const unsigned long seed = chosen != nullptr ? std::strtoul(chosen, nullptr, 10)
                                                 : static_cast<unsigned long>(now) % 1'000'000;
    return torture_database(
        {given[1], given[2], std::stoul(given[3]), given[4], given[5], arguments[0], seed});
  }
  if (given.size() == 5 && given[0] == "write") {
    const unsigned long seed = std::stoul(given[3]);
    const unsigned long first = std::stoul(given[4]);
    return given[1] == "hash" ? write_operations<kyotocabinet::HashDB>(given[2], seed, first)
                              : write_operations<kyotocabinet::TreeDB>(given[2], seed, first);
  }
  if (given.size() == 3 && given[0] == "dump") {
    return given[1] == "hash" ? dump<kyotocabinet::HashDB>(given[2])
                              : dump<kyotocabinet::TreeDB>(given[2]);
  }
  if (given.size() == 4 && given[0] == "make") {
    const unsigned long records = std::stoul(given[3]);
    return given[1] == "hash" ? make<kyotocabinet::HashDB>(given[2], records)
                              : make<kyotocabinet::TreeDB>(given[2], records);
  }
  if (given.size() == 6 && given[0] == "audit") {
    const unsigned long seed = std::stoul(given[3]);
    const unsigned long acknowledged = std::stoul(given[4]);
    const unsigned long records = std::stoul(given[5]);
    return given[1] == "hash" ? audit<kyotocabinet::HashDB>(given[2], seed, acknowledged, records)
                              : audit<kyotocabinet::TreeDB>(given[2], seed, acknowledged, records);
  }
  die("see the head of kyoto_writer.cc for how it is called");
}
