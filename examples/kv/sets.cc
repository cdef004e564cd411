// Sets.
#include <random>
#include <vector>

#include "values.h"

namespace kv {
namespace {

void reply_count(Call& call, size_t count) { call.reply.integer(static_cast<int64_t>(count)); }

void sadd(Call& call) {
  Set& set = obtain_value<Set>(call, call[1]);
  const size_t before = set.size();
  for (const std::string_view member : call.arguments.subspan(2)) {
    if (!set.contains(member)) set.emplace(member);
  }
  reply_count(call, set.size() - before);
}

void srem(Call& call) {
  Set* set = find_value<Set>(call, call[1]);
  if (set == nullptr) return call.reply.integer(0);
  const size_t before = set->size();
  for (const std::string_view member : call.arguments.subspan(2)) {
    const auto found = set->find(member);
    if (found != set->end()) set->erase(found);
  }
  const size_t removed = before - set->size();
  if (set->empty()) erase_key(call, call[1]);
  reply_count(call, removed);
}

void smembers(Call& call) {
  const Set* set = find_value<Set>(call, call[1]);
  if (set == nullptr) return call.reply.array(0);
  call.reply.array(set->size());
  for (const String& member : *set) call.reply.bulk(member);
}

void sismember(Call& call) {
  const Set* set = find_value<Set>(call, call[1]);
  call.reply.integer(set != nullptr && set->contains(call[2]) ? 1 : 0);
}

void scard(Call& call) {
  const Set* set = find_value<Set>(call, call[1]);
  reply_count(call, set == nullptr ? 0 : set->size());
}

constexpr size_t kSparseness = 8;  // buckets a member, above which a table is made smaller

// Different members, at most as many as there are: those of the buckets from one drawn by lot on.
std::vector<const String*> draw(Set& set, size_t count) {
  static std::minstd_rand random{std::random_device()()};
  if (set.bucket_count() > kSparseness * set.size() + kSparseness) shrink(set);
  std::vector<const String*> drawn;
  drawn.reserve(count);
  for (size_t bucket = random() % set.bucket_count(); drawn.size() < count;
       bucket = (bucket + 1) % set.bucket_count()) {
    for (auto at = set.begin(bucket); at != set.end(bucket) && drawn.size() < count; ++at) {
      drawn.push_back(&*at);
    }
  }
  return drawn;
}

void spop(Call& call) {
  if (call.size() > 3) throw_syntax_error();
  const bool counted = call.size() == 3;
  size_t count = counted ? count_argument(call[2]) : 1;
  Set* set = find_value<Set>(call, call[1]);
  if (set == nullptr) return counted ? call.reply.array(0) : call.reply.null();
  count = std::min(count, set->size());
  if (counted) call.reply.array(count);
  if (count > 0) {
    const std::vector<const String*> drawn = draw(*set, count);
    // All of the reply comes before any change: it may be too large.
    for (const String* member : drawn) call.reply.bulk(*member);
    for (const String* member : drawn) set->erase(set->find(*member));
  }
  if (set->empty()) erase_key(call, call[1]);
}

constexpr Command kCommands[] = {
    {"sadd", sadd, -3, true},           {"srem", srem, -3, true},
    {"scard", scard, 2, false},         {"smembers", smembers, 2, false},
    {"sismember", sismember, 3, false}, {"spop", spop, -2, true},
};

}  // namespace

std::span<const Command> set_commands() { return kCommands; }

}  // namespace kv
