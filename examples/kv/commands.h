// What the server can do.  Each family of commands has a file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "facts.h"
#include "reply.h"
#include "request.h"

namespace kv {

// The program's data set.
class Store;

struct Call {
  Arguments arguments;  // the first is the command's name
  Reply& reply;
  Store& store;
  const ServerFacts& facts;
  int64_t now_ms;
  bool authenticated;  // and true behind a login
  bool quit = false;   // close the connection behind the reply

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
  bool without_login = false;
};

// Those that are about the connection and the server.
std::span<const Command> server_commands();

// What each program has of its own: its families of commands, and what INFO and CONFIG GET tell of
// its data set.
std::span<const std::span<const Command>> command_families();
struct Told {
  std::string_view name;
  std::string (*text)(const Call&);
};
std::span<const Told> store_sections();
std::span<const Told> store_settings();

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
int64_t decrement_argument(std::string_view text);  // it can be negated

// What may stand behind FLUSHALL and FLUSHDB, both of which do it at once.
void check_flush_options(const Call& call);

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

}  // namespace kv
