#include "fase/simulated_crash.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <cstring>
#include <thread>

#include "medium/cache_lines.h"

namespace pawl::test {
namespace {

std::byte* at_address(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

SimulatedCrash::Line& SimulatedCrash::line_at(std::uint64_t start) {
  Line& line = lines_[start];
  for (std::uint64_t byte = start; line.durable.size() < kLineBytes; ++byte)
    line.durable.push_back(before_.byte_at(byte));
  return line;
}

// The store has been made already.
void SimulatedCrash::note(const std::byte* at, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto address = reinterpret_cast<std::uint64_t>(at + i);
    const std::uint64_t start = round_down(address, kLineBytes);
    line_at(start).stores.push_back({address - start, at[i]});
  }
}

// What was stored without a word, such as the heap's maps.
void SimulatedCrash::note_untold(std::uint64_t start) {
  Line& line = line_at(start);
  std::vector<std::byte> told = line.durable;
  for (const Store& store : line.stores) told[store.at] = store.value;
  for (std::size_t i = 0; i < kLineBytes; ++i) {
    if (at_address(start)[i] != told[i]) line.stores.push_back({i, at_address(start)[i]});
  }
}

void SimulatedCrash::event() {
  if (++events_ != crash_at_) return;
  if (others_) std::thread(others_).join();
  crash();
}

void SimulatedCrash::stored(const std::byte* at, std::size_t count) {
  note(at, count);
  event();
}

void SimulatedCrash::word_stored(const std::uint64_t* at, std::uint64_t) {
  note(reinterpret_cast<const std::byte*>(at), sizeof *at);
  event();
}

void SimulatedCrash::flushed(const std::byte* at, std::size_t count) {
  const auto first = round_down(reinterpret_cast<std::uint64_t>(at), kLineBytes);
  const auto end = reinterpret_cast<std::uint64_t>(at) + count;
  for (std::uint64_t start = first; start < end; start += kLineBytes) {
    note_untold(start);
    Line& line = lines_[start];
    line.flushed = line.stores.size();
  }
  event();
}

void SimulatedCrash::fenced() {
  for (auto& [start, line] : lines_) {
    for (std::size_t i = 0; i < line.flushed; ++i)
      line.durable[line.stores[i].at] = line.stores[i].value;
    line.stores.erase(line.stores.begin(),
                      line.stores.begin() + static_cast<std::ptrdiff_t>(line.flushed));
    line.flushed = 0;
  }
  event();
}

void SimulatedCrash::crash() {
  for (const auto& [start, line] : lines_) {
    std::size_t kept = line.stores.size();
    if (unfenced_ == Unfenced::lost) kept = 0;
    if (unfenced_ == Unfenced::random)
      kept = std::uniform_int_distribution<std::size_t>(0, kept)(random_);
    // Only what was told of is taken back: locks lie in the same lines.
    std::byte* const at = at_address(start);
    for (const Store& store : line.stores) at[store.at] = line.durable[store.at];
    for (std::size_t i = 0; i < kept; ++i) at[line.stores[i].at] = line.stores[i].value;
  }
  ::_exit(kExitCode);
}

bool crashes(const FileImage& before, const std::function<void()>& run, std::uint64_t event,
             Unfenced unfenced, std::uint64_t seed, const std::function<void()>& others) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    SimulatedCrash crash(before, event, unfenced, seed, others);
    fase::observe(&crash);
    run();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "a signal: " << WTERMSIG(status);
  const int code = WEXITSTATUS(status);
  EXPECT_TRUE(code == 0 || code == SimulatedCrash::kExitCode) << code;
  return code == SimulatedCrash::kExitCode;
}

}  // namespace pawl::test
