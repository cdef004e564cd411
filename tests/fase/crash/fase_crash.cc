// Runs the structures of examples/structures under observation, and looks for a loss of power from
// which one does not come back as it should.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "fase/crash/explorer.h"
#include "fase/crash/recorder.h"

namespace pawl::test {
namespace {

constexpr int kExitTrouble = 2;
constexpr std::uint64_t kKeysOfThread = 8;  // few, so that operations meet
constexpr std::uint64_t kExhaustiveMax = 64;

struct Settings {
  std::string structure;  // empty: all
  std::uint32_t threads = 1;
  std::uint64_t operations = 40;  // of all threads
  std::uint64_t states = 3000;
  unsigned seeds = 1;
  unsigned seed = 1;
};

Life draw_life(const Subject& subject, const Settings& settings, unsigned seed) {
  Random random(seed);
  Life life{&subject, std::vector<std::vector<Operation>>(settings.threads)};
  for (std::uint64_t n = 0; n < settings.operations; ++n) {
    const auto thread = static_cast<std::uint32_t>(n % settings.threads);
    // Rather more is put in than taken out.  A thread's keys are its own.
    const std::uint64_t kind =
        below(random, 3) == 0 ? below(random, subject.kinds) : n / settings.threads % 2;
    const std::uint64_t key = 1 + thread + settings.threads * below(random, kKeysOfThread);
    life.operations[thread].push_back({static_cast<std::uint32_t>(kind), key, n + 1000});
  }
  return life;
}

void live(const std::string& path, const Life& life, const std::string& trace_path) {
  pawl_fase_options options;
  pawl_fase_options_init(&options);
  options.size_bytes_max = PAWL_FASE_SIZE_MIN;
  Recorder recorder(path);
  pawl_fase* file = pawl_fase_open(path.c_str(), &options);
  if (file == nullptr) throw std::runtime_error(pawl_last_error());
  void* structure = life.subject->make(file);
  if (structure == nullptr || pawl_fase_set_root(file, structure) != 0)
    throw std::runtime_error(pawl_last_error());
  recorder.begin(life.operations.size());
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < life.operations.size(); ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t n = 0; n < life.operations[thread].size(); ++n) {
        recorder.operation_begins(thread, n);
        const std::uint64_t result =
            life.subject->operate(file, structure, life.operations[thread][n]);
        recorder.operation_acknowledged(thread, n, result);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  recorder.take().save(trace_path);
}

// In a process of its own, so that this one has no file open.
MemoryTrace record(const std::string& directory, const Life& life) {
  const std::string trace_path = directory + "/trace";
  const pid_t child = fork();
  if (child == 0) {
    int status = 0;
    try {
      live(directory + "/file", life, trace_path);
    } catch (const std::exception& wrong) {
      std::fprintf(stderr, "fase_crash: %s\n", wrong.what());
      status = 1;
    }
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("the program failed");
  std::filesystem::remove(directory + "/file");
  return MemoryTrace::load(trace_path);
}

bool try_one(const Subject& subject, const Settings& settings, unsigned seed,
             const std::string& directory) {
  const Life life = draw_life(subject, settings, seed);
  const MemoryTrace trace = record(directory, life);
  Explorer explorer(directory, kExhaustiveMax, seed);
  const auto wrong = explorer.explore(trace, life, settings.states);
  const Counts& counts = explorer.counts();
  std::printf(
      "%-6s seed %u: %zu events; %llu, %llu and %llu states of runs, recoveries and theirs; "
      "%llu of %llu moments in full\n",
      subject.name, seed, trace.events.size(), static_cast<unsigned long long>(counts.states[0]),
      static_cast<unsigned long long>(counts.states[1]),
      static_cast<unsigned long long>(counts.states[2]),
      static_cast<unsigned long long>(counts.moments_exhausted),
      static_cast<unsigned long long>(counts.moments));
  std::fflush(stdout);
  if (!wrong.has_value()) return true;
  std::printf("WRONG: %s, seed %u: %s\n", subject.name, seed, wrong->c_str());
  return false;
}

int run(const Settings& settings) {
  const std::vector<Subject> chosen = subjects(settings.structure);
  std::string directory = "/dev/shm/fase_crash.XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) throw std::runtime_error("no directory in /dev/shm");
  bool all_well = true;
  for (const Subject& subject : chosen) {
    for (unsigned i = 0; i < settings.seeds; ++i)
      all_well = try_one(subject, settings, settings.seed + i, directory) && all_well;
  }
  if (all_well)
    std::filesystem::remove_all(directory);
  else
    std::printf("The file is kept: %s/lost\n", directory.c_str());
  return all_well ? 0 : 1;
}

}  // namespace
}  // namespace pawl::test

int main(int argc, char** argv) {
  pawl::test::Settings settings;
  CLI::App app("Loses the power beneath structures in sections, and looks at what comes back");
  app.add_option("--structure", settings.structure, "one of them; without, all in turn");
  app.add_option("--threads", settings.threads, "of each structure")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--operations", settings.operations, "of all threads")->capture_default_str();
  app.add_option("--states", settings.states, "about how many to try of each structure and seed")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seeds", settings.seeds, "how many seeds to try, from the first")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", settings.seed, "what chance follows from")->capture_default_str();
  try {
    app.parse(argc, argv);
    return pawl::test::run(settings);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : pawl::test::kExitTrouble;
  } catch (const std::exception& wrong) {
    std::fprintf(stderr, "fase_crash: %s\n", wrong.what());
    return pawl::test::kExitTrouble;
  }
}
