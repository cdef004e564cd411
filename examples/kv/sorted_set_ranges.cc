// Ranges of sorted sets: by rank, by score and by name.  The options come first, then the range,
// and the key is looked up last: so errors have Redis's precedence.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "text.h"
#include "values.h"

namespace kv {
namespace {

using Elements = std::vector<const SortedSet::Element*>;

enum class By { kOption, kRank, kScore, kName };
enum class Direction { kOption, kForward, kReverse };

struct RangeOptions {
  By by;
  Direction direction;
  bool with_scores = false;
  int64_t offset = 0;  // negative: behind the last one
  int64_t limit = -1;  // negative: none
};

// What the command itself does not say is said by an option, or is the first of each.
RangeOptions parse_range_options(const Call& call, By by, Direction direction) {
  RangeOptions options{by, direction};
  for (size_t at = 4; at < call.size(); ++at) {
    const std::string_view word = call[at];
    if (equal_ignoring_case(word, "WITHSCORES")) {
      options.with_scores = true;
    } else if (equal_ignoring_case(word, "LIMIT") && at + 2 < call.size()) {
      options.offset = integer_argument(call[++at]);
      options.limit = integer_argument(call[++at]);
    } else if (direction == Direction::kOption && equal_ignoring_case(word, "REV")) {
      options.direction = Direction::kReverse;
    } else if (options.by == By::kOption && equal_ignoring_case(word, "BYLEX")) {
      options.by = By::kName;
    } else if (options.by == By::kOption && equal_ignoring_case(word, "BYSCORE")) {
      options.by = By::kScore;
    } else {
      throw_syntax_error();
    }
  }
  if (options.by == By::kOption) options.by = By::kRank;
  if (options.limit != -1 && options.by == By::kRank) {
    throw RequestError(
        "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
  }
  if (options.with_scores && options.by == By::kName) {
    throw RequestError("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
  }
  return options;
}

struct ScoreBorder {
  double score;
  bool excluded;
};

// More lenient than other numbers, as in Redis: nothing at all is 0.
ScoreBorder parse_score_border(std::string_view text) {
  const bool excluded = text.starts_with('(');
  const std::string number(excluded ? text.substr(1) : text);
  char* end = nullptr;
  const double score = std::strtod(number.c_str(), &end);
  if (*end != '\0' || std::isnan(score)) throw RequestError("ERR min or max is not a float");
  return {score, excluded};
}

struct NameBorder {
  enum class Kind { kFirst, kName, kLast } kind;
  std::string_view name;
  bool excluded;

  // Below 0 where the name lies before the border, above 0 behind it, as only an excluded one does.
  int compare(std::string_view other) const {
    if (kind != Kind::kName) return kind == Kind::kFirst ? 1 : -1;
    return other.compare(name);
  }
};

NameBorder parse_name_border(std::string_view text) {
  // Redis looks at text that ends with a zero.
  const bool alone = text.size() == 1 || (text.size() > 1 && text[1] == '\0');
  if (text.starts_with('-') && alone) return {NameBorder::Kind::kFirst, {}, true};
  if (text.starts_with('+') && alone) return {NameBorder::Kind::kLast, {}, true};
  if (text.starts_with('(') || text.starts_with('[')) {
    return {NameBorder::Kind::kName, text.substr(1), text.starts_with('(')};
  }
  throw RequestError("ERR min or max not valid string range item");
}

// Those from the first one that begins the range on, as long as they are within it.
template <class Iterator, class Begins, class Within>
Elements take_range(Iterator at, Iterator end, const RangeOptions& options, Begins begins,
                    Within within) {
  Elements taken;
  at = std::find_if(at, end, begins);
  for (int64_t left = options.offset; left != 0 && at != end; --left) ++at;
  for (int64_t left = options.limit; left != 0 && at != end && within(*at); --left, ++at) {
    taken.push_back(*at);
  }
  return taken;
}

Elements take_by_score(const SortedSet::Order& order, const RangeOptions& options,
                       const ScoreBorder& low, const ScoreBorder& high) {
  const auto first = low.excluded ? order.upper_bound(low.score) : order.lower_bound(low.score);
  const auto last = high.excluded ? order.lower_bound(high.score) : order.upper_bound(high.score);
  const auto any = [](const SortedSet::Element*) { return true; };
  const auto not_below = [&](const SortedSet::Element* element) {
    return low.excluded ? element->second > low.score : element->second >= low.score;
  };
  const auto not_above = [&](const SortedSet::Element* element) {
    return high.excluded ? element->second < high.score : element->second <= high.score;
  };
  if (options.direction == Direction::kReverse) {
    return take_range(std::make_reverse_iterator(last), order.rend(), options, any, not_below);
  }
  return take_range(first, order.end(), options, any, not_above);
}

Elements take_by_name(const SortedSet::Order& order, const RangeOptions& options,
                      const NameBorder& low, const NameBorder& high) {
  const auto not_below = [&](const SortedSet::Element* element) {
    const int compared = low.compare(element->first);
    return low.excluded ? compared > 0 : compared >= 0;
  };
  const auto not_above = [&](const SortedSet::Element* element) {
    const int compared = high.compare(element->first);
    return high.excluded ? compared < 0 : compared <= 0;
  };
  if (options.direction == Direction::kReverse) {
    return take_range(order.rbegin(), order.rend(), options, not_above, not_below);
  }
  return take_range(order.begin(), order.end(), options, not_below, not_above);
}

Elements take_by_rank(const SortedSet::Order& order, RangeOptions options, int64_t first,
                      int64_t last) {
  const Range range = select_range(first, last, order.size());
  options.offset = static_cast<int64_t>(range.begin);
  options.limit = static_cast<int64_t>(range.end - range.begin);
  const auto any = [](const SortedSet::Element*) { return true; };
  if (options.direction == Direction::kReverse) {
    return take_range(order.rbegin(), order.rend(), options, any, any);
  }
  return take_range(order.begin(), order.end(), options, any, any);
}

// Looks the key up, and replies with what of its set is taken.
template <class Take>
void reply_range(Call& call, bool with_scores, Take take) {
  const SortedSet* set = find_value<SortedSet>(call, call[1]);
  if (set == nullptr) return call.reply.array(0);
  const Elements taken = take(set->order);
  call.reply.array(taken.size() * (with_scores ? 2 : 1));
  for (const SortedSet::Element* element : taken) {
    call.reply.bulk(element->first);
    if (with_scores) call.reply.number(element->second);
  }
}

void range(Call& call, By by, Direction direction) {
  const RangeOptions options = parse_range_options(call, by, direction);
  const bool high_first = options.direction == Direction::kReverse;
  const std::string_view low = call[high_first ? 3 : 2];
  const std::string_view high = call[high_first ? 2 : 3];
  if (options.by == By::kScore) {
    const ScoreBorder from = parse_score_border(low);
    const ScoreBorder to = parse_score_border(high);
    reply_range(call, options.with_scores,
                [&](const auto& order) { return take_by_score(order, options, from, to); });
  } else if (options.by == By::kName) {
    const NameBorder from = parse_name_border(low);
    const NameBorder to = parse_name_border(high);
    reply_range(call, false,
                [&](const auto& order) { return take_by_name(order, options, from, to); });
  } else {
    const int64_t first = integer_argument(call[2]);
    const int64_t last = integer_argument(call[3]);
    reply_range(call, options.with_scores,
                [&](const auto& order) { return take_by_rank(order, options, first, last); });
  }
}

void zrange(Call& call) { range(call, By::kOption, Direction::kOption); }
void zrevrange(Call& call) { range(call, By::kRank, Direction::kReverse); }
void zrangebyscore(Call& call) { range(call, By::kScore, Direction::kForward); }
void zrevrangebyscore(Call& call) { range(call, By::kScore, Direction::kReverse); }

constexpr Command kCommands[] = {
    {"zrange", zrange, -4, false},
    {"zrevrange", zrevrange, -4, false},
    {"zrangebyscore", zrangebyscore, -4, false},
    {"zrevrangebyscore", zrevrangebyscore, -4, false},
};

}  // namespace

std::span<const Command> sorted_set_range_commands() { return kCommands; }

}  // namespace kv
