// Sorted sets.  The standard library has no tree that counts, so ranks are found by walking.
#include <cmath>
#include <iterator>

#include "text.h"
#include "values.h"

namespace kv {
namespace {

struct AddOptions {
  bool only_new = false;
  bool only_existing = false;
  bool only_greater = false;
  bool only_less = false;
  bool count_changed = false;
  bool increment = false;
};

// Moves `at` behind the options.
AddOptions parse_add_options(const Call& call, size_t& at) {
  AddOptions options;
  for (; at < call.size(); ++at) {
    if (equal_ignoring_case(call[at], "NX")) {
      options.only_new = true;
    } else if (equal_ignoring_case(call[at], "XX")) {
      options.only_existing = true;
    } else if (equal_ignoring_case(call[at], "GT")) {
      options.only_greater = true;
    } else if (equal_ignoring_case(call[at], "LT")) {
      options.only_less = true;
    } else if (equal_ignoring_case(call[at], "CH")) {
      options.count_changed = true;
    } else if (equal_ignoring_case(call[at], "INCR")) {
      options.increment = true;
    } else {
      break;
    }
  }
  return options;
}

void check_add_options(const AddOptions& options, size_t words_left) {
  if (words_left == 0 || words_left % 2 != 0) throw_syntax_error();
  if (options.only_new && options.only_existing) {
    throw RequestError("ERR XX and NX options at the same time are not compatible");
  }
  if (options.only_new + options.only_greater + options.only_less > 1) {
    throw RequestError("ERR GT, LT, and/or NX options at the same time are not compatible");
  }
  if (options.increment && words_left > 2) {
    throw RequestError("ERR INCR option supports a single increment-element pair");
  }
}

enum class Change { kNone, kAdded, kUpdated, kSame };

// Adds or changes one member; score becomes what the member has.
Change add_one(SortedSet& set, const AddOptions& options, double& score, std::string_view member) {
  const auto found = set.scores.find(member);
  if (found == set.scores.end()) {
    if (options.only_existing) return Change::kNone;
    set.add(member, score);
    return Change::kAdded;
  }
  if (options.only_new) return Change::kNone;
  const double old = found->second;
  if (options.increment) score += old;
  if (std::isnan(score)) throw RequestError("ERR resulting score is not a number (NaN)");
  if ((options.only_greater && score <= old) || (options.only_less && score >= old)) {
    return Change::kNone;
  }
  if (score == old) return Change::kSame;
  set.change(found, score);
  return Change::kUpdated;
}

void add(Call& call, const AddOptions& options, size_t at) {
  check_add_options(options, call.size() - at);
  for (size_t score = at; score < call.size(); score += 2) double_argument(call[score]);
  const bool exists = find_value<SortedSet>(call, call[1]) != nullptr;
  int64_t added = 0;
  int64_t updated = 0;
  double score = 0;
  Change change = Change::kNone;
  if (exists || !options.only_existing) {
    SortedSet& set = obtain_value<SortedSet>(call, call[1]);
    for (; at < call.size(); at += 2) {
      score = double_argument(call[at]);
      change = add_one(set, options, score, call[at + 1]);
      added += change == Change::kAdded ? 1 : 0;
      updated += change == Change::kUpdated ? 1 : 0;
    }
  }
  if (!options.increment)
    return call.reply.integer(options.count_changed ? added + updated : added);
  if (change == Change::kNone) return call.reply.null();
  call.reply.number(score);
}

void zadd(Call& call) {
  size_t at = 2;
  const AddOptions options = parse_add_options(call, at);
  add(call, options, at);
}

// Redis, too, takes an option for one here.
void zincrby(Call& call) {
  size_t at = 2;
  AddOptions options = parse_add_options(call, at);
  options.increment = true;
  add(call, options, at);
}

void zrem(Call& call) {
  SortedSet* set = find_value<SortedSet>(call, call[1]);
  if (set == nullptr) return call.reply.integer(0);
  const size_t before = set->scores.size();
  for (const std::string_view member : call.arguments.subspan(2)) {
    const auto found = set->scores.find(member);
    if (found != set->scores.end()) set->remove(found);
  }
  const size_t removed = before - set->scores.size();
  if (set->scores.empty()) erase_key(call, call[1]);
  call.reply.integer(static_cast<int64_t>(removed));
}

void zscore(Call& call) {
  const SortedSet* set = find_value<SortedSet>(call, call[1]);
  if (set == nullptr) return call.reply.null();
  const auto found = set->scores.find(call[2]);
  if (found == set->scores.end()) return call.reply.null();
  call.reply.number(found->second);
}

void zcard(Call& call) {
  const SortedSet* set = find_value<SortedSet>(call, call[1]);
  call.reply.integer(set == nullptr ? 0 : static_cast<int64_t>(set->scores.size()));
}

void zrank(Call& call) {
  const SortedSet* set = find_value<SortedSet>(call, call[1]);
  if (set == nullptr) return call.reply.null();
  const auto found = set->scores.find(call[2]);
  if (found == set->scores.end()) return call.reply.null();
  call.reply.integer(std::distance(set->order.begin(), set->order.find(&*found)));
}

constexpr Command kCommands[] = {
    {"zadd", zadd, -4, true},     {"zincrby", zincrby, 4, true}, {"zrem", zrem, -3, true},
    {"zscore", zscore, 3, false}, {"zcard", zcard, 2, false},    {"zrank", zrank, 3, false},
};

}  // namespace

std::span<const Command> sorted_set_commands() { return kCommands; }

}  // namespace kv
