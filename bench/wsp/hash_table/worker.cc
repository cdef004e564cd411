// One run of the hash table in one form of persistence.  Prints one line of JSON.
//
//   bench_wsp_hash_FORM FILE ENTRIES OPERATIONS UPDATE-PERCENT SEED
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "hash_table/hash_table.h"
#include "hash_table/operations.h"
#include "memory/memory.h"

namespace {

using pawl::bench::wsp::Operation;
using pawl::bench::wsp::OperationKind;

constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15u;

// Of the value that a key gets.
std::uint64_t value_of(std::uint64_t key) { return key * kMix; }

std::uint64_t now_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// What came of it: the same in each form.
std::uint64_t operate(hash_table* table, Operation operation) {
  switch (operation.kind) {
    case OperationKind::find:
      return hash_table_find(table, operation.key);
    case OperationKind::insert:
      return hash_table_insert(table, operation.key, value_of(operation.key)) ? 1 : 0;
    case OperationKind::remove:
      break;
  }
  return hash_table_remove(table, operation.key) ? 1 : 0;
}

std::uint64_t number(const char* text) { return std::strtoull(text, nullptr, 10); }

}  // namespace

int main(int count, char** arguments) {
  if (count != 6) {
    std::fprintf(stderr, "usage: %s FILE ENTRIES OPERATIONS UPDATE-PERCENT SEED\n", arguments[0]);
    return 2;
  }
  const auto entries = static_cast<std::uint32_t>(number(arguments[2]));
  const auto plan = pawl::bench::wsp::draw_plan(entries, number(arguments[3]),
                                                static_cast<unsigned>(number(arguments[4])),
                                                number(arguments[5]));
  void* const memory = pawl::bench::wsp::open_memory(arguments[1], hash_table_bytes(entries + 1));
  hash_table* const table = hash_table_make(memory, entries + 1);
  for (const std::uint32_t key : plan.inserted_first) hash_table_insert(table, key, value_of(key));

  const auto counts_before = pawl::bench::wsp::count_memory();
  const std::uint64_t wall_began_ns = now_ns(CLOCK_MONOTONIC);
  const std::uint64_t cpu_began_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
  std::uint64_t came_of_it = 0;
  for (const Operation& operation : plan.operations)
    came_of_it = came_of_it * kMix + operate(table, operation);
  const std::uint64_t cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_began_ns;
  const std::uint64_t wall_ns = now_ns(CLOCK_MONOTONIC) - wall_began_ns;
  const auto counts = pawl::bench::wsp::count_memory();
  std::printf(
      "{\"operations\": %zu, \"wall_ns\": %llu, \"cpu_ns\": %llu, \"fences\": %llu, "
      "\"lines_flushed\": %llu, \"entries\": %llu, \"digest\": \"%016llx\"}\n",
      plan.operations.size(), static_cast<unsigned long long>(wall_ns),
      static_cast<unsigned long long>(cpu_ns),
      static_cast<unsigned long long>(counts.fences - counts_before.fences),
      static_cast<unsigned long long>(counts.lines_flushed - counts_before.lines_flushed),
      static_cast<unsigned long long>(hash_table_entries(table)),
      static_cast<unsigned long long>(came_of_it));
  pawl::bench::wsp::close_memory();
  return 0;
}
