// Commands about the connection and the server.
#include <unistd.h>

#include <vector>

#include "bounds.h"
#include "commands.h"
#include "text.h"

namespace kv {
namespace {

// Clients that look at the version take this server for the Redis whose words it uses.
constexpr std::string_view kRedisVersion = "7.0.0";

void ping(Call& call) {
  if (call.size() > 2) throw_wrong_arity("ping");
  if (call.size() == 2) return call.reply.bulk(call[1]);
  call.reply.simple("PONG");
}

void echo(Call& call) { call.reply.bulk(call[1]); }

void quit(Call& call) {
  call.quit = true;
  call.reply.ok();
}

void select(Call& call) {
  const int64_t index = integer_argument(call[1]);
  if (index != static_cast<int32_t>(index)) {
    throw RequestError("ERR value is out of range, value must between -2147483648 and 2147483647");
  }
  if (index != 0) throw RequestError("ERR DB index is out of range");
  call.reply.ok();
}

// In a time that says nothing of the password but its length.
bool is_password(const Call& call, std::string_view text) {
  const std::string_view password = call.facts.password;
  if (text.size() != password.size()) return false;
  unsigned char differs = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    differs |= static_cast<unsigned char>(text[at] ^ password[at]);
  }
  return differs == 0;
}

void log_in(Call& call, std::string_view user, std::string_view password) {
  if (user != "default" || !(call.facts.password.empty() || is_password(call, password))) {
    throw RequestError("WRONGPASS invalid username-password pair or user is disabled.");
  }
  call.authenticated = true;
}

void auth(Call& call) {
  if (call.size() > 3) throw_syntax_error();
  if (call.size() == 2 && call.facts.password.empty()) {
    throw RequestError(
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is correct?");
  }
  log_in(call, call.size() == 3 ? call[1] : "default", call[call.size() - 1]);
  call.reply.ok();
}

void hello(Call& call) {
  if (call.size() > 1) {
    const auto version = parse_integer(call[1]);
    if (!version) throw RequestError("ERR Protocol version is not an integer or out of range");
    if (*version != 2) throw RequestError("NOPROTO unsupported protocol version");
  }
  if (call.size() == 5 && equal_ignoring_case(call[2], "AUTH")) {
    log_in(call, call[3], call[4]);
  } else if (call.size() > 2) {
    throw RequestError("ERR Syntax error in HELLO option '" + std::string(call[2]) + "'");
  }
  if (!call.authenticated) {
    throw RequestError(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time");
  }
  call.reply.array(12);
  for (const std::string_view text : {"server", "redis", "version", kRedisVersion.data()}) {
    call.reply.bulk(text);
  }
  call.reply.bulk("proto");
  call.reply.integer(2);
  for (const std::string_view text : {"mode", "standalone", "role", "master", "modules"}) {
    call.reply.bulk(text);
  }
  call.reply.array(0);
}

[[noreturn]] void throw_unknown_subcommand(const Call& call, std::string_view container) {
  throw RequestError("ERR unknown subcommand '" + std::string(call[1]) + "'. Try " +
                     std::string(container) + " HELP.");
}

void config(Call& call) {
  if (!equal_ignoring_case(call[1], "GET")) throw_unknown_subcommand(call, "CONFIG");
  if (call.size() < 3) throw_wrong_arity("config|get");
  // redis-benchmark asks for the first two.
  constexpr Told kSettings[] = {
      {"save", [](const Call&) { return std::string(); }},
      {"appendonly", [](const Call&) { return std::string("yes"); }},
      {"appendfsync", [](const Call&) { return std::string("always"); }},
      {"databases", [](const Call&) { return std::string("1"); }},
      {"maxclients", [](const Call&) { return std::to_string(kClientsMax); }},
      {"maxmemory-clients", [](const Call&) { return std::to_string(kAllBuffersBytesMax); }},
  };
  std::vector<std::string> answer;
  for (const std::span<const Told> settings :
       {std::span<const Told>(kSettings), store_settings()}) {
    for (const auto& [name, text] : settings) {
      for (const std::string_view pattern : call.arguments.subspan(2)) {
        if (!matches(to_lower(pattern), name)) continue;
        answer.emplace_back(name);
        answer.push_back(text(call));
        break;
      }
    }
  }
  call.reply.array(answer.size());
  for (const std::string& text : answer) call.reply.bulk(text);
}

// Enough for redis-cli to start; it asks for DOCS to complete words.
void command(Call& call) {
  if (call.size() == 1 || equal_ignoring_case(call[1], "DOCS")) return call.reply.array(0);
  if (!equal_ignoring_case(call[1], "COUNT")) throw_unknown_subcommand(call, "COMMAND");
  if (call.size() > 2) throw_wrong_arity("command|count");
  call.reply.integer(static_cast<int64_t>(command_count()));
}

std::string server_section(const Call& call) {
  return "# Server\r\nredis_version:" + std::string(kRedisVersion) +
         "\r\nredis_mode:standalone\r\nprocess_id:" + std::to_string(getpid()) +
         "\r\ntcp_port:" + std::to_string(call.facts.port) +
         "\r\nuptime_in_seconds:" + std::to_string((call.now_ms - call.facts.started_ms) / 1000) +
         "\r\n";
}

std::string clients_section(const Call& call) {
  return "# Clients\r\nconnected_clients:" + std::to_string(call.facts.clients) +
         "\r\nmaxclients:" + std::to_string(kClientsMax) +
         "\r\nclient_buffers_bytes:" + std::to_string(call.facts.buffer_bytes) + "\r\n";
}

std::string stats_section(const Call& call) {
  return "# Stats\r\ntotal_commands_processed:" + std::to_string(call.facts.commands) + "\r\n";
}

std::string replication_section(const Call&) {
  return "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n";
}

void info(Call& call) {
  constexpr Told kSections[] = {
      {"server", server_section},
      {"clients", clients_section},
      {"stats", stats_section},
      {"replication", replication_section},
  };
  std::string text;
  for (const std::span<const Told> sections :
       {std::span<const Told>(kSections), store_sections()}) {
    for (const auto& [name, section] : sections) {
      bool wanted = call.size() == 1;
      for (const std::string_view word : call.arguments.subspan(1)) {
        wanted |= equal_ignoring_case(word, name) || equal_ignoring_case(word, "all") ||
                  equal_ignoring_case(word, "default") || equal_ignoring_case(word, "everything");
      }
      if (!wanted) continue;
      if (!text.empty()) text += "\r\n";
      text += section(call);
    }
  }
  call.reply.bulk(text);
}

constexpr Command kCommands[] = {
    {"ping", ping, -1, false},         {"echo", echo, 2, false},
    {"quit", quit, -1, false, true},   {"select", select, 2, false},
    {"hello", hello, -1, false, true}, {"auth", auth, -2, false, true},
    {"config", config, -2, false},     {"command", command, -1, false},
    {"info", info, -1, false},
};

}  // namespace

std::span<const Command> server_commands() { return kCommands; }

}  // namespace kv
