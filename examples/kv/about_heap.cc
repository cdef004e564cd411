// What this server's data set adds to what is told of it, and its families of commands.
#include <pawl/pawl.h>

#include "bounds.h"
#include "rounds.h"
#include "values.h"

namespace kv {
namespace {

const RoundFacts& facts_of(const Call& call) { return static_cast<const RoundFacts&>(call.facts); }

std::string memory_section(const Call& call) {
  const pawl_heap_information heap = facts_of(call).heap->info();
  return "# Memory\r\nused_memory:" + std::to_string(heap.bytes_used) +
         "\r\nheap_size_bytes:" + std::to_string(heap.size_bytes) +
         "\r\nheap_free_bytes:" + std::to_string(heap.bytes_free) +
         "\r\nmaxmemory:" + std::to_string(heap.size_bytes_max) + "\r\n";
}

// What a write costs: pages compared and bytes logged, in all, beside the commits.
std::string persistence_section(const Call& call) {
  const pawl_statistics mapping = facts_of(call).heap->statistics();
  return "# Persistence\r\nloading:0\r\nrounds_committed:" + std::to_string(facts_of(call).rounds) +
         "\r\nrounds_rolled_back:" + std::to_string(facts_of(call).rolled_back) +
         "\r\ncommits:" + std::to_string(mapping.commits) +
         "\r\nbytes_logged:" + std::to_string(mapping.bytes_logged) +
         "\r\nbytes_changed:" + std::to_string(mapping.bytes_changed) +
         "\r\ndirty_pages:" + std::to_string(mapping.dirty_pages) +
         "\r\nchanged_pages:" + std::to_string(mapping.changed_pages) + "\r\n";
}

std::string keyspace_section(const Call& call) {
  std::string text = "# Keyspace\r\n";
  const size_t keys = call.store.size();
  if (keys == 0) return text;
  return text + "db0:keys=" + std::to_string(keys) +
         ",expires=" + std::to_string(call.store.expiring()) + ",avg_ttl=0\r\n";
}

constexpr Told kSections[] = {
    {"memory", memory_section},
    {"persistence", persistence_section},
    {"keyspace", keyspace_section},
};

// The heap counts itself to know its maximum, so that is asked for only when it is wanted.
constexpr Told kSettings[] = {
    {"maxmemory",
     [](const Call& call) { return std::to_string(facts_of(call).heap->info().size_bytes_max); }},
    {"proto-max-bulk-len", [](const Call&) { return std::to_string(kBulkBytesMax); }},
};

}  // namespace

std::span<const Told> store_sections() { return kSections; }
std::span<const Told> store_settings() { return kSettings; }

std::span<const std::span<const Command>> command_families() {
  static const std::span<const Command> families[] = {string_commands(),
                                                      key_commands(),
                                                      hash_commands(),
                                                      list_commands(),
                                                      set_commands(),
                                                      sorted_set_commands(),
                                                      sorted_set_range_commands()};
  return families;
}

}  // namespace kv
