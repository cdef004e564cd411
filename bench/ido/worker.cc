// One run of one structure in one system, by so many threads for so long.  Prints one line of JSON.
//
//   bench_ido_SYSTEM STRUCTURE THREADS SECONDS FILE SEED
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "ido/subject.h"

namespace {

constexpr std::uint64_t kStackNodesFirst = 10'000;
constexpr std::uint64_t kListKeys = 256;  // half of them are there
constexpr std::uint64_t kMapKeys = 100'000;
constexpr std::uint64_t kMapBuckets = 25'000;
constexpr unsigned kOperationsBetweenLooks = 16;
constexpr std::uint64_t kOperationsCounted = 200;

struct Structure {
  const char* name;
  subject_kind kind;
  std::uint64_t keys;
  std::uint64_t inserted_first;
};
constexpr Structure kStructures[] = {
    {"stack", SUBJECT_STACK, 1, kStackNodesFirst},
    {"queue", SUBJECT_QUEUE, 1, kStackNodesFirst},
    {"list", SUBJECT_LIST, kListKeys, kListKeys / 2},
    {"map", SUBJECT_MAP, kMapKeys, kMapKeys / 2},
};

// A thread's own, so that the threads meet in the structure only.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

 private:
  std::uint64_t state_;
};

bool is_keyed(const Structure& structure) {
  return structure.kind == SUBJECT_LIST || structure.kind == SUBJECT_MAP;
}

// Of stack and queue, half the operations put and half take.  Of list and map, half get, a quarter
// put, and a quarter remove, so that half of the keys stay there.
void operate(subject* subject, const Structure& structure, Random& random) {
  const std::uint64_t drawn = random.next();
  const std::uint64_t key = 1 + (drawn >> 8) % structure.keys;
  const unsigned choice = drawn & 3;
  if (is_keyed(structure) && choice < 2) {
    std::uint64_t value = 0;
    subject_get(subject, key, &value);
  } else if ((choice & 1) == 0) {
    if (!subject_insert(subject, key, drawn)) {
      std::fprintf(stderr, "no memory\n");
      std::_Exit(1);
    }
  } else {
    subject_remove(subject, key);
  }
}

// What one operation takes of the medium, when nobody else works.
struct Cost {
  const char* name;
  double fences;
  double lines;
  double bytes;
};

template <class Operate>
Cost measure_cost(const char* name, subject* subject, Operate operate) {
  const subject_counts before = subject_count(subject);
  for (std::uint64_t n = 0; n < kOperationsCounted; ++n) operate(n);
  const subject_counts after = subject_count(subject);
  const auto mean = [](std::uint64_t from, std::uint64_t to) {
    return static_cast<double>(to - from) / kOperationsCounted;
  };
  return {name, mean(before.fences, after.fences), mean(before.lines, after.lines),
          mean(before.bytes, after.bytes)};
}

// Of keys that are not there otherwise.
std::vector<Cost> measure_costs(subject* subject, const Structure& structure) {
  const auto key = [&](std::uint64_t n) { return structure.keys + 1 + n; };
  std::vector<Cost> costs;
  costs.push_back(measure_cost("insert", subject,
                               [&](std::uint64_t n) { subject_insert(subject, key(n), n); }));
  if (is_keyed(structure)) {
    std::uint64_t value = 0;
    costs.push_back(measure_cost("get", subject,
                                 [&](std::uint64_t n) { subject_get(subject, key(n), &value); }));
  }
  costs.push_back(
      measure_cost("remove", subject, [&](std::uint64_t n) { subject_remove(subject, key(n)); }));
  return costs;
}

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

int run(const Structure& structure, unsigned threads, double seconds, const char* path,
        std::uint64_t seed) {
  subject* const subject = subject_open(path, structure.kind, kMapBuckets);
  if (subject == nullptr) return 1;
  Random random(seed);
  for (std::uint64_t n = 0; n < structure.inserted_first; ++n)
    subject_insert(subject, 1 + 2 * n % structure.keys, n);

  const std::vector<Cost> costs = measure_costs(subject, structure);

  std::atomic<unsigned> ready{0};
  std::atomic<bool> starts{false};
  std::atomic<bool> stops{false};
  std::atomic<std::uint64_t> operations{0};
  std::vector<std::thread> workers;
  const subject_counts before = subject_count(subject);
  for (unsigned i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      Random own(seed * 1000 + i + 1);
      ready.fetch_add(1);
      while (!starts.load()) std::this_thread::yield();
      std::uint64_t done = 0;
      while (!stops.load(std::memory_order_relaxed)) {
        for (unsigned n = 0; n < kOperationsBetweenLooks; ++n) operate(subject, structure, own);
        done += kOperationsBetweenLooks;
      }
      operations.fetch_add(done);
    });
  }
  while (ready.load() < threads) std::this_thread::yield();
  const auto started = std::chrono::steady_clock::now();
  starts.store(true);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stops.store(true);
  for (std::thread& worker : workers) worker.join();
  const double took = seconds_between(started, std::chrono::steady_clock::now());
  const subject_counts after = subject_count(subject);
  std::printf(
      "{\"operations\": %llu, \"seconds\": %.6f, \"fences\": %llu, \"lines\": %llu, "
      "\"bytes\": %llu, \"costs\": {",
      static_cast<unsigned long long>(operations.load()), took,
      static_cast<unsigned long long>(after.fences - before.fences),
      static_cast<unsigned long long>(after.lines - before.lines),
      static_cast<unsigned long long>(after.bytes - before.bytes));
  const char* separator = "";
  for (const Cost& cost : costs) {
    std::printf("%s\"%s\": {\"fences\": %.2f, \"lines\": %.2f, \"bytes\": %.1f}", separator,
                cost.name, cost.fences, cost.lines, cost.bytes);
    separator = ", ";
  }
  std::printf("}}\n");
  subject_close(subject);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 6) {
    for (const Structure& structure : kStructures) {
      if (std::strcmp(argv[1], structure.name) != 0) continue;
      return run(structure, static_cast<unsigned>(std::atoi(argv[2])), std::atof(argv[3]), argv[4],
                 std::strtoull(argv[5], nullptr, 10));
    }
  }
  std::fprintf(stderr, "usage: %s stack|queue|list|map THREADS SECONDS FILE SEED\n", argv[0]);
  return 2;
}
