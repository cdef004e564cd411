#include "wsp/budget/save_budget.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace pawl::wsp {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kPercentile = 0.999;
constexpr const char* kRehearsalsFile = "rehearsals.json";
// A step has a name of some words, and a number of 24 characters at most.
constexpr std::size_t kRehearsalsBytesMax = kRehearsalsMax * kSaveStepsMax * 128;

// The smallest value that at least `share` of the sorted values do not exceed.
double percentile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

Result<Rehearsals> read_json(const Json& json) {
  Rehearsals read;
  for (const Json& rehearsal : json.at("rehearsals")) {
    SaveTiming timing;
    for (const Json& step : rehearsal) {
      timing.steps.push_back({step.at("step"), step.at("took_us")});
      if (!(timing.steps.back().took_us >= 0) || timing.steps.size() > kSaveStepsMax)
        return Status::failure(EINVAL, "a step that cannot be");
    }
    if (timing.steps.empty()) return Status::failure(EINVAL, "a rehearsal without a step");
    read.add(std::move(timing));
  }
  return read;
}

}  // namespace

double SaveTiming::total_us() const {
  double total = 0;
  for (const SaveStep& step : steps) total += step.took_us;
  return total;
}

void Rehearsals::add(SaveTiming timing) {
  PAWL_ASSERT(!timing.steps.empty() && timing.steps.size() <= kSaveStepsMax);
  if (timings_.size() < kRehearsalsMax) {
    timings_.push_back(std::move(timing));
    return;
  }
  timings_[next_] = std::move(timing);
  next_ = (next_ + 1) % kRehearsalsMax;
}

BudgetFindings Rehearsals::judge(double window_us) const {
  BudgetFindings found{timings_.size(), window_us, 0, 0, 0, "", 0, false};
  if (timings_.empty()) return found;
  std::vector<double> totals;
  totals.reserve(timings_.size());
  for (const SaveTiming& timing : timings_) totals.push_back(timing.total_us());
  std::sort(totals.begin(), totals.end());
  found.median_us = percentile(totals, 0.5);
  found.percentile_999_us = percentile(totals, kPercentile);
  found.longest_us = totals.back();
  found.holds = found.percentile_999_us <= window_us;

  double slow_us = 0;
  std::map<std::string, double> by_step;
  for (const SaveTiming& timing : timings_) {
    if (timing.total_us() < found.percentile_999_us) continue;
    slow_us += timing.total_us();
    for (const SaveStep& step : timing.steps) by_step[step.name] += step.took_us;
  }
  for (const auto& [name, took_us] : by_step) {
    if (!found.dominating_step.empty() && took_us <= found.dominating_share * slow_us) continue;
    found.dominating_step = name;
    found.dominating_share = slow_us > 0 ? took_us / slow_us : 0;
  }
  return found;
}

Status Rehearsals::write(const OwnDirectory& directory) const {
  Json rehearsals = Json::array();
  for (std::size_t i = 0; i < timings_.size(); ++i) {
    Json steps = Json::array();
    for (const SaveStep& step : timings_[(next_ + i) % timings_.size()].steps)
      steps.push_back({{"step", step.name}, {"took_us", step.took_us}});
    rehearsals.push_back(std::move(steps));
  }
  return directory.write_file(kRehearsalsFile, Json{{"rehearsals", rehearsals}}.dump() + '\n');
}

void Rehearsals::forget(const OwnDirectory& directory) {
  ::unlinkat(directory.descriptor(), kRehearsalsFile, 0);
}

Result<Rehearsals> Rehearsals::read(const OwnDirectory& directory) {
  const Result<std::string> text = directory.read_file(kRehearsalsFile, kRehearsalsBytesMax);
  if (!text.ok()) {
    if (text.status().error_number() == ENOENT) return Rehearsals();
    return text.status();
  }
  Result<Rehearsals> read = parse(text.value());
  if (read.ok()) return read;
  return Status::failure(
      EINVAL, directory.path_of(kRehearsalsFile) +
                  " holds no rehearsals; remove it and rehearse again: " + read.status().text());
}

Result<Rehearsals> Rehearsals::parse(const std::string& text) {
  try {
    return read_json(Json::parse(text));
  } catch (const Json::exception& exception) {
    return Status::failure(EINVAL, exception.what());
  }
}

}  // namespace pawl::wsp
