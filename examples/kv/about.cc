// Commands about the connection and the server.
#include <pawl/pawl.h>
#include <unistd.h>

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

void hello(Call& call) {
  if (call.size() > 1) {
    const auto version = parse_integer(call[1]);
    if (!version) throw RequestError("ERR Protocol version is not an integer or out of range");
    if (*version != 2) throw RequestError("NOPROTO unsupported protocol version");
    if (call.size() > 2) throw_syntax_error();
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
  // redis-benchmark asks for the first two.  The heap counts itself to know its maximum, so that is
  // asked for only when it is wanted.
  using Facts = const ServerFacts&;
  constexpr std::pair<std::string_view, std::string (*)(Facts)> kSettings[] = {
      {"save", [](Facts) { return std::string(); }},
      {"appendonly", [](Facts) { return std::string("yes"); }},
      {"appendfsync", [](Facts) { return std::string("always"); }},
      {"databases", [](Facts) { return std::string("1"); }},
      {"maxclients", [](Facts) { return std::to_string(kClientsMax); }},
      {"maxmemory", [](Facts facts) { return std::to_string(facts.heap->info().size_bytes_max); }},
      {"proto-max-bulk-len", [](Facts) { return std::to_string(kBulkBytesMax); }},
  };
  std::vector<std::string> answer;
  for (const auto& [name, value] : kSettings) {
    for (const std::string_view pattern : call.arguments.subspan(2)) {
      if (!matches(to_lower(pattern), name)) continue;
      answer.emplace_back(name);
      answer.push_back(value(call.facts));
      break;
    }
  }
  call.reply.array(answer.size());
  for (const std::string& text : answer) call.reply.bulk(text);
}

// Enough for redis-cli to start; it asks for DOCS to complete words.
void command(Call& call) {
  if (call.size() == 1 || equal_ignoring_case(call[1], "DOCS")) return call.reply.array(0);
  if (!equal_ignoring_case(call[1], "COUNT")) throw_unknown_subcommand(call, "COMMAND");
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
         "\r\nmaxclients:" + std::to_string(kClientsMax) + "\r\n";
}

std::string memory_section(const Call& call) {
  const pawl_heap_information heap = call.facts.heap->info();
  return "# Memory\r\nused_memory:" + std::to_string(heap.bytes_used) +
         "\r\nheap_size_bytes:" + std::to_string(heap.size_bytes) +
         "\r\nheap_free_bytes:" + std::to_string(heap.bytes_free) +
         "\r\nmaxmemory:" + std::to_string(heap.size_bytes_max) + "\r\n";
}

// What a write costs: pages compared and bytes logged, in all, beside the commits.
std::string persistence_section(const Call& call) {
  const pawl_statistics mapping = call.facts.heap->statistics();
  return "# Persistence\r\nloading:0\r\nrounds_committed:" + std::to_string(call.facts.rounds) +
         "\r\nrounds_rolled_back:" + std::to_string(call.facts.rolled_back) +
         "\r\ncommits:" + std::to_string(mapping.commits) +
         "\r\nbytes_logged:" + std::to_string(mapping.bytes_logged) +
         "\r\nbytes_changed:" + std::to_string(mapping.bytes_changed) +
         "\r\ndirty_pages:" + std::to_string(mapping.dirty_pages) +
         "\r\nchanged_pages:" + std::to_string(mapping.changed_pages) + "\r\n";
}

std::string stats_section(const Call& call) {
  return "# Stats\r\ntotal_commands_processed:" + std::to_string(call.facts.commands) + "\r\n";
}

std::string replication_section(const Call&) {
  return "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n";
}

std::string keyspace_section(const Call& call) {
  std::string text = "# Keyspace\r\n";
  const size_t keys = call.store.size();
  if (keys == 0) return text;
  return text + "db0:keys=" + std::to_string(keys) +
         ",expires=" + std::to_string(call.store.expiring()) + ",avg_ttl=0\r\n";
}

void info(Call& call) {
  constexpr std::pair<std::string_view, std::string (*)(const Call&)> kSections[] = {
      {"server", server_section},     {"clients", clients_section},
      {"memory", memory_section},     {"persistence", persistence_section},
      {"stats", stats_section},       {"replication", replication_section},
      {"keyspace", keyspace_section},
  };
  std::string text;
  for (const auto& [name, section] : kSections) {
    bool wanted = call.size() == 1;
    for (const std::string_view word : call.arguments.subspan(1)) {
      wanted |= equal_ignoring_case(word, name) || equal_ignoring_case(word, "all") ||
                equal_ignoring_case(word, "default") || equal_ignoring_case(word, "everything");
    }
    if (!wanted) continue;
    if (!text.empty()) text += "\r\n";
    text += section(call);
  }
  call.reply.bulk(text);
}

constexpr Command kCommands[] = {
    {"ping", ping, -1, false},       {"echo", echo, 2, false},    {"quit", quit, -1, false},
    {"select", select, 2, false},    {"hello", hello, -1, false}, {"config", config, -2, false},
    {"command", command, -1, false}, {"info", info, -1, false},
};

}  // namespace

std::span<const Command> server_commands() { return kCommands; }

}  // namespace kv
