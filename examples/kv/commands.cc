#include "commands.h"

#include <limits>
#include <unordered_map>

#include "bounds.h"
#include "text.h"

namespace kv {
namespace {

using Table = std::unordered_map<std::string_view, const Command*>;

const Table& table() {
  static const Table commands = [] {
    Table all;
    for (const Command& command : server_commands()) all.emplace(command.name, &command);
    for (const auto family : command_families()) {
      for (const Command& command : family) all.emplace(command.name, &command);
    }
    return all;
  }();
  return commands;
}

constexpr size_t kShownBytesMax = 128;  // of what was sent, in an error

std::string up_to_zero(std::string_view text) {
  return std::string(text.substr(0, std::min(text.find('\0'), kShownBytesMax)));
}

[[noreturn]] void throw_unknown(Arguments arguments) {
  std::string shown;
  for (const std::string_view argument : arguments.subspan(1)) {
    if (shown.size() >= kShownBytesMax) break;
    shown += "'" + up_to_zero(argument).substr(0, kShownBytesMax - shown.size()) + "' ";
  }
  throw RequestError("ERR unknown command '" + up_to_zero(arguments[0]) +
                     "', with args beginning with: " + shown);
}

}  // namespace

size_t command_count() { return table().size(); }

const Command& find_command(Arguments arguments) {
  const auto found = table().find(to_lower(arguments[0]));
  if (found == table().end()) throw_unknown(arguments);
  const Command& command = *found->second;
  const auto given = static_cast<int>(arguments.size());
  if (command.arity >= 0 ? given != command.arity : given < -command.arity) {
    throw_wrong_arity(command.name);
  }
  return command;
}

void throw_syntax_error() { throw RequestError("ERR syntax error"); }

void throw_wrong_arity(std::string_view name) {
  throw RequestError("ERR wrong number of arguments for '" + std::string(name) + "' command");
}

void throw_wrong_type() {
  throw RequestError("WRONGTYPE Operation against a key holding the wrong kind of value");
}

int64_t integer_argument(std::string_view text) {
  const auto number = parse_integer(text);
  if (!number) throw RequestError("ERR value is not an integer or out of range");
  return *number;
}

size_t count_argument(std::string_view text) {
  const auto number = parse_integer(text);
  if (!number || *number < 0) throw RequestError("ERR value is out of range, must be positive");
  return static_cast<size_t>(*number);
}

double double_argument(std::string_view text) {
  const auto number = parse_double(text);
  if (!number) throw RequestError("ERR value is not a valid float");
  return *number;
}

int64_t add_checked(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    throw RequestError("ERR increment or decrement would overflow");
  }
  return sum;
}

int64_t decrement_argument(std::string_view text) {
  const int64_t amount = integer_argument(text);
  if (amount == std::numeric_limits<int64_t>::min()) {
    throw RequestError("ERR decrement would overflow");
  }
  return amount;
}

void check_flush_options(const Call& call) {
  const bool known =
      call.size() == 1 || (call.size() == 2 && (equal_ignoring_case(call[1], "SYNC") ||
                                                equal_ignoring_case(call[1], "ASYNC")));
  if (!known) throw_syntax_error();
}

int64_t expiry_argument(std::string_view amount, int64_t unit_ms, int64_t base_ms,
                        std::string_view command) {
  const int64_t units = integer_argument(amount);
  int64_t at_ms = 0;
  if (__builtin_mul_overflow(units, unit_ms, &at_ms) ||
      __builtin_add_overflow(at_ms, base_ms, &at_ms)) {
    throw RequestError("ERR invalid expire time in '" + std::string(command) + "' command");
  }
  return at_ms;
}

Range select_range(int64_t first, int64_t last, size_t size) {
  const auto length = static_cast<int64_t>(size);
  if (first < 0) first = std::max<int64_t>(first + length, 0);
  if (last < 0) last += length;
  last = std::min(last, length - 1);
  if (first > last) return {0, 0};
  return {static_cast<size_t>(first), static_cast<size_t>(last) + 1};
}

}  // namespace kv
