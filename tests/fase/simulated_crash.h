// A crash at the n-th thing that happens to a direct mapping, with what persistent memory would
// have of it: of each line that was not fenced, some of the stores, from the first on.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "fase/direct_memory.h"
#include "fase/file_image.h"

namespace pawl::test {

// What is left of stores that no fence had reached.
enum class Unfenced { kept, lost, random };

// Of one thread.
class SimulatedCrash final : public fase::Observer {
 public:
  static constexpr int kExitCode = 42;

  // _exit()s with kExitCode at the event of this number, from 1 on.  `before` is the file, as it
  // was before it was opened.
  SimulatedCrash(const FileImage& before, std::uint64_t event, Unfenced unfenced,
                 std::uint64_t seed, std::function<void()> others)
      : before_(before),
        crash_at_(event),
        unfenced_(unfenced),
        random_(seed),
        others_(std::move(others)) {}

  void stored(const std::byte* at, std::size_t count) override;
  void word_stored(const std::uint64_t* at, std::uint64_t value) override;
  void flushed(const std::byte* at, std::size_t count) override;
  void fenced() override;

 private:
  struct Store {
    std::size_t at;  // in the line
    std::byte value;
  };
  struct Line {
    std::vector<std::byte> durable;
    std::vector<Store> stores;
    std::size_t flushed = 0;  // of them
  };

  void event();
  Line& line_at(std::uint64_t start);
  void note(const std::byte* at, std::size_t count);
  void note_untold(std::uint64_t start);
  [[noreturn]] void crash();

  const FileImage& before_;
  const std::uint64_t crash_at_;
  const Unfenced unfenced_;
  std::mt19937_64 random_;
  const std::function<void()> others_;
  std::uint64_t events_ = 0;
  std::map<std::uint64_t, Line> lines_;
};

// Runs it in a forked process, with a crash at that event, and returns whether it crashed: false
// when it came to its end before.  What `others` says another thread does just before the crash.
bool crashes(const FileImage& before, const std::function<void()>& run, std::uint64_t event,
             Unfenced unfenced, std::uint64_t seed, const std::function<void()>& others = {});

}  // namespace pawl::test
