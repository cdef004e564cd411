// Sorted sets.  The standard library has no tree that counts, so ranks are found by walking.
#include <cmath>
#include <cstdlib>
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

void zincrby(Call& call) { add(call, {.increment = true}, 2); }

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

void reply_element(Call& call, const SortedSet::Element& element, bool with_scores) {
  call.reply.bulk(element.first);
  if (with_scores) call.reply.number(element.second);
}

void reply_range(Call& call, bool reverse, bool with_scores) {
  const int64_t first = integer_argument(call[2]);
  const int64_t last = integer_argument(call[3]);
  const SortedSet* set = find_value<SortedSet>(call, call[1]);
  if (set == nullptr) return call.reply.array(0);
  const Range range = select_range(first, last, set->order.size());
  call.reply.array((range.end - range.begin) * (with_scores ? 2 : 1));
  const auto walk = [&](auto at) {
    std::advance(at, range.begin);
    for (size_t left = range.end - range.begin; left > 0; --left, ++at) {
      reply_element(call, **at, with_scores);
    }
  };
  if (reverse) {
    walk(set->order.rbegin());
  } else {
    walk(set->order.begin());
  }
}

void zrange(Call& call) {
  bool reverse = false;
  bool with_scores = false;
  for (const std::string_view option : call.arguments.subspan(4)) {
    if (equal_ignoring_case(option, "REV")) {
      reverse = true;
    } else if (equal_ignoring_case(option, "WITHSCORES")) {
      with_scores = true;
    } else {
      throw_syntax_error();
    }
  }
  reply_range(call, reverse, with_scores);
}

void zrevrange(Call& call) {
  const bool with_scores = call.size() == 5 && equal_ignoring_case(call[4], "WITHSCORES");
  if (call.size() > 4 && !with_scores) throw_syntax_error();
  reply_range(call, true, with_scores);
}

struct Border {
  double score;
  bool excluded;
};

// More lenient than other numbers, as in Redis: nothing at all is 0.
Border parse_border(std::string_view text) {
  const bool excluded = text.starts_with('(');
  const std::string number(excluded ? text.substr(1) : text);
  char* end = nullptr;
  const double score = std::strtod(number.c_str(), &end);
  if (*end != '\0' || std::isnan(score)) throw RequestError("ERR min or max is not a float");
  return {score, excluded};
}

struct Limit {
  int64_t offset = 0;
  int64_t count = -1;  // negative: no limit
};

void zrangebyscore(Call& call) {
  bool with_scores = false;
  Limit limit;
  for (size_t at = 4; at < call.size(); ++at) {
    if (equal_ignoring_case(call[at], "WITHSCORES")) {
      with_scores = true;
    } else if (equal_ignoring_case(call[at], "LIMIT") && at + 2 < call.size()) {
      limit = {integer_argument(call[at + 1]), integer_argument(call[at + 2])};
      at += 2;
    } else {
      throw_syntax_error();
    }
  }
  const Border low = parse_border(call[2]);
  const Border high = parse_border(call[3]);
  const SortedSet* set = find_value<SortedSet>(call, call[1]);
  if (set == nullptr || limit.offset < 0) return call.reply.array(0);
  const auto& order = set->order;
  auto at = low.excluded ? order.upper_bound(low.score) : order.lower_bound(low.score);
  const auto within = [&] {
    return at != order.end() &&
           (high.excluded ? (*at)->second < high.score : (*at)->second <= high.score);
  };
  for (; limit.offset > 0 && within(); --limit.offset) ++at;
  const auto first = at;
  size_t count = 0;
  for (; limit.count != 0 && within(); --limit.count, ++at) ++count;
  call.reply.array(count * (with_scores ? 2 : 1));
  for (at = first; count > 0; --count, ++at) reply_element(call, **at, with_scores);
}

constexpr Command kCommands[] = {
    {"zadd", zadd, -4, true},
    {"zincrby", zincrby, 4, true},
    {"zrem", zrem, -3, true},
    {"zscore", zscore, 3, false},
    {"zcard", zcard, 2, false},
    {"zrank", zrank, 3, false},
    {"zrange", zrange, -4, false},
    {"zrevrange", zrevrange, -4, false},
    {"zrangebyscore", zrangebyscore, -4, false},
};

}  // namespace

std::span<const Command> sorted_set_commands() { return kCommands; }

}  // namespace kv
