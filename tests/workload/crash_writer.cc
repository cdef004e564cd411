// The program that the killed and the power-cut tries kill, and the auditor of what it left.
//
//   crash_writer make  --file F --workload W --seed S
//       Makes the file as the workload wants it, durably, and says "made".
//   crash_writer run   --file F --workload W --seed S [--mode pawl|plain] [--steps N]
//                      [--tracker auto|scan|fault] [--apply async|eager] [--threads T]
//       Maps the file (which recovers it), takes the workload's steps, and says, a line each:
//         holds C    it is mapped; C is the checksum of its content
//         ready
//         begin K    commit K (from 1) is about to be asked for
//         done K     all commits up to K are durable
//         full       a call met ENOSPC; it is made again, until there is space
//         closing    N steps were taken and the file is about to be closed
//         unclosed   there was no space to close it: its journal stays
//         end        the file was closed
//       With --file given several times, each file has a thread of its own, which takes the steps
//       of seed S, S + 1, ...; its lines begin with the file's number, from 0 on.
//   crash_writer audit --file F --workload W --seed S --begun B --acknowledged A [--start COPY]
//       Looks at the file, which must have been recovered, and says "found K" (A <= K <= B), or
//       what is wrong.  COPY is the file as it was when `run` began; without it: as `make` left it.
//   crash_writer rebuild --file F --workload W --seed S --begun B --acknowledged A --holds C
//                        [--start COPY]
//       Makes F what the file was when another `run` found it with the checksum C, for an audit of
//       that, and says "found K" (A <= K <= B); or says that it was no commit's.
//
// Exits with 0 when all is well, 1 when the audit finds something lost, 2 when it could not do what
// it was asked.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "pawl/pawl.h"
#include "workload/content.h"
#include "workload/script.h"

namespace pawl::test {
namespace {

constexpr int kExitLost = 1;
constexpr int kExitTrouble = 2;
constexpr unsigned kThreadsMax = 16;
constexpr std::chrono::milliseconds kPauseWhenFull{2};

struct Arguments {
  std::vector<std::string> files;
  std::string workload_name;
  const Workload* workload = nullptr;
  std::uint64_t seed = 1;
  bool plain = false;
  std::uint64_t steps = std::numeric_limits<std::uint64_t>::max();
  std::string tracker = "auto";
  std::string apply = "async";
  unsigned threads = 1;
  std::string start;
  std::uint64_t begun = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t holds = 0;

  const std::string& file() const { return files.front(); }
};

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "crash_writer: %s\n", what.c_str());
  std::_Exit(kExitTrouble);  // other threads may be at work
}

[[noreturn]] void give_up_on_system(const std::string& what) {
  give_up(what + ": " + std::strerror(errno));
}

// One write, so that a line is there whole when the next thing happens.
void say(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(STDOUT_FILENO, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    give_up_on_system("cannot say " + line);
}

// ------------------------------------------------------------------------------------------- make

void flush(const std::string& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC);
  if (descriptor < 0 || ::fsync(descriptor) != 0) give_up_on_system("cannot flush " + path);
  ::close(descriptor);
}

int make(const Arguments& arguments) {
  initial_content(*arguments.workload, arguments.seed).save_as(arguments.file());
  flush(arguments.file(), O_RDWR);
  const std::size_t slash = arguments.file().rfind('/');
  flush(slash == std::string::npos ? "." : arguments.file().substr(0, slash + 1),
        O_RDONLY | O_DIRECTORY);
  say("made");
  return 0;
}

// -------------------------------------------------------------------------------------------- run

// The file in memory: by Pawl, or as the kernel maps it.
class MappedFile {
 public:
  MappedFile(const Arguments& arguments, const std::string& path)
      : plain_(arguments.plain), length_(arguments.workload->window_pages * kPageBytes) {
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor_ < 0) give_up_on_system("cannot open " + path);
  }

  // Fails with errno.
  int map(const Arguments& arguments) {
    const int protection = PROT_READ | PROT_WRITE;
    void* const address = plain_ ? ::mmap(nullptr, length_, protection, MAP_SHARED, descriptor_, 0)
                                 : map_atomically(arguments, protection);
    if (address == MAP_FAILED) return -1;
    bytes_ = static_cast<char*>(address);
    return 0;
  }

  char* bytes() const { return bytes_; }

  int sync(std::uint64_t offset, std::uint64_t length, int flags) const {
    return plain_ ? ::msync(bytes_ + offset, length, flags)
                  : pawl_msync(bytes_ + offset, length, flags);
  }
  int wait() const { return plain_ ? ::fdatasync(descriptor_) : pawl_wait(bytes_); }
  int truncate(std::uint64_t size_bytes) const {
    const auto size = static_cast<off_t>(size_bytes);
    return plain_ ? ::ftruncate(descriptor_, size) : pawl_ftruncate(descriptor_, size);
  }
  int close() const { return plain_ ? ::munmap(bytes_, length_) : pawl_munmap(bytes_, length_); }
  std::string why() const { return plain_ ? std::strerror(errno) : pawl_last_error(); }
  [[noreturn]] void complain(const std::string& what) const { give_up(what + ": " + why()); }

 private:
  void* map_atomically(const Arguments& arguments, int protection) const {
    pawl_options options{};
    if (pawl_options_init(&options) != 0) complain("options");
    options.journal_size_bytes = arguments.workload->journal_bytes;
    options.apply_threshold_pages = arguments.workload->apply_threshold_pages;
    options.apply = arguments.apply == "eager" ? PAWL_APPLY_EAGER : PAWL_APPLY_ASYNC;
    if (arguments.tracker == "scan") options.tracker = PAWL_TRACKER_SCAN;
    if (arguments.tracker == "fault") options.tracker = PAWL_TRACKER_FAULT;
    return pawl_mmap_with(nullptr, length_, protection, MAP_ATOMIC, descriptor_, 0, &options);
  }

  const bool plain_;
  const std::size_t length_;
  int descriptor_ = -1;
  char* bytes_ = nullptr;
};

// Each thread stores into pages of its own, so that the order among threads changes nothing.
void store_all(const MappedFile& file, const std::vector<Step>& stores, unsigned threads) {
  const auto store_some = [&](unsigned number) {
    for (const Step& step : stores) {
      for (std::uint64_t at = step.offset; at < step.offset + step.bytes.size();) {
        const std::uint64_t stop =
            std::min(round_down(at, kPageBytes) + kPageBytes, step.offset + step.bytes.size());
        if (at / kPageBytes % threads == number)
          std::memcpy(file.bytes() + at, &step.bytes[at - step.offset], stop - at);
        at = stop;
      }
    }
  };
  std::vector<std::thread> others;
  for (unsigned number = 1; number < threads; ++number) others.emplace_back(store_some, number);
  store_some(0);
  for (std::thread& other : others) other.join();
}

class Run {
 public:
  Run(const Arguments& arguments, std::size_t number)
      : arguments_(arguments),
        label_(arguments.files.size() > 1 ? std::to_string(number) + " " : ""),
        path_(arguments.files[number]),
        seed_(arguments.seed + number),
        file_(arguments, path_) {}

  void go() {
    insist([&] { return file_.map(arguments_); }, "cannot map " + path_);
    Content start = Content::load_from(path_);
    tell("holds " + std::to_string(start.checksum()));
    tell("ready");
    script_.emplace(*arguments_.workload, seed_, std::move(start));
    for (std::uint64_t i = 0; i < arguments_.steps; ++i) take(script_->next());
    store_planned();
    tell("closing");
    if (file_.close() == 0) {
      tell("end");
    } else if (errno == ENOSPC) {
      tell("unclosed");
    } else {
      file_.complain("cannot close " + path_);
    }
  }

 private:
  void tell(const std::string& line) const { say(label_ + line); }

  // A full disk may be mended.
  template <class Call>
  void insist(Call call, const std::string& otherwise) const {
    while (call() != 0) {
      if (errno != ENOSPC) file_.complain(otherwise);
      tell("full");
      std::this_thread::sleep_for(kPauseWhenFull);
    }
  }

  void take(Step step) {
    if (step.kind == Step::Kind::store) {
      stores_.push_back(std::move(step));
      return;
    }
    store_planned();
    if (step.commits()) tell("begin " + std::to_string(script_->commits()));
    insist([&] { return perform(step); }, "a step failed");
    if (step.acknowledges()) tell("done " + std::to_string(script_->commits()));
  }

  void store_planned() {
    if (stores_.empty()) return;
    store_all(file_, stores_, arguments_.threads);
    stores_.clear();
  }

  int perform(const Step& step) const {
    switch (step.kind) {
      case Step::Kind::commit:
        return file_.sync(step.offset, step.length, MS_SYNC);
      case Step::Kind::queue:
        return file_.sync(step.offset, step.length, MS_ASYNC);
      case Step::Kind::roll_back:
        return file_.sync(step.offset, step.length, MS_INVALIDATE);
      case Step::Kind::truncate:
        return file_.truncate(step.length);
      case Step::Kind::wait:
        return file_.wait();
      case Step::Kind::store:
        break;
    }
    give_up("a store is not performed alone");
  }

  const Arguments& arguments_;
  const std::string label_;
  const std::string path_;
  const std::uint64_t seed_;
  MappedFile file_;
  std::optional<Script> script_;
  std::vector<Step> stores_;
};

int run(const Arguments& arguments) {
  const auto run_one = [&](std::size_t number) {
    try {
      Run(arguments, number).go();
    } catch (const std::runtime_error& error) {
      give_up(error.what());
    }
  };
  std::vector<std::thread> others;
  for (std::size_t number = 1; number < arguments.files.size(); ++number)
    others.emplace_back(run_one, number);
  run_one(0);
  for (std::thread& other : others) other.join();
  return 0;
}

// ------------------------------------------------------------------------------------------ audit

Script script_of(const Arguments& arguments) {
  return {*arguments.workload, arguments.seed,
          arguments.start.empty() ? initial_content(*arguments.workload, arguments.seed)
                                  : Content::load_from(arguments.start)};
}

int rebuild(const Arguments& arguments) {
  Script script = script_of(arguments);
  for (std::uint64_t number = 0; number <= arguments.begun; ++number) {
    while (script.commits() < number) script.next();
    const Content& content = script.model().committed();
    if (number < arguments.acknowledged || content.checksum() != arguments.holds) continue;
    content.save_as(arguments.file());
    say("found " + std::to_string(number));
    return 0;
  }
  say("damaged: checksum " + std::to_string(arguments.holds) + " is that of no commit from " +
      std::to_string(arguments.acknowledged) + " to " + std::to_string(arguments.begun));
  return kExitLost;
}

int audit(const Arguments& arguments) {
  const Content found = Content::load_from(arguments.file());
  Script script = script_of(arguments);
  std::optional<std::uint64_t> earlier;
  std::string differences;
  for (std::uint64_t number = 0;; ++number) {
    const auto differs = found.first_difference(script.model().committed());
    if (number >= arguments.acknowledged && !differs.has_value()) {
      say("found " + std::to_string(number));
      return 0;
    }
    if (!differs.has_value()) earlier = number;
    if (number >= arguments.acknowledged && differences.size() < 1000)
      differences +=
          " from commit " + std::to_string(number) + " at byte " + std::to_string(*differs) + ";";
    if (number == arguments.begun) break;
    while (script.commits() == number) script.next();
  }
  if (earlier.has_value())
    say("lost: commit " + std::to_string(*earlier) + " is there, but commit " +
        std::to_string(arguments.acknowledged) + " was acknowledged");
  else
    say("damaged: the file, of " + std::to_string(found.size()) +
        " bytes, is no commit's; it differs" + differences);
  return kExitLost;
}

// ----------------------------------------------------------------------------------- command line

void take_common_options(CLI::App& verb, Arguments& arguments) {
  verb.add_option("--file", arguments.files)->required()->allow_extra_args(false);
  verb.add_option("--workload", arguments.workload_name)->required();
  verb.add_option("--seed", arguments.seed);
}

int main(int count, char** values) {
  Arguments arguments;
  CLI::App app{"The program that the crash laboratory kills, and its auditor"};
  app.require_subcommand(1);
  CLI::App& maker = *app.add_subcommand("make", "make the file");
  take_common_options(maker, arguments);
  CLI::App& runner = *app.add_subcommand("run", "take the workload's steps until killed");
  take_common_options(runner, arguments);
  std::string mode = "pawl";
  runner.add_option("--mode", mode)->check(CLI::IsMember({"pawl", "plain"}));
  runner.add_option("--steps", arguments.steps);
  runner.add_option("--tracker", arguments.tracker)
      ->check(CLI::IsMember({"auto", "scan", "fault"}));
  runner.add_option("--apply", arguments.apply)->check(CLI::IsMember({"async", "eager"}));
  runner.add_option("--threads", arguments.threads)->check(CLI::Range(1U, kThreadsMax));
  CLI::App& auditor = *app.add_subcommand("audit", "say which commit the file holds");
  CLI::App& rebuilder = *app.add_subcommand("rebuild", "make what a run found");
  for (CLI::App* verb : {&auditor, &rebuilder}) {
    take_common_options(*verb, arguments);
    verb->add_option("--begun", arguments.begun)->required();
    verb->add_option("--acknowledged", arguments.acknowledged)->required();
    verb->add_option("--start", arguments.start);
  }
  rebuilder.add_option("--holds", arguments.holds)->required();
  try {
    app.parse(count, values);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitTrouble;
  }
  arguments.plain = mode == "plain";
  arguments.workload = find_workload(arguments.workload_name);
  if (arguments.workload == nullptr) give_up("there is no workload " + arguments.workload_name);
  try {
    if (maker.parsed()) return make(arguments);
    if (rebuilder.parsed()) return rebuild(arguments);
    return runner.parsed() ? run(arguments) : audit(arguments);
  } catch (const std::runtime_error& error) {
    give_up(error.what());
  }
}

}  // namespace
}  // namespace pawl::test

int main(int count, char** values) { return pawl::test::main(count, values); }
