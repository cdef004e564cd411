#include "snapshot/workload.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace pawl::bench {
namespace {

constexpr std::uint64_t kSeedOfWorkload = 20231106;
// So many, so that a share of 5 % is in each sample, and the clock's share of it is small.
constexpr std::uint32_t kMany = 200;
constexpr std::uint32_t kFew = 25;

// A key for each number, spread over all keys; another for each other number.
std::uint64_t key_of(std::uint64_t number) {
  std::uint64_t key = number + 0x9e3779b97f4a7c15u;
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
  return key ^ (key >> 31);
}

double zeta(std::uint64_t count) {
  double sum = 0;
  for (std::uint64_t i = 1; i <= count; ++i)
    sum += 1 / std::pow(static_cast<double>(i), Zipfian::kTheta);
  return sum;
}

}  // namespace

const std::vector<Task>& all_tasks() {
  static const std::vector<Task> tasks = {
      {"list", "insert-tail", Form::list, true, kMany, kFew},
      {"list", "traverse", Form::list, false, kMany, kMany},
      {"list", "delete-head", Form::list, true, kMany, kFew},
      {"b-tree", "insert", Form::tree, true, kMany, kFew},
      {"b-tree", "lookup", Form::tree, false, kMany, kMany},
      {"b-tree", "read", Form::tree, false, 1, 1},
      {"b-tree", "delete", Form::tree, true, kMany, kFew},
      {"ycsb-c", "mix", Form::table, false, kMany, kMany},
      {"ycsb-b", "mix", Form::table, true, kMany, kMany},
      {"ycsb-a", "mix", Form::table, true, kMany, kMany},
      {"ycsb-f", "mix", Form::table, true, kMany, kMany},
      {"ycsb-g", "mix", Form::table, true, kMany, kFew},
      {"ycsb-d", "mix", Form::table, true, kMany, kMany},
      {"ycsb-e", "mix", Form::table, true, kMany, kMany},
  };
  return tasks;
}

Zipfian::Zipfian(std::uint64_t count)
    : count_(static_cast<double>(count)),
      zeta_(zeta(count)),
      eta_((1 - std::pow(2 / count_, 1 - kTheta)) / (1 - zeta(2) / zeta_)),
      half_power_(std::pow(0.5, kTheta)) {}

std::uint64_t Zipfian::next(std::mt19937_64& random) const {
  const double uniform = std::uniform_real_distribution<double>()(random);
  const double scaled = uniform * zeta_;
  if (scaled < 1) return 0;
  if (scaled < 1 + half_power_) return 1;
  const double rank = count_ * std::pow(eta_ * uniform - eta_ + 1, 1 / (1 - kTheta));
  return std::min(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(count_) - 1);
}

Requests::Requests(Form form, std::uint64_t items)
    : form_(form), items_(items), zipfian_(items), random_(kSeedOfWorkload), end_(items) {}

std::vector<Request> Requests::to_fill() const {
  constexpr Action kActions[] = {Action::list_append, Action::tree_insert, Action::table_insert};
  std::vector<Request> requests;
  requests.reserve(items_);
  for (std::uint64_t i = 0; i < items_; ++i)
    requests.push_back({kActions[static_cast<std::uint32_t>(form_)], 0, key_of(i), i});
  return requests;
}

std::uint64_t Requests::operations_of(const Request& request) const {
  return request.action == Action::tree_walk ? end_ - first_ : 1;
}

std::uint64_t Requests::some_live() { return first_ + random_() % (end_ - first_); }
// The popular ones are spread over all: YCSB calls it scrambled.
std::uint64_t Requests::popular() { return key_of(zipfian_.next(random_)) % items_; }
std::uint64_t Requests::recent() { return end_ - 1 - zipfian_.next(random_); }

Request Requests::of_table(char letter) {
  const std::uint64_t percent = random_() % 100;
  const std::uint64_t value = random_();
  switch (letter) {
    case 'a':
      return {percent < 50 ? Action::table_read : Action::table_update, 0, key_of(popular()),
              value};
    case 'b':
      return {percent < 95 ? Action::table_read : Action::table_update, 0, key_of(popular()),
              value};
    case 'd':
      if (percent < 95) return {Action::table_read, 0, key_of(recent()), 0};
      return {Action::table_insert, 0, key_of(end_++), value};
    case 'e':
      if (percent < 95) {
        const auto pairs = static_cast<std::uint32_t>(1 + random_() % kScanPairsMax);
        return {Action::table_scan, pairs, key_of(popular()), 0};
      }
      return {Action::table_insert, 0, key_of(end_++), value};
    case 'f':
      return {percent < 50 ? Action::table_read : Action::table_modify, 0, key_of(popular()), 0};
    case 'g':
      return {Action::table_update, 0, key_of(popular()), value};
    default:
      return {Action::table_read, 0, key_of(popular()), 0};
  }
}

void Requests::next(const Task& task, std::uint32_t count, std::vector<Request>& requests) {
  requests.clear();
  const std::string_view operation = task.operation;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (form_ == Form::table) {
      requests.push_back(of_table(std::string_view(task.workload).back()));
    } else if (operation == "insert-tail") {
      requests.push_back({Action::list_append, 0, key_of(end_++), 0});
    } else if (operation == "delete-head") {
      requests.push_back({Action::list_remove_head, 0, 0, 0});
      ++first_;
    } else if (operation == "traverse") {
      requests.push_back({Action::list_step, 0, 0, 0});
    } else if (operation == "insert") {
      requests.push_back({Action::tree_insert, 0, key_of(end_++), 0});
    } else if (operation == "lookup") {
      requests.push_back({Action::tree_lookup, 0, key_of(some_live()), 0});
    } else if (operation == "read") {
      requests.push_back({Action::tree_walk, 0, 0, 0});
    } else {
      requests.push_back({Action::tree_erase, 0, key_of(first_++), 0});
    }
  }
}

}  // namespace pawl::bench
