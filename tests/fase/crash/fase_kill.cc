// Kills a program of many threads, again and again, and looks after each time whether all that its
// threads were told was done is in the file, and nothing else but what they were about to do.
//
// Threads write down in memory that outlives them what they are about to do, and what came of it.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "fase/crash/expectation.h"
#include "workload/random.h"

namespace pawl::test {
namespace {

constexpr int kExitTrouble = 2;
constexpr std::uint32_t kThreadsMax = 16;
constexpr std::uint64_t kOperationsMax = 20'000;  // of a thread, before it rests until it is killed
constexpr std::uint64_t kContentsMax = 1 << 20;
constexpr std::uint64_t kKeysOfThread = 16;
constexpr int kRunMicrosecondsMax = 12'000;
constexpr int kRecoveryMicrosecondsMax = 2'000;
// One process of so many is killed while it opens the file.
constexpr unsigned kKilledInRecoveryOneOf = 6;

// What a thread is about to do, and what came of it.
struct Record {
  Operation operation;
  std::uint64_t result;  // of a removal from stack or queue: the value; 0: there was none
  std::atomic<std::uint32_t> is_done;
};

struct ThreadRecords {
  std::atomic<std::uint64_t> begun;
  std::array<Record, kOperationsMax> records;

  void clear() {
    for (std::uint64_t n = 0; n < begun.load(); ++n) records[n].is_done.store(0);
    begun.store(0);
  }
};
using LifeRecords = std::array<ThreadRecords, kThreadsMax>;

// Shared with the process that is killed.
struct Shared {
  std::atomic<std::uint32_t> is_open;
  std::atomic<std::uint64_t> contents_count;
  std::array<std::uint64_t, kContentsMax> contents;
  std::array<char, 512> error;
  // Of one process and of that before it, in turn.
  std::array<LifeRecords, 2> lives;
};

struct Settings {
  std::string structure;  // empty: all in turn
  std::uint32_t threads = 4;
  std::uint64_t kills = 40;
  unsigned seed = 1;
  std::string directory = "/dev/shm";
};

// --- the process that is killed ------------------------------------------------------------------

void work(pawl_fase* file, const Subject& subject, void* structure, ThreadRecords& records,
          std::uint32_t thread, std::uint64_t first_value, unsigned seed) {
  Random random(seed);
  for (std::uint64_t n = 0; n < kOperationsMax; ++n) {
    Record& record = records.records[n];
    record.operation.kind = static_cast<std::uint32_t>(below(random, subject.kinds));
    // A thread's keys are its own, and lie between those of the others.
    record.operation.key = 1 + thread + kThreadsMax * below(random, kKeysOfThread);
    record.operation.value = first_value + n * kThreadsMax + thread;
    records.begun.store(n + 1);
    record.result = subject.operate(file, structure, record.operation);
    record.is_done.store(1);
  }
  pause();
}

// Without records it only opens the file.
[[noreturn]] void live(const std::string& path, const Subject& subject, const Settings& settings,
                       Shared& shared, LifeRecords* records, std::uint64_t first_value,
                       unsigned seed) {
  pawl_fase* file = pawl_fase_open(path.c_str(), nullptr);
  void* structure = file == nullptr ? nullptr : pawl_fase_root(file);
  if (file != nullptr && structure == nullptr) {
    structure = subject.make(file);
    pawl_fase_set_root(file, structure);
  }
  std::string error = structure == nullptr ? pawl_last_error() : "";
  if (error.empty()) {
    try {
      const Contents contents = subject.read(structure);
      std::copy(contents.begin(), contents.end(), shared.contents.begin());
      shared.contents_count.store(contents.size());
    } catch (const std::exception& wrong) {
      error = wrong.what();
    }
  }
  std::strncpy(shared.error.data(), error.c_str(), shared.error.size() - 1);
  shared.is_open.store(1);
  if (!error.empty()) _exit(1);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; records != nullptr && i < settings.threads; ++i)
    threads.emplace_back(work, file, std::cref(subject), structure, std::ref((*records)[i]), i,
                         first_value, seed * kThreadsMax + i);
  for (;;) pause();
}

// --- the process that kills ----------------------------------------------------------------------

std::vector<std::vector<Attempt>> attempts_of(const LifeRecords& life) {
  std::vector<std::vector<Attempt>> attempts;
  for (const ThreadRecords& records : life) {
    std::vector<Attempt>& of_thread = attempts.emplace_back();
    for (std::uint64_t n = 0; n < records.begun.load(); ++n) {
      const Record& record = records.records[n];
      of_thread.push_back({record.operation, record.is_done.load() != 0, record.result});
    }
  }
  return attempts;
}

Shared& map_shared() {
  void* at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::runtime_error("no shared memory");
  return *static_cast<Shared*>(at);
}

void sleep_us(std::uint64_t microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

// True when it opened the file; false when it ended before.
bool wait_until_open(const Shared& shared, pid_t child) {
  for (;;) {
    if (shared.is_open.load() != 0) return true;
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return shared.is_open.load() != 0;
    sleep_us(50);
  }
}

void kill_and_wait(pid_t child) {
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
}

struct Outcome {
  std::uint64_t operations = 0;
  std::uint64_t killed_while_opening = 0;
  std::string wrong;
};

Outcome torture(const Subject& subject, const Settings& settings, const std::string& path) {
  Random random(settings.seed);
  Shared& shared = map_shared();
  Expectation expectation(subject);
  Outcome outcome;
  // The last process is only looked at.
  for (std::uint64_t life = 0; life <= settings.kills; ++life) {
    LifeRecords& records = shared.lives[life % 2];
    for (ThreadRecords& of_thread : records) of_thread.clear();
    const std::uint64_t first_value = (life + 1) * kOperationsMax * kThreadsMax;
    const auto start = [&](LifeRecords* into) {
      shared.is_open.store(0);
      const auto seed = static_cast<unsigned>(random());
      const pid_t child = fork();
      if (child == 0) live(path, subject, settings, shared, into, first_value, seed);
      return child;
    };
    while (life > 0 && below(random, kKilledInRecoveryOneOf) == 0) {
      const pid_t child = start(nullptr);
      sleep_us(below(random, kRecoveryMicrosecondsMax));
      if (shared.is_open.load() == 0) outcome.killed_while_opening += 1;
      kill_and_wait(child);
    }
    const pid_t child = start(&records);
    if (!wait_until_open(shared, child)) {
      outcome.wrong = "the program ended before it opened the file";
      return outcome;
    }
    outcome.wrong = shared.error.data();
    if (outcome.wrong.empty()) {
      const Contents found(shared.contents.begin(),
                           shared.contents.begin() + shared.contents_count.load());
      outcome.wrong = expectation.check(attempts_of(shared.lives[(life + 1) % 2]), found);
    }
    if (outcome.wrong.empty() && life < settings.kills)
      sleep_us(below(random, kRunMicrosecondsMax));
    kill_and_wait(child);
    for (const ThreadRecords& of_thread : records) outcome.operations += of_thread.begun.load();
    if (!outcome.wrong.empty()) {
      outcome.wrong += " (kill " + std::to_string(life) + ")";
      return outcome;
    }
  }
  munmap(&shared, sizeof shared);
  return outcome;
}

int run(const Settings& settings) {
  bool all_well = true;
  for (const Subject& subject : subjects(settings.structure)) {
    std::string directory = settings.directory + "/fase_kill.XXXXXX";
    if (mkdtemp(directory.data()) == nullptr) throw std::runtime_error("no directory");
    const Outcome outcome = torture(subject, settings, directory + "/file");
    std::printf(
        "%-6s %u threads: %llu kills, %llu more while the file was opened, %llu operations\n",
        subject.name, settings.threads, static_cast<unsigned long long>(settings.kills),
        static_cast<unsigned long long>(outcome.killed_while_opening),
        static_cast<unsigned long long>(outcome.operations));
    if (!outcome.wrong.empty()) {
      std::printf("WRONG: %s, seed %u: %s; %s\n", subject.name, settings.seed,
                  outcome.wrong.c_str(), directory.c_str());
      all_well = false;
    } else {
      std::filesystem::remove_all(directory);
    }
    std::fflush(stdout);
  }
  return all_well ? 0 : 1;
}

}  // namespace
}  // namespace pawl::test

int main(int argc, char** argv) {
  pawl::test::Settings settings;
  CLI::App app("Kills programs in their sections, and looks at what they left");
  app.add_option("--structure", settings.structure, "one of them; without, all in turn");
  app.add_option("--threads", settings.threads, "of each structure")
      ->check(CLI::Range(1U, pawl::test::kThreadsMax))
      ->capture_default_str();
  app.add_option("--kills", settings.kills, "of each structure")->capture_default_str();
  app.add_option("--directory", settings.directory, "where the files are made")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  app.add_option("--seed", settings.seed, "what chance follows from")->capture_default_str();
  try {
    app.parse(argc, argv);
    return pawl::test::run(settings);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : pawl::test::kExitTrouble;
  } catch (const std::exception& wrong) {
    std::fprintf(stderr, "fase_kill: %s\n", wrong.what());
    return pawl::test::kExitTrouble;
  }
}
