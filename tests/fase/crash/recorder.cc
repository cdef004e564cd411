#include "fase/crash/recorder.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <stdexcept>

#include "fase/direct_memory.h"
#include "fase/format.h"

namespace pawl::test {
namespace {

using Kind = MemoryEvent::Kind;

std::uint32_t this_thread() {
  static std::atomic<std::uint32_t> threads{0};
  thread_local const std::uint32_t number = threads++;
  return number;
}

}  // namespace

class Recorder::Observer final : public fase::Observer {
 public:
  explicit Observer(const std::string& path) : path_(path) {
    // What is there before anything is done to it, recovery included.
    if (std::filesystem::exists(path_)) begin(0);
    fase::observe(this);
  }
  ~Observer() override { fase::observe(nullptr); }

  void begin(std::uint64_t threads) {
    const std::lock_guard lock(mutex_);
    begin_locked(threads);
  }

  void stored(const std::byte*, std::size_t) override {
    const std::lock_guard lock(mutex_);
    look();
  }
  void word_stored(const std::uint64_t* at, std::uint64_t value) override {
    const std::lock_guard lock(mutex_);
    if (!is_begun()) return;
    const std::uint64_t offset = offset_of(at);
    std::memcpy(now_.data() + offset, &value, kWordBytes);
    look();
    add(Kind::log_word, offset, value);
  }
  void flushed(const std::byte* at, std::size_t count) override {
    const std::lock_guard lock(mutex_);
    look();
    if (!is_begun()) return;
    const auto first = reinterpret_cast<std::uint64_t>(at) / kLineOfWords;
    const auto last = (reinterpret_cast<std::uint64_t>(at) + count - 1) / kLineOfWords;
    for (std::uint64_t line = first; line <= last; ++line)
      add(Kind::write_back, offset_of(reinterpret_cast<const void*>(line * kLineOfWords)), 0);
  }
  void fenced() override {
    const std::lock_guard lock(mutex_);
    look();
    if (is_begun()) add(Kind::fence, 0, 0);
  }
  void operation(Kind kind, std::uint32_t thread, std::uint64_t number, std::uint64_t result) {
    const std::lock_guard lock(mutex_);
    look();
    trace_.events.push_back({kind, thread, result, number});
  }

  MemoryTrace take() {
    const std::lock_guard lock(mutex_);
    fase::observe(nullptr);
    return std::move(trace_);
  }

 private:
  bool is_begun() const { return !trace_.segments.empty(); }

  void begin_locked(std::uint64_t threads) {
    std::ifstream file(path_, std::ios::binary);
    fase::Header header{};
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    address_ = header.identity.address;
    trace_ = {};
    trace_.file_bytes = std::filesystem::file_size(path_);
    const std::uint64_t logs = std::max<std::uint64_t>(1, header.logs_used + threads);
    trace_.segments = {{0, sizeof header},
                       {fase::kLogsOffset, logs * fase::kLogBytes},
                       {fase::kSchemeLogsOffset, logs * fase::kSchemeLogBytes},
                       {fase::kHeapOffset, trace_.file_bytes - fase::kHeapOffset}};
    now_.clear();
    for (const Segment& segment : trace_.segments) {
      const std::size_t before = now_.size();
      now_.resize(before + segment.bytes);
      file.seekg(static_cast<std::streamoff>(segment.file_offset));
      file.read(reinterpret_cast<char*>(now_.data() + before),
                static_cast<std::streamsize>(segment.bytes));
    }
    if (!file) throw std::runtime_error("cannot be read: " + path_);
    trace_.at_first = now_;
  }

  std::uint64_t offset_of(const void* at) const {
    const std::uint64_t offset = reinterpret_cast<std::uint64_t>(at) - address_;
    std::uint64_t before = 0;
    for (const Segment& segment : trace_.segments) {
      if (offset - segment.file_offset < segment.bytes)
        return before + offset - segment.file_offset;
      before += segment.bytes;
    }
    throw std::runtime_error("the run-time stores outside of what the recorder looks at");
  }

  // What the program stored since the last look.
  void look() {
    if (!is_begun()) return;
    std::uint64_t before = 0;
    for (const Segment& segment : trace_.segments) {
      const auto* memory = reinterpret_cast<const std::byte*>(address_ + segment.file_offset);
      // Of each word of a log is told, if a little after it was stored: another thread may come
      // between, and must not take it for one whose order is not known.
      const bool is_logs = segment.file_offset == fase::kLogsOffset ||
                           segment.file_offset == fase::kSchemeLogsOffset;
      for (std::uint64_t page = is_logs ? segment.bytes : 0; page < segment.bytes;
           page += kPageBytes) {
        if (std::memcmp(memory + page, now_.data() + before + page, kPageBytes) == 0) continue;
        for (std::uint64_t at = page; at < page + kPageBytes; at += kWordBytes) {
          std::uint64_t value = 0;
          std::memcpy(&value, memory + at, kWordBytes);
          if (std::memcmp(&value, now_.data() + before + at, kWordBytes) == 0) continue;
          std::memcpy(now_.data() + before + at, &value, kWordBytes);
          add(Kind::program_word, before + at, value);
        }
      }
      before += segment.bytes;
    }
  }

  void add(Kind kind, std::uint64_t offset, std::uint64_t value) {
    trace_.events.push_back({kind, this_thread(), offset, value});
  }

  const std::string path_;
  std::mutex mutex_;
  std::uint64_t address_ = 0;
  MemoryTrace trace_;
  std::vector<std::byte> now_;  // as the events leave the segments
};

Recorder::Recorder(const std::string& path) : observer_(std::make_unique<Observer>(path)) {}
Recorder::~Recorder() = default;
void Recorder::begin(std::uint64_t threads) { observer_->begin(threads); }
void Recorder::operation_begins(std::uint32_t thread, std::uint64_t number) {
  observer_->operation(Kind::begins, thread, number, 0);
}
void Recorder::operation_acknowledged(std::uint32_t thread, std::uint64_t number,
                                      std::uint64_t result) {
  observer_->operation(Kind::acknowledged, thread, number, result);
}
MemoryTrace Recorder::take() { return observer_->take(); }

}  // namespace pawl::test
