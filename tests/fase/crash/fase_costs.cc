// Counts what operations of the structures wait for: fences, of each operation the most that it may
// take.  What only reads takes none, wherever it puts what it found.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>

#include "structures/structures.h"

namespace {

constexpr std::uint64_t kOperations = 50;  // of each kind

int failures = 0;

std::uint64_t fences(pawl_fase* file) {
  pawl_fase_statistics statistics;
  return pawl_fase_stats(file, &statistics) == 0 ? statistics.fences : 0;
}

void expect(pawl_fase* file, const char* what, std::uint64_t fences_max,
            const std::function<bool(std::uint64_t)>& operate) {
  std::uint64_t most = 0;
  for (std::uint64_t n = 0; n < kOperations; ++n) {
    const std::uint64_t before = fences(file);
    if (!operate(n)) {
      std::printf("%s: failed\n", what);
      ++failures;
    }
    most = std::max(most, fences(file) - before);
  }
  std::printf("%s: %llu fences\n", what, static_cast<unsigned long long>(most));
  if (most <= fences_max) return;
  std::printf("%s: more than %llu fences\n", what, static_cast<unsigned long long>(fences_max));
  ++failures;
}

void count(pawl_fase* file) {
  std::uint64_t value = 0;
  struct stack* const stack = stack_make(file);
  struct queue* const queue = queue_make(file);
  struct list* const list = list_make(file);
  struct map* const map = map_make(file, 8);
  auto* const persistent = static_cast<std::uint64_t*>(pawl_fase_calloc(file, 1, sizeof value));
  if (stack == nullptr || queue == nullptr || list == nullptr || map == nullptr ||
      persistent == nullptr) {
    std::printf("no memory\n");
    ++failures;
    return;
  }
  expect(file, "push", 4, [&](std::uint64_t n) { return stack_push(file, stack, n); });
  expect(file, "pop", 4, [&](std::uint64_t) { return stack_pop(file, stack, &value); });
  expect(file, "pop of nothing", 0, [&](std::uint64_t) { return !stack_pop(file, stack, &value); });
  expect(file, "put into the queue", 4, [&](std::uint64_t n) { return queue_put(file, queue, n); });
  expect(file, "take", 4, [&](std::uint64_t) { return queue_take(file, queue, &value); });
  expect(file, "insert at the end", 4,
         [&](std::uint64_t n) { return list_put(file, list, 2 * n + 1, n); });
  expect(file, "insert in the middle", 4,
         [&](std::uint64_t n) { return list_put(file, list, 2 * (kOperations - n), n); });
  expect(file, "replace", 4,
         [&](std::uint64_t n) { return list_put(file, list, 2 * n + 1, n + 7); });
  expect(file, "get", 0,
         [&](std::uint64_t n) { return list_get(list, 2 * n + 1, &value) && value == n + 7; });
  expect(file, "get of nothing", 0,
         [&](std::uint64_t n) { return !list_get(list, 1000 + n, &value); });
  expect(file, "get into the file", 4, [&](std::uint64_t n) {
    return list_get(list, 2 * n + 1, persistent) && *persistent == n + 7;
  });
  expect(file, "remove", 6, [&](std::uint64_t n) { return list_remove(file, list, 2 * n + 1); });
  expect(file, "remove of nothing", 0,
         [&](std::uint64_t n) { return !list_remove(file, list, 2 * n + 1); });
  expect(file, "insert into the map", 4, [&](std::uint64_t n) { return map_put(file, map, n, n); });
  expect(file, "get from the map", 0,
         [&](std::uint64_t n) { return map_get(map, n, &value) && value == n; });
}

}  // namespace

int main() {
  const std::string path = "/dev/shm/pawl_fase_costs." + std::to_string(::getpid());
  pawl_fase* const file = pawl_fase_open(path.c_str(), nullptr);
  if (file == nullptr) {
    std::printf("%s\n", pawl_last_error());
    return 1;
  }
  std::filesystem::remove(path);
  count(file);
  pawl_fase_close(file);
  return failures == 0 ? 0 : 1;
}
