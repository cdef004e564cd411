#include "medium/persistent_memory.h"

#include <dirent.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "medium/busy_wait.h"
#include "medium/environment.h"
#include "medium/persistent_copy.h"

namespace pawl {
namespace {

// ------------------------------------------------------------------------------------- environment

struct NamedFlush {
  const char* name;
  LineFlush flush;
};
constexpr std::array kFlushes = {
    NamedFlush{"auto", LineFlush::automatic}, NamedFlush{"clwb", LineFlush::clwb},
    NamedFlush{"clflushopt", LineFlush::clflushopt}, NamedFlush{"clflush", LineFlush::clflush},
    NamedFlush{"none", LineFlush::none}};

Status wrong(const char* name, const char* value, const std::string& wanted) {
  return Status::failure(
      EINVAL, PAWL_ERROR_INVALID_VARIABLE,
      std::string(name) + "=" + value + " is not understood: it takes " + wanted);
}

Status read_latency(const char* name, std::uint32_t& latency_ns) {
  const char* const value = environment_variable(name);
  if (value == nullptr) return {};
  char* end = nullptr;
  errno = 0;
  const unsigned long number = std::strtoul(value, &end, 10);
  const bool is_number = *value >= '0' && *value <= '9' && *end == '\0' && errno == 0;
  if (!is_number || (number != 0 && (number < kEmulatedNsMin || number > kEmulatedNsMax))) {
    return wrong(name, value,
                 "0 for none, or " + std::to_string(kEmulatedNsMin) + " to " +
                     std::to_string(kEmulatedNsMax) + " nanoseconds");
  }
  latency_ns = static_cast<std::uint32_t>(number);
  return {};
}

// --------------------------------------------------------------------------------------- processor

#ifdef __x86_64__

bool has_instruction(LineFlush flush) {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (flush == LineFlush::clflush) return __get_cpuid(1, &a, &b, &c, &d) != 0 && (d >> 19 & 1) != 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if (flush == LineFlush::clflushopt) return (b >> 23 & 1) != 0;
  if (flush == LineFlush::clwb) return (b >> 24 & 1) != 0;
  return true;
}

// The kernel says it of each region of persistent memory that it knows.
bool power_reaches_caches() {
  constexpr const char* kRegions = "/sys/bus/nd/devices";
  DIR* const directory = ::opendir(kRegions);
  if (directory == nullptr) return false;
  bool any = false;
  bool all = true;
  while (const dirent* const entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name.rfind("region", 0) != 0) continue;
    std::ifstream file(std::string(kRegions) + "/" + name + "/persistence_domain");
    std::string domain;
    file >> domain;
    any = true;
    all = all && domain == "cpu_cache";
  }
  ::closedir(directory);
  return any && all;
}

__attribute__((target("clwb"))) void write_back(const std::byte* at) {
  _mm_clwb(const_cast<std::byte*>(at));
}
__attribute__((target("clflushopt"))) void write_back_and_drop(const std::byte* at) {
  _mm_clflushopt(const_cast<std::byte*>(at));
}

void stream_lines_of_16(std::byte* to, const std::byte* from, std::size_t lines) {
  for (; lines > 0; --lines) {
    for (std::size_t at = 0; at < kMemoryLineBytes; at += 16) {
      const __m128i piece = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), piece);
    }
    to += kMemoryLineBytes;
    from += kMemoryLineBytes;
  }
}
__attribute__((target("avx512f"))) void stream_lines_of_64(std::byte* to, const std::byte* from,
                                                           std::size_t lines) {
  for (; lines > 0; --lines) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
    to += kMemoryLineBytes;
    from += kMemoryLineBytes;
  }
}

class Processor {
 public:
  explicit Processor(LineFlush flush)
      : flush_(flush),
        stream_lines_(__builtin_cpu_supports("avx512f") ? stream_lines_of_64 : stream_lines_of_16) {
  }

  static void store(std::byte* to, const std::byte* from, std::size_t count) {
    std::memcpy(to, from, count);
  }
  static void stream_words(std::byte* to, const std::byte* from, std::size_t words) {
    for (; words > 0; --words) {
      long long word = 0;
      std::memcpy(&word, from, sizeof word);
      _mm_stream_si64(reinterpret_cast<long long*>(to), word);
      to += kMemoryWordBytes;
      from += kMemoryWordBytes;
    }
  }
  void stream_lines(std::byte* to, const std::byte* from, std::size_t lines) const {
    stream_lines_(to, from, lines);
  }
  void flush_line(const std::byte* at) const {
    switch (flush_) {
      case LineFlush::clwb:
        return write_back(at);
      case LineFlush::clflushopt:
        return write_back_and_drop(at);
      case LineFlush::clflush:
        return _mm_clflush(at);
      case LineFlush::automatic:
      case LineFlush::none:
        return;
    }
  }
  bool flushes() const { return flush_ != LineFlush::none; }
  // The compiler, too, keeps what stands before it before it.
  static void fence() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    _mm_sfence();
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

 private:
  const LineFlush flush_;
  void (*const stream_lines_)(std::byte*, const std::byte*, std::size_t);
};

constexpr bool kSurvivesPowerLoss = true;

#else

// Enough for memory that only has to survive the process.
bool has_instruction(LineFlush flush) { return flush == LineFlush::none; }
bool power_reaches_caches() { return true; }

class Processor {
 public:
  explicit Processor(LineFlush) {}
  static void store(std::byte* to, const std::byte* from, std::size_t count) {
    std::memcpy(to, from, count);
  }
  static void stream_words(std::byte* to, const std::byte* from, std::size_t words) {
    std::memcpy(to, from, words * kMemoryWordBytes);
  }
  static void stream_lines(std::byte* to, const std::byte* from, std::size_t lines) {
    std::memcpy(to, from, lines * kMemoryLineBytes);
  }
  static void flush_line(const std::byte*) {}
  static bool flushes() { return false; }
  static void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
};

constexpr bool kSurvivesPowerLoss = false;

#endif

class MemoryAtHand final : public PersistentMemory {
 public:
  explicit MemoryAtHand(LineFlush flush) : processor_(flush) {}

  void copy(std::byte* to, std::span<const std::byte> from) override {
    // Records, and what they hold.
    if ((reinterpret_cast<std::uintptr_t>(to) | from.size()) % kMemoryLineBytes == 0)
      return processor_.stream_lines(to, from.data(), from.size() / kMemoryLineBytes);
    copy_parts_of_lines(to, from);
  }
  void flush(const std::byte* at, std::size_t count) override {
    if (!processor_.flushes()) return;
    const auto into_line = reinterpret_cast<std::uintptr_t>(at) % kMemoryLineBytes;
    for (std::uint64_t lines = lines_of(at, count); lines > 0; --lines, at += kMemoryLineBytes)
      processor_.flush_line(at - into_line);
  }
  void fence() override { Processor::fence(); }

 private:
  // Apart, so that copy() has nothing to save and restore for it.
  __attribute__((noinline)) void copy_parts_of_lines(std::byte* to,
                                                     std::span<const std::byte> from) {
    copy_persistently(processor_, to, from.data(), from.size());
  }

  Processor processor_;
};

// Lines that the thread has under way; of all memories, as its fence is.
thread_local std::uint64_t lines_under_way = 0;

class SlowerMemory final : public PersistentMemory {
 public:
  SlowerMemory(std::unique_ptr<PersistentMemory> memory, std::uint32_t line_ns,
               std::uint32_t fence_ns)
      : memory_(std::move(memory)),
        wait_(BusyWait::process()),
        line_ns_(line_ns),
        fence_ns_(fence_ns) {}

  void copy(std::byte* to, std::span<const std::byte> from) override {
    memory_->copy(to, from);
    lines_under_way += lines_of(to, from.size());
  }
  void flush(const std::byte* at, std::size_t count) override {
    memory_->flush(at, count);
    lines_under_way += lines_of(at, count);
  }
  void fence() override {
    memory_->fence();
    wait_.wait_ns(lines_under_way * line_ns_ + fence_ns_);
    lines_under_way = 0;
  }

 private:
  const std::unique_ptr<PersistentMemory> memory_;
  const BusyWait& wait_;
  const std::uint64_t line_ns_;
  const std::uint64_t fence_ns_;
};

}  // namespace

void PersistentMemory::zero(std::byte* to, std::size_t count) {
  alignas(kMemoryLineBytes) static constexpr std::array<std::byte, 4096> kZeros{};
  while (count > 0) {
    // Up to a border, so that the next piece begins on one.
    const std::size_t border = kZeros.size() - reinterpret_cast<std::uintptr_t>(to) % kZeros.size();
    const std::size_t piece = std::min(count, border);
    copy(to, std::span(kZeros).first(piece));
    to += piece;
    count -= piece;
  }
}

Result<PersistentMemoryOptions> PersistentMemoryOptions::from_environment() {
  PersistentMemoryOptions options;
  if (const char* const value = environment_variable("PAWL_FLUSH")) {
    const auto* const found = std::find_if(
        kFlushes.begin(), kFlushes.end(),
        [value](const NamedFlush& flush) { return std::strcmp(flush.name, value) == 0; });
    if (found == kFlushes.end())
      return wrong("PAWL_FLUSH", value, "auto, clwb, clflushopt, clflush or none");
    options.flush = found->flush;
  }
  PAWL_TRY(read_latency("PAWL_EMULATE_LINE_NS", options.line_ns));
  PAWL_TRY(read_latency("PAWL_EMULATE_FENCE_NS", options.fence_ns));
  return options;
}

bool memory_can_survive_power_loss() { return kSurvivesPowerLoss; }

Result<std::unique_ptr<PersistentMemory>> make_persistent_memory(
    const PersistentMemoryOptions& options) {
  LineFlush flush = options.flush;
  if (flush == LineFlush::automatic) {
    flush = LineFlush::none;
    if (!power_reaches_caches()) {
      for (const LineFlush better : {LineFlush::clflush, LineFlush::clflushopt, LineFlush::clwb})
        if (has_instruction(better)) flush = better;
    }
  } else if (flush != LineFlush::none && !has_instruction(flush)) {
    return Status::failure(ENOTSUP, PAWL_ERROR_INVALID_VARIABLE,
                           "this processor has not the instruction that PAWL_FLUSH names; "
                           "PAWL_FLUSH=auto takes the best that it has");
  }
  std::unique_ptr<PersistentMemory> memory = std::make_unique<MemoryAtHand>(flush);
  if (options.line_ns == 0 && options.fence_ns == 0) return memory;
  return std::unique_ptr<PersistentMemory>(
      std::make_unique<SlowerMemory>(std::move(memory), options.line_ns, options.fence_ns));
}

}  // namespace pawl
