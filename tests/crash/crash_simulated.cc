// Cuts the power of a simulated disk at every moment of many runs, and looks at what is found.
//
//   crash_simulated [--states N] [--seed S] [--workload W|all] [--mode pawl|plain]
//                   [--medium disk|memory] [--only-faults]
//   crash_simulated --replay TRACE --state RECIPE
//   crash_simulated --replay TRACE       (says what happened in it)
//
// Exits with 0 when nothing was lost, 1 when something was, 2 when it could not do what was asked.
// The last line says what was tried, as JSON.
#include <malloc.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "crash/explorer.h"
#include "crash/program.h"

namespace pawl::test {
namespace {

constexpr int kExitLost = 1;
constexpr int kExitTrouble = 2;

// How much of each run's states are tried after which of its lives, in percent.
constexpr std::uint64_t kFirstLifePercent = 55;
constexpr std::uint64_t kLaterLifePercent = 10;
constexpr unsigned kLaterLives = 3;
constexpr unsigned kManyLives = 16;
constexpr unsigned kLastLives = 1;  // after a later one
constexpr std::uint64_t kStatesOfFault = 3;
constexpr std::uint64_t kStatesOfFaultMany = 12;  // where nothing else is tried
constexpr unsigned kFailedRecoveries = 4;         // a run: every operation of theirs fails in turn

constexpr std::uint64_t kStepsOfFirstLife = 100;
constexpr std::uint64_t kStepsOfShortLife = 80;
constexpr std::uint64_t kStepsOfLaterLife = 40;
constexpr std::uint64_t kStepsWithFault = 24;
constexpr std::uint64_t kExhaustiveMin = 256;
constexpr std::uint64_t kExhaustiveMax = 4096;
constexpr std::uint64_t kStatesOfRunMin = 600;
constexpr std::uint64_t kStatesOfRunMax = 8000;
constexpr std::uint64_t kJournalBytesMax = 4 << 20;
constexpr std::uint64_t kResidentBytesSmall = 8 * kPageBytes;
constexpr unsigned kRoundsOfAllSettings = 8;
constexpr unsigned kFaultsEvery = 4;  // after these rounds, in one of so many
constexpr unsigned kOtherWriterEvery = 3;
constexpr unsigned kRoundsMax = 100000;

struct Arguments {
  std::uint64_t states = 20000;
  unsigned seed = 1;
  std::string workload = "all";
  std::string mode = "pawl";
  std::string medium = "disk";
  bool only_faults = false;  // of operations that fail, in all ways
  std::string replay;
  std::string state;
  std::string traces = ".";

  bool plain() const { return mode == "plain"; }
  bool memory() const { return medium == "memory"; }
};

// A kind of run.
struct Task {
  Workload workload;
  std::size_t volumes = 1;
  bool touch_all_pages = false;
  bool with_faults = true;
  std::uint64_t steps = kStepsOfFirstLife;
  unsigned later_lives = kLaterLives;
  unsigned turns = 1;  // in each round
  Pauses pauses = Pauses::sometimes;
};

std::vector<Task> tasks() {
  std::vector<Task> all;
  for (const Workload& workload : workloads()) all.push_back({.workload = workload});
  Workload two = *find_workload("mixed");
  two.name = "two_files";
  all.push_back({.workload = two, .volumes = 2, .with_faults = false});
  // Short lives, many batches at a time: what the next life writes comes to stand beside records
  // that the earlier one never acknowledged.
  Workload stale = *find_workload("queued");
  stale.name = "stale";
  stale.initial_bytes = 7000;  // records of one to three blocks
  stale.mixture = {.store = 1, .queue_all = 1};
  all.push_back({.workload = stale,
                 .with_faults = false,
                 .steps = kStepsOfShortLife,
                 .later_lives = kManyLives,
                 .turns = 3,
                 .pauses = Pauses::always});
  // Every page is dirty: commits go past the overlay, from the record straight into the base.
  Workload direct = *find_workload("mixed");
  direct.name = "direct";
  direct.initial_bytes = 2100 * kPageBytes + 1234;
  direct.window_pages = 2200;
  direct.mixture = {
      .store = 4, .commit_all = 3, .queue_all = 1, .roll_back_all = 1, .grow = 1, .shrink = 1};
  all.push_back({.workload = direct, .touch_all_pages = true, .with_faults = false});
  return all;
}

std::string program_name;

class Laboratory {
 public:
  explicit Laboratory(const Arguments& arguments) : arguments_(arguments) {}

  int run() {
    for (const Task& task : tasks()) {
      if (arguments_.workload == "all" || arguments_.workload == task.workload.name)
        tasks_.push_back(task);
    }
    if (tasks_.empty()) throw std::runtime_error("there is no workload " + arguments_.workload);
    states_of_run_ = std::clamp(arguments_.states / 100, kStatesOfRunMin, kStatesOfRunMax);
    states_of_run_ = std::min(states_of_run_, arguments_.states);
    for (unsigned round = 0; round < kRoundsMax && !lost_ && !enough(); ++round) {
      for (const Task& task : tasks_) {
        for (unsigned turn = 0; turn < task.turns && !lost_ && !enough(); ++turn)
          one_round(task, round, turn);
      }
      rounds_ = round + 1;
    }
    say_summary();
    return lost_ ? kExitLost : 0;
  }

 private:
  bool enough() const { return counts_.all_states() >= arguments_.states; }

  // Moments with at most so many states are tried in full.
  std::uint64_t exhaustive_max() const {
    return std::clamp(arguments_.states / 250, kExhaustiveMin, kExhaustiveMax);
  }

  // The settings change from round to round, so that all meet.
  RunOptions options_for(const Task& task, unsigned round, unsigned seed) const {
    RunOptions options;
    options.workload = &task.workload;
    options.seed = seed;
    options.can_mark = round % 5 != 4;
    options.is_memory = arguments_.memory();
    options.pauses = task.pauses;
    options.touch_all_pages = task.touch_all_pages;
    options.journal_bytes_max = round % 8 == 7 ? std::uint64_t{1} << 40 : kJournalBytesMax;
    options.subject.plain = arguments_.plain();
    options.subject.seed = seed;
    options.subject.window_pages = task.workload.window_pages;
    Options& pawl = options.subject.pawl;
    pawl = Options::from_environment().value();
    pawl.journal_size_bytes = task.workload.journal_bytes;
    pawl.apply = round % 2 == 0 ? ApplyChoice::async : ApplyChoice::eager;
    pawl.tracker = round / 2 % 2 == 0 ? TrackerChoice::automatic : TrackerChoice::fault;
    // In memory, what is marked goes a way of its own, while the file's size stays.
    const bool resizes = task.workload.mixture.grow > 0 || task.workload.mixture.shrink > 0;
    if ((round % 2 == 0) == (arguments_.memory() && !resizes)) pawl.tracker = TrackerChoice::store;
    pawl.apply_threshold_pages = (round / 4 + round) % 2 == 0 ? 2 : 128;
    if (round % 3 == 1) pawl.resident_bytes_max = kResidentBytesSmall;
    return options;
  }

  void one_round(const Task& task, unsigned round, unsigned turn) {
    const unsigned seed = arguments_.seed * 1000003 + round * 101 + turn * 17;
    const RunOptions options = options_for(task, round, seed);
    Explorer explorer(arguments_.plain() ? recover_plain : recover_pawl, exhaustive_max(), seed,
                      arguments_.memory());
    explorer_in_hand_ = &explorer;
    try_task(task, options, explorer, round);
    explorer_in_hand_ = nullptr;
    counts_.add(explorer.counts());
  }

  void try_task(const Task& task, RunOptions options, Explorer& explorer, unsigned round) {
    std::vector<StoredDisk> start;
    std::vector<Content> contents;
    for (unsigned volume = 0; volume < task.volumes; ++volume) {
      contents.push_back(initial_content(task.workload, options.seed + volume));
      start.push_back({contents.back(), {}, {}});
    }
    options.steps = task.steps;
    const std::string where = task.workload.name + ", round " + std::to_string(round);
    if (arguments_.only_faults) {
      if (task.with_faults) try_faults(options, start, contents, explorer, where, round);
      return;
    }
    options.other_writer = round % kOtherWriterEvery == 0 && !arguments_.plain();
    Run first = run_program(options, start, contents);
    options.other_writer = false;
    if (!examine(explorer, first, states_of_run_ * kFirstLifePercent / 100, 0, where)) return;
    if (!arguments_.plain() && !fail_recoveries(explorer, first.trace, where)) return;
    options.steps = std::min(task.steps, kStepsOfLaterLife);
    for (unsigned life = 0; life < task.later_lives; ++life) {
      const std::optional<Run> later =
          live_on(explorer, first.trace, options, life, where + ", life 2");
      if (!later.has_value()) return;
      for (unsigned last = 0; life == 0 && last < kLastLives; ++last) {
        if (!live_on(explorer, later->trace, options, last, where + ", life 3").has_value()) return;
      }
    }
    const bool faults = round < kRoundsOfAllSettings || round % kFaultsEvery == 0;
    if (task.with_faults && faults && !arguments_.plain())
      try_faults(options, start, contents, explorer, where, round);
  }

  // A run on what a cut of an earlier one left.
  std::optional<Run> live_on(Explorer& explorer, const Trace& before, RunOptions options,
                             unsigned life, const std::string& where) {
    const auto cut = explorer.cut_somewhere(before);
    if (!cut.wrong.empty()) {
      report(where, cut.wrong, {before, cut.recipe, {}});
      return std::nullopt;
    }
    options.seed = options.seed * 7 + life + 1;
    // A journal may be made shorter and longer.
    if (life % 2 == 1) options.subject.pawl.journal_size_bytes = kJournalSizeMin << life % 4;
    Run run = run_program(options, cut.disks, cut.found);
    lives_ += 1;
    if (!examine(explorer, run, states_of_run_ * kLaterLifePercent / 100, 0, where))
      return std::nullopt;
    return run;
  }

  bool fail_recoveries(Explorer& explorer, const Trace& trace, const std::string& where) {
    for (unsigned i = 0; i < kFailedRecoveries; ++i) {
      const auto cut = explorer.cut_somewhere(trace);
      if (!cut.wrong.empty()) {
        report(where, cut.wrong, {trace, cut.recipe, {}});
        return false;
      }
      if (auto loss = explorer.fail_recoveries(cut.disks, trace.can_mark, cut.found)) {
        report(where, loss->what, *loss);
        return false;
      }
    }
    return true;
  }

  // A way to fail.
  struct Way {
    Fault fault;
    std::string name;
  };

  // A few that change from round to round, or all.
  std::vector<Way> ways_of(unsigned round) const {
    using Done = Fault::Done;
    std::vector<Way> ways = {
        {{.error_number = EIO}, "EIO once"},
        {{.error_number = EIO, .lasting = true}, "EIO from there on"},
        {{.error_number = ENOSPC}, "ENOSPC once"},
        {{.error_number = ENOSPC, .lasting = true}, "ENOSPC from there on"},
        {{.error_number = ENOSPC, .late = true}, "ENOSPC after a durable write"}};
    std::vector<Way> others;
    for (const int error_number : {ENOSPC, ETIMEDOUT, EDQUOT, EINTR, EFBIG, EAGAIN, ENOMEM, EIO}) {
      for (const auto& [done, extent] :
           {std::pair{Done::all, "all"}, {Done::part, "a part"}, {Done::nothing, "nothing"}}) {
        others.push_back(
            {{.error_number = error_number, .done = done},
             FailedCall{error_number, "with"}.text() + ", and " + extent + " is done"});
      }
    }
    constexpr unsigned kOthersOfRound = 2;
    for (unsigned i = 0; i < (arguments_.only_faults ? others.size() : kOthersOfRound); ++i)
      ways.push_back(others[(round * kOthersOfRound + i) % others.size()]);
    return ways;
  }

  // Every operation of a short run fails, in each way.
  void try_faults(RunOptions options, const std::vector<StoredDisk>& start,
                  const std::vector<Content>& contents, Explorer& explorer,
                  const std::string& where, unsigned round) {
    options.steps = kStepsWithFault;
    options.pauses = Pauses::never;
    const std::uint64_t states = arguments_.only_faults ? kStatesOfFaultMany : kStatesOfFault;
    for (const Way& way : ways_of(round)) {
      options.fault = way.fault;
      for (std::uint64_t operation = 0;; ++operation) {
        options.fault.operation = operation;
        Run run = run_program(options, start, contents);
        if (!run.failed_before.has_value() && operation >= run.operations) break;
        fault_runs_ += run.failed_before.has_value() ? 1 : 0;  // what takes no space is spared
        if (!examine(explorer, run, states, run.failed_before.value_or(run.trace.events.size()),
                     where + ", operation " + std::to_string(operation) + " fails, " + way.name))
          return;
      }
    }
  }

  // False: something was lost.
  bool examine(Explorer& explorer, Run& run, std::uint64_t states, std::size_t from,
               const std::string& where) {
    if (!run.wrong.empty()) {
      report(where, run.wrong, {run.trace, {}, {}});
      return false;
    }
    auto loss = explorer.explore(run.trace, states, from);
    if (!loss.has_value()) return true;
    report(where, loss->what, *loss);
    return false;
  }

  void report(const std::string& where, const std::string& what, const Loss& loss) {
    lost_ = true;
    std::fprintf(stderr, "crash_simulated: seed %u, %s:\n%s\n", arguments_.seed, where.c_str(),
                 what.c_str());
    say_replay(loss.trace, loss.recipe);
  }

 public:
  void say_replay(const Trace& trace, const std::string& recipe) const {
    const std::string path =
        arguments_.traces + "/crash_simulated-" + std::to_string(arguments_.seed) + ".trace";
    trace.save(path);
    std::fprintf(stderr, "the state's recipe: %s\n", recipe.empty() ? "none" : recipe.c_str());
    if (recipe.empty()) {
      std::fprintf(stderr,
                   "what happened: --replay %s\nagain: %s --seed %u --states %llu --workload %s\n",
                   path.c_str(), program_name.c_str(), arguments_.seed,
                   static_cast<unsigned long long>(arguments_.states), arguments_.workload.c_str());
    } else {
      std::fprintf(stderr, "again: %s --mode %s --replay %s --state %s\n", program_name.c_str(),
                   arguments_.mode.c_str(), path.c_str(), recipe.c_str());
    }
  }
  const Explorer* explorer_in_hand() const { return explorer_in_hand_; }

 private:
  void say_summary() const {
    nlohmann::ordered_json names;
    for (const Task& task : tasks_) names.push_back(task.workload.name);
    const auto& states = counts_.states;
    nlohmann::ordered_json summary = {{"try", "simulated"},
                                      {"mode", arguments_.mode},
                                      {"medium", arguments_.medium},
                                      {"seed", arguments_.seed},
                                      {"states", counts_.all_states()},
                                      {"states_by_depth",
                                       {{"run", states[0]},
                                        {"recovery_1", states[1]},
                                        {"recovery_2", states[2]},
                                        {"recovery_3", states[3]},
                                        {"failed_recovery", states[kFailedRecovery]}}},
                                      {"states_built", counts_.built},
                                      {"workloads", names},
                                      {"rounds", rounds_},
                                      {"runs", counts_.traces},
                                      {"runs_after_a_cut", lives_},
                                      {"runs_with_a_fault", fault_runs_},
                                      {"recoveries_with_a_fault", counts_.recovery_faults},
                                      {"exhaustive_max", exhaustive_max()},
                                      {"moments", counts_.moments},
                                      {"moments_exhausted", counts_.moments_exhausted},
                                      {"moments_of_lines", counts_.moments_of_lines},
                                      {"moments_sampled", counts_.moments_sampled},
                                      {"moments_passed", counts_.moments_passed},
                                      {"lost", lost_ ? 1 : 0}};
    std::printf("%s\n", summary.dump().c_str());
    std::fflush(stdout);
  }

  const Arguments& arguments_;
  std::vector<Task> tasks_;
  std::uint64_t states_of_run_ = 0;
  Counts counts_;
  std::uint64_t lives_ = 0;
  std::uint64_t fault_runs_ = 0;
  unsigned rounds_ = 0;
  bool lost_ = false;
  const Explorer* explorer_in_hand_ = nullptr;
};

void print(const Trace& trace) {
  for (std::size_t i = 0; i < trace.events.size(); ++i)
    std::printf("%5zu  %s\n", i, describe(trace.events[i]).c_str());
}

int replay(const Arguments& arguments) {
  if (arguments.state.empty()) {
    print(Trace::load(arguments.replay));
    return 0;
  }
  const Trace trace = Trace::load(arguments.replay);
  Explorer explorer(arguments.plain() ? recover_plain : recover_pawl, 0, arguments.seed,
                    trace.is_memory);
  const std::string what = explorer.replay(trace, arguments.state);
  if (what.empty()) {
    std::printf("nothing is lost in this state\n");
    return 0;
  }
  std::printf("%s\n", what.c_str());
  return kExitLost;
}

Laboratory* laboratory = nullptr;

// A broken invariant ends the process: what was being tried is said first.  The handler does more
// than a handler may, for there is nothing to lose any more.
void on_abort(int signal) {
  std::signal(signal, SIG_DFL);
  const Explorer* const explorer = laboratory == nullptr ? nullptr : laboratory->explorer_in_hand();
  if (explorer != nullptr && explorer->trace_in_hand() != nullptr)
    laboratory->say_replay(*explorer->trace_in_hand(), explorer->recipe_in_hand());
  std::_Exit(kExitLost);
}

int run(const Arguments& arguments) {
  // Recovery takes a large buffer each time: not from the kernel.
  ::mallopt(M_MMAP_THRESHOLD, 64 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 512 << 20);
  if (!arguments.replay.empty()) return replay(arguments);
  Laboratory here(arguments);
  laboratory = &here;
  std::signal(SIGABRT, on_abort);
  return here.run();
}

}  // namespace
}  // namespace pawl::test

int main(int argc, char** argv) {
  pawl::test::Arguments arguments;
  CLI::App app("Cuts the power of a simulated disk at every moment, and looks at what is found");
  app.add_option("--states", arguments.states, "about how many different states to try")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", arguments.seed, "what chance follows from")->capture_default_str();
  app.add_option("--workload", arguments.workload, "one of them, or all")->capture_default_str();
  app.add_option("--mode", arguments.mode, "what is tried: Pawl, or plain mmap and msync")
      ->check(CLI::IsMember({"pawl", "plain"}))
      ->capture_default_str();
  app.add_option("--medium", arguments.medium, "what the power is cut of")
      ->check(CLI::IsMember({"disk", "memory"}))
      ->capture_default_str();
  app.add_flag("--only-faults", arguments.only_faults,
               "only what operations leave that fail, in every way");
  app.add_option("--traces", arguments.traces, "directory for the trace of what was lost")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  auto* const trace = app.add_option("--replay", arguments.replay, "the trace of an earlier loss")
                          ->check(CLI::ExistingFile);
  app.add_option("--state", arguments.state, "with --replay: the state's recipe")->needs(trace);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return pawl::test::kExitTrouble;
  }
  pawl::test::program_name = argv[0];
  try {
    return pawl::test::run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "crash_simulated: %s\n", error.what());
    return pawl::test::kExitTrouble;
  }
}
