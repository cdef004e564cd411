// Hashes.
#include <charconv>

#include "text.h"
#include "values.h"

namespace kv {
namespace {

void hset(Call& call) {
  if (call.size() % 2 != 0) throw_wrong_arity("hset");
  Hash& hash = obtain_value<Hash>(call, call[1]);
  int64_t added = 0;
  for (size_t at = 2; at < call.size(); at += 2) {
    const auto found = hash.find(call[at]);
    if (found != hash.end()) {
      assign(found->second, call[at + 1]);
    } else {
      hash.emplace(call[at], call[at + 1]);
      ++added;
    }
  }
  call.reply.integer(added);
}

void reply_field(Call& call, const Hash* hash, std::string_view field) {
  if (hash != nullptr) {
    const auto found = hash->find(field);
    if (found != hash->end()) return call.reply.bulk(found->second);
  }
  call.reply.null();
}

void hget(Call& call) { reply_field(call, find_value<Hash>(call, call[1]), call[2]); }

void hmget(Call& call) {
  const Hash* hash = find_value<Hash>(call, call[1]);
  call.reply.array(call.size() - 2);
  for (const std::string_view field : call.arguments.subspan(2)) reply_field(call, hash, field);
}

void reply_all(Call& call, bool fields, bool values) {
  const Hash* hash = find_value<Hash>(call, call[1]);
  if (hash == nullptr) return call.reply.array(0);
  call.reply.array(hash->size() * (fields && values ? 2 : 1));
  for (const auto& [field, value] : *hash) {
    if (fields) call.reply.bulk(field);
    if (values) call.reply.bulk(value);
  }
}

void hgetall(Call& call) { reply_all(call, true, true); }
void hkeys(Call& call) { reply_all(call, true, false); }
void hvals(Call& call) { reply_all(call, false, true); }

void hdel(Call& call) {
  Hash* hash = find_value<Hash>(call, call[1]);
  if (hash == nullptr) return call.reply.integer(0);
  int64_t removed = 0;
  for (const std::string_view field : call.arguments.subspan(2)) {
    const auto found = hash->find(field);
    if (found == hash->end()) continue;
    hash->erase(found);
    ++removed;
  }
  if (hash->empty()) erase_key(call, call[1]);
  call.reply.integer(removed);
}

void hlen(Call& call) {
  const Hash* hash = find_value<Hash>(call, call[1]);
  call.reply.integer(hash == nullptr ? 0 : static_cast<int64_t>(hash->size()));
}

void hexists(Call& call) {
  const Hash* hash = find_value<Hash>(call, call[1]);
  call.reply.integer(hash != nullptr && hash->contains(call[2]) ? 1 : 0);
}

void hincrby(Call& call) {
  const int64_t amount = integer_argument(call[3]);
  const Hash* before = find_value<Hash>(call, call[1]);
  int64_t old = 0;
  if (before != nullptr && before->contains(call[2])) {
    const auto number = parse_integer(before->find(call[2])->second);
    if (!number) throw RequestError("ERR hash value is not an integer");
    old = *number;
  }
  const int64_t sum = add_checked(old, amount);
  const std::string digits = std::to_string(sum);
  Hash& hash = obtain_value<Hash>(call, call[1]);
  const auto found = hash.find(call[2]);
  if (found != hash.end()) {
    assign(found->second, digits);
  } else {
    hash.emplace(call[2], std::string_view(digits));
  }
  call.reply.integer(sum);
}

constexpr Command kCommands[] = {
    {"hset", hset, -4, true},       {"hget", hget, 3, false},   {"hmget", hmget, -3, false},
    {"hgetall", hgetall, 2, false}, {"hkeys", hkeys, 2, false}, {"hvals", hvals, 2, false},
    {"hdel", hdel, -3, true},       {"hlen", hlen, 2, false},   {"hexists", hexists, 3, false},
    {"hincrby", hincrby, 4, true},
};

}  // namespace

std::span<const Command> hash_commands() { return kCommands; }

}  // namespace kv
