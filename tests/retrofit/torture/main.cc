// Key-value stores from Debian, killed at random, again and again.  KIND is one of an adapter's.
//
//   kinds
//       Prints the name of each kind that this program has.
//   torture KIND DIRECTORY KILLS WORDS PAWL
//       Loads WORDS (one record a line) into a store under `PAWL run`, then KILLS times: now and
//       then has a writer do a few operations and close the store; starts a writer under Pawl,
//       kills it (SIGKILL) at random, and checks that the store opens without repair, that its own
//       check passes, and that it holds exactly the acknowledged operations, or one more.  PAWL may
//       be "none": then nothing is asserted, and it prints how many stores came out damaged.
//   write KIND PATH SEED FIRST [COUNT]
//       Does operation FIRST, FIRST + 1, ... with one synchronising call each, and says so on
//       stdout.  After COUNT operations it closes the store.
//   powercut KIND DIRECTORY CUTS WORDS none
//       Loads WORDS, then CUTS times leaves the store as a power cut within its synchronising call
//       may leave it when there is no Pawl, and prints how many came out damaged.  (Power cuts
//       under Pawl are the business of tests/powercut.)
//   leave KIND PATH SEED FIRST
//       Does operations FIRST and FIRST + 1, copies the file to PATH.before between them and to
//       PATH.after behind them, and ends without closing the store.
//   dump KIND PATH
//       Opens the store as any program would, has it check itself, and prints what it finds.
//   load KIND PATH RECORDS
//       Makes a store of the records in a file.
//   make KIND PATH COUNT
//       Makes a store of that many records.
//   audit KIND PATH SEED ACKNOWLEDGED COUNT [LEAST]
//       Opens a store that `make` made and `write` worked on, from operation 0 on, and says "found
//       N": it holds operations 0 to N - 1, where N is ACKNOWLEDGED or one more, or from LEAST on
//       where what is acknowledged is durable only later.  Ends with 1 and
//       says why when it does not, or when it had to be repaired; a store that may repair itself
//       says "restored".
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <random>

#include "torture/driver.h"
#include "torture/records_text.h"
#include "torture/store.h"

namespace pawl::retrofit {
namespace {

using Arguments = std::vector<std::string>;

StoreKind kind_of(const std::string& name) {
  for (const StoreKind& kind : store_kinds()) {
    if (kind.name == name) return kind;
  }
  die("there is no kind " + name);
}

unsigned long number(const std::string& text) { return std::stoul(text); }

// Between the changes of an operation, as when they come from somewhere: so that many kills fall
// among them, and not all into the waits for the disk.
constexpr unsigned kPauseMicrosecondsMax = 2000;

Operation operation_of(const StoreKind& kind, unsigned long seed, unsigned long number) {
  Operation made = operation(seed, number);
  if (kind.commits_each_change) made.resize(1);
  return made;
}

void perform(const Operation& operation, Store& store, std::mt19937_64& random) {
  for (const Change& change : operation) {
    usleep(static_cast<useconds_t>(random() % kPauseMicrosecondsMax));
    switch (change.kind) {
      case Change::Kind::set:
        store.set(change.key, change.value);
        break;
      case Change::Kind::append:
        store.append(change.key, change.value);
        break;
      case Change::Kind::remove:
        store.remove(change.key);
        break;
    }
  }
}

int make(const StoreKind& kind, const std::string& path, const Model& records) {
  const auto store = kind.open(path, true);
  for (const auto& [key, value] : records) store->set(key, value);
  store->synchronise();
  store->close();
  return 0;
}

int load(const StoreKind& kind, const Arguments& given) {
  std::ifstream in(given[1]);
  const Model records = read_records(in);
  if (records.empty()) die("no records in " + given[1]);
  return make(kind, given[0], records);
}

int write_operations(const StoreKind& kind, const Arguments& given) {
  const auto store = kind.open(given[0], false);
  const unsigned long seed = number(given[1]);
  std::mt19937_64 random(seed);
  const unsigned long first = number(given[2]);
  const unsigned long count =
      given.size() > 3 ? number(given[3]) : std::numeric_limits<unsigned long>::max();
  for (unsigned long next = first; next - first < count; ++next) {
    perform(operation_of(kind, seed, next), *store, random);
    store->synchronise();
    const std::string line = std::to_string(next) + "\n";
    if (write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      return 1;
  }
  store->close();
  return 0;
}

int leave(const StoreKind& kind, const Arguments& given) {
  const std::string& path = given[0];
  const auto store = kind.open(path, false);
  const unsigned long seed = number(given[1]);
  std::mt19937_64 random(seed);
  unsigned long next = number(given[2]);
  for (const char* const suffix : {".before", ".after"}) {
    perform(operation(seed, next++), *store, random);
    store->synchronise();
    std::filesystem::copy_file(path, path + suffix,
                               std::filesystem::copy_options::overwrite_existing);
  }
  _exit(0);
}

int dump(const StoreKind& kind, const Arguments& given) {
  const auto store = kind.open(given[0], false);
  std::cout << (store->was_repaired() ? "repaired" : "whole") << '\n';
  const Model found = store->records();
  write_records(found, std::cout);
  store->check(found);
  store->close();
  return 0;
}

int audit(const StoreKind& kind, const Arguments& given) {
  const auto store = kind.open(given[0], false);
  const bool was_repaired = store->was_repaired();
  const unsigned long seed = number(given[1]);
  const unsigned long acknowledged = number(given[2]);
  const unsigned long least = given.size() > 4 ? number(given[4]) : acknowledged;
  const Model found = store->records();
  store->check(found);
  Model expected = made_records(number(given[3]));
  unsigned long next = 0;
  while (next < least || (found != expected && next <= acknowledged))
    perform(operation_of(kind, seed, next++), expected);
  const std::string repaired = was_repaired ? "repaired, " : "";
  if (found != expected)
    die(repaired + "the store holds " + std::to_string(found.size()) +
        " records, which are not those of " + std::to_string(least) + " to " +
        std::to_string(acknowledged + 1) + " operations");
  if (was_repaired && !kind.may_repair_itself)
    die("the store had to be repaired, and holds what was acknowledged");
  if (was_repaired) std::cout << "restored\n";
  std::cout << "found " << next << std::endl;
  store->close();
  return 0;
}

using Trial = int (*)(const Torture& torture);

int try_out(Trial trial, const StoreKind& kind, const Arguments& given, const std::string& self) {
  if (kind.file.empty()) die("this is no file of its own to begin anew with: a server's");
  const char* const chosen = std::getenv("PAWL_TORTURE_SEED");
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const unsigned long seed =
      chosen != nullptr ? number(chosen) : static_cast<unsigned long>(now) % 1'000'000;
  return trial({kind, given[0], number(given[1]), given[2], given[3], self, seed});
}

int obey(const Arguments& all, const std::string& self) {
  if (all == Arguments{"kinds"}) {
    for (const StoreKind& kind : store_kinds()) std::cout << kind.name << '\n';
    return 0;
  }
  if (all.size() >= 2) {
    const std::string& verb = all[0];
    const StoreKind kind = kind_of(all[1]);
    const Arguments given(all.begin() + 2, all.end());
    if (verb == "torture" && given.size() == 4) return try_out(torture_store, kind, given, self);
    if (verb == "powercut" && given.size() == 4) return try_out(cut_power, kind, given, self);
    if (verb == "leave" && given.size() == 3) return leave(kind, given);
    if (verb == "write" && (given.size() == 3 || given.size() == 4))
      return write_operations(kind, given);
    if (verb == "dump" && given.size() == 1) return dump(kind, given);
    if (verb == "load" && given.size() == 2) return load(kind, given);
    if (verb == "make" && given.size() == 2)
      return make(kind, given[0], made_records(number(given[1])));
    if (verb == "audit" && (given.size() == 4 || given.size() == 5)) return audit(kind, given);
  }
  die("see the head of main.cc for how it is called");
}

}  // namespace

void die(const std::string& what) {
  std::cerr << "torture: " << what << '\n';
  std::exit(1);
}

}  // namespace pawl::retrofit

int main(int count, char** arguments) {
  return pawl::retrofit::obey({arguments + 1, arguments + count}, arguments[0]);
}
