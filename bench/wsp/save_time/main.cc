// How long it takes until what is dirty in the caches is in memory, by the instruction that writes
// it back. Prints JSON.
//
//   bench_wsp_save_time FILE ROUNDS BYTES...
//
// In each round each instruction has its turn with each number of bytes: so many are dirtied, a
// word of each line, then written back line by line and fenced, on one processor.  "stream" is the
// least that is possible: so many bytes are stored past the caches.  What exceeds the caches is
// partly clean again when it is written back, as it would be when the power fails.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "medium/persistent_memory.h"

namespace {

using pawl::LineFlush;
using pawl::PersistentMemory;

constexpr std::size_t kLineBytes = 64;

struct Way {
  const char* name;
  LineFlush flush;
  bool streams;  // instead of writing back
  std::unique_ptr<PersistentMemory> memory;
};

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// Of one that has them in its caches.
void stay_on_this_processor() {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  CPU_SET(::sched_getcpu(), &processors);
  ::sched_setaffinity(0, sizeof processors, &processors);
}

std::byte* map(const char* path, std::size_t bytes) {
  const int file = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0 || ::posix_fallocate(file, 0, static_cast<off_t>(bytes)) != 0) return nullptr;
  void* const at =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  ::close(file);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

void dirty(std::byte* at, std::size_t bytes, std::uint64_t value) {
  for (std::size_t line = 0; line < bytes; line += kLineBytes)
    *reinterpret_cast<volatile std::uint64_t*>(at + line) = value;
}

std::uint64_t measure_ns(const Way& way, std::byte* at, std::size_t bytes, std::uint64_t value) {
  static constexpr std::array<std::byte, 4096> kPiece{};
  dirty(at, bytes, value);
  const std::uint64_t began_ns = now_ns();
  if (way.streams) {
    for (std::size_t done = 0; done < bytes; done += kPiece.size())
      way.memory->copy(at + done, kPiece);
  } else {
    way.memory->flush(at, bytes);
  }
  way.memory->fence();
  return now_ns() - began_ns;
}

// Those that this processor has.
std::vector<Way> find_ways() {
  std::vector<Way> ways;
  const auto add = [&](const char* name, LineFlush flush, bool streams) {
    auto memory = pawl::make_persistent_memory({.flush = flush});
    if (memory.ok()) ways.push_back({name, flush, streams, std::move(memory.value())});
  };
  add("clflush", LineFlush::clflush, false);
  add("clflushopt", LineFlush::clflushopt, false);
  add("clwb", LineFlush::clwb, false);
  add("stream", LineFlush::none, true);
  return ways;
}

void print_row(const Way& way, std::size_t bytes, std::vector<std::uint64_t> samples_ns) {
  std::sort(samples_ns.begin(), samples_ns.end());
  std::printf(
      "{\"instruction\": \"%s\", \"dirty_bytes\": %zu, \"rounds\": %zu, \"median_us\": %.3f, "
      "\"least_us\": %.3f, \"most_us\": %.3f}",
      way.name, bytes, samples_ns.size(),
      static_cast<double>(samples_ns[samples_ns.size() / 2]) / 1000,
      static_cast<double>(samples_ns.front()) / 1000,
      static_cast<double>(samples_ns.back()) / 1000);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr, "usage: %s FILE ROUNDS BYTES...\n", arguments[0]);
    return 2;
  }
  const auto rounds = std::strtoull(arguments[2], nullptr, 10);
  std::vector<std::size_t> sizes;
  for (int i = 3; i < count; ++i) sizes.push_back(std::strtoull(arguments[i], nullptr, 10));
  std::byte* const at = map(arguments[1], *std::max_element(sizes.begin(), sizes.end()));
  if (at == nullptr) {
    std::perror(arguments[1]);
    return 1;
  }
  stay_on_this_processor();
  const std::vector<Way> ways = find_ways();
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::uint64_t>> samples_ns;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (const std::size_t bytes : sizes) {
      for (std::size_t n = 0; n < ways.size(); ++n) {
        const std::size_t way = (n + round) % ways.size();
        samples_ns[{bytes, way}].push_back(measure_ns(ways[way], at, bytes, round));
      }
    }
  }
  const char* separator = "[\n";
  for (const auto& [which, samples] : samples_ns) {
    std::fputs(separator, stdout);
    print_row(ways[which.second], which.first, samples);
    separator = ",\n";
  }
  std::printf("]\n");
  return 0;
}
