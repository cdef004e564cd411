// Lists.
#include "values.h"

namespace kv {
namespace {

void reply_length(Call& call, const List* list) {
  call.reply.integer(list == nullptr ? 0 : static_cast<int64_t>(list->size()));
}

void lpush(Call& call) {
  List& list = obtain_value<List>(call, call[1]);
  for (const std::string_view element : call.arguments.subspan(2)) list.emplace_front(element);
  reply_length(call, &list);
}

void rpush(Call& call) {
  List& list = obtain_value<List>(call, call[1]);
  for (const std::string_view element : call.arguments.subspan(2)) list.emplace_back(element);
  reply_length(call, &list);
}

void pop(Call& call, std::string_view name, bool front) {
  if (call.size() > 3) throw_wrong_arity(name);
  const bool counted = call.size() == 3;
  size_t count = counted ? count_argument(call[2]) : 1;
  List* list = find_value<List>(call, call[1]);
  if (list == nullptr) return counted ? call.reply.null_array() : call.reply.null();
  count = std::min(count, list->size());
  if (counted) call.reply.array(count);
  // All of the reply comes before any change: it may be too large.
  for (size_t at = 0; at < count; ++at) {
    call.reply.bulk((*list)[front ? at : list->size() - 1 - at]);
  }
  for (; count > 0; --count) {
    if (front) {
      list->pop_front();
    } else {
      list->pop_back();
    }
  }
  if (list->empty()) erase_key(call, call[1]);
}

void lpop(Call& call) { pop(call, "lpop", true); }
void rpop(Call& call) { pop(call, "rpop", false); }

void llen(Call& call) { reply_length(call, find_value<List>(call, call[1])); }

void lrange(Call& call) {
  const int64_t first = integer_argument(call[2]);
  const int64_t last = integer_argument(call[3]);
  const List* list = find_value<List>(call, call[1]);
  const Range range = select_range(first, last, list == nullptr ? 0 : list->size());
  call.reply.array(range.end - range.begin);
  for (size_t at = range.begin; at < range.end; ++at) call.reply.bulk((*list)[at]);
}

void lindex(Call& call) {
  const List* list = find_value<List>(call, call[1]);
  if (list == nullptr) return call.reply.null();
  const int64_t index = integer_argument(call[2]);
  const auto length = static_cast<int64_t>(list->size());
  const int64_t at = index < 0 ? index + length : index;
  if (at < 0 || at >= length) return call.reply.null();
  call.reply.bulk((*list)[static_cast<size_t>(at)]);
}

constexpr Command kCommands[] = {
    {"lpush", lpush, -3, true},   {"rpush", rpush, -3, true}, {"lpop", lpop, -2, true},
    {"rpop", rpop, -2, true},     {"llen", llen, 2, false},   {"lrange", lrange, 4, false},
    {"lindex", lindex, 3, false},
};

}  // namespace

std::span<const Command> list_commands() { return kCommands; }

}  // namespace kv
