#include "torture/case.h"

#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "medium/block_medium.h"
#include "pawl/pawl.h"

namespace pawl::test {
namespace {

// Nothing in it is beyond plain msync() but the crash: no rollback, no size that commits.
constexpr const char* kPlainWorkload = "single";
constexpr unsigned kLivesMax = 10;
constexpr unsigned kFilesMax = 4;
constexpr unsigned kThreadsMax = 4;
constexpr unsigned kOpeningPercent = 10;
constexpr unsigned kOpeningPercentAfterCrash = 40;
constexpr unsigned kClosingPercent = 12;
constexpr unsigned kFullPercent = 25;
constexpr unsigned kStepsOfShortLifeMax = 300;
constexpr unsigned kRunMicrosecondsMax = 20'000;
constexpr unsigned kCommitsWaitedForMax = 60;
constexpr unsigned kWithinCommitMicrosecondsMax = 400;
constexpr unsigned kFullMicrosecondsMax = 15'000;
constexpr std::uint64_t kLeftWhenFullBytesMax = 96 << 10;
constexpr unsigned kRecoveryKillsMax = 3;
constexpr double kFirstGuessMicroseconds = 3000;
constexpr double kWeightOfNews = 0.1;
constexpr double kBeyondMean = 1.3;

constexpr int kExitFailed = 1;
constexpr int kExitNoSpace = 3;

microseconds up_to(unsigned microseconds_max, Random& random) {
  return microseconds(below(random, microseconds_max + 1));
}

microseconds since(Clock::time_point start) {
  return std::chrono::duration_cast<microseconds>(Clock::now() - start);
}

Random random_of(std::uint64_t seed, std::uint64_t number) {
  std::seed_seq sequence{seed, seed >> 32, number, number >> 32};
  return Random(sequence);
}

// On a full disk recovery finds the space that was reserved for it; but btrfs writes elsewhere what
// it overwrites, and XFS takes space to set an attribute anew, even to remove one.
bool may_want_space(const std::string& file_system, const std::string& complaint) {
  if (file_system == "btrfs") return true;
  return file_system == "xfs" && (complaint.find("the mark") != std::string::npos ||
                                  complaint.find("no room to mark") != std::string::npos ||
                                  complaint.find("cannot make a file") != std::string::npos);
}

bool is_killed(int wait_status) {
  return WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
}

}  // namespace

void Durations::note(const std::string& what, microseconds time) {
  double& mean = mean_us_.try_emplace(what, kFirstGuessMicroseconds).first->second;
  mean += (static_cast<double>(time.count()) - mean) * kWeightOfNews;
}

microseconds Durations::within(const std::string& what, Random& random) const {
  const auto found = mean_us_.find(what);
  const double mean = found == mean_us_.end() ? kFirstGuessMicroseconds : found->second;
  return up_to(static_cast<unsigned>(mean * kBeyondMean), random);
}

Case::Case(const Settings& settings, const Place& place, std::uint64_t seed, std::uint64_t number,
           Counts& counts, Durations& durations)
    : settings_(settings),
      place_(place),
      counts_(counts),
      durations_(durations),
      random_(random_of(seed, number)),
      directory_(fmt::format("{}/case-{}", place.directory, number)),
      filler_(place.directory) {
  const auto all = workloads();
  if (!settings.workload.empty())
    workload_ = find_workload(settings.workload);
  else if (settings.plain)
    workload_ = find_workload(kPlainWorkload);
  else
    workload_ = &all[below(random_, all.size())];
  std::filesystem::create_directory(directory_);
  const std::uint64_t files = chance(70) ? 1 : 2 + below(random_, kFilesMax - 1);
  for (std::uint64_t i = 0; i < files; ++i) {
    Content content = initial_content(*workload_, random_());
    std::string path = fmt::format("{}/data-{}", directory_, i);
    content.save_as(path);
    files_.push_back({std::move(path), Oracle(*workload_, std::move(content)), {}});
  }
  tell(fmt::format("case {} of seed {}: workload {}, {} file(s) on {}", number, seed,
                   workload_->name, files, place.file_system));
}

Case::~Case() {
  filler_.free();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void Case::run(const std::function<bool()>& enough) {
  counts_["cases"] += 1;
  for (std::uint64_t left = 2 + below(random_, kLivesMax - 1); left > 0 && !enough(); --left)
    live(left == 1);
  if (settings_.plain) return;
  for (File& file : files_) recover(file, true);
}

// ------------------------------------------------------------------------------------------ a life

bool Case::needs_recovery() const {
  return std::any_of(files_.begin(), files_.end(), [](const File& file) {
    return !file.evidence.empty() && file.evidence.back().journal.has_value();
  });
}

std::vector<std::string> Case::writer_command(Target target, std::uint64_t seed) {
  std::vector<std::string> command = {settings_.writer, "run"};
  for (const File& file : files_) command.insert(command.end(), {"--file", file.path});
  const auto add = [&](const char* option, std::string value) {
    command.insert(command.end(), {option, std::move(value)});
  };
  add("--workload", workload_->name);
  add("--seed", std::to_string(seed));
  add("--mode", settings_.plain ? "plain" : "pawl");
  const char* const tracker = chance(50) ? "scan" : "fault";
  add("--tracker", settings_.tracker.empty() ? tracker : settings_.tracker);
  const char* const apply = chance(50) ? "async" : "eager";
  add("--apply", settings_.apply.empty() ? apply : settings_.apply);
  add("--threads", std::to_string(chance(50) ? 1 : 2 + below(random_, kThreadsMax - 1)));
  if (target == Target::closing || target == Target::none)
    add("--steps", std::to_string(below(random_, kStepsOfShortLifeMax)));
  return command;
}

void Case::live(bool last) {
  Target target = Target::committing;
  if (settings_.plain) {
    // Its close keeps what was not committed, as it says.
  } else if (last && chance(50)) {
    target = Target::none;
  } else if (chance(needs_recovery() ? kOpeningPercentAfterCrash : kOpeningPercent)) {
    target = Target::opening;
  } else if (chance(kClosingPercent)) {
    target = Target::closing;
  }
  const bool full = target == Target::committing && settings_.fill && !settings_.plain &&
                    place_.may_be_filled && chance(kFullPercent);
  const std::uint64_t seed = random_();
  const auto command = writer_command(target, seed);
  tell(fmt::format("{}", fmt::join(command, " ")));

  const bool full_from_start = full && chance(40);
  if (full_from_start) filler_.fill(chance(50) ? 0 : below(random_, kLeftWhenFullBytesMax));
  const auto started = Clock::now();
  Writer writer(command, files_.size());
  if (full)
    approach_with_full_disk(writer);
  else
    approach(writer, target, started);
  if (target != Target::none) writer.kill();
  settle(writer, target, seed);

  if (filler_.filled()) {
    if (chance(50)) {
      for (File& file : files_) {
        if (chance(30)) kill_while_recovering(file);
        if (!recover_once(file)) {
          counts_["recoveries_refused_for_space_on_" + place_.file_system] += 1;
          continue;
        }
        counts_["recoveries_on_full_" + place_.file_system] += 1;
        audit(file);
      }
    }
    filler_.free();
    tell("the disk has space again");
  }
  // Otherwise the next writer recovers by itself.
  if (settings_.plain || chance(50)) audit_all();
}

void Case::wait_for(Writer& writer, const char* what, const Writer::Condition& condition) {
  if (writer.wait_for_all(condition)) return;
  // Either it hangs, or it has ended and settle() tells why.
  tell(fmt::format("the writer never came to be {}; its threads:", what));
  for (const std::string& thread : writer.threads()) tell("  " + thread);
}

void Case::approach(Writer& writer, Target target, Clock::time_point started) {
  const auto is_ready = [](const Writer::Progress& file) { return file.ready; };
  if (target == Target::opening) {
    writer.listen_for(durations_.within("opening", random_));
    return;
  }
  wait_for(writer, "ready", is_ready);
  durations_.note("opening", since(started));
  if (target == Target::none) return;
  if (target == Target::closing) {
    wait_for(writer, "closing", [](const Writer::Progress& file) { return file.closing; });
    writer.listen_for(durations_.within("closing", random_));
  } else if (chance(50)) {
    writer.listen_for(up_to(kRunMicrosecondsMax, random_));
  } else {
    writer.wait_for_commits(Clock::now() + microseconds(kRunMicrosecondsMax),
                            1 + below(random_, kCommitsWaitedForMax));
    writer.listen_for(up_to(kWithinCommitMicrosecondsMax, random_));
  }
}

// Full from before the start, or from some moment on; and then for good, or for a while.
void Case::approach_with_full_disk(Writer& writer) {
  if (!filler_.filled()) {
    wait_for(writer, "ready", [](const Writer::Progress& file) { return file.ready; });
    writer.listen_for(up_to(kFullMicrosecondsMax, random_));
    filler_.fill(chance(50) ? 0 : below(random_, kLeftWhenFullBytesMax));
  }
  tell("the disk is full");
  writer.listen_for(up_to(kFullMicrosecondsMax, random_));
  if (chance(50)) return;
  filler_.free();
  tell("the disk has space again");
  wait_for(writer, "ready", [](const Writer::Progress& file) { return file.ready; });
  writer.listen_for(up_to(kRunMicrosecondsMax, random_));
}

void Case::settle(Writer& writer, Target target, std::uint64_t seed) {
  const int status = writer.finish();
  const auto has_ended = [](const Writer::Progress& file) { return file.ended || file.unclosed; };
  const bool ended = status == 0 && writer.all(has_ended);
  std::string what = describe_end(status);
  for (const Writer::Progress& file : writer.files())
    what += fmt::format("; begun {}, acknowledged {}{}{}", file.begun, file.acknowledged,
                        file.times_full > 0 ? ", was full" : "", file.ended ? ", closed" : "");
  tell("the writer " + what);
  const auto lose = [&](const std::string& why) {
    tell("its last lines:");
    for (const std::string& line : writer.last_lines()) tell("  " + line);
    throw Loss(why);
  };
  if (writer.hung()) lose("the writer hung");
  if (!ended && !is_killed(status)) lose("the writer gave up: it " + what);
  if (is_killed(status)) count_kill(writer, target);

  for (std::size_t i = 0; i < files_.size(); ++i) {
    File& file = files_[i];
    const Writer::Progress& progress = writer.files()[i];
    if (progress.holds.has_value()) {
      if (const auto wrong = file.oracle.find_checksum(*progress.holds))
        lose(file.path + ": " + *wrong);
      counts_["audits"] += 1;
      counts_["commits_acknowledged"] += progress.acknowledged;
      file.evidence.clear();
      // A close takes what was queued along.
      file.oracle.writer_was(seed + i, progress.begun,
                             progress.ended ? progress.begun : progress.acknowledged);
    }
    file.evidence.push_back(take_evidence(file.path, file.oracle));
    if (progress.ended && !settings_.plain) {
      check_nothing_is_left(file, true);
      audit(file);
    }
  }
}

void Case::count_kill_in(const std::string& what) {
  counts_["kills"] += 1;
  counts_["kills_" + what] += 1;
  counts_["kills_on_" + place_.file_system] += 1;
  if (filler_.filled()) counts_["kills_while_full"] += 1;
}

void Case::count_kill(const Writer& writer, Target target) {
  const auto is_at_rest = [](const Writer::Progress& file) {
    return file.begun == file.acknowledged;
  };
  const auto is_ready = [](const Writer::Progress& file) { return file.ready; };
  if (!writer.all(is_ready)) {
    count_kill_in(needs_recovery() ? "in_recovery_by_a_writer" : "in_opening");
  } else if (target == Target::closing) {
    count_kill_in("in_close");
  } else {
    count_kill_in(writer.all(is_at_rest) ? "between_commits" : "in_commit");
  }
  if (files_.size() > 1) counts_["kills_with_several_files"] += 1;
}

// ---------------------------------------------------------------------------------------- recovery

void Case::audit_all() {
  for (File& file : files_) {
    if (settings_.plain)
      audit(file);
    else
      recover(file, chance(50));
  }
}

// In a process of its own, which may be killed.
int Case::recover_in_child(const std::string& path) const {
  if (pawl_recover(path.c_str()) >= 0) return 0;
  const int error = errno;
  const std::string text = std::string(pawl_last_error()) + "\n";
  [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, text.data(), text.size());
  return error == ENOSPC ? kExitNoSpace : kExitFailed;
}

bool Case::is_refusal(int wait_status, const std::string& said) const {
  return filler_.filled() && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == kExitNoSpace &&
         may_want_space(place_.file_system, said);
}

bool Case::recover_once(File& file) {
  std::string said;
  const auto started = Clock::now();
  Child child = Child::of_copy([&] { return recover_in_child(file.path); },
                               [&](const std::string& line) { said += line; });
  const int status = child.finish();
  const std::string what =
      fmt::format("recovery of {} {} {}", file.path, describe_end(status), said);
  tell(what);
  if (child.hung()) throw Loss(file.path + ": recovery hung");
  if (is_refusal(status, said)) return false;
  if (status != 0) throw Loss(what);
  durations_.note("recovery", since(started));
  return true;
}

// False: it was done before.
bool Case::kill_while_recovering(File& file) {
  const bool had_journal = std::filesystem::exists(file.path + kJournalSuffix);
  std::string said;
  Child child = Child::of_copy([&] { return recover_in_child(file.path); },
                               [&](const std::string& line) { said += line; });
  child.read_for(durations_.within("recovery", random_));
  child.kill();
  const int status = child.finish();
  if (is_killed(status)) {
    tell("recovery of " + file.path + " was killed");
    if (had_journal) count_kill_in("in_recovery");
    file.evidence.push_back(take_evidence(file.path, file.oracle));
    return had_journal;
  }
  if (status != 0 && !is_refusal(status, said))
    throw Loss(fmt::format("recovery of {} {} {}", file.path, describe_end(status), said));
  return false;
}

void Case::recover(File& file, bool may_be_killed) {
  std::uint64_t kills = 0;
  for (std::uint64_t wanted = may_be_killed ? 1 + below(random_, kRecoveryKillsMax) : 0;
       kills < wanted; ++kills) {
    if (!kill_while_recovering(file)) break;
  }
  if (kills > 0) counts_[fmt::format("recoveries_after_{}_killed", kills)] += 1;
  recover_once(file);
  audit(file);
  check_nothing_is_left(file, false);
}

void Case::audit(File& file) {
  counts_["audits"] += 1;
  if (const auto wrong = file.oracle.find(Content::load_from(file.path)))
    throw Loss(file.path + ": " + *wrong);
  file.evidence.clear();
}

void Case::check_nothing_is_left(const File& file, bool closed) const {
  const std::string journal = file.path + kJournalSuffix;
  if (std::filesystem::exists(journal)) throw Loss(journal + " was left behind");
  if (closed && std::filesystem::exists(journal + ".new"))
    throw Loss(journal + ".new was left behind by a close");
  if (mark_of(file.path).has_value()) throw Loss("a mark was left on " + file.path);
}

std::vector<std::string> Case::keep_evidence(const std::string& directory) const {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    for (std::size_t look = 0; look < files_[i].evidence.size(); ++look) {
      kept.push_back(fmt::format("{}/data-{}/look-{}", directory, i, look));
      keep(files_[i].evidence[look], kept.back());
    }
  }
  return kept;
}

}  // namespace pawl::test
