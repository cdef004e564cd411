// Lets the kernel and other processes store into a mapping, in every way there is, beside threads
// that fault and threads that come and go, and commits.
//
// The judge: after each commit the pages are stored to by the program and rolled back, which shows
// the committed image: it must be what memory showed at the commit.  And each life of the program
// ends by SIGKILL: recovery must find, in every page, what the last commit acknowledged.
#include <pawl/pawl.h>

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kernel_stores/kinds.h"

namespace pawl::kernel_stores {
namespace {

constexpr unsigned kOrdinaryUser = 65534;
// A signal's frame takes more than one page, and a kind may use the pages behind its own.
constexpr std::size_t kPagesOfStore = 4;
constexpr std::size_t kSmallPages = 64;
constexpr std::size_t kLargePages = 20'000;  // enough for the log of page faults to be asked
constexpr std::size_t kHotPages = 64;        // of these most stores are: pages that are used again
constexpr int kRoundsOfLife = 2000;

struct Setting {
  const char* tracker;
  bool large;
  bool ordinary_user;
  int faulting_threads;
  bool others_store;  // if not, Pawl is promised so, and no other process stores
};

struct Tally {
  std::uint64_t rounds = 0;
  std::uint64_t stores_failed = 0;
  std::uint64_t missed = 0;
  std::uint64_t lost = 0;  // pages that recovery did not find as they were acknowledged
  std::uint64_t lives = 0;
  std::uint64_t lives_failed = 0;
  std::uint64_t located = 0;  // commits that believed the log
};

// What the parent must know of a life that is killed: in memory shared with it.
struct Report {
  std::atomic<std::uint64_t> rounds;
  std::atomic<std::uint64_t> stores_failed;
  std::atomic<std::uint64_t> missed;
  std::atomic<std::uint64_t> located;
  std::atomic<int> is_over;
};

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "kernel_stores: %s: %s (%s)\n", what.c_str(), strerror(errno),
               pawl_last_error());
  std::exit(2);
}

void fault_all_the_time() {
  while (true) {
    void* memory =
        mmap(nullptr, 64 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (std::size_t page = 0; page < 64; ++page)
      *static_cast<volatile char*>(static_cast<char*>(memory) + page * kPage) = 1;
    munmap(memory, 64 * kPage);
  }
}

void become_ordinary() {
  if (setgroups(0, nullptr) != 0 || setresgid(kOrdinaryUser, kOrdinaryUser, kOrdinaryUser) != 0 ||
      setresuid(kOrdinaryUser, kOrdinaryUser, kOrdinaryUser) != 0 ||
      prctl(PR_SET_DUMPABLE, 1) != 0)  // as after an execve: /proc/self is the user's own
    give_up("cannot become an ordinary user");
}

class Life {
 public:
  Life(const Setting& setting, const std::string& directory, std::uint64_t seed, char* expected,
       Report& report)
      : setting_(setting),
        pages_(setting.large ? kLargePages : kSmallPages),
        random_(seed),
        expected_(expected),
        report_(report) {
    if (setting.ordinary_user) become_ordinary();
    std::vector<std::string> refused;
    for (Kind& kind : make_kinds(directory, refused)) {
      if (kind.beyond_fault_tracker && std::strcmp(setting.tracker, "fault") == 0) continue;
      if (kind.by_another_process && !setting.others_store) continue;
      kinds_.push_back(std::move(kind));
    }
    for (const std::string& reason : refused) std::printf("skipped: %s\n", reason.c_str());
    setenv("PAWL_TRACKER", setting.tracker, 1);
    setenv("PAWL_OTHER_PROCESSES", setting.others_store ? "store" : "never-store", 1);
    setenv("PAWL_JOURNAL_SIZE", "4M", 1);
    const std::string file = directory + "/file";
    const int descriptor = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(pages_ * kPage)) != 0)
      give_up("cannot make " + file);
    void* memory =
        pawl_mmap(nullptr, pages_ * kPage, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
    if (memory == MAP_FAILED) give_up("cannot map " + file);
    start_ = static_cast<char*>(memory);
    close(descriptor);
    for (int i = 0; i < setting.faulting_threads; ++i) std::thread(fault_all_the_time).detach();
  }

  void live(int rounds) {
    for (int round = 0; round < rounds; ++round) one_round(round);
    pawl_statistics statistics{};
    pawl_stats(start_, &statistics);
    report_.located += statistics.scans_located;
    report_.is_over = 1;
    kill(getpid(), SIGKILL);
  }

 private:
  std::size_t any(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

  void one_round(int round) {
    const Kind& kind = kinds_[any(kinds_.size())];
    const std::size_t hot = std::min(kHotPages, pages_);
    const std::size_t page = any(any(4) == 0 ? pages_ - kPagesOfStore : hot - kPagesOfStore);
    char* const address = start_ + page * kPage;
    if (!kind.store(address, static_cast<std::uint32_t>(random_()) | 1)) ++report_.stores_failed;
    // A thread that comes and goes, and stores too.
    if (any(16) == 0) {
      char* const other = start_ + any(hot) * kPage + 200;
      std::thread([other, round] { *other = static_cast<char>(round); }).join();
    }
    const std::vector<char> shown(start_, start_ + hot * kPage);
    const std::vector<char> stored(address, address + kPagesOfStore * kPage);
    if (pawl_msync(start_, pages_ * kPage, MS_SYNC) != 0) give_up("cannot commit");
    std::memcpy(expected_, shown.data(), shown.size());
    std::memcpy(expected_ + page * kPage, stored.data(), stored.size());

    for (std::size_t i = 0; i < kPagesOfStore; ++i) address[i * kPage + 3000] += 1;
    if (pawl_msync(start_, pages_ * kPage, MS_INVALIDATE) != 0) give_up("cannot roll back");
    if (std::memcmp(address, stored.data(), stored.size()) != 0) {
      ++report_.missed;
      std::printf("missed: %s, tracker %s, page %zu, round %d\n", kind.name.c_str(),
                  setting_.tracker, page, round);
      std::fflush(stdout);
    }
    ++report_.rounds;
  }

  const Setting setting_;
  const std::size_t pages_;
  std::mt19937_64 random_;
  char* const expected_;
  Report& report_;
  std::vector<Kind> kinds_;
  char* start_ = nullptr;
};

void one_life(const Setting& setting, const std::string& directory, std::uint64_t seed, int rounds,
              Tally& tally) {
  const std::size_t bytes = (setting.large ? kLargePages : kSmallPages) * kPage;
  void* const shared =
      mmap(nullptr, bytes + kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) give_up("no memory");
  char* const expected = static_cast<char*>(shared);
  auto* const report = new (expected + bytes) Report{};
  const std::string file = directory + "/file";
  std::filesystem::remove(file);
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    Life(setting, directory, seed, expected, *report).live(rounds);
    _exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ++tally.lives;
  tally.rounds += report->rounds;
  tally.stores_failed += report->stores_failed;
  tally.missed += report->missed;
  tally.located += report->located;
  if (report->is_over == 0) {
    ++tally.lives_failed;
    std::printf("a life ended early: tracker %s, seed %llu, status %x\n", setting.tracker,
                static_cast<unsigned long long>(seed), status);
  } else {
    if (pawl_recover(file.c_str()) < 0) give_up("cannot recover " + file);
    const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    std::vector<char> found(bytes);
    if (pread(descriptor, found.data(), bytes, 0) != static_cast<ssize_t>(bytes))
      give_up("cannot read " + file);
    close(descriptor);
    for (std::size_t page = 0; page < bytes / kPage; ++page) {
      if (std::memcmp(found.data() + page * kPage, expected + page * kPage, kPage) == 0) continue;
      ++tally.lost;
      std::printf("lost: tracker %s, page %zu, seed %llu\n", setting.tracker, page,
                  static_cast<unsigned long long>(seed));
    }
  }
  munmap(shared, bytes + kPage);
}

int run(std::uint64_t rounds, std::uint64_t seed, const std::string& scratch) {
  const std::string directory = scratch + "/pawl-test-kernel-stores-" + std::to_string(getpid());
  std::filesystem::create_directories(directory);
  chmod(directory.c_str(), 0777);
  const bool is_root = geteuid() == 0;
  std::vector<Setting> settings;
  for (const bool ordinary : {false, true}) {
    if (ordinary && !is_root) continue;
    settings.push_back({"scan", true, ordinary, 0, true});
    settings.push_back({"scan", true, ordinary, 1, true});
    settings.push_back({"scan", true, ordinary, 0, false});
    settings.push_back({"scan", true, ordinary, 1, false});
    settings.push_back({"scan", true, ordinary, 3, false});
    settings.push_back({"scan", false, ordinary, 1, true});
    settings.push_back({"fault", false, ordinary, 1, true});
  }
  const int of_life =
      static_cast<int>(std::clamp<std::uint64_t>(rounds / settings.size(), 1, kRoundsOfLife));
  Tally tally;
  for (std::uint64_t life = 0; tally.rounds < rounds && tally.lives_failed < 10; ++life)
    one_life(settings[life % settings.size()], directory, seed + life, of_life, tally);
  std::filesystem::remove_all(directory);
  std::printf(
      "{\"rounds\":%llu,\"seed\":%llu,\"lives\":%llu,\"lives_failed\":%llu,"
      "\"stores_refused\":%llu,\"commits_located\":%llu,\"missed\":%llu,\"lost\":%llu}\n",
      static_cast<unsigned long long>(tally.rounds), static_cast<unsigned long long>(seed),
      static_cast<unsigned long long>(tally.lives),
      static_cast<unsigned long long>(tally.lives_failed),
      static_cast<unsigned long long>(tally.stores_failed),
      static_cast<unsigned long long>(tally.located), static_cast<unsigned long long>(tally.missed),
      static_cast<unsigned long long>(tally.lost));
  return tally.missed + tally.lost + tally.lives_failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace pawl::kernel_stores

int main(int argc, char** argv) {
  CLI::App app("Stores by the kernel and by other processes: every commit takes them");
  std::uint64_t rounds = 2000;
  std::uint64_t seed = 0;
  const char* const wanted = std::getenv("PAWL_TEST_DIR");
  std::string scratch = wanted != nullptr ? wanted : ".";
  app.add_option("--rounds", rounds, "Stores with a commit each")->capture_default_str();
  app.add_option("--seed", seed, "Of the first life; the others count on")->capture_default_str();
  app.add_option("--scratch", scratch, "A directory on a disk")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return pawl::kernel_stores::run(rounds, seed, scratch);
}
