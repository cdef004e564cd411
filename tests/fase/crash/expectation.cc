#include "fase/crash/expectation.h"

namespace pawl::test {
namespace {

using Pairs = std::map<std::uint64_t, std::uint64_t>;

void apply(Pairs& pairs, const Operation& operation) {
  if (operation.kind == 0) pairs[operation.key] = operation.value;
  if (operation.kind == 1) pairs.erase(operation.key);
}

// 0: none.
std::uint64_t value_of(const Pairs& pairs, std::uint64_t key) {
  const auto at = pairs.find(key);
  return at == pairs.end() ? 0 : at->second;
}

std::string difference(const Pairs& found, const Pairs& wanted) {
  std::string text;
  for (const auto& [key, value] : found) {
    if (value_of(wanted, key) != value)
      text += " found " + std::to_string(key) + "=" + std::to_string(value);
  }
  for (const auto& [key, value] : wanted) {
    if (value_of(found, key) != value)
      text += " wanted " + std::to_string(key) + "=" + std::to_string(value);
  }
  return text.empty() ? text : "the pairs differ:" + text;
}

}  // namespace

std::string Expectation::check(const std::vector<std::vector<Attempt>>& attempts,
                               const Contents& found) {
  return has_pairs(subject_) ? check_pairs(attempts, found) : check_values(attempts, found);
}

std::string Expectation::check_values(const std::vector<std::vector<Attempt>>& attempts,
                                      const Contents& found) {
  std::set<std::uint64_t> may_be;
  std::set<std::uint64_t> taken;
  std::uint64_t removals_under_way = 0;
  for (const auto& of_thread : attempts) {
    for (const Attempt& attempt : of_thread) {
      if (attempt.operation.kind == 0)
        (attempt.is_done ? values_ : may_be).insert(attempt.operation.value);
      else if (!attempt.is_done)
        removals_under_way += 1;
      else if (attempt.result != 0 && !taken.insert(attempt.result).second)
        return "value " + std::to_string(attempt.result) + " was taken twice";
    }
  }
  std::set<std::uint64_t> there(found.begin(), found.end());
  if (there.size() != found.size()) return "a value is there twice";
  for (const std::uint64_t value : taken) {
    if (there.contains(value)) return "value " + std::to_string(value) + " was taken and is there";
    if (!values_.contains(value) && !may_be.contains(value))
      return "value " + std::to_string(value) + " was taken and never put";
  }
  for (const std::uint64_t value : there) {
    if (!values_.contains(value) && !may_be.contains(value))
      return "value " + std::to_string(value) + " is there and was never put";
  }
  std::uint64_t missing = 0;
  for (const std::uint64_t value : values_) {
    if (!there.contains(value) && !taken.contains(value)) missing += 1;
  }
  if (missing > removals_under_way)
    return std::to_string(missing) + " values are missing, and only " +
           std::to_string(removals_under_way) + " removals were under way";
  values_ = std::move(there);
  return "";
}

std::string Expectation::check_pairs(const std::vector<std::vector<Attempt>>& attempts,
                                     const Contents& found) {
  Pairs pairs;
  for (std::size_t i = 0; i < found.size(); i += 2) pairs[found[i]] = found[i + 1];
  for (const auto& of_thread : attempts) {
    for (const Attempt& attempt : of_thread) {
      Pairs done = pairs_;
      apply(done, attempt.operation);
      const std::uint64_t key = attempt.operation.key;
      // What was under way has happened if it is seen.
      if (attempt.is_done || value_of(pairs, key) == value_of(done, key)) pairs_ = std::move(done);
    }
  }
  return difference(pairs, pairs_);
}

}  // namespace pawl::test
