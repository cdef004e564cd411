// What the server can do.  Each family of commands has a file.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "reply.h"
#include "request.h"
#include "store.h"

namespace kv {

// What INFO and CONFIG tell of; none of it is kept in the heap.
struct ServerFacts {
  pawl::heap* heap = nullptr;
  unsigned port = 0;
  int64_t started_ms = 0;
  size_t clients = 0;
  uint64_t commands = 0;
  uint64_t rounds = 0;       // of them, those that were committed
  uint64_t rolled_back = 0;  // and those that could not be
};

struct Call {
  Arguments arguments;  // the first is the command's name
  Reply& reply;
  Store& store;
  const ServerFacts& facts;
  int64_t now_ms;
  bool quit = false;  // close the connection behind the reply

  std::string_view operator[](size_t number) const { return arguments[number]; }
  size_t size() const { return arguments.size(); }
};

// Throws RequestError before anything was changed; std::bad_alloc when the heap is full, and
// pawl::error when it is damaged, at any time.
using Handler = void(Call&);

struct Command {
  std::string_view name;
  Handler* handler;
  int arity;    // arguments with the name; negative: at least as many
  bool writes;  // may change the store, also by meeting a key that expired
};

// The families.
std::span<const Command> string_commands();
std::span<const Command> key_commands();
std::span<const Command> hash_commands();
std::span<const Command> list_commands();
std::span<const Command> set_commands();
std::span<const Command> sorted_set_commands();
std::span<const Command> server_commands();

size_t command_count();

// Throws RequestError as Redis words it when there is no such command or the number of arguments is
// wrong.
const Command& find_command(Arguments arguments);

// ---------------------------------------------------------------- what commands have in common

[[noreturn]] void throw_syntax_error();
[[noreturn]] void throw_wrong_arity(std::string_view name);

int64_t integer_argument(std::string_view text);
size_t count_argument(std::string_view text);  // not negative
double double_argument(std::string_view text);
int64_t add_checked(int64_t a, int64_t b);

// Where an expiry `amount` units of unit_ms from base_ms lies; command is for the error's text.
int64_t expiry_argument(std::string_view amount, int64_t unit_ms, int64_t base_ms,
                        std::string_view command);

// Indices as Redis takes them, negative ones from the end: begin and end of what they select.
struct Range {
  size_t begin;
  size_t end;
};
Range select_range(int64_t first, int64_t last, size_t size);

[[noreturn]] void throw_wrong_type();

// The value of a key that is a T; null when there is none.
template <class T>
T* find_value(Call& call, std::string_view key) {
  Store::Node* node = call.store.find(key, call.now_ms);
  if (node == nullptr) return nullptr;
  if constexpr (std::is_same_v<T, String>) {
    if (auto* string = std::get_if<String>(&node->second.value)) return string;
  } else {
    if (auto* box = std::get_if<Box<T>>(&node->second.value)) return &**box;
  }
  throw_wrong_type();
}

// The same of an existing or new key.
template <class T>
T& obtain_value(Call& call, std::string_view key) {
  if (T* value = find_value<T>(call, key)) return *value;
  Value& value = call.store.insert(key).second.value;
  if constexpr (std::is_same_v<T, String>) {
    return std::get<String>(value);
  } else {
    return *value.emplace<Box<T>>();
  }
}

// Erases a key, which exists.
void erase_key(Call& call, std::string_view key);

}  // namespace kv
