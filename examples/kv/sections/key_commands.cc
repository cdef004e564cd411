// Keys: existence, expiry, iteration.
#include <vector>

#include "expire_options.h"
#include "families.h"
#include "store.h"
#include "text.h"

namespace kv {
namespace {

void del(Call& call) {
  call.reply.integer(
      static_cast<int64_t>(call.store.remove(call.arguments.subspan(1), call.now_ms)));
}

void exists(Call& call) {
  int64_t found = 0;
  for (const std::string_view key : call.arguments.subspan(1)) {
    found += call.store.find(key, call.now_ms) != nullptr ? 1 : 0;
  }
  call.reply.integer(found);
}

void type(Call& call) {
  call.reply.simple(call.store.find(call[1], call.now_ms) == nullptr ? "none" : "string");
}

void expire_in(Call& call, std::string_view command, int64_t unit_ms) {
  const ExpireOptions options = parse_expire_options(call);
  const int64_t at_ms = expiry_argument(call[2], unit_ms, call.now_ms, command);
  entry* const found = call.store.find(call[1], call.now_ms);
  const bool changes = found != nullptr && allows(options, entry_expires_ms(found), at_ms);
  if (changes) call.store.expire(found, at_ms, call.now_ms);
  call.reply.integer(changes ? 1 : 0);
}

void expire(Call& call) { expire_in(call, "expire", 1000); }
void pexpire(Call& call) { expire_in(call, "pexpire", 1); }

void time_to_live(Call& call, int64_t unit_ms) {
  constexpr int64_t kNoKey = -2;
  constexpr int64_t kNoExpiry = -1;
  const entry* const found = call.store.find(call[1], call.now_ms);
  if (found == nullptr) return call.reply.integer(kNoKey);
  const int64_t expires_ms = entry_expires_ms(found);
  if (expires_ms == 0) return call.reply.integer(kNoExpiry);
  call.reply.integer((expires_ms - call.now_ms + unit_ms / 2) / unit_ms);
}

void ttl(Call& call) { time_to_live(call, 1000); }
void pttl(Call& call) { time_to_live(call, 1); }

void persist(Call& call) {
  entry* const found = call.store.find(call[1], call.now_ms);
  const bool changes = found != nullptr && entry_expires_ms(found) != 0;
  if (changes) call.store.persist(found);
  call.reply.integer(changes ? 1 : 0);
}

void keys(Call& call) {
  std::vector<std::string_view> found;
  call.store.visit_all([&](const entry* at) {
    const std::string_view key = Store::key_of(at);
    if (is_live(at, call.now_ms) && matches(call[1], key)) found.push_back(key);
  });
  call.reply.array(found.size());
  for (const std::string_view key : found) call.reply.bulk(key);
}

void dbsize(Call& call) { call.reply.integer(static_cast<int64_t>(call.store.size())); }

void flush(Call& call) {
  check_flush_options(call);
  call.store.clear(call.now_ms);
  call.reply.ok();
}

constexpr Command kCommands[] = {
    {"del", del, -2, true},        {"unlink", del, -2, true},    {"exists", exists, -2, false},
    {"type", type, 2, false},      {"ttl", ttl, 2, false},       {"pttl", pttl, 2, false},
    {"persist", persist, 2, true}, {"expire", expire, -3, true}, {"pexpire", pexpire, -3, true},
    {"keys", keys, 2, false},      {"dbsize", dbsize, 1, false}, {"flushall", flush, -1, true},
    {"flushdb", flush, -1, true},
};

}  // namespace

std::span<const Command> key_commands() { return kCommands; }

}  // namespace kv
