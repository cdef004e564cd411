// Strings.
#include <charconv>

#include "bounds.h"
#include "set_options.h"
#include "text.h"
#include "values.h"

namespace kv {
namespace {

// Makes the key hold a string, whatever it held before.
Store::Node& put(Call& call, std::string_view key, std::string_view text, bool keep_expiry) {
  Store::Node* node = call.store.find(key, call.now_ms);
  if (node == nullptr) node = &call.store.insert(key);
  Value& value = node->second.value;
  if (auto* string = std::get_if<String>(&value)) {
    assign(*string, text);
  } else {
    value.emplace<String>(text);
  }
  if (!keep_expiry) call.store.set_expiry(*node, 0);
  return *node;
}

void reply_string(Call& call, const String* string) {
  if (string == nullptr) {
    call.reply.null();
  } else {
    call.reply.bulk(*string);
  }
}

void set(Call& call) {
  const SetOptions options = parse_set_options(call);
  const int64_t expires_ms = expiry_of(call, options);
  if (options.get) reply_string(call, find_value<String>(call, call[1]));
  if (options.only_new || options.only_existing) {
    const bool exists = call.store.find(call[1], call.now_ms) != nullptr;
    if (exists != options.only_existing) {
      if (!options.get) call.reply.null();
      return;
    }
  }
  const bool keep_expiry = options.keep_expiry || expires_ms != 0;
  Store::Node& node = put(call, call[1], call[2], keep_expiry);
  if (expires_ms != 0) call.store.set_expiry(node, expires_ms);
  if (!options.get) call.reply.ok();
}

void get(Call& call) { reply_string(call, find_value<String>(call, call[1])); }

void setnx(Call& call) {
  const bool fresh = call.store.find(call[1], call.now_ms) == nullptr;
  if (fresh) put(call, call[1], call[2], false);
  call.reply.integer(fresh ? 1 : 0);
}

void mget(Call& call) {
  call.reply.array(call.size() - 1);
  for (const std::string_view key : call.arguments.subspan(1)) {
    Store::Node* node = call.store.find(key, call.now_ms);
    reply_string(call, node == nullptr ? nullptr : std::get_if<String>(&node->second.value));
  }
}

void mset(Call& call) {
  if (call.size() % 2 == 0) throw_wrong_arity("mset");
  for (size_t at = 1; at < call.size(); at += 2) put(call, call[at], call[at + 1], false);
  call.reply.ok();
}

void append(Call& call) {
  const String* before = find_value<String>(call, call[1]);
  if (before != nullptr && before->size() + call[2].size() > kBulkBytesMax) {
    throw RequestError("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
  }
  String& string = obtain_value<String>(call, call[1]);
  string.append(call[2]);
  call.reply.integer(static_cast<int64_t>(string.size()));
}

void strlen(Call& call) {
  const String* string = find_value<String>(call, call[1]);
  call.reply.integer(string == nullptr ? 0 : static_cast<int64_t>(string->size()));
}

void increment(Call& call, int64_t amount) {
  const String* before = find_value<String>(call, call[1]);
  const int64_t sum = add_checked(before == nullptr ? 0 : integer_argument(*before), amount);
  char digits[24];
  const char* end = std::to_chars(digits, digits + sizeof digits, sum).ptr;
  assign(obtain_value<String>(call, call[1]), {digits, static_cast<size_t>(end - digits)});
  call.reply.integer(sum);
}

void incr(Call& call) { increment(call, 1); }
void decr(Call& call) { increment(call, -1); }
void incrby(Call& call) { increment(call, integer_argument(call[2])); }

void decrby(Call& call) { increment(call, -decrement_argument(call[2])); }

constexpr Command kCommands[] = {
    {"get", get, 2, false},       {"set", set, -3, true},      {"setnx", setnx, 3, true},
    {"mget", mget, -2, false},    {"mset", mset, -3, true},    {"append", append, 3, true},
    {"strlen", strlen, 2, false}, {"incr", incr, 2, true},     {"decr", decr, 2, true},
    {"incrby", incrby, 3, true},  {"decrby", decrby, 3, true},
};

}  // namespace

std::span<const Command> string_commands() { return kCommands; }

}  // namespace kv
