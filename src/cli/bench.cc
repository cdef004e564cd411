// pawl bench: how many commits a second this directory's disk takes.  Not the full benchmark: one
// size of commit, for people who want to know their disk.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "cli/exit_codes.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "journal/format.h"
#include "medium/block_medium.h"
#include "medium/descriptor.h"
#include "medium/directory.h"
#include "pawl/pawl.h"

namespace pawl::cli {

namespace {

constexpr std::uint64_t kFileBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kFilePages = kFileBytes / kPageBytes;
constexpr std::uint32_t kPagesMax = 4096;
constexpr std::uint32_t kSecondsMax = 600;
constexpr std::size_t kChangedBytesPerPage = 64;
constexpr int kTurns = 10;  // the systems take turns, so that none has the disk's good moments
constexpr std::size_t kSamplesMax = 10'000'000;

volatile std::sig_atomic_t stop_asked = 0;
void ask_to_stop(int) { stop_asked = 1; }

struct BenchArguments {
  std::string directory = ".";
  std::uint32_t pages = 1;
  std::uint32_t seconds = 2;
  bool json = false;
};

// One way to make a change durable; `step` does one commit.
struct System {
  const char* name;
  const char* meaning;
  std::function<Status()> step;
  std::vector<double> samples_us;
};

// In a directory of our own, by its descriptor: that in which it is made may be another user's, who
// could put a link in its place.
class TemporaryFiles {
 public:
  ~TemporaryFiles() {
    for (const std::string& name : names_) ::unlinkat(directory_.get(), name.c_str(), 0);
    if (!name_.empty()) ::unlinkat(parent_.get(), name_.c_str(), AT_REMOVEDIR);
  }
  Status make(const std::string& parent) {
    constexpr int kFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    parent_ = Descriptor(::open(parent.c_str(), kFlags));
    std::string path = link_to_descriptor(parent_.get()) + "/.pawl-bench-XXXXXX";
    struct stat made{};
    if (!parent_.valid() || ::mkdtemp(path.data()) == nullptr)
      return FailedCall{errno, "cannot make a directory in " + parent};
    name_ = name_in_directory(path);
    directory_ = Descriptor(::openat(parent_.get(), name_.c_str(), kFlags | O_NOFOLLOW));
    if (!directory_.valid() || ::fstat(directory_.get(), &made) != 0)
      return FailedCall{errno, "cannot open the new directory in " + parent};
    if (made.st_uid == ::geteuid()) return {};
    return Status::failure(EPERM, "the new directory in " + parent +
                                      " was replaced by another user's; measure in a directory "
                                      "that nobody else can write");
  }
  // A file of kFileBytes, every byte of it written and flushed.
  Result<Descriptor> file(const char* name, int flags) {
    Descriptor descriptor(
        ::openat(directory_.get(), name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!descriptor.valid()) return FailedCall{errno, std::string("cannot make the file ") + name};
    names_.emplace_back(name);
    names_.push_back(name + std::string(kJournalSuffix));
    const std::vector<char> piece(std::size_t{1} << 20, 'p');
    for (std::uint64_t offset = 0; offset < kFileBytes; offset += piece.size()) {
      if (::pwrite(descriptor.get(), piece.data(), piece.size(), static_cast<off_t>(offset)) !=
          static_cast<ssize_t>(piece.size())) {
        return FailedCall{errno, std::string("cannot write 64 MiB to the file ") + name};
      }
    }
    if (::fdatasync(descriptor.get()) != 0)
      return FailedCall{errno, std::string("cannot flush the file ") + name};
    if (flags == 0) return descriptor;
    Descriptor other(
        ::open(link_to_descriptor(descriptor.get()).c_str(), O_RDWR | O_CLOEXEC | flags));
    if (!other.valid()) return descriptor;  // no O_DIRECT here
    return other;
  }

 private:
  Descriptor parent_;
  std::string name_;  // of the directory, in the parent
  Descriptor directory_;
  std::vector<std::string> names_;
};

double percentile(std::vector<double>& sorted, double fraction) {
  if (sorted.empty()) return 0;
  const auto index = static_cast<std::size_t>(fraction * static_cast<double>(sorted.size() - 1));
  return sorted[index];
}

void dirty(char* memory, std::uint32_t pages, std::mt19937_64& random) {
  for (std::uint32_t i = 0; i < pages; ++i) {
    char* const page = memory + random() % kFilePages * kPageBytes;
    std::memset(page, static_cast<int>(random() & 0x7f), kChangedBytesPerPage);
  }
}

Status take_turns(std::vector<System>& systems, const BenchArguments& arguments,
                  Progress& progress) {
  const auto turn = std::chrono::duration<double>(static_cast<double>(arguments.seconds) / kTurns);
  const std::uint64_t turns = kTurns * systems.size();
  for (std::uint64_t i = 0; i < turns && stop_asked == 0; ++i) {
    progress.at(i, turns);
    System& system = systems[i % systems.size()];
    const auto start = std::chrono::steady_clock::now();
    auto before = start;
    do {
      PAWL_TRY(system.step());
      const auto after = std::chrono::steady_clock::now();
      system.samples_us.push_back(
          std::chrono::duration<double, std::micro>(after - before).count());
      before = after;
    } while (before - start < turn && stop_asked == 0 && system.samples_us.size() < kSamplesMax);
  }
  return {};
}

void report(std::vector<System>& systems, const BenchArguments& arguments) {
  Json rows = Json::array();
  if (!arguments.json) {
    fmt::print("{} of {} changed bytes a commit, in 64 MiB, in {}\n\n",
               count_text(arguments.pages, "page"), kChangedBytesPerPage, arguments.directory);
    fmt::print("{:<8} {:>12} {:>12} {:>12} {:>10}\n", "", "commits/s", "median us", "p99 us",
               "commits");
  }
  for (System& system : systems) {
    std::sort(system.samples_us.begin(), system.samples_us.end());
    double total_us = 0;
    for (const double sample : system.samples_us) total_us += sample;
    const auto count = system.samples_us.size();
    const double rate = total_us > 0 ? static_cast<double>(count) * 1e6 / total_us : 0;
    const double median_us = percentile(system.samples_us, 0.5);
    const double p99_us = percentile(system.samples_us, 0.99);
    if (arguments.json) {
      rows.push_back({{"system", system.name},
                      {"meaning", system.meaning},
                      {"commits", count},
                      {"commits_per_second", rate},
                      {"median_us", median_us},
                      {"p99_us", p99_us}});
    } else {
      fmt::print("{:<8} {:>12.0f} {:>12.1f} {:>12.1f} {:>10}   {}\n", system.name, rate, median_us,
                 p99_us, count, system.meaning);
    }
  }
  if (arguments.json) {
    print_json(Json{{"directory", arguments.directory},
                    {"pages", arguments.pages},
                    {"bytes_per_page", kChangedBytesPerPage},
                    {"seconds", arguments.seconds},
                    {"systems", rows}});
  }
}

struct Unmap {
  void operator()(char* memory) const { ::munmap(memory, kFileBytes); }
};
struct UnmapAtomic {
  void operator()(char* memory) const { ::pawl_munmap(memory, kFileBytes); }
};

Status from_pawl(const char* what) {
  const int error_number = errno;
  return Status::failure(error_number, std::string(what) + ": " + ::pawl_last_error());
}

Status measure(const BenchArguments& arguments, Progress& progress, std::vector<System>& systems) {
  TemporaryFiles files;
  PAWL_TRY(files.make(arguments.directory));
  Result<Descriptor> floor_file = files.file("floor", O_DIRECT);
  if (!floor_file.ok()) return floor_file.status();
  Result<Descriptor> plain_file = files.file("plain", 0);
  if (!plain_file.ok()) return plain_file.status();
  Result<Descriptor> pawl_file = files.file("pawl", 0);
  if (!pawl_file.ok()) return pawl_file.status();

  // The floor writes what Pawl's record of the same commit holds.
  const std::uint64_t record_bytes = journal::record_bytes(
      arguments.pages * journal::range_bytes(kChangedBytesPerPage), journal::kBlockBytes);
  const std::unique_ptr<char, decltype(&std::free)> record(
      static_cast<char*>(std::aligned_alloc(kPageBytes, record_bytes)), &std::free);
  if (record == nullptr) return Status::failure(ENOMEM, "no memory for a record");
  std::memset(record.get(), 'r', record_bytes);
  std::uint64_t position = 0;
  const int floor_descriptor = floor_file.value().get();

  std::mt19937_64 random(1);
  char* const plain = static_cast<char*>(
      ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, plain_file.value().get(), 0));
  if (plain == MAP_FAILED) return FailedCall{errno, "cannot map a file"};
  const std::unique_ptr<char, Unmap> plain_owner(plain);
  char* const atomic = static_cast<char*>(::pawl_mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE,
                                                      MAP_ATOMIC, pawl_file.value().get(), 0));
  if (atomic == MAP_FAILED) return from_pawl("cannot map a file atomically");
  const std::unique_ptr<char, UnmapAtomic> atomic_owner(atomic);

  systems.push_back(
      {"floor",
       "pwrite + fdatasync of the record's bytes alone",
       [&]() -> Status {
         if (position + record_bytes > kFileBytes) position = 0;
         const ssize_t written =
             ::pwrite(floor_descriptor, record.get(), record_bytes, static_cast<off_t>(position));
         if (written != static_cast<ssize_t>(record_bytes) || ::fdatasync(floor_descriptor) != 0) {
           return FailedCall{errno, "cannot write and flush"};
         }
         position += record_bytes;
         return Status{};
       },
       {}});
  systems.push_back({"msync",
                     "plain mmap + msync: not atomic",
                     [&]() -> Status {
                       dirty(plain, arguments.pages, random);
                       if (::msync(plain, kFileBytes, MS_SYNC) != 0) {
                         return FailedCall{errno, "msync failed"};
                       }
                       return Status{};
                     },
                     {}});
  systems.push_back({"pawl",
                     "pawl_mmap + pawl_msync: atomic",
                     [&] {
                       dirty(atomic, arguments.pages, random);
                       if (::pawl_msync(atomic, kFileBytes, MS_SYNC) != 0) {
                         return from_pawl("pawl_msync failed");
                       }
                       return Status{};
                     },
                     {}});
  return take_turns(systems, arguments, progress);
}

int bench(BenchArguments arguments) {
  std::array<char, PATH_MAX> real{};
  if (::realpath(arguments.directory.c_str(), real.data()) == nullptr) {
    complain("bench", FailedCall{errno, "cannot find " + arguments.directory}.text());
    return kExitFailure;
  }
  arguments.directory = real.data();
  // Asked to stop, it reports what it has and takes its files along.
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  std::vector<System> systems;
  const Status status = [&] {
    Progress progress("measuring");
    return measure(arguments, progress, systems);
  }();
  if (!status.ok()) {
    complain("bench", status.text());
    return kExitFailure;
  }
  report(systems, arguments);
  return kExitOk;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* verb = app.add_subcommand("bench", "Measure commits per second on a directory's disk");
  verb->add_option("--dir", arguments->directory, "Where to measure; needs 256 MiB for a while")
      ->capture_default_str();
  verb->add_option("--pages", arguments->pages, "Pages that each commit changes")
      ->check(CLI::Range(1u, kPagesMax))
      ->capture_default_str();
  verb->add_option("--seconds", arguments->seconds, "Seconds for each of the three systems")
      ->check(CLI::Range(1u, kSecondsMax))
      ->capture_default_str();
  verb->add_flag("--json", arguments->json, "Answer in JSON");
  verb->footer(
      "Example:\n  pawl bench --dir /srv/data --pages 16\n"
      "Compares plain msync and Pawl with the floor: what one write and one flush of the\n"
      "same bytes cost there.");
  verb->callback([arguments, &exit_code] { exit_code = bench(*arguments); });
}

}  // namespace pawl::cli
