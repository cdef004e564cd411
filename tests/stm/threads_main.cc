// stm_threads_LIBRARY THREADS TURNS CANCELS: has so many threads work, and prints what came of it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "stm/shared_work.h"

int main(int count, char** arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: %s THREADS TURNS 0|1\n", arguments[0]);
    return 2;
  }
  const auto threads = std::strtoull(arguments[1], nullptr, 10);
  const auto turns = std::strtoull(arguments[2], nullptr, 10);
  const bool cancels = std::strcmp(arguments[3], "1") == 0;
  std::vector<std::thread> workers;
  for (std::uint64_t i = 0; i < threads; ++i)
    workers.emplace_back(pawl::test::work, i + 1, turns, cancels);
  for (std::thread& worker : workers) worker.join();
  const pawl::test::Outcome found = pawl::test::outcome();
  std::printf(
      "{\"counter\": %llu, \"small_sums\": %llu, \"doubles\": %llu, \"block_sum\": %llu, "
      "\"list_sum\": %llu, \"torn\": %llu, \"cancelled\": %llu}\n",
      static_cast<unsigned long long>(found.counter),
      static_cast<unsigned long long>(found.small_sums),
      static_cast<unsigned long long>(found.doubles),
      static_cast<unsigned long long>(found.block_sum),
      static_cast<unsigned long long>(found.list_sum), static_cast<unsigned long long>(found.torn),
      static_cast<unsigned long long>(found.cancelled));
  return 0;
}
