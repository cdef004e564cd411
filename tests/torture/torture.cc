// Kills programs that use Pawl, again and again, and looks whether their files keep what was
// acknowledged.
//
//   torture [--kills N] [--seed S] [--file-system F]... [--directory D]... [--workload W] ...
//       Files on ext4, XFS, btrfs (loop mounts of its own) and tmpfs, or in the directories named,
//       are written by crash_writer, which is killed (SIGKILL) while it opens, recovers, commits or
//       closes them, with several threads and files, and with the disk full; recovery is killed as
//       well, up to three times in a row.  What may be found afterwards follows from what
//       crash_writer had said to this process.
//   torture audit KEPT
//       Recovers a copy of what a failure left in KEPT, and audits it again.
//
// Exits with 0 when nothing was lost, 1 when something was, 2 when it could not do what it was
// asked.  The last line is JSON.
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "torture/case.h"
#include "torture/counts.h"
#include "torture/evidence.h"
#include "torture/file_systems.h"

namespace pawl::test {
namespace {

constexpr int kExitLost = 1;
constexpr int kExitTrouble = 2;
constexpr std::uint64_t kKillsDefault = 400;
constexpr unsigned kTriesOfACaseDefault = 200;
constexpr std::chrono::seconds kResultsEvery{5};

volatile std::sig_atomic_t stop_asked = 0;

struct Arguments {
  Settings settings;
  std::string mode = "pawl";
  std::uint64_t kills = kKillsDefault;
  std::optional<std::uint64_t> seed;
  std::optional<std::uint64_t> only_case;
  std::vector<std::string> file_systems;
  std::vector<std::string> directories;
  std::string scratch;
  std::string keep;
  std::string results;
  std::string note;
  bool go_on = false;
  std::string kept;  // to be audited
};

std::string default_scratch() {
  const char* const chosen = std::getenv("PAWL_TEST_DIR");
  return chosen != nullptr ? chosen : ".";
}

void make_places(FileSystems& systems, const Arguments& arguments) {
  for (const std::string& directory : arguments.directories) systems.take_directory(directory);
  const bool by_default = arguments.file_systems.empty() && arguments.directories.empty();
  for (const std::string& kind : by_default ? FileSystems::kinds() : arguments.file_systems)
    systems.make(kind);
  for (const std::string& reason : systems.left_out()) fmt::print("left out: {}\n", reason);
  if (systems.left_out().empty()) return;
  systems.take_scratch();
  const std::string memory = "/dev/shm";
  if (by_default && ::access(memory.c_str(), W_OK) == 0) systems.take_directory(memory);
}

class Torture {
 public:
  Torture(const Arguments& arguments, const FileSystems& systems)
      : arguments_(arguments), systems_(systems), results_(arguments.results) {
    const Results::Earlier earlier = results_.earlier(arguments.mode);
    before_ = earlier.counts;
    seed_ = arguments.seed.value_or(earlier.seed.value_or(
        static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) %
        1'000'000'000));
    if (earlier.seed == seed_) next_case_ = earlier.next_case;
  }

  int go() {
    announce();
    const auto started = Clock::now();
    auto written = started;
    for (unsigned tries = 0; !enough() && tries < tries_max(); ++tries) {
      run_case(arguments_.only_case.value_or(next_case_));
      if (!arguments_.only_case.has_value()) next_case_ += 1;
      if (Clock::now() - written < kResultsEvery) continue;
      written = Clock::now();
      write_results();
      show_progress();
    }
    write_results();
    if (::isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
    const std::chrono::duration<double> seconds = Clock::now() - started;
    return conclude(seconds.count());
  }

 private:
  std::uint64_t kills() const {
    return before_.of("kills") + done_.of("kills") + news_.of("kills");
  }
  std::uint64_t lost() const { return before_.of("lost") + done_.of("lost") + news_.of("lost"); }
  bool enough() const {
    return stop_asked != 0 || kills() >= arguments_.kills ||
           (!arguments_.go_on && done_.of("lost") + news_.of("lost") > 0);
  }
  unsigned tries_max() const {
    return arguments_.only_case.has_value() ? kTriesOfACaseDefault
                                            : std::numeric_limits<unsigned>::max();
  }

  void announce() const {
    fmt::print("{} kills, seed {}, mode {}, on", arguments_.kills, seed_, arguments_.mode);
    for (const Place& place : systems_.places()) fmt::print(" {}", place.file_system);
    if (!arguments_.results.empty())
      fmt::print("; {} were done before ({})", before_.of("kills"), arguments_.results);
    fmt::print("\n");
    std::fflush(stdout);
  }

  void run_case(std::uint64_t number) {
    const auto& places = systems_.places();
    const Place& place = places[number % places.size()];
    Case one(arguments_.settings, place, seed_, number, news_, durations_[place.directory]);
    try {
      one.run([this] { return enough(); });
    } catch (const Loss& loss) {
      news_["lost"] += 1;
      if (arguments_.settings.plain)
        fmt::print("case {}: {}\n", number, loss.what());
      else
        report(one, number, loss.what());
      std::fflush(stdout);
    }
  }

  void report(const Case& one, std::uint64_t number, const std::string& what) {
    const std::string directory = fmt::format("{}/seed-{}-case-{}", arguments_.keep, seed_, number);
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory);
    const auto kept = one.keep_evidence(directory);
    std::ofstream story(directory + "/story.txt");
    fmt::print("LOST in case {}: {}\n", number, what);
    for (const std::string& line : one.story()) {
      fmt::print("  {}\n", line);
      story << line << '\n';
    }
    story << what << '\n';
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    fmt::print("kept in {}\n", directory);
    for (const std::string& look : kept) fmt::print("audit again: {} audit {}\n", self, look);
    fmt::print("try again: {} --seed {} --case {} {}\n", self, seed_, number, options_to_repeat());
  }

  // A case's place follows from its number and the list of places.
  std::string options_to_repeat() const {
    std::string options = "--kills 10000";
    const auto add = [&](const char* option, const std::string& value) {
      if (!value.empty()) options += fmt::format(" {} {}", option, value);
    };
    add("--mode", arguments_.mode);
    for (const std::string& kind : arguments_.file_systems) add("--file-system", kind);
    for (const std::string& directory : arguments_.directories) add("--directory", directory);
    add("--workload", arguments_.settings.workload);
    add("--tracker", arguments_.settings.tracker);
    add("--apply", arguments_.settings.apply);
    add("--scratch", arguments_.scratch);
    if (!arguments_.settings.fill) options += " --no-full-disk";
    return options;
  }

  void write_results() {
    if (news_.empty()) return;
    if (!arguments_.only_case.has_value())
      results_.append({arguments_.mode, seed_}, next_case_, news_, arguments_.note);
    done_.add(news_);
    news_.clear();
  }

  void show_progress() const {
    if (::isatty(STDERR_FILENO) != 0)
      fmt::print(stderr, "\r{} of {} kills, {} lost", kills(), arguments_.kills, lost());
  }

  int conclude(double seconds) {
    nlohmann::ordered_json json = {{"try", "killed"}, {"mode", arguments_.mode}, {"seed", seed_}};
    Counts all = before_;
    all.add(done_);
    json.update(all.as_json());
    if (!systems_.left_out().empty()) json["left_out"] = systems_.left_out();
    const auto kills_now = static_cast<double>(done_.of("kills"));
    fmt::print("{} kills in {:.1f} s, {:.0f} a second\n", done_.of("kills"), seconds,
               kills_now / std::max(seconds, 0.001));
    fmt::print("{}\n", json.dump());
    return lost() > 0 ? kExitLost : 0;
  }

  const Arguments& arguments_;
  const FileSystems& systems_;
  const Results results_;
  std::uint64_t seed_ = 0;
  std::uint64_t next_case_ = 0;
  Counts before_;  // by earlier runs
  Counts done_;
  Counts news_;  // not written yet
  std::map<std::string, Durations> durations_;
};

int audit(const std::string& kept) {
  const auto wrong = audit_kept(kept);
  fmt::print("{}\n", wrong.value_or("whole"));
  return wrong.has_value() ? kExitLost : 0;
}

int torture(const Arguments& arguments) {
  FileSystems systems(arguments.scratch);
  make_places(systems, arguments);
  return Torture(arguments, systems).go();
}

void take_options(CLI::App& app, Arguments& arguments) {
  Settings& settings = arguments.settings;
  app.add_option("--kills", arguments.kills, "With those in the results file");
  app.add_option("--seed", arguments.seed);
  app.add_option("--case", arguments.only_case, "Only this case of the seed, again and again");
  app.add_option("--file-system", arguments.file_systems)
      ->check(CLI::IsMember(FileSystems::kinds()))
      ->allow_extra_args(false);
  app.add_option("--directory", arguments.directories)
      ->check(CLI::ExistingDirectory)
      ->allow_extra_args(false);
  std::vector<std::string> names;
  for (const Workload& workload : workloads()) names.push_back(workload.name);
  app.add_option("--workload", settings.workload)->check(CLI::IsMember(names));
  app.add_option("--mode", arguments.mode)->check(CLI::IsMember({"pawl", "plain"}));
  app.add_option("--tracker", settings.tracker)->check(CLI::IsMember({"auto", "scan", "fault"}));
  app.add_option("--apply", settings.apply)->check(CLI::IsMember({"async", "eager"}));
  app.add_flag("!--no-full-disk", settings.fill, "Never fill a file system");
  app.add_option("--writer", settings.writer, "The crash_writer to kill")->check(CLI::ExistingFile);
  app.add_option("--scratch", arguments.scratch, "Where images and mounts are made");
  app.add_option("--keep", arguments.keep, "Where the files of a failure are kept");
  app.add_option("--results", arguments.results, "Counts are appended here, and continued");
  app.add_option("--note", arguments.note, "For the results: what is tried");
  app.add_flag("--go-on", arguments.go_on, "After a loss, too");
}

int main(int count, char** values) {
  Arguments arguments;
  arguments.settings.writer = CRASH_WRITER;
  arguments.scratch = default_scratch();
  CLI::App app{"Kills programs that use Pawl and audits their files"};
  take_options(app, arguments);
  CLI::App& auditor = *app.add_subcommand("audit", "audit again what a failure left");
  auditor.add_option("KEPT", arguments.kept)->required()->check(CLI::ExistingDirectory);
  try {
    app.parse(count, values);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitTrouble;
  }
  arguments.settings.plain = arguments.mode == "plain";
  if (arguments.keep.empty()) arguments.keep = arguments.scratch + "/kept";
  struct sigaction action{};
  action.sa_handler = [](int) { stop_asked = 1; };
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(number, &action, nullptr);
  try {
    return auditor.parsed() ? audit(arguments.kept) : torture(arguments);
  } catch (const std::exception& error) {
    fmt::print(stderr, "torture: {}\n", error.what());
    return kExitTrouble;
  }
}

}  // namespace
}  // namespace pawl::test

int main(int count, char** values) { return pawl::test::main(count, values); }
