#include "crash/explorer.h"

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "crash/repeatable.h"

namespace pawl::test {
namespace {

// Of the states that may be tried, so many are this trace's; the others are those of recoveries.
constexpr double kOwnPart = 0.35;
constexpr double kDeeperBudgetMin = 6;
constexpr double kDeeperBudgetMax = 64;
constexpr double kDeeperPart = 0.25;
constexpr std::size_t kMomentsToChooseFrom = 6;
constexpr double kStatesOfFailedRecovery = 4;

std::uint64_t mix(std::uint64_t sum, std::uint64_t word) {
  sum = (sum ^ word) * 0x9e3779b97f4a7c15;
  return sum ^ (sum >> 29);
}

std::uint64_t checksum_of(const StoredDisk& disk, bool can_mark) {
  std::uint64_t sum = mix(disk.base.checksum(), can_mark ? 1 : 0);
  if (disk.mark.has_value()) {
    sum = mix(sum, disk.mark->is_opening ? 1 : 0);
    for (const JournalId& id : {disk.mark->journal_id, disk.mark->recovered_id})
      for (const std::byte byte : id) sum = mix(sum, std::to_integer<std::uint64_t>(byte));
  }
  return disk.journal.has_value() ? mix(sum, disk.journal->checksum()) : sum;
}

std::uint64_t block_bytes_of(bool is_memory) { return is_memory ? kMemoryLineBytes : kPageBytes; }
MemoryDiskOptions recorded_options(bool can_mark, bool is_memory) {
  return {.backing = is_memory ? Backing::mapped : Backing::pages,
          .can_mark = can_mark,
          .block_bytes = block_bytes_of(is_memory)};
}

// The last moment that changed what may be found: what a flush that fails leaves is what was there.
std::size_t last_change(const Trace& trace) {
  std::size_t last = 1;
  for (DiskStates states(trace); !states.at_end();) {
    if (states.advance()) last = states.moment();
  }
  return last;
}

}  // namespace

std::uint64_t Counts::all_states() const {
  std::uint64_t all = 0;
  for (const std::uint64_t at_depth : states) all += at_depth;
  return all;
}

void Counts::add(const Counts& other) {
  for (std::size_t depth = 0; depth < states.size(); ++depth) states[depth] += other.states[depth];
  built += other.built;
  traces += other.traces;
  moments += other.moments;
  moments_exhausted += other.moments_exhausted;
  moments_of_lines += other.moments_of_lines;
  moments_sampled += other.moments_sampled;
  moments_passed += other.moments_passed;
  recovery_faults += other.recovery_faults;
}

Explorer::Explorer(Recover recover, std::uint64_t exhaustive_max, unsigned seed, bool is_memory)
    : recover_(std::move(recover)),
      exhaustive_max_(exhaustive_max),
      is_memory_(is_memory),
      random_(seed) {}

void Explorer::forget_states() {
  found_.clear();
  known_.clear();
}

std::string Explorer::recipe_in_hand() const {
  std::string text;
  for (const StateRecipe& recipe : path_) text += (text.empty() ? "" : "+") + recipe.text();
  return text;
}

// ------------------------------------------------------------------------------------- one state

// Afterwards the file is just the file.
Explorer::Found Explorer::recover_volume(const StoredDisk& disk, bool can_mark, Content* content) {
  repeat_from(checksum_of(disk, can_mark));
  // Without a record of it, memory is as good as any place for bytes.
  MemoryDisk memory(disk, {.can_mark = can_mark, .block_bytes = block_bytes_of(is_memory_)});
  const auto medium = memory.open();
  const Status recovered = recover_(*medium);
  if (!recovered.ok()) return {0, "the file is refused: " + recovered.text()};
  StoredDisk after = memory.state();
  if (after.mark.has_value()) return {0, "the file still carries its mark after recovery"};
  if (after.journal.has_value()) return {0, "the file still has a journal after recovery"};
  if (content != nullptr) *content = after.base;
  return {after.base.checksum(), {}};
}

std::string Explorer::explain(const Trace& trace, const DiskStates& states, std::size_t volume,
                              const StoredDisk& disk) {
  Content found;
  if (const Found outcome = recover_volume(disk, trace.can_mark, &found); !outcome.error.empty())
    return "volume " + std::to_string(volume) + ": " + outcome.error;
  std::string text = "volume " + std::to_string(volume) + ": a file of " +
                     std::to_string(found.size()) + " bytes is found, which is none of";
  for (const std::size_t number : states.acceptable(volume)) {
    const Content& commit = trace.volumes[volume].commits[number];
    text += "\n  commit " + std::to_string(number) + " (" + std::to_string(commit.size()) +
            " bytes; first difference at byte " +
            std::to_string(found.first_difference(commit).value_or(0)) + ")";
  }
  for (std::size_t number = 0; number < trace.volumes[volume].commits.size(); ++number) {
    if (!found.first_difference(trace.volumes[volume].commits[number]).has_value())
      text += "\n  but commit " + std::to_string(number);
  }
  return text;
}

std::string Explorer::judge(const Trace& trace, const DiskStates& states,
                            const std::vector<StoredDisk>& disks) {
  for (std::size_t volume = 0; volume < disks.size(); ++volume) {
    const std::uint64_t key = checksum_of(disks[volume], trace.can_mark);
    auto known = found_.find(key);
    if (known == found_.end())
      known = found_.emplace(key, recover_volume(disks[volume], trace.can_mark, nullptr)).first;
    const Found& found = known->second;
    const auto numbers = states.acceptable(volume);
    const bool right =
        found.error.empty() && std::any_of(numbers.begin(), numbers.end(), [&](std::size_t number) {
          return trace.volumes[volume].commits[number].checksum() == found.checksum;
        });
    if (!right) return explain(trace, states, volume, disks[volume]);
  }
  return {};
}

Trace Explorer::record_recovery(const std::vector<StoredDisk>& disks, bool can_mark) {
  std::vector<Content> wanted(disks.size());
  for (std::size_t volume = 0; volume < disks.size(); ++volume) [[maybe_unused]]
    const Found found = recover_volume(disks[volume], can_mark, &wanted[volume]);
  Recorder recorder(disks, can_mark, 0, Pauses::never, is_memory_);
  for (std::uint16_t volume = 0; volume < disks.size(); ++volume)
    recorder.acknowledge(volume, recorder.begin_commit(volume, wanted[volume]));
  for (std::uint16_t volume = 0; volume < disks.size(); ++volume) {
    repeat_from(checksum_of(disks[volume], can_mark));
    MemoryDisk memory(disks[volume], recorded_options(can_mark, is_memory_));
    [[maybe_unused]] const Status recovered = recover_(*recorder.record(memory.open(), volume));
  }
  return recorder.take();
}

bool Explorer::try_state(const Trace& trace, const DiskStates& states, const StateRecipe& recipe,
                         std::size_t depth, double& credit, double deeper_budget) {
  path_.push_back(recipe);
  const std::vector<StoredDisk> disks = states.build(recipe);
  counts_.built += 1;
  std::uint64_t key = disks.size();
  for (const StoredDisk& disk : disks) key = mix(key, checksum_of(disk, trace.can_mark));
  what_ = judge(trace, states, disks);
  if (!what_.empty()) return false;  // the path stays, for the report
  if (known_.insert(key).second) {
    counts_.states[depth] += 1;
    if (depth < kRecoveryDepthMax) {
      credit += (1 - kOwnPart) / kOwnPart;
      // Not always the states of the same moments.
      if (credit >= deeper_budget && below(random_, 4) == 0) {
        credit -= deeper_budget;
        if (!explore_trace(record_recovery(disks, trace.can_mark), deeper_budget, 0, depth + 1))
          return false;
      }
    }
  }
  path_.pop_back();
  return true;
}

// ------------------------------------------------------------------------------------ all moments

bool Explorer::explore_trace(const Trace& trace, double budget, std::size_t from,
                             std::size_t depth) {
  const double own = depth < kRecoveryDepthMax ? budget * kOwnPart : budget;
  const double deeper_budget = std::clamp(budget * kDeeperPart, kDeeperBudgetMin, kDeeperBudgetMax);
  std::size_t moments_left = 0;
  for (DiskStates states(trace); !states.at_end();) {
    const bool changed = states.advance();
    if (states.moment() > from && changed) moments_left += 1;
  }
  counts_.moments += moments_left;
  const std::uint64_t before = counts_.states[depth];
  double credit = 0;
  for (DiskStates states(trace); !states.at_end();) {
    const bool changed = states.advance();
    if (states.moment() <= from || !changed) continue;
    const double left = std::max(0.0, own - static_cast<double>(counts_.states[depth] - before));
    const double share = left / static_cast<double>(moments_left--);
    // Where all is tried, it may be some times the share of a moment.
    const std::uint64_t all = states.count(exhaustive_max_);
    if (all <= exhaustive_max_ && (depth == 0 || static_cast<double>(all) <= 4 * share + 4)) {
      (states.counted_lines() ? counts_.moments_of_lines : counts_.moments_exhausted) += 1;
      for (std::uint64_t number = 0; number < all; ++number)
        if (!try_state(trace, states, states.recipe(number), depth, credit, deeper_budget))
          return false;
      if (!states.counted_lines()) continue;
    }
    auto samples = static_cast<std::uint64_t>(share);
    const double fraction = share - static_cast<double>(samples);
    if (static_cast<double>(below(random_, 1000)) < fraction * 1000) samples += 1;
    counts_.moments_sampled += samples > 0 ? 1 : 0;
    counts_.moments_passed += samples > 0 ? 0 : 1;
    for (std::uint64_t i = 0; i < samples; ++i) {
      const StateRecipe recipe = samples >= 4 && i == 0   ? states.nothing_kept()
                                 : samples >= 4 && i == 1 ? states.all_kept()
                                                          : states.sample(random_);
      if (!try_state(trace, states, recipe, depth, credit, deeper_budget)) return false;
    }
  }
  return true;
}

std::optional<Loss> Explorer::explore(const Trace& trace, std::uint64_t states, std::size_t from) {
  root_ = &trace;
  path_.clear();
  counts_.traces += 1;
  const bool right = explore_trace(trace, static_cast<double>(states), from, 0);
  std::optional<Loss> loss;
  if (!right) loss = Loss{trace, recipe_in_hand(), what_};
  path_.clear();
  root_ = nullptr;
  return loss;
}

std::string Explorer::replay(const Trace& trace, const std::string& text) {
  const std::size_t end = text.find('+');
  const StateRecipe recipe = StateRecipe::parse(text.substr(0, end));
  DiskStates states(trace);
  while (states.moment() < recipe.moment) {
    if (states.at_end()) throw std::runtime_error("the trace ends before the recipe's moment");
    states.advance();
  }
  const std::vector<StoredDisk> disks = states.build(recipe);
  if (std::string what = judge(trace, states, disks); !what.empty() || end == std::string::npos)
    return what;
  return replay(record_recovery(disks, trace.can_mark), text.substr(end + 1));
}

Explorer::Cut Explorer::cut_somewhere(const Trace& trace) {
  // Of a few candidates, the one with the most writes that are not durable.
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i < kMomentsToChooseFrom; ++i)
    candidates.push_back(1 + below(random_, trace.events.size()));
  std::size_t moment = candidates.front();
  std::size_t most = 0;
  for (DiskStates states(trace); !states.at_end();) {
    states.advance();
    if (std::find(candidates.begin(), candidates.end(), states.moment()) == candidates.end() ||
        states.pending() <= most)
      continue;
    most = states.pending();
    moment = states.moment();
  }
  DiskStates states(trace);
  while (states.moment() < moment) states.advance();
  const StateRecipe recipe = states.sample(random_);
  Cut cut{states.build(recipe), {}, recipe.text(), {}};
  cut.wrong = judge(trace, states, cut.disks);
  if (!cut.wrong.empty()) return cut;
  cut.found.resize(cut.disks.size());
  for (std::size_t volume = 0; volume < cut.disks.size(); ++volume) [[maybe_unused]]
    const Found found = recover_volume(cut.disks[volume], trace.can_mark, &cut.found[volume]);
  return cut;
}

// ------------------------------------------------------------------------------ failing recoveries

std::optional<Loss> Explorer::fail_recoveries(const std::vector<StoredDisk>& disks, bool can_mark,
                                              const std::vector<Content>& wanted) {
  for (std::uint16_t volume = 0; volume < disks.size(); ++volume) {
    using Done = Fault::Done;
    struct Way {
      int error_number;
      Done done;
    };
    const Way third = below(random_, 2) == 0 ? Way{ETIMEDOUT, Done::all} : Way{EDQUOT, Done::part};
    for (const auto& [error_number, done] :
         {Way{EIO, Done::nothing}, Way{ENOSPC, Done::nothing}, third}) {
      for (std::uint64_t operation = 0;; ++operation) {
        Recorder recorder({disks[volume]}, can_mark, 0, Pauses::never, is_memory_);
        recorder.acknowledge(0, recorder.begin_commit(0, wanted[volume]));
        recorder.fail({.operation = operation, .error_number = error_number, .done = done});
        repeat_from(operation);
        MemoryDisk memory(disks[volume], recorded_options(can_mark, is_memory_));
        const Status failed = recover_(*recorder.record(memory.open(), 0));
        if (recorder.operations() <= operation) break;        // it has no more
        if (!recorder.failed_before().has_value()) continue;  // that one takes no space
        counts_.recovery_faults += 1;
        // Without a crash: what the failed one left is what the next one finds.
        const Found again = recover_volume(memory.state(), can_mark, nullptr);
        // Want of space may be met by giving some back.
        const bool told = !failed.ok() || error_number == ENOSPC || error_number == EDQUOT;
        const Trace trace = recorder.take();
        std::string wrong;
        if (!failed.ok() && failed.text().empty()) wrong = "the error has no text";
        if (!told) wrong = "nobody is told";
        if (!again.error.empty()) wrong = "then " + again.error;
        if (again.error.empty() && again.checksum != wanted[volume].checksum())
          wrong = "then another content is found";
        // With one: whatever of it reached the disk.
        path_.clear();
        if (wrong.empty() &&
            !explore_trace(trace, kStatesOfFailedRecovery, last_change(trace) - 1, kFailedRecovery))
          wrong = "then the power fails: " + what_;
        if (wrong.empty()) continue;
        return Loss{trace, recipe_in_hand(),
                    "operation " + std::to_string(operation) + " of a recovery fails (" +
                        FailedCall{error_number, "errno"}.text() + "); " + wrong};
      }
    }
  }
  return std::nullopt;
}

}  // namespace pawl::test
