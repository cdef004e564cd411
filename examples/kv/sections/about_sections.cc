// What this server's data set adds to what is told of it, and its families of commands.
#include <string>

#include "families.h"
#include "store.h"

namespace kv {
namespace {

std::string persistence_section(const Call& call) {
  pawl_fase_statistics file{};
  pawl_fase_stats(call.store.file(), &file);
  return "# Persistence\r\nloading:0\r\nsections:" + std::to_string(file.sections) +
         "\r\nsections_armed:" + std::to_string(file.sections_armed) +
         "\r\nsections_recovered:" + std::to_string(file.sections_recovered) +
         "\r\nframes:" + std::to_string(file.frames) + "\r\nfences:" + std::to_string(file.fences) +
         "\r\nlines_flushed:" + std::to_string(file.lines_flushed) +
         "\r\nbytes_logged:" + std::to_string(file.bytes_logged) +
         "\r\nsurvives_power_loss:" + std::to_string(file.survives_power_loss) + "\r\n";
}

std::string keyspace_section(const Call& call) {
  std::string text = "# Keyspace\r\n";
  if (call.store.size() == 0) return text;
  return text + "db0:keys=" + std::to_string(call.store.size()) +
         ",expires=" + std::to_string(call.store.expiring()) + ",avg_ttl=0\r\n";
}

constexpr Told kSections[] = {
    {"persistence", persistence_section},
    {"keyspace", keyspace_section},
};

constexpr Told kSettings[] = {
    {"maxmemory", [](const Call&) { return std::string("0"); }},
    {"proto-max-bulk-len", [](const Call&) { return std::to_string(STRINGS_VALUE_BYTES_MAX); }},
};

}  // namespace

std::span<const Told> store_sections() { return kSections; }
std::span<const Told> store_settings() { return kSettings; }

std::span<const std::span<const Command>> command_families() {
  static const std::span<const Command> families[] = {string_commands(), key_commands()};
  return families;
}

}  // namespace kv
