// Keys of whatever type: existence, expiry, iteration.
#include <cctype>
#include <cerrno>
#include <cstdlib>

#include "expire_options.h"
#include "text.h"
#include "values.h"

namespace kv {
namespace {

void del(Call& call) {
  int64_t removed = 0;
  for (const std::string_view key : call.arguments.subspan(1)) {
    const Store::Node* node = call.store.find(key, call.now_ms);
    if (node == nullptr) continue;
    call.store.erase(*node);
    ++removed;
  }
  call.reply.integer(removed);
}

void exists(Call& call) {
  int64_t found = 0;
  for (const std::string_view key : call.arguments.subspan(1)) {
    found += call.store.find(key, call.now_ms) != nullptr ? 1 : 0;
  }
  call.reply.integer(found);
}

void type(Call& call) {
  const Store::Node* node = call.store.find(call[1], call.now_ms);
  call.reply.simple(node == nullptr ? "none" : type_name(node->second.value));
}

void expire_in(Call& call, std::string_view command, int64_t unit_ms) {
  const ExpireOptions options = parse_expire_options(call);
  const int64_t at_ms = expiry_argument(call[2], unit_ms, call.now_ms, command);
  Store::Node* node = call.store.find(call[1], call.now_ms);
  const bool changes = node != nullptr && allows(options, node->second.expires_ms, at_ms);
  if (changes && at_ms <= call.now_ms) {
    call.store.erase(*node);
  } else if (changes) {
    call.store.set_expiry(*node, at_ms);
  }
  call.reply.integer(changes ? 1 : 0);
}

void expire(Call& call) { expire_in(call, "expire", 1000); }
void pexpire(Call& call) { expire_in(call, "pexpire", 1); }

void time_to_live(Call& call, int64_t unit_ms) {
  constexpr int64_t kNoKey = -2;
  constexpr int64_t kNoExpiry = -1;
  const Store::Node* node = call.store.find(call[1], call.now_ms);
  if (node == nullptr) return call.reply.integer(kNoKey);
  const int64_t expires_ms = node->second.expires_ms;
  if (expires_ms == 0) return call.reply.integer(kNoExpiry);
  call.reply.integer((expires_ms - call.now_ms + unit_ms / 2) / unit_ms);
}

void ttl(Call& call) { time_to_live(call, 1000); }
void pttl(Call& call) { time_to_live(call, 1); }

void persist(Call& call) {
  Store::Node* node = call.store.find(call[1], call.now_ms);
  const bool changes = node != nullptr && node->second.expires_ms != 0;
  if (changes) call.store.set_expiry(*node, 0);
  call.reply.integer(changes ? 1 : 0);
}

bool is_live(const Entry& entry, int64_t now_ms) {
  return entry.expires_ms == 0 || entry.expires_ms > now_ms;
}

// Appends the keys of one shard, without erasing those that expired.
void list_shard(Call& call, size_t shard, std::string_view pattern, std::string_view type_wanted,
                std::vector<std::string_view>& keys) {
  for (const auto& [key, entry] : call.store.shard(shard)) {
    if (!is_live(entry, call.now_ms)) continue;
    if (!type_wanted.empty() && !equal_ignoring_case(type_wanted, type_name(entry.value))) continue;
    if (pattern != "*" && !matches(pattern, key)) continue;
    keys.push_back(key);
  }
}

void reply_keys(Call& call, const std::vector<std::string_view>& keys) {
  call.reply.array(keys.size());
  for (const std::string_view key : keys) call.reply.bulk(key);
}

void keys(Call& call) {
  std::vector<std::string_view> found;
  for (size_t shard = 0; shard < kShards; ++shard) list_shard(call, shard, call[1], "", found);
  reply_keys(call, found);
}

uint64_t parse_cursor(std::string_view text) {
  const std::string terminated(text);
  char* end = nullptr;
  errno = 0;
  const uint64_t cursor = std::strtoull(terminated.c_str(), &end, 10);
  const bool space = std::isspace(static_cast<unsigned char>(terminated[0])) != 0;
  if (space || *end != '\0' || errno == ERANGE) throw RequestError("ERR invalid cursor");
  return cursor;
}

// A cursor is the number of a shard: a key never changes its shard, so none is missed or told
// twice. COUNT is what a step looks at, at least, rounded up to whole shards.
void scan(Call& call) {
  constexpr size_t kCountDefault = 10;
  uint64_t cursor = parse_cursor(call[1]);
  auto count = static_cast<int64_t>(kCountDefault);
  std::string_view pattern = "*";
  std::string_view type_wanted;
  for (size_t at = 2; at < call.size(); at += 2) {
    if (at + 1 == call.size()) throw_syntax_error();
    if (equal_ignoring_case(call[at], "COUNT")) {
      count = integer_argument(call[at + 1]);
      if (count < 1) throw_syntax_error();
    } else if (equal_ignoring_case(call[at], "MATCH")) {
      pattern = call[at + 1];
    } else if (equal_ignoring_case(call[at], "TYPE")) {
      type_wanted = call[at + 1];
    } else {
      throw_syntax_error();
    }
  }
  std::vector<std::string_view> found;
  for (auto left = static_cast<uint64_t>(count); cursor < kShards && left > 0; ++cursor) {
    list_shard(call, cursor, pattern, type_wanted, found);
    left -= std::min<uint64_t>(left, call.store.shard(cursor).size());
  }
  call.reply.array(2);
  call.reply.bulk(std::to_string(cursor < kShards ? cursor : 0));
  reply_keys(call, found);
}

void dbsize(Call& call) { call.reply.integer(static_cast<int64_t>(call.store.size())); }

void flush(Call& call) {
  check_flush_options(call);
  call.store.clear();
  call.reply.ok();
}

constexpr Command kCommands[] = {
    {"del", del, -2, true},        {"unlink", del, -2, true},    {"exists", exists, -2, false},
    {"type", type, 2, false},      {"expire", expire, -3, true}, {"pexpire", pexpire, -3, true},
    {"ttl", ttl, 2, false},        {"pttl", pttl, 2, false},     {"persist", persist, 2, true},
    {"keys", keys, 2, false},      {"scan", scan, -2, false},    {"dbsize", dbsize, 1, false},
    {"flushall", flush, -1, true}, {"flushdb", flush, -1, true},
};

}  // namespace

std::span<const Command> key_commands() { return kCommands; }

}  // namespace kv
