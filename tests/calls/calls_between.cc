// Kills a program that makes random calls on a mapped file between its commits, and looks whether
// recovery finds what was acknowledged.
//
//   calls_between [--rounds N] [--seed S] [--way library|preload]... [--tracker T]... [--directory
//   D]
//                 [--pawl COMMAND]
//
// Each round is a program of several threads, in one of the two ways to use Pawl (its functions, or
// plain ones under `pawl run`), with one of the trackers, that is killed at a random moment.  Its
// calls are those of docs/memory-calls.md, and on descriptors, threads and processes.  While it
// runs it compares its memory with what it stored.
//
// Exits with 0 when nothing was lost, 1 when something was, 2 when it could not do what it was
// asked.  The last line is JSON.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "calls/model.h"
#include "calls/program.h"
#include "pawl/pawl.h"

namespace pawl::test::calls {
namespace {

constexpr int kExitLost = 1;
constexpr int kExitTrouble = 2;
constexpr std::chrono::milliseconds kLifeMax{60};  // of a program that is ready
constexpr std::chrono::seconds kStartMax{30};

struct Arguments {
  std::uint64_t rounds = 12;
  std::uint32_t seed = 1;
  std::vector<std::string> ways;
  std::vector<std::string> trackers;
  std::string directory = ".";
  std::string pawl;
};

struct Counts {
  std::uint64_t rounds = 0;
  std::uint64_t lost = 0;
  std::uint64_t calls = 0;
  std::uint64_t commits = 0;
};

Arguments parse(int count, char** values) {
  Arguments arguments;
  for (int i = 1; i < count; ++i) {
    const std::string name = values[i];
    if (++i == count) throw std::invalid_argument(name + " needs a value, or is unknown");
    const std::string value = values[i];
    if (name == "--rounds") {
      arguments.rounds = std::stoull(value);
    } else if (name == "--seed") {
      arguments.seed = static_cast<std::uint32_t>(std::stoul(value));
    } else if (name == "--way") {
      arguments.ways.push_back(value);
    } else if (name == "--tracker") {
      arguments.trackers.push_back(value);
    } else if (name == "--directory") {
      arguments.directory = value;
    } else if (name == "--pawl") {
      arguments.pawl = value;
    } else {
      throw std::invalid_argument("unknown argument " + name);
    }
  }
  if (arguments.ways.empty()) arguments.ways = {"library", "preload"};
  if (arguments.trackers.empty()) arguments.trackers = {"auto", "fault", "store"};
  return arguments;
}

// Memory that is shared with the program, and passed on to it as a descriptor.
class SharedMemory {
 public:
  SharedMemory() : descriptor_(::memfd_create("calls", 0)) {
    if (descriptor_ < 0 || ::ftruncate(descriptor_, sizeof(Shared)) != 0)
      throw std::runtime_error("cannot make a memory file");
    void* const at =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (at == MAP_FAILED) throw std::runtime_error("cannot map a memory file");
    shared_ = static_cast<Shared*>(at);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() {
    ::munmap(shared_, sizeof(Shared));
    ::close(descriptor_);
  }
  int descriptor() const { return descriptor_; }
  Shared* operator->() const { return shared_; }

 private:
  const int descriptor_;
  Shared* shared_ = nullptr;
};

struct Round {
  std::string way;
  std::string tracker;
  std::uint32_t seed;
  std::string path;
};

pid_t start(const Round& round, const SharedMemory& shared, const Arguments& arguments) {
  std::mt19937 random(round.seed);
  const bool is_eager = random() % 2 == 0;
  std::vector<std::string> words;
  if (round.way == "preload") words = {arguments.pawl, "run", "--atomic", "mapped", "--"};
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  for (const std::string& word : {self, std::string("program"), round.way, round.path,
                                  std::to_string(round.seed), std::to_string(shared.descriptor())})
    words.push_back(word);
  std::vector<char*> values;
  for (std::string& word : words) values.push_back(word.data());
  values.push_back(nullptr);
  const pid_t process = ::fork();
  if (process != 0) return process;
  ::setenv("PAWL_TRACKER", round.tracker.c_str(), 1);
  ::setenv("PAWL_APPLY", is_eager ? "eager" : "async", 1);
  ::setenv("PAWL_JOURNAL_SIZE", "1M", 1);
  ::setenv("PAWL_RESIDENT_MAX", "65536", 1);
  // What it says of refused calls is only of interest when it fails.
  const std::string said = round.path + ".said";
  const int output = ::open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  ::dup2(output, STDERR_FILENO);
  ::execv(values[0], values.data());
  ::_exit(127);
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// What was found, page by page: with which of the versions, the acknowledged one first, it agrees.
std::string describe(const Part& part, std::size_t number, std::string_view found) {
  std::string text = "part " + std::to_string(number) + " of " + std::to_string(found.size()) +
                     " bytes is as no commit left it; its pages are those of versions";
  for (std::size_t at = 0; at < found.size(); at += kPage) {
    const std::string_view page = found.substr(at, kPage);
    text += ' ';
    std::uint32_t index = 0;
    part.has_version([&](const Version& version) {
      if (std::memcmp(version.content + at, page.data(), page.size()) == 0)
        text += std::to_string(index);
      ++index;
      return false;
    });
    text += ';';
  }
  return text;
}

// Empty when the file holds what was acknowledged, or was asked for since.
std::string judge(const std::string& found, const Shared& shared) {
  if (found.size() < kTailOffset) return "the file is too short";
  for (std::size_t number = 0; number < kParts; ++number) {
    const char* const content = found.data() + number * kPartBytes;
    const std::size_t bytes = number == kTail ? found.size() - kTailOffset : kPartBytes;
    const bool is_known = shared.parts[number].has_version([&](const Version& version) {
      return version.bytes == bytes && std::memcmp(version.content, content, bytes) == 0;
    });
    if (!is_known) return describe(shared.parts[number], number, {content, bytes});
  }
  return {};
}

std::string last_lines(const std::string& text) {
  constexpr std::size_t kBytes = 600;
  return text.size() <= kBytes ? text : text.substr(text.size() - kBytes);
}

// What was wrong, or nothing.
std::string try_round(const Round& round, const Arguments& arguments, Counts& counts) {
  const SharedMemory shared;
  const pid_t process = start(round, shared, arguments);
  if (process < 0) throw std::runtime_error("cannot start a program");
  const auto started = std::chrono::steady_clock::now();
  int status = 0;
  bool has_ended = false;
  while (!shared->is_ready.load() && !has_ended) {
    has_ended = ::waitpid(process, &status, WNOHANG) == process;
    if (std::chrono::steady_clock::now() - started > kStartMax)
      throw std::runtime_error("a program does not begin");
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  if (!has_ended) {
    std::mt19937 random(~round.seed);
    const auto life_max = std::chrono::microseconds(kLifeMax).count();
    std::this_thread::sleep_for(
        std::chrono::microseconds(random() % static_cast<std::uint64_t>(life_max)));
    ::kill(process, SIGKILL);
    ::waitpid(process, &status, 0);
  }
  counts.calls += shared->calls.load();
  counts.commits += shared->commits.load();
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
    return "the program ended with status " + std::to_string(status) + ": " +
           last_lines(content_of(round.path + ".said"));
  }
  // A child that was just forked has its copy of the lock until it has run for a moment.
  const auto killed = std::chrono::steady_clock::now();
  while (pawl_recover(round.path.c_str()) < 0) {
    if (errno != EBUSY || std::chrono::steady_clock::now() - killed > kStartMax)
      return std::string("recovery failed: ") + pawl_last_error();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return judge(content_of(round.path), *shared.operator->());
}

int run_rounds(const Arguments& arguments) {
  Counts counts;
  std::mt19937 random(arguments.seed);
  for (std::uint64_t i = 0; i < arguments.rounds; ++i) {
    const std::string directory = arguments.directory + "/calls." + std::to_string(::getpid());
    std::filesystem::create_directory(directory);
    const Round round{arguments.ways[i % arguments.ways.size()],
                      arguments.trackers[i / arguments.ways.size() % arguments.trackers.size()],
                      arguments.rounds == 1 ? arguments.seed : static_cast<std::uint32_t>(random()),
                      directory + "/mapped"};
    const std::string wrong = try_round(round, arguments, counts);
    ++counts.rounds;
    if (!wrong.empty()) {
      ++counts.lost;
      std::printf("lost: --way %s --tracker %s --rounds 1 --seed %u: %s\n", round.way.c_str(),
                  round.tracker.c_str(), round.seed, wrong.c_str());
    }
    std::filesystem::remove_all(directory);
  }
  std::printf(
      "{\"try\":\"calls\",\"seed\":%u,\"rounds\":%llu,\"calls\":%llu,\"commits\":%llu,"
      "\"lost\":%llu}\n",
      arguments.seed, static_cast<unsigned long long>(counts.rounds),
      static_cast<unsigned long long>(counts.calls),
      static_cast<unsigned long long>(counts.commits),
      static_cast<unsigned long long>(counts.lost));
  return counts.lost == 0 ? 0 : kExitLost;
}

}  // namespace
}  // namespace pawl::test::calls

int main(int count, char** values) {
  using namespace pawl::test::calls;
  try {
    if (count == 6 && std::string(values[1]) == "program") {
      return run_program({values[3], std::string(values[2]) == "library",
                          static_cast<std::uint32_t>(std::stoul(values[4])), std::stoi(values[5])});
    }
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    return run_rounds(parse(count, values));
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "calls_between: %s\n", exception.what());
    return kExitTrouble;
  }
}
