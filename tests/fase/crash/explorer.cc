#include "fase/crash/explorer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "fase/crash/recorder.h"

namespace pawl::test {
namespace {

// One state of so many is recovered under observation, so that its recovery is cut, too.
constexpr std::uint64_t kRecoveriesObservedOneOf = 40;
constexpr std::uint64_t kOperationsAfter = 6;

// What was recovered has to be of use: operations on it do what they do, with blocks that nobody
// has.
void go_on(pawl_fase* file, const Subject& subject, void* structure, Contents contents) {
  for (std::uint64_t n = 0; n < kOperationsAfter; ++n) {
    const Operation operation{static_cast<std::uint32_t>(n % 3 == 2 ? 1 : 0), 3 + 7 * n, 1 + n};
    subject.operate(file, structure, operation);
    subject.model(contents, operation);
  }
  if (subject.read(structure) != contents)
    throw std::runtime_error("what was recovered does not do what it should");
}

void tell(int to, const void* bytes, std::size_t count) {
  if (write(to, bytes, count) != static_cast<ssize_t>(count)) _exit(2);
}

// In the child: opens the file, and tells what it finds.
[[noreturn]] void recover_and_tell(const std::string& path, const Subject& subject,
                                   const std::string& trace_path, int to) {
  std::string error;
  Contents contents;
  std::unique_ptr<Recorder> recorder;
  if (!trace_path.empty()) recorder = std::make_unique<Recorder>(path);
  pawl_fase_options options;
  pawl_fase_options_init(&options);
  pawl_fase* file = pawl_fase_open(path.c_str(), &options);
  if (file == nullptr) {
    error = pawl_last_error();
  } else {
    if (recorder != nullptr) recorder->take().save(trace_path);
    try {
      if (void* structure = pawl_fase_root(file); structure != nullptr) {
        contents = subject.read(structure);
        go_on(file, subject, structure, contents);
      }
    } catch (const std::exception& wrong) {
      error = wrong.what();
    }
  }
  const std::uint64_t count = contents.size();
  const std::uint64_t length = error.size();
  tell(to, &count, sizeof count);
  tell(to, contents.data(), count * sizeof contents[0]);
  tell(to, &length, sizeof length);
  tell(to, error.data(), length);
  _exit(0);
}

bool read_all(int from, void* into, std::size_t count) {
  auto* at = static_cast<char*>(into);
  while (count > 0) {
    const ssize_t got = read(from, at, count);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    count -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

Explorer::Explorer(std::string directory, std::uint64_t exhaustive_max, unsigned seed)
    : directory_(std::move(directory)), exhaustive_max_(exhaustive_max), random_(seed) {}

Found Explorer::recover(const std::string& path, const Subject& subject,
                        const std::string& trace_path) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    recover_and_tell(path, subject, trace_path, ends[1]);
  }
  close(ends[1]);
  Found found;
  std::uint64_t count = 0;
  std::uint64_t length = 0;
  bool told = read_all(ends[0], &count, sizeof count);
  if (told) {
    found.contents.resize(count);
    told = read_all(ends[0], found.contents.data(), count * sizeof found.contents[0]) &&
           read_all(ends[0], &length, sizeof length);
  }
  if (told) {
    found.error.resize(length);
    told = read_all(ends[0], found.error.data(), length);
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!told) found.error = "the recovery ended with status " + std::to_string(status);
  found.is_recovered = found.error.empty();
  return found;
}

std::string Explorer::judge(const Found& found, const Subject& subject, const Progress& progress) {
  if (!found.is_recovered) return found.error;
  if (progress.attempts.size() > 1)
    return Expectation(subject).check(progress.attempts, found.contents);
  // One thread's operations are in order: the last one has happened or not.
  Contents before;
  Contents contents;
  for (const Attempt& attempt : progress.attempts.front()) {
    before = contents;
    subject.model(contents, attempt.operation);
  }
  const bool all_done =
      progress.attempts.front().empty() || progress.attempts.front().back().is_done;
  if (found.contents == contents || (!all_done && found.contents == before)) return "";
  std::string text = "found";
  for (const std::uint64_t value : found.contents) text += " " + std::to_string(value);
  return text + " after " + std::to_string(progress.attempts.front().size()) + " operations, " +
         (all_done ? "all done" : "the last one under way");
}

std::optional<std::string> Explorer::explore(const MemoryTrace& trace, const Life& life,
                                             std::uint64_t states) {
  return explore_depth(trace, life, states, 0, Progress(life));
}

std::optional<std::string> Explorer::explore_depth(const MemoryTrace& trace, const Life& life,
                                                   std::uint64_t states, std::size_t depth,
                                                   Progress progress) {
  MemoryStates memory(trace);
  const std::uint64_t of_each_moment =
      std::max<std::uint64_t>(1, states / (trace.events.size() + 1));
  const std::string trace_path = directory_ + "/recovery" + std::to_string(depth);
  do {
    if (memory.moment() > 0) progress.pass(trace.events[memory.moment() - 1]);
    // Of more moments than states some are left out.
    if (below(random_, trace.events.size() + 1) >= states) continue;
    const std::uint64_t possible = memory.count(exhaustive_max_);
    const bool all = possible <= std::min(exhaustive_max_, of_each_moment * 4);
    counts_.moments += 1;
    if (all) counts_.moments_exhausted += 1;
    for (std::uint64_t i = 0; i < (all ? possible : of_each_moment); ++i) {
      const std::vector<std::byte> image = all ? memory.state(i) : memory.state(random_);
      const bool observed = depth + 1 < kDepthMax && below(random_, kRecoveriesObservedOneOf) == 0;
      const std::string path = directory_ + "/state";
      write_image(path, trace, image);
      const Found found = recover(path, *life.subject, observed ? trace_path : "");
      counts_.states[depth] += 1;
      if (std::string wrong = judge(found, *life.subject, progress); !wrong.empty()) {
        write_image(directory_ + "/lost", trace, image);
        return wrong + "; moment " + std::to_string(memory.moment()) + " of " +
               std::to_string(trace.events.size()) + ", depth " + std::to_string(depth);
      }
      if (!observed) continue;
      const MemoryTrace recovery = MemoryTrace::load(trace_path);
      if (recovery.events.empty()) continue;
      if (auto wrong = explore_depth(recovery, life, of_each_moment * 8, depth + 1, progress))
        return wrong;
    }
  } while (memory.advance());
  return std::nullopt;
}

void Progress::pass(const MemoryEvent& event) {
  if (event.kind == MemoryEvent::Kind::begins)
    attempts[event.thread].push_back({life_.operations[event.thread][event.value], false, 0});
  if (event.kind == MemoryEvent::Kind::acknowledged) {
    attempts[event.thread].back().is_done = true;
    attempts[event.thread].back().result = event.offset;
  }
}

}  // namespace pawl::test
