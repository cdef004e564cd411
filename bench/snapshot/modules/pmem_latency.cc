// libpmemobj calls libpmem through symbols that can be taken over, and this module comes before
// libpmem where they are looked up.  The work is still done by libpmem: what is added is the wait
// and the count.  The model is that of src/medium/persistent_memory.cc, of whose busy wait it is a
// user: the lines that were issued since the thread's last fence are paid at the fence, and the
// fence itself.
#include "snapshot/modules/pmem_latency.h"

#include <dlfcn.h>
#include <libpmem.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "medium/busy_wait.h"

namespace pawl::bench {
namespace {

constexpr std::uintptr_t kLineBytes = 64;

struct Latency {
  std::uint64_t line_ns = 0;
  std::uint64_t fence_ns = 0;
};
Latency latency;
thread_local std::uint64_t lines_under_way = 0;

std::atomic<std::uint64_t> lines_of_ended{0};
std::atomic<std::uint64_t> fences_of_ended{0};
// A thread's own, so that threads meet in the pool only.
struct Use {
  std::uint64_t lines = 0;
  std::uint64_t fences = 0;
  ~Use() {
    lines_of_ended += lines;
    fences_of_ended += fences;
  }
};
thread_local Use use;

void* real(const char* name) {
  static void* const library = ::dlopen("libpmem.so.1", RTLD_NOW | RTLD_NOLOAD);
  void* const function = library == nullptr ? nullptr : ::dlsym(library, name);
  if (function == nullptr) {
    std::fprintf(stderr, "bench: libpmem has no %s\n", name);
    std::abort();
  }
  return function;
}

void count_lines(const void* at, std::size_t bytes) {
  if (bytes == 0) return;
  const auto first = reinterpret_cast<std::uintptr_t>(at) / kLineBytes;
  const auto last = (reinterpret_cast<std::uintptr_t>(at) + bytes - 1) / kLineBytes;
  lines_under_way += last - first + 1;
  use.lines += last - first + 1;
}

void pay_at_fence() {
  use.fences += 1;
  const std::uint64_t wait_ns = lines_under_way * latency.line_ns + latency.fence_ns;
  lines_under_way = 0;
  if (wait_ns > 0) BusyWait::process().wait_ns(wait_ns);
}

// After a copy or a fill, which flushed and drained as the flags say.
void pay_for(const void* at, std::size_t bytes, unsigned flags) {
  if ((flags & PMEM_F_MEM_NOFLUSH) != 0) return;
  count_lines(at, bytes);
  if ((flags & PMEM_F_MEM_NODRAIN) == 0) pay_at_fence();
}

}  // namespace

void set_pmem_latency(std::uint64_t line_ns, std::uint64_t fence_ns) {
  latency = {line_ns, fence_ns};
}

MediumUse pmem_use() {
  return {.lines = lines_of_ended + use.lines, .fences = fences_of_ended + use.fences};
}

}  // namespace pawl::bench

#define PAWL_BENCH_TAKES_OVER extern "C" __attribute__((visibility("default")))

using pawl::bench::count_lines;
using pawl::bench::pay_at_fence;
using pawl::bench::pay_for;
using pawl::bench::real;

PAWL_BENCH_TAKES_OVER void pmem_flush(const void* at, size_t bytes) {
  static const auto next = reinterpret_cast<decltype(&pmem_flush)>(real("pmem_flush"));
  next(at, bytes);
  count_lines(at, bytes);
}

PAWL_BENCH_TAKES_OVER void pmem_drain(void) {
  static const auto next = reinterpret_cast<decltype(&pmem_drain)>(real("pmem_drain"));
  next();
  pay_at_fence();
}

PAWL_BENCH_TAKES_OVER void pmem_persist(const void* at, size_t bytes) {
  pmem_flush(at, bytes);
  pmem_drain();
}

PAWL_BENCH_TAKES_OVER void* pmem_memcpy(void* to, const void* from, size_t bytes, unsigned flags) {
  static const auto next = reinterpret_cast<decltype(&pmem_memcpy)>(real("pmem_memcpy"));
  next(to, from, bytes, flags);
  pay_for(to, bytes, flags);
  return to;
}

PAWL_BENCH_TAKES_OVER void* pmem_memmove(void* to, const void* from, size_t bytes, unsigned flags) {
  static const auto next = reinterpret_cast<decltype(&pmem_memmove)>(real("pmem_memmove"));
  next(to, from, bytes, flags);
  pay_for(to, bytes, flags);
  return to;
}

PAWL_BENCH_TAKES_OVER void* pmem_memset(void* at, int value, size_t bytes, unsigned flags) {
  static const auto next = reinterpret_cast<decltype(&pmem_memset)>(real("pmem_memset"));
  next(at, value, bytes, flags);
  pay_for(at, bytes, flags);
  return at;
}
