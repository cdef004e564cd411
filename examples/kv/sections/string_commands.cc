// Strings.
#include <charconv>

#include "families.h"
#include "set_options.h"
#include "store.h"
#include "text.h"

namespace kv {
namespace {

void reply_value(Call& call, const entry* found) {
  if (found == nullptr) {
    call.reply.null();
  } else {
    call.reply.bulk(Store::value_of(found));
  }
}

void get(Call& call) { reply_value(call, call.store.find(call[1], call.now_ms)); }

void set(Call& call) {
  const SetOptions options = parse_set_options(call);
  const int64_t expires_ms = expiry_of(call, options);
  const entry* const old = call.store.find(call[1], call.now_ms);
  if (options.get) reply_value(call, old);
  if ((options.only_new && old != nullptr) || (options.only_existing && old == nullptr)) {
    if (!options.get) call.reply.null();
    return;
  }
  call.store.set(call[1], call[2], options.keep_expiry ? STRINGS_KEEP_EXPIRY : expires_ms,
                 call.now_ms);
  if (!options.get) call.reply.ok();
}

void setnx(Call& call) {
  const bool fresh = call.store.find(call[1], call.now_ms) == nullptr;
  if (fresh) call.store.set(call[1], call[2], 0, call.now_ms);
  call.reply.integer(fresh ? 1 : 0);
}

void getset(Call& call) {
  reply_value(call, call.store.find(call[1], call.now_ms));
  call.store.set(call[1], call[2], 0, call.now_ms);
}

void mget(Call& call) {
  call.reply.array(call.size() - 1);
  for (const std::string_view key : call.arguments.subspan(1)) {
    reply_value(call, call.store.find(key, call.now_ms));
  }
}

void mset(Call& call) {
  if (call.size() % 2 == 0) throw_wrong_arity("mset");
  call.store.set_all(call.arguments.subspan(1), call.now_ms);
  call.reply.ok();
}

void append(Call& call) {
  entry* const found = call.store.find(call[1], call.now_ms);
  const size_t before = found == nullptr ? 0 : Store::value_of(found).size();
  if (found == nullptr) {
    call.store.set(call[1], call[2], 0, call.now_ms);
  } else {
    call.store.append(found, call[2], call.now_ms);
  }
  call.reply.integer(static_cast<int64_t>(before + call[2].size()));
}

void strlen(Call& call) {
  const entry* const found = call.store.find(call[1], call.now_ms);
  call.reply.integer(found == nullptr ? 0 : static_cast<int64_t>(Store::value_of(found).size()));
}

void increment(Call& call, int64_t amount) {
  const entry* const found = call.store.find(call[1], call.now_ms);
  const int64_t before = found == nullptr ? 0 : integer_argument(Store::value_of(found));
  const int64_t sum = add_checked(before, amount);
  char digits[24];
  const char* const end = std::to_chars(digits, digits + sizeof digits, sum).ptr;
  call.store.set(call[1], {digits, static_cast<size_t>(end - digits)}, STRINGS_KEEP_EXPIRY,
                 call.now_ms);
  call.reply.integer(sum);
}

void incr(Call& call) { increment(call, 1); }
void decr(Call& call) { increment(call, -1); }
void incrby(Call& call) { increment(call, integer_argument(call[2])); }

void decrby(Call& call) { increment(call, -decrement_argument(call[2])); }

constexpr Command kCommands[] = {
    {"get", get, 2, false},      {"set", set, -3, true},       {"setnx", setnx, 3, true},
    {"getset", getset, 3, true}, {"mget", mget, -2, false},    {"mset", mset, -3, true},
    {"append", append, 3, true}, {"strlen", strlen, 2, false}, {"incr", incr, 2, true},
    {"decr", decr, 2, true},     {"incrby", incrby, 3, true},  {"decrby", decrby, 3, true},
};

}  // namespace

std::span<const Command> string_commands() { return kCommands; }

}  // namespace kv
