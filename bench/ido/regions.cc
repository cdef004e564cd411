// Loaded before libpawl, counts what each region that a program executes stores, and what it takes
// from before: for the region characteristics of the benchmark.  At the end of the program the
// counts go into the file that BENCH_REGIONS names, as one line of JSON.
//
// A region counts that begins with a frame, and what is counted as one store is what the compiler
// tells as one: neighbours together, and a copy of many bytes.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fase/abi.h"

namespace {

constexpr unsigned kCountMax = 10;  // and more
constexpr unsigned kLocksMax = 32;
constexpr unsigned kWordBytes = 8;

using Histogram = std::atomic<std::uint64_t>[kCountMax + 1];
Histogram stores_of_regions;
Histogram live_ins_of_regions;

struct Locks {
  const void* held[kLocksMax];
  unsigned count = 0;

  void add(const void* lock) {
    if (count < kLocksMax) held[count++] = lock;
  }
  bool has(const void* lock) const { return std::find(held, held + count, lock) != held + count; }
  void remove(const void* lock) {
    const void** const at = std::find(held, held + count, lock);
    if (at != held + count) *at = held[--count];
  }
};

// A thread's: what holds since its last frame.
struct Thread {
  Locks locks;
  Locks named;  // by the frame
  bool is_in_region = false;
  unsigned stores = 0;
  unsigned live_ins = 0;

  void end_region() {
    if (!is_in_region) return;
    stores_of_regions[std::min(stores, kCountMax)].fetch_add(1, std::memory_order_relaxed);
    live_ins_of_regions[std::min(live_ins, kCountMax)].fetch_add(1, std::memory_order_relaxed);
    is_in_region = false;
  }
  void begin_region(const pawl_fase_function* function, std::uint32_t region) {
    end_region();
    if (locks.count == 0) return;
    is_in_region = true;
    stores = 0;
    live_ins = function->regions[region].live_in_bytes / kWordBytes;
    named = locks;
  }
  // Behind the release of a lock that the frame names nothing is stored before the next cut.
  void released(const void* lock) {
    locks.remove(lock);
    if (locks.count == 0 || named.has(lock)) end_region();
  }
};
thread_local Thread thread;

template <class Function>
Function* real(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
#define REAL(name) (real(&(name), #name))

void print(std::FILE* file, const char* name, const Histogram& histogram) {
  std::fprintf(file, "\"%s\": [", name);
  for (unsigned n = 0; n <= kCountMax; ++n) {
    std::fprintf(file, "%s%llu", n == 0 ? "" : ", ",
                 static_cast<unsigned long long>(histogram[n].load()));
  }
  std::fprintf(file, "]");
}

struct AtEnd {
  ~AtEnd() {
    const char* const path = std::getenv("BENCH_REGIONS");
    std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "w");
    if (file == nullptr) return;
    std::fprintf(file, "{");
    print(file, "stores", stores_of_regions);
    std::fprintf(file, ", ");
    print(file, "live_ins", live_ins_of_regions);
    std::fprintf(file, "}\n");
    std::fclose(file);
  }
};
AtEnd at_end;

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

void pawl_fase_cut(const struct pawl_fase_function* function, uint32_t region,
                   const void* live_ins) {
  static const auto next = REAL(pawl_fase_cut);
  thread.begin_region(function, region);
  next(function, region, live_ins);
}

void pawl_fase_stored(const void* at, size_t bytes) {
  static const auto next = REAL(pawl_fase_stored);
  if (reinterpret_cast<std::uint64_t>(at) - PAWL_FASE_WINDOW < PAWL_FASE_WINDOW_BYTES) {
    ++thread.stores;
  }
  next(at, bytes);
}

int pawl_fase_mutex_lock(void* mutex) {
  static const auto next = REAL(pawl_fase_mutex_lock);
  const int result = next(mutex);
  if (result == 0) thread.locks.add(mutex);
  return result;
}

int pawl_fase_mutex_unlock(void* mutex, const struct pawl_fase_function* function, uint32_t region,
                           const void* live_ins) {
  static const auto next = REAL(pawl_fase_mutex_unlock);
  thread.released(mutex);
  return next(mutex, function, region, live_ins);
}

void pawl_fase_section_begin(void) {
  static const auto next = REAL(pawl_fase_section_begin);
  next();
  thread.locks.add(nullptr);
}

void pawl_fase_section_end(const struct pawl_fase_function* function, uint32_t region,
                           const void* live_ins) {
  static const auto next = REAL(pawl_fase_section_end);
  thread.released(nullptr);
  next(function, region, live_ins);
}

}  // extern "C"
#pragma GCC visibility pop
