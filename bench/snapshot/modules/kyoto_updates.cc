// A turn of Kyoto Cabinet: opens a hash database, updates records in commits of so many, and prints
// how long each commit took, updates included, in microseconds, one a line.
//
//   kyoto_updates PATH RECORDS UPDATES COMMITS SEED transactions|synchronize
//
// A database that lacks records gets them first.  A commit is a transaction of its own, hard, or a
// hard synchronize() behind the updates: under `pawl run` that is as atomic.
#include <kchashdb.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMapBytes = 64 << 20;  // Kyoto Cabinet's default
constexpr int kValueBytes = 100;
constexpr int kLeadIn = 2;  // commits that find cold caches, and are not counted

[[noreturn]] void die(const kyotocabinet::HashDB& database, const char* what) {
  std::fprintf(stderr, "kyoto_updates: %s: %s\n", what, database.error().message());
  std::exit(EXIT_FAILURE);
}

std::string key_of(unsigned long record) {
  char key[32];
  std::snprintf(key, sizeof key, "key %012lu", record);
  return key;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr,
                 "usage: kyoto_updates PATH RECORDS UPDATES COMMITS SEED "
                 "transactions|synchronize\n");
    return EXIT_FAILURE;
  }
  const unsigned long records = std::strtoul(argv[2], nullptr, 10);
  const unsigned long updates = std::strtoul(argv[3], nullptr, 10);
  const unsigned long commits = std::strtoul(argv[4], nullptr, 10);
  const bool transactions = std::string(argv[6]) == "transactions";
  std::mt19937_64 random(std::strtoul(argv[5], nullptr, 10));

  kyotocabinet::HashDB database;
  database.tune_map(kMapBytes);
  if (!database.open(argv[1], kyotocabinet::HashDB::OWRITER | kyotocabinet::HashDB::OCREATE))
    die(database, "cannot open the database");
  for (unsigned long record = static_cast<unsigned long>(database.count()); record < records;
       ++record) {
    if (!database.set(key_of(record), std::string(kValueBytes, 'v')))
      die(database, "cannot set a record");
  }
  if (!database.synchronize(true)) die(database, "cannot synchronize");

  std::vector<double> times_us;
  for (unsigned long commit = 0; commit < commits + kLeadIn; ++commit) {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (unsigned long i = 0; i < updates; ++i) {
      std::string value(kValueBytes, static_cast<char>('a' + random() % 26));
      pairs.emplace_back(key_of(random() % records), value);
    }
    const auto begin = Clock::now();
    if (transactions && !database.begin_transaction(true)) die(database, "cannot begin");
    for (const auto& [key, value] : pairs) {
      if (!database.set(key, value)) die(database, "cannot set a record");
    }
    if (transactions ? !database.end_transaction(true) : !database.synchronize(true))
      die(database, "cannot commit");
    if (commit >= kLeadIn)
      times_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  if (!database.close()) die(database, "cannot close the database");
  for (const double time_us : times_us) std::printf("%.3f\n", time_us);
  return EXIT_SUCCESS;
}
