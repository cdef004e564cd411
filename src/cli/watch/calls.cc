#include "cli/watch/calls.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <utility>

#include "cli/file_system.h"
#include "cli/program.h"
#include "cli/text.h"
#include "cli/watch/neighbours.h"
#include "cli/watch/other_processes.h"
#include "cli/watch/stores.h"
#include "medium/descriptor.h"
#include "medium/sections_file.h"
#include "pawl/pawl.h"
#include "tracing/process_memory.h"

namespace pawl::cli::watch {

namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kPrivateCopyBytesMax = std::uint64_t{1} << 30;  // the face copies no more
// Into such a journal a record of the whole file fits, with what it says of its pages.
constexpr std::uint64_t kJournalBytesPerFileByte = 2;
constexpr std::size_t kControlBytesMax = 65536;
constexpr std::size_t kTouchBytesMax = 64;
constexpr std::size_t kTouchesMax = 256;  // each has the file written out
constexpr int kMovesBlocks =
    FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE | FALLOC_FL_UNSHARE_RANGE;

int number(std::uint64_t argument) { return static_cast<int>(argument); }

// A directory's descriptor, and where the name lies.
using NameAt = std::pair<int, std::uint64_t>;

std::array<NameAt, 2> names_of_rename(const Call& call) {
  const auto& arguments = call.arguments;
  if (call.number == SYS_rename)
    return {NameAt{AT_FDCWD, arguments[0]}, NameAt{AT_FDCWD, arguments[1]}};
  return {NameAt{number(arguments[0]), arguments[1]}, NameAt{number(arguments[2]), arguments[3]}};
}

std::uint64_t page_end(std::uint64_t address) {
  return (address + kPageBytes - 1) / kPageBytes * kPageBytes;
}

std::string link_to(pid_t thread, const std::string& name) {
  return fmt::format("/proc/{}/{}", thread, name);
}

// As the process names a file that has this path here.
std::string name_within_root(pid_t process, const std::string& path) {
  const std::string root = target_of(link_to(process, "root"));
  return root.size() > 1 && path.starts_with(root + "/") ? path.substr(root.size()) : path;
}

}  // namespace

bool Calls::OpenFile::is_read_write() const {
  return (flags & O_PATH) == 0 && (flags & O_ACCMODE) == O_RDWR;
}
bool Calls::OpenFile::is_writable() const {
  return (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_RDONLY;
}
bool Calls::OpenFile::writes_durably() const { return (flags & O_DSYNC) != 0; }

// ------------------------------------------------------------------------------ processes

Calls::Process& Calls::process(pid_t number) {
  return processes_.try_emplace(number, libraries_).first->second;
}

// Of the place, and of Greenwich; it may be another one at the end.
void Calls::note_date() {
  const std::time_t now = std::time(nullptr);
  for (const auto& convert : {::localtime_r, ::gmtime_r}) {
    std::tm date{};
    if (convert(&now, &date) == nullptr) continue;
    for (const char* format : {"%Y%m%d", "%Y-%m-%d", "%Y_%m_%d", "%Y.%m.%d"}) {
      std::array<char, 16> text{};
      if (std::strftime(text.data(), text.size(), format, &date) > 0)
        facts_.dates.insert(text.data());
    }
  }
}

void Calls::process_began(pid_t number, pid_t parent) {
  if (facts_.processes == 0) note_date();
  facts_.processes += 1;
  if (facts_.process_numbers.size() < kProcessesMax)
    facts_.process_numbers.insert(std::to_string(number));
  if (processes_.size() >= kProcessesMax) {
    facts_.limits.insert(
        fmt::format("more than {} processes ran at a time: what some of them had mapped before "
                    "they were started is not known",
                    kProcessesMax));
    return;
  }
  const auto found = processes_.find(parent);
  if (parent == 0 || found == processes_.end()) {
    process(number);
    return;
  }
  Process child = found->second;
  child.inherits.insert(child.holds.begin(), child.holds.end());
  std::erase_if(child.inherits, [&](const FileKey& file) {
    return !holds_still(parent, found->second, file) &&
           !inherits_still(parent, found->second, file);
  });
  child.holds.clear();
  child.second_mappings.clear();
  child.lives.clear();
  child.opened.clear();
  child.last_synchronised.reset();
  child.inheritances.clear();
  for (const FileKey& file : child.inherits) write_out_for(child.inheritances[file], number, file);
  processes_.insert_or_assign(number, std::move(child));
}

void Calls::process_borrows_memory(pid_t number) {
  Process& child = process(number);
  child.windows.clear();
  child.second_mappings.clear();
  child.inherits.clear();
  child.inheritances.clear();
}

void Calls::process_executed(pid_t number) {
  Process& before = process(number);
  refuse_second_mappings(before);
  end_lives(before);
  for (const auto& [file, inheritance] : before.inheritances) {
    if (inheritance.is_touched) {
      see(file, Sight::inherited,
          fmt::format("process {} was forked while its parent had the file mapped, and used the "
                      "mapping before it executed a program",
                      number));
    }
  }
  Process fresh(libraries_);
  fresh.sandbox = before.sandbox;  // it stays in force
  fresh.executable = target_of(link_to(number, "exe"));
  // By the link, for in a root directory of its own the path is another file's or none's.
  const Preloadability preloadability = preloadability_of(link_to(number, "exe"), fresh.executable);
  const bool has_obstacle =
      preloadability.obstacle != Obstacle::none && preloadability.obstacle != Obstacle::cannot_look;
  if (has_obstacle) {
    fresh.obstacle_text = preloadability.status.text();
    fresh.obstacle =
        preloadability.obstacle == Obstacle::privileges ? Sight::privileges : Sight::no_preload;
    if (facts_.not_preloadable.size() < kExecutablesMax) {
      facts_.not_preloadable[fresh.executable] = fresh.obstacle_text;
    } else {
      facts_.limits.insert(
          fmt::format("more than {} programs cannot be preloaded into; the others are not named",
                      kExecutablesMax));
    }
  }
  fresh.environment = start_environment_of(number);
  fresh.root = root_directory_of(number, face_);
  processes_.insert_or_assign(number, std::move(fresh));
}

void Calls::process_dies(pid_t number, pid_t thread) {
  look_for_stores(process(number), thread, 0, ~std::uint64_t{0});
  look_at_inherited(number, thread, 0, ~std::uint64_t{0});
}

void Calls::process_ended(pid_t number) {
  const auto found = processes_.find(number);
  if (found == processes_.end()) return;
  refuse_second_mappings(found->second);
  end_lives(found->second);
  for (const Window& window : found->second.windows) {
    if (found->second.inherits.contains(window.file) && !is_untouched(found->second, window.file)) {
      see(window.file, Sight::inherited,
          fmt::format("process {} was forked while its parent had the file mapped, and kept the "
                      "mapping until it ended",
                      number));
    }
  }
  processes_.erase(found);
}

bool Calls::holds_still(pid_t number, Process& process, const FileKey& file, int besides) {
  if (!process.holds.contains(file)) return false;
  for (const Window& window : process.windows) {
    if (window.file == file) return true;
  }
  for (const int descriptor : descriptors_of(number, file)) {
    if (descriptor != besides) return true;
  }
  process.holds.erase(file);
  return false;
}

std::vector<FileKey> Calls::still_held(pid_t number, Process& process) {
  std::vector<FileKey> held(process.holds.begin(), process.holds.end());
  std::erase_if(held, [&](const FileKey& file) { return !holds_still(number, process, file); });
  return held;
}

// What a child inherited it has until it let go of all of it; descriptors that it opened later do
// not bring it back.
bool Calls::inherits_still(pid_t number, Process& process, const FileKey& file) {
  if (!process.inherits.contains(file)) return false;
  for (const Window& window : process.windows) {
    if (window.file == file) return true;
  }
  for (const int descriptor : descriptors_of(number, file)) {
    const auto own = process.opened.find(descriptor);
    if (own == process.opened.end() || own->second.file != file) return true;
  }
  process.inherits.erase(file);
  return false;
}

pid_t Calls::other_holder(pid_t number, const FileKey& file) {
  for (auto& [other, state] : processes_) {
    if (other != number && holds_still(other, state, file)) return other;
  }
  return 0;
}

// ------------------------------------------------------------------------------ helpers

void Calls::see(const FileKey& file, Sight sight, const std::string& example) {
  if (!is_known(file)) return;
  once_done([this, file, sight, example] {
    Seen& seen = facts_.files[file].seen[sight];
    if (seen.count++ == 0) seen.example = example;
  });
}

void Calls::see_also_if_unsupported(const FileKey& file, Sight sight, const std::string& example) {
  see(file, sight, example);
  entering_->if_failed.push_back([this, file, sight, example](int error_number) {
    if (error_number == EOPNOTSUPP) see(file, sight, example);
  });
}

void Calls::once_done(std::function<void()> effect) {
  if (entering_ == nullptr) return effect();
  entering_->once_done.push_back(std::move(effect));
}

std::string Calls::said_of(const Call& call, const std::string& what) const {
  return fmt::format("{} by process {}", what, process_text(call.process));
}

std::optional<Calls::OpenFile> Calls::open_file(pid_t thread, int descriptor, Kind kind) const {
  struct stat status{};
  if (descriptor < 0 ||
      ::stat(link_to(thread, fmt::format("fd/{}", descriptor)).c_str(), &status) != 0 ||
      (kind == Kind::regular && !S_ISREG(status.st_mode))) {
    return std::nullopt;
  }
  OpenFile open{{status.st_dev, status.st_ino},
                static_cast<std::uint64_t>(status.st_size),
                status.st_nlink,
                S_ISREG(status.st_mode)};
  std::ifstream file(link_to(thread, fmt::format("fdinfo/{}", descriptor)));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("flags:"))
      open.flags = static_cast<int>(std::strtol(line.c_str() + 6, nullptr, 8));
  }
  return open;
}

std::string Calls::path_of(const Call& call, int directory, std::uint64_t path) {
  const std::optional<std::string> name = tracing::read_path(call.thread, path);
  if (!name || name->empty()) return {};
  const std::string start = name->front() == '/'    ? "root"
                            : directory == AT_FDCWD ? "cwd"
                                                    : fmt::format("fd/{}", directory);
  return link_to(call.thread, start) + "/" + *name;
}

std::optional<FileKey> Calls::known_file_at(const Call& call, int directory, std::uint64_t path,
                                            bool follow, std::uint64_t* links) const {
  if (facts_.files.empty()) return std::nullopt;
  const std::string whole = path_of(call, directory, path);
  if (whole.empty()) return std::nullopt;
  struct stat status{};
  if ((follow ? ::stat(whole.c_str(), &status) : ::lstat(whole.c_str(), &status)) != 0)
    return std::nullopt;
  const FileKey key{status.st_dev, status.st_ino};
  if (!is_known(key)) return std::nullopt;
  if (links != nullptr) *links = status.st_nlink;
  return key;
}

void Calls::judge_origin(const Call& call, const FileKey& file, const std::string& what) {
  switch (process(call.process).code.origin_of(call)) {
    case Origin::function:
      return;
    case Origin::raw:
      return see(file, Sight::raw_call, said_of(call, what));
    case Origin::stream:
      return see(file, Sight::stream_write, said_of(call, what));
    case Origin::inside_libc:
      return see(file, Sight::inside_libc, said_of(call, what));
  }
}

bool Calls::is_by_holder(const Call& call, const FileKey& file, const std::string& what,
                         Effect effect) {
  Process& caller = process(call.process);
  if (holds_still(call.process, caller, file)) {
    judge_origin(call, file, what);
    return true;
  }
  if (inherits_still(call.process, caller, file)) {
    see(file, Sight::forked_child, said_of(call, what));
  } else if (const pid_t holder = effect == Effect::changes ? other_holder(call.process, file) : 0;
             holder != 0) {
    see(file, Sight::other_process,
        fmt::format("{}, while process {} had it mapped", said_of(call, what),
                    process_text(holder)));
  }
  return false;
}

void Calls::note_changed(const FileKey& file, const char* name) {
  once_done([this, file, name] {
    FileFacts& facts = facts_.files[file];
    facts.changes[name] += 1;
    facts.latest.behind += 1;
  });
}

void Calls::holder_let_go(FileFacts& facts) {
  if (facts.latest.behind > facts.furthest.behind) facts.furthest = facts.latest;
  facts.latest = {};
}

void Calls::note_synchronised(const Call& call, const FileKey& file, const char* name,
                              std::optional<LeftOut::Range> range) {
  if (!is_by_holder(call, file, name, Effect::synchronises)) return;
  // Those calls synchronise all files at once.
  const bool is_alone = name != kSync && name != kSyncfs;
  once_done([this, number = call.process, thread = call.thread, file, name, range,
             behind = is_alone ? files_behind(call, file) : std::set<FileKey>(),
             began = std::chrono::steady_clock::now()] {
    FileFacts& facts = facts_.files[file];
    facts.synchronisations[name] += 1;
    facts.asynchronous_in_a_row = name == kAsynchronous ? facts.asynchronous_in_a_row + 1 : 0;
    facts.asynchronous_in_a_row_max =
        std::max(facts.asynchronous_in_a_row_max, facts.asynchronous_in_a_row);
    facts.latest.synchronised += std::exchange(facts.latest.behind, 0);
    Process& caller = process(number);
    Life& life = caller.lives[file];
    note_synchronised_life(life, began);
    // The kernel writes out later, or the bytes of one call alone.
    life.has_shown_all = name != kAsynchronous && name != kDurableWrite;
    if (range) {
      note_range(caller, thread, file, life, *range);
    } else {
      life.left_out.all_synchronised();
    }
    for (Window& window : caller.windows) {
      if (window.file == file) window.is_synchronised = true;
    }
    note_in_one_go(caller, file);
    note_ahead(caller, file, behind);
  });
}

void Calls::note_range(const Process& caller, pid_t thread, const FileKey& file, Life& life,
                       LeftOut::Range range) {
  std::vector<LeftOut::Range> mapped;
  for (const Window& window : caller.windows) {
    if (window.file == file && !window.is_read_only) mapped.push_back({window.begin, window.end});
  }
  life.left_out.range_synchronised(thread, range, mapped);
}

void Calls::note_synchronised_life(Life& life, std::chrono::steady_clock::time_point began) {
  if (life.synchronisations++ > 0) life.waited += life.synchronised - life.began;
  life.began = began;
  life.synchronised = std::chrono::steady_clock::now();
  life.writes_after = 0;
  life.has_stores_after = false;
  life.others_synchronised.clear();
  if (life.behind_since)
    life.longest_behind = std::max(life.longest_behind, began - *life.behind_since);
  life.behind_since.reset();
  life.looks = {};
}

void Calls::note_ahead(Process& caller, const FileKey& file, const std::set<FileKey>& behind) {
  for (const FileKey& other : behind) {
    const auto life = caller.lives.find(other);
    if (life == caller.lives.end()) continue;
    const std::uint64_t count = ++life->second.others_synchronised[file];
    const auto pair = std::pair(other, file);
    if (facts_.synchronised_ahead.contains(pair) || facts_.synchronised_ahead.size() < kPairsMax) {
      std::uint64_t& most = facts_.synchronised_ahead[pair];
      most = std::max(most, count);
    } else {
      facts_.limits.insert(fmt::format(
          "more than {} pairs of files are synchronised at different times; the others are not "
          "named",
          kPairsMax));
    }
  }
}

void Calls::note_in_one_go(Process& caller, const FileKey& file) {
  if (caller.last_synchronised && *caller.last_synchronised != file) {
    const auto pair = std::pair(*caller.last_synchronised, file);
    if (facts_.in_one_go.contains(pair) || facts_.in_one_go.size() < kPairsMax) {
      facts_.in_one_go[pair] += 1;
    } else {
      facts_.limits.insert(fmt::format(
          "more than {} pairs of files are synchronised together; the others are not named",
          kPairsMax));
    }
  }
  caller.last_synchronised = file;
}

void Calls::look_for_outsiders(const std::set<FileKey>& files) {
  if (scans_ == kScansMax) {
    facts_.limits.insert(fmt::format(
        "other processes were looked for {} times and then only at the end", kScansMax));
    return;
  }
  scans_ += 1;
  std::set<pid_t> known;
  for (const auto& [number, state] : processes_) known.insert(number);
  Scan scan = find_holders(files, known);
  for (const Holder& holder : scan.holders) see(holder.file, Sight::outsider, holder.text);
  facts_.limits.merge(scan.limits);
}

// ------------------------------------------------------------------------------ memory

Wants Calls::map_entered(const Call& call) {
  Process& caller = process(call.process);
  const int protection = number(call.arguments[2]);
  const int flags = number(call.arguments[3]);
  if ((protection & PROT_EXEC) != 0) {
    caller.code.forget();
    once_done([this, call] { process(call.process).code.code_mapped(call.thread); });
    const std::string library =
        target_of(link_to(call.thread, fmt::format("fd/{}", number(call.arguments[4]))));
    const std::string name = library.substr(library.rfind('/') + 1);
    if (name.starts_with("libpawl.so")) once_done([this] { facts_.has_libpawl = true; });
    if (name.starts_with("libasan.so")) {
      once_done([this, library, number = call.process] {
        Process& loading = process(number);
        loading.obstacle = Sight::sanitizer;
        loading.obstacle_text = loading.executable + " has " + library + " loaded";
      });
    }
  }
  if ((flags & MAP_FIXED) != 0 && !caller.windows.empty()) {
    const std::uint64_t begin = call.arguments[0];
    const std::uint64_t end = page_end(begin + call.arguments[1]);
    for (const Window& window : caller.windows) {
      if (window.is_read_only || begin >= window.end || end <= window.begin) continue;
      if (begin > window.begin || end < window.end) {
        see(window.file, Sight::fixed_over_part, said_of(call, "mmap with MAP_FIXED"));
      }
    }
    once_done([this, call, begin, end] { unmapped(call, begin, end); });
  }
  if ((flags & MAP_ANONYMOUS) != 0) return Wants::nothing;
  const bool asks_for_pawl = (flags & MAP_ATOMIC) == MAP_ATOMIC;
  if ((flags & MAP_TYPE) == MAP_PRIVATE) {
    const auto open = open_file(call.thread, number(call.arguments[4]));
    if (open && call.arguments[1] > kPrivateCopyBytesMax &&
        holds_still(call.process, caller, open->key)) {
      see(open->key, Sight::large_private, said_of(call, "mmap"));
    }
    return Wants::nothing;
  }
  if (asks_for_pawl) {
    // A kernel without Pawl refuses the mapping, and nothing more is seen of the file.
    const auto open = open_file(call.thread, number(call.arguments[4]));
    FileFacts* const facts = open ? facts_of_new(call, *open, number(call.arguments[4])) : nullptr;
    if (facts != nullptr) facts->asks_for_pawl = true;
  }
  return Wants::result;
}

FileFacts* Calls::facts_of_new(const Call& call, const OpenFile& open, int descriptor) {
  const std::string path = target_of(link_to(call.thread, fmt::format("fd/{}", descriptor)));
  const auto found = facts_.files.find(open.key);
  if (found != facts_.files.end()) {
    if (open.links > 0) add_name(found->second, name_within_root(call.process, path));
    return &found->second;
  }
  const std::string name = name_within_root(call.process, path);
  // A file without a name does not survive a crash: the face leaves it to the kernel.
  if (open.links == 0 || !path.starts_with('/') || !globs_.match(name)) return nullptr;
  if (facts_.files.size() == kFilesMax) {
    facts_.limits.insert(
        fmt::format("more than {} files are mapped; the others are not judged. Name those that "
                    "matter with --atomic",
                    kFilesMax));
    return nullptr;
  }
  FileFacts& facts = facts_.files[open.key];
  facts_.order.push_back(open.key);
  facts.path = path;
  facts.names = {name};
  facts.first_size_bytes = open.size_bytes;
  // Now, for the directory may go before the program does.
  Result<FileSystemFacts> directory = look_at_directory(path.substr(0, path.rfind('/') + 1));
  if (directory.ok()) {
    facts.can_create = directory.value().can_create;
    facts.directory = examine_directory(directory.value());
  }
  return &facts;
}

void Calls::add_name(FileFacts& facts, const std::string& name) {
  std::erase(facts.names, name);
  if (facts.names.size() < kNamesMax) return facts.names.push_back(name);
  facts_.limits.insert(
      fmt::format("a file had more than {} names; the others are not named", kNamesMax));
}

// Whether the preload library would be loaded in the process.
void Calls::judge_start(const Call& call, const FileKey& file) {
  const Process& caller = process(call.process);
  const std::string text = process_text(call.process);
  if (!caller.obstacle_text.empty()) return see(file, caller.obstacle, caller.obstacle_text);
  if (!caller.environment.has_variables) {
    see(file, Sight::environment,
        fmt::format("process {} was started with an environment without the variables that "
                    "'pawl run' sets",
                    text));
  } else if (!caller.environment.has_preload) {
    see(file, Sight::own_preload,
        fmt::format("process {} was started with an LD_PRELOAD of its own, or without it", text));
  }
  // The library is loaded when the program starts; /proc is needed when it maps.
  if (!caller.root.has_library || !has_proc(call.process)) {
    see(file, Sight::other_root,
        fmt::format("process {} has a root directory without {}", text,
                    caller.root.has_library ? "/proc" : face_));
  } else if (caller.root.has_other_libraries) {
    see(file, Sight::other_libraries,
        fmt::format("process {} has a root directory with other libraries", text));
  }
}

void Calls::add_holder(const Call& call, const OpenFile& open, FileFacts& facts) {
  Process& caller = process(call.process);
  if (inherits_still(call.process, caller, open.key)) {
    see(open.key, Sight::forked_child, said_of(call, "mmap"));
  } else if (const pid_t holder = other_holder(call.process, open.key); holder != 0) {
    see(open.key, Sight::second_process,
        fmt::format("process {} mapped it while process {} had it", process_text(call.process),
                    process_text(holder)));
  }
  for (const int descriptor : descriptors_of(call.process, open.key)) {
    const auto own = caller.opened.find(descriptor);
    const bool is_own = own != caller.opened.end() && own->second.file == open.key;
    // What has a standard number and was not opened here was there when the program began.
    const bool is_standard = !is_own && descriptor <= STDERR_FILENO;
    if (is_standard || (is_own && own->second.is_stream)) {
      see(open.key, Sight::stream_open, said_of(call, "mmap, while it is open as a stream,"));
    }
  }
  judge_start(call, open.key);
  caller.holds.insert(open.key);
  holder_let_go(facts);
  life_ended(caller, open.key);
  Life& life = caller.lives[open.key];
  life.shows_stores = write_out(call.process, number(call.arguments[4]));
  life.has_shown_all = true;
  life.follows_unlocking = facts.unlockings > 0;
  see_sandbox(caller, open.key);
  count_descriptors(call);
  count_journals(call, open.key);
  if (facts.programs.size() < kProgramsMax) {
    facts.programs.insert(caller.executable);
  } else if (!facts.programs.contains(caller.executable)) {
    facts_.limits.insert(
        fmt::format("more than {} programs map one file; the others are not named", kProgramsMax));
  }
  look_for_outsiders({open.key});
}

void Calls::mapped(const Call& call, std::uint64_t address) {
  Process& caller = process(call.process);
  const int flags = number(call.arguments[3]);
  if ((flags & MAP_ANONYMOUS) != 0 || (flags & MAP_TYPE) == MAP_PRIVATE) return;
  const int descriptor = number(call.arguments[4]);
  const auto open = open_file(call.thread, descriptor);
  if (!open) return;
  const bool holds = holds_still(call.process, caller, open->key);
  if (!open->is_read_write() && !is_known(open->key)) {
    // It may be mapped for writing later; then this one would not show what is committed.
    if (caller.windows.size() < kWindowsMax) {
      caller.windows.push_back(
          {open->key, address, page_end(address + call.arguments[1]), true, true, ++serial_});
    }
    return;
  }
  const Origin origin = caller.code.origin_of(call);
  if (origin == Origin::inside_libc || origin == Origin::stream) return;  // sem_open(3) and its kin
  FileFacts* const facts = open->is_read_write() || is_known(open->key)
                               ? facts_of_new(call, *open, descriptor)
                               : nullptr;
  if (facts == nullptr) return;
  if (const Descriptor file(::open(link_to(call.thread, fmt::format("fd/{}", descriptor)).c_str(),
                                   O_RDONLY | O_CLOEXEC | O_NONBLOCK));
      file.valid() && has_sections(file.get())) {
    facts->has_sections = true;
    facts->mappings += 1;
    facts->longest_mapping_bytes = std::max(facts->longest_mapping_bytes, call.arguments[1]);
    facts->last_size_bytes = open->size_bytes;
    facts->is_mapped_writable = true;
    return;
  }
  const bool has_window = std::ranges::any_of(
      caller.windows, [&](const Window& window) { return window.file == open->key; });
  if (!open->is_read_write()) {
    if (holds) {
      see(open->key, Sight::second_mapping, said_of(call, "mmap for reading only"));
    } else if (inherits_still(call.process, caller, open->key) ||
               other_holder(call.process, open->key) != 0) {
      see(open->key, Sight::reader, said_of(call, "mmap for reading"));
    }
  } else {
    if (has_window && !inherits_still(call.process, caller, open->key)) {
      caller.second_mappings.push_back({open->key, call.thread, serial_,
                                        std::chrono::steady_clock::now(), said_of(call, "mmap")});
    }
    if (origin == Origin::raw) see(open->key, Sight::raw_call, said_of(call, "mmap"));
    if (!holds) add_holder(call, *open, *facts);
    if (!holds) caller.lives[open->key].mapped = std::chrono::steady_clock::now();
    facts->mappings += 1;
    facts->longest_mapping_bytes = std::max(facts->longest_mapping_bytes, call.arguments[1]);
    facts->last_size_bytes = open->size_bytes;
    if ((number(call.arguments[2]) & PROT_WRITE) != 0) facts->is_mapped_writable = true;
  }
  if (caller.windows.size() == kWindowsMax) {
    facts_.limits.insert(fmt::format(
        "a process has more than {} mappings of files; the others are not followed", kWindowsMax));
    return;
  }
  caller.windows.push_back({open->key, address, page_end(address + call.arguments[1]),
                            !open->is_read_write(), false, ++serial_});
}

void Calls::unmapped(const Call& call, std::uint64_t begin, std::uint64_t end) {
  Process& caller = process(call.process);
  std::vector<Window> left;
  for (const Window& window : caller.windows) {
    if (begin >= window.end || end <= window.begin) {
      left.push_back(window);
      continue;
    }
    if (caller.inherits.contains(window.file)) {
      if (!is_untouched(caller, window.file)) {
        see(window.file, Sight::inherited,
            "a process was forked while its parent had the file mapped, used it and unmapped it");
      }
    } else if (!window.is_synchronised && !window.is_read_only) {
      see(window.file, Sight::unmapped_unsynchronised, "munmap");
    }
    if (const auto life = caller.lives.find(window.file); life != caller.lives.end()) {
      life->second.let_go = std::chrono::steady_clock::now();
      life->second.left_out.moved();
    }
    if (window.begin < begin) {
      left.push_back(window);
      left.back().end = begin;
    }
    if (end < window.end) {
      left.push_back(window);
      left.back().begin = end;
    }
  }
  caller.windows = std::move(left);
  judge_second_mappings(caller, call.thread);
}

void Calls::look_for_stores(Process& process, pid_t thread, std::uint64_t begin,
                            std::uint64_t end) {
  for (const Window& window : process.windows) {
    const auto life = process.lives.find(window.file);
    if (begin >= window.end || end <= window.begin || !can_show_stores(process, window)) continue;
    if (looks_for_stores_ == kLooksForStoresMax) {
      facts_.limits.insert(
          fmt::format("whether stores came after the last synchronisation was looked at {} times",
                      kLooksForStoresMax));
      return;
    }
    looks_for_stores_ += 1;
    life->second.has_stores_after = pages_of(thread, window.begin, window.end).marked_bytes > 0;
  }
}

bool Calls::can_show_stores(const Process& process, const Window& window) {
  const auto life = process.lives.find(window.file);
  return !window.is_read_only && life != process.lives.end() && life->second.shows_stores &&
         life->second.has_shown_all && !life->second.has_stores_after;
}

std::set<FileKey> Calls::files_behind(const Call& call, const FileKey& besides) {
  Process& caller = process(call.process);
  std::set<FileKey> behind;
  for (auto& [file, life] : caller.lives) {
    if (file == besides) continue;
    for (const Window& window : caller.windows) {
      if (window.file == file && !life.is_behind() && can_show_stores(caller, window))
        look_meanwhile(window, life, call.thread);
    }
    // What it let go of altogether is committed.
    if (!life.is_behind() || !holds_still(call.process, caller, file)) continue;
    if (!life.behind_since) life.behind_since = std::chrono::steady_clock::now();
    behind.insert(file);
  }
  return behind;
}

void Calls::look_meanwhile(const Window& window, Life& life, pid_t thread) {
  const auto began = std::chrono::steady_clock::now();
  if (looks_meanwhile_ >= kLooksMeanwhile && began < next_look_meanwhile_) return;
  looks_meanwhile_ += 1;
  life.has_stores_after = pages_of(thread, window.begin, window.end).marked_bytes > 0;
  const auto ended = std::chrono::steady_clock::now();
  next_look_meanwhile_ = ended + kLooksMeanwhilePart * (ended - began);
}

bool Calls::Waits::is_over() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next) return false;
  wait *= 2;
  next = now + wait;
  return true;
}

void Calls::time_passed() {
  for (auto& [number, state] : processes_) {
    for (const Window& window : state.windows) {
      if (const auto child = state.inheritances.find(window.file);
          child != state.inheritances.end() && child->second.looks.is_over()) {
        look_at_inherited(number, number, window, child->second);
        // When a parent has forked it faults; later it may be at rest.
        if (const pid_t holder = other_holder(number, window.file); holder != 0)
          child->second.faults = faults_of(holder);
        write_out_for(child->second, number, window.file);
      }
      const auto life = state.lives.find(window.file);
      if (life == state.lives.end() || life->second.behind_since || !life->second.looks.is_over()) {
        continue;
      }
      if (can_show_stores(state, window))
        life->second.has_stores_after = pages_of(number, window.begin, window.end).marked_bytes > 0;
      if (life->second.is_behind()) life->second.behind_since = std::chrono::steady_clock::now();
    }
  }
}

void Calls::look_at_inherited(pid_t number, pid_t thread, std::uint64_t begin, std::uint64_t end) {
  Process& child = process(number);
  for (const Window& window : child.windows) {
    const auto inheritance = child.inheritances.find(window.file);
    if (inheritance != child.inheritances.end() && begin < window.end && window.begin < end)
      look_at_inherited(number, thread, window, inheritance->second);
  }
}

void Calls::look_at_inherited(pid_t number, pid_t thread, const Window& window,
                              Inheritance& inheritance) {
  if (inheritance.is_stored_to) return;
  if (looks_at_children_ == kLooksAtChildrenMax) {
    facts_.limits.insert(
        fmt::format("whether forked children store into what they inherited was looked at {} times",
                    kLooksAtChildrenMax));
    return;
  }
  looks_at_children_ += 1;
  const Pages pages = pages_of(thread, window.begin, window.end);
  inheritance.is_looked_at = true;
  inheritance.is_touched = inheritance.is_touched || pages.present_bytes > 0;
  const pid_t holder = other_holder(number, window.file);
  if (pages.marked_bytes == 0 || holder == 0 || !is_at_rest(holder, window.file, inheritance))
    return;
  inheritance.is_stored_to = true;
  see(window.file, Sight::child_stores, fmt::format("process {}", process_text(number)));
}

// The page tables of the two are their own, and the marks are the file's.
bool Calls::is_at_rest(pid_t holder, const FileKey& file, const Inheritance& inheritance) {
  if (!inheritance.is_written_out || sum_of(facts_.files[file].changes) != inheritance.changes)
    return false;
  if (inheritance.faults && faults_of(holder) == *inheritance.faults) return true;
  bool has_window = false;
  for (const Window& window : process(holder).windows) {
    if (window.file != file) continue;
    has_window = true;
    if (pages_of(holder, window.begin, window.end).present_bytes > 0) return false;
  }
  return has_window;
}

void Calls::write_out_for(Inheritance& inheritance, pid_t child, const FileKey& file) {
  const pid_t holder = other_holder(child, file);
  if (holder == 0 || looks_at_children_ == kLooksAtChildrenMax) return;
  looks_at_children_ += 1;
  // Its own marks go with it.
  look_for_stores(process(holder), holder, 0, ~std::uint64_t{0});
  const FileFacts& facts = facts_.files[file];
  inheritance.changes = sum_of(facts.changes);
  inheritance.is_written_out = write_out(facts.path, file);
}

bool Calls::is_untouched(const Process& process, const FileKey& file) {
  const auto inheritance = process.inheritances.find(file);
  return inheritance != process.inheritances.end() && inheritance->second.is_looked_at &&
         !inheritance->second.is_touched;
}

void Calls::life_ended(Process& process, const FileKey& file) {
  const auto found = process.lives.find(file);
  if (found == process.lives.end()) return;
  const Life life = std::move(found->second);
  process.lives.erase(found);
  const bool has_window = std::ranges::any_of(
      process.windows, [&](const Window& window) { return window.file == file; });
  const auto let_go = has_window ? std::chrono::steady_clock::now() : life.let_go;
  const bool has_any = life.synchronisations > 0;
  const auto last = has_any ? life.synchronised : life.mapped;
  const auto milliseconds_between = [](auto from, auto to) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(to - from);
  };
  const Holding holding{life.synchronisations,
                        has_any ? milliseconds_between(life.mapped + life.waited, life.began)
                                : std::chrono::milliseconds(0),
                        milliseconds_between(last, std::max(last, let_go)),
                        life.writes_after,
                        life.has_stores_after,
                        std::chrono::duration_cast<std::chrono::milliseconds>(life.longest_behind),
                        milliseconds_between(life.mapped, std::max(last, let_go)),
                        life.follows_unlocking};
  FileFacts& facts = facts_.files[file];
  facts.pages_left_out = std::max(facts.pages_left_out, life.left_out.pages());
  auto& holdings = facts.holdings;
  if (holdings.size() < kHoldingsMax) return holdings.push_back(holding);
  const auto shortest = std::ranges::min_element(holdings, {}, &Holding::after);
  if (shortest->after < holding.after) *shortest = holding;
}

void Calls::end_lives(Process& process) {
  while (!process.lives.empty()) life_ended(process, FileKey(process.lives.begin()->first));
}

// At its entry: another thread may get the addresses before it returns.
void Calls::unmapped_by_call(const Call& call) {
  const std::uint64_t begin = call.arguments[0];
  if (begin % kPageBytes != 0 || call.arguments[1] == 0) return;  // EINVAL
  const std::uint64_t end = page_end(begin + call.arguments[1]);
  look_for_stores(process(call.process), call.thread, begin, end);
  look_at_inherited(call.process, call.thread, begin, end);
  unmapped(call, begin, end);
}

void Calls::judge_second_mappings(Process& process, pid_t thread) {
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(process.second_mappings, [&](const SecondMapping& second) {
    const bool is_first_there = std::ranges::any_of(process.windows, [&](const Window& window) {
      return window.file == second.file && window.serial <= second.serial;
    });
    if (is_first_there) return false;
    // Pawl waits in the thread that maps.
    const bool is_awaited = thread != second.thread && now - second.made <= kLateUnmappingMax;
    see(second.file, is_awaited ? Sight::late_unmapping : Sight::second_mapping, second.example);
    return true;
  });
}

void Calls::refuse_second_mappings(Process& process) {
  for (const SecondMapping& second : process.second_mappings)
    see(second.file, Sight::second_mapping, second.example);
  process.second_mappings.clear();
}

// ------------------------------------------------------------------------------ resources

void Calls::sandboxed(const Call& call) {
  const auto verdict = judge_sandbox_of(call);
  if (!verdict) return;
  once_done([this, number = call.process, sandbox = *verdict] {
    Process& caller = process(number);
    // Filters add up; the first that breaks something is named.
    if (caller.sandbox.breaks.empty()) caller.sandbox.breaks = sandbox.breaks;
    if (caller.sandbox.may_break.empty()) caller.sandbox.may_break = sandbox.may_break;
    for (const FileKey& file : still_held(number, caller)) see_sandbox(caller, file);
  });
}

void Calls::see_sandbox(const Process& process, const FileKey& file) {
  if (!process.sandbox.breaks.empty()) {
    see(file, Sight::sandbox, "it forbids " + process.sandbox.breaks);
  } else if (!process.sandbox.may_break.empty()) {
    see(file, Sight::sandbox_may, "it may forbid " + process.sandbox.may_break);
  }
}

// With those that Pawl would have.
void Calls::count_descriptors(const Call& call) {
  Process& caller = process(call.process);
  const std::uint64_t files = still_held(call.process, caller).size();
  rlimit limit{};
  if (files == 0 || ::prlimit(call.process, RLIMIT_NOFILE, nullptr, &limit) != 0) return;
  const std::uint64_t own = count_descriptors_of(call.process);
  if (own + files * kDescriptorsPerFile <= limit.rlim_cur) return;
  for (const FileKey& file : caller.holds) {
    see(file, Sight::descriptors,
        fmt::format("process {} has {} and maps {}: {} with those of Pawl, and RLIMIT_NOFILE is {}",
                    process_text(call.process), count_text(own, "descriptor"),
                    count_text(files, "file"), own + files * kDescriptorsPerFile, limit.rlim_cur));
  }
}

// Of all that are mapped on the file's file system at this moment, as they are made: they grow only
// where there is room.
void Calls::count_journals(const Call& call, const FileKey& file) {
  const std::string link = link_to(call.thread, fmt::format("fd/{}", number(call.arguments[4])));
  struct stat mapped{};
  struct statvfs space{};
  if (::stat(link.c_str(), &mapped) != 0) return;
  see_size_limit(call, file, static_cast<std::uint64_t>(mapped.st_size));
  if (::statvfs(link.c_str(), &space) != 0 || space.f_blocks == 0) return;
  journal_bytes_[file] = options_.first_journal_bytes(static_cast<std::uint64_t>(mapped.st_size));
  std::uint64_t files = 0;
  std::uint64_t wanted = 0;
  for (auto& [holder, state] : processes_) {
    for (const FileKey& other : std::set<FileKey>(state.holds)) {
      if (other.device != file.device || !holds_still(holder, state, other)) continue;
      files += 1;
      wanted += journal_bytes_[other];
    }
  }
  const std::uint64_t free = std::uint64_t{space.f_bavail} * space.f_frsize;
  if (wanted <= free) return;
  see(file, Sight::journal_space,
      fmt::format("{} mapped there at once take {} for their journals, and {} are free",
                  count_text(files, "file"), size_text(wanted), size_text(free)));
}

// How much is changed between two synchronisations is not known; all of the file at most.
void Calls::see_size_limit(const Call& call, const FileKey& file, std::uint64_t file_bytes) {
  rlimit limit{};
  if (::prlimit(call.process, RLIMIT_FSIZE, nullptr, &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY)
    return;
  const std::uint64_t first = options_.first_journal_bytes(file_bytes);
  const std::string seen =
      fmt::format("process {} has a limit of {}, the file has {}, and its journal begins with {}",
                  process_text(call.process), size_text(limit.rlim_cur), size_text(file_bytes),
                  size_text(first));
  if (limit.rlim_cur < first) {
    see(file, Sight::size_limit, seen);
  } else if (limit.rlim_cur / kJournalBytesPerFileByte < file_bytes) {
    see(file, Sight::size_limit_may, seen);
  }
}

Wants Calls::remap_entered(const Call& call) {
  Process& caller = process(call.process);
  const std::uint64_t begin = call.arguments[0];
  const std::uint64_t end = page_end(begin + std::max<std::uint64_t>(call.arguments[1], 1));
  for (const Window& window : caller.windows) {
    if (begin >= window.end || end <= window.begin || window.is_read_only) continue;
    if (begin != window.begin || end != window.end ||
        (number(call.arguments[3]) & ~(MREMAP_MAYMOVE | MREMAP_FIXED)) != 0) {
      see(window.file, Sight::remap_part, said_of(call, "mremap"));
    }
    return Wants::result;
  }
  return Wants::nothing;
}

void Calls::remapped(const Call& call, std::uint64_t address) {
  Process& caller = process(call.process);
  for (Window& window : caller.windows) {
    if (window.begin != call.arguments[0]) continue;
    if (is_by_holder(call, window.file, "mremap")) {
      FileFacts& facts = facts_.files[window.file];
      note_changed(window.file, "mremap");
      facts.longest_mapping_bytes = std::max(facts.longest_mapping_bytes, call.arguments[2]);
    }
    window.begin = address;
    window.end = page_end(address + call.arguments[2]);
    if (const auto life = caller.lives.find(window.file); life != caller.lives.end())
      life->second.left_out.moved();
    return;
  }
}

void Calls::window_refused(const Call& call, Sight sight, const char* name) {
  const std::uint64_t begin = call.arguments[0];
  const std::uint64_t end = page_end(begin + call.arguments[1]);
  for (const Window& window : process(call.process).windows) {
    if (begin < window.end && window.begin < end) see(window.file, sight, said_of(call, name));
  }
}

void Calls::range_synchronised(const Call& call) {
  constexpr int kBoth = MS_SYNC | MS_ASYNC;
  const int flags = number(call.arguments[2]);
  if ((flags & kBoth) == 0) return;
  const std::uint64_t begin = call.arguments[0];
  const std::uint64_t end = page_end(begin + call.arguments[1]);
  const char* const why = begin % kPageBytes != 0    ? "its address is not on a page boundary"
                          : (flags & kBoth) == kBoth ? "MS_SYNC and MS_ASYNC exclude each other"
                          : (flags & ~(kBoth | MS_INVALIDATE)) != 0 ? "its flags are unknown"
                                                                    : "";
  std::set<FileKey> files;
  for (const Window& window : process(call.process).windows) {
    if (begin < window.end && window.begin < end && !window.is_read_only) files.insert(window.file);
  }
  for (const FileKey& file : files) {
    note_synchronised(call, file, (flags & MS_SYNC) != 0 ? "msync" : kAsynchronous,
                      LeftOut::Range{begin, end});
    note_if_it_fails(call, file, "msync", why);
  }
}

// ------------------------------------------------------------------------------ files

void Calls::note_if_it_fails(const Call& call, const FileKey& file, const char* name,
                             const char* why) {
  if (!holds_still(call.process, process(call.process), file)) return;
  entering_->if_failed.push_back([this, file, name, why](int error_number) {
    const std::string reason = *why != '\0' ? why : std::strerror(error_number);
    const char* const symbol = ::strerrorname_np(error_number);
    const std::string failure =
        fmt::format("{}: {}, for {}", name, symbol != nullptr ? symbol : "error", reason);
    facts_.files[file].failed_synchronisations[failure] += 1;
  });
}

void Calls::synchronised(const Call& call, const char* name, int descriptor) {
  const auto open = open_file(call.thread, descriptor);
  if (!open || !is_known(open->key)) return;
  note_synchronised(call, open->key, name);
  note_if_it_fails(call, open->key, name, "");
}

void Calls::all_synchronised(const Call& call, const char* name) {
  const std::set<FileKey> holds = process(call.process).holds;
  for (const FileKey& file : holds) note_synchronised(call, file, name);
}

void Calls::range_hinted(const Call& call) {
  const auto open = open_file(call.thread, number(call.arguments[0]));
  if (open && is_known(open->key) &&
      is_by_holder(call, open->key, "sync_file_range", Effect::synchronises)) {
    once_done([this, file = open->key] { facts_.files[file].range_hints += 1; });
  }
}

void Calls::changed(const Call& call, const char* name, int descriptor) {
  const auto open = open_file(call.thread, descriptor);
  if (!open || !open->is_writable()) return;
  if (!is_known(open->key)) return changed_beside(call, *open, name, descriptor);
  if (!is_by_holder(call, open->key, name)) return;
  const bool is_same = writes_what_is_there(call, *open);
  FileFacts& facts = facts_.files[open->key];
  if (is_same) {
    // It marks the page all the same, which would then pass for a store.
    look_for_stores(process(call.process), call.thread, 0, ~std::uint64_t{0});
    once_done([this, number = call.process, file = open->key, descriptor] {
      if (!process(number).lives[file].is_behind()) write_out(number, descriptor);
    });
  } else {
    note_changed(open->key, name);
  }
  facts.last_size_bytes = std::max(facts.last_size_bytes, open->size_bytes);
  const bool asks_for_durability =
      call.number == SYS_pwritev2 && (call.arguments[5] & (RWF_SYNC | RWF_DSYNC)) != 0;
  const bool writes = call.number != SYS_ftruncate && call.number != SYS_fallocate;
  if (writes && !is_same) {
    once_done([this, number = call.process, file = open->key] {
      process(number).lives[file].writes_after += 1;
    });
  }
  if (writes && (open->writes_durably() || asks_for_durability)) {
    note_synchronised(call, open->key, kDurableWrite);
  }
}

bool Calls::writes_what_is_there(const Call& call, const OpenFile& open) {
  const std::uint64_t count = call.arguments[2];
  if ((call.number != SYS_write && call.number != SYS_pwrite64) || count > kTouchBytesMax ||
      (open.flags & O_APPEND) != 0 || touches_ == kTouchesMax) {
    return false;
  }
  const std::string name = std::to_string(number(call.arguments[0]));
  auto offset = static_cast<off_t>(call.arguments[3]);
  if (call.number == SYS_write) {
    std::ifstream information(link_to(call.thread, "fdinfo/" + name));
    std::string field;  // "pos:" comes first
    if (!(information >> field >> offset)) return false;
  }
  std::array<char, kTouchBytesMax> written{};
  std::array<char, kTouchBytesMax> there{};
  const Descriptor file(
      ::open(link_to(call.thread, "fd/" + name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const bool is_same =
      file.valid() && tracing::read_memory(call.thread, call.arguments[1], written.data(), count) &&
      ::pread(file.get(), there.data(), count, offset) == static_cast<ssize_t>(count) &&
      written == there;
  if (is_same) touches_ += 1;
  return is_same;
}

void Calls::changed_beside(const Call& call, const OpenFile& open, const char* name,
                           int descriptor) {
  const std::set<FileKey>& holds = process(call.process).holds;
  if (holds.empty() || open.links == 0) return;
  const std::string path = target_of(link_to(call.thread, fmt::format("fd/{}", descriptor)));
  // What is printed into a file belongs to nothing.
  if (descriptor > STDERR_FILENO) note_unmapped(call, open.key, path);
  for (const FileKey& file : holds) {
    const Neighbour neighbour =
        neighbour_of(facts_.files[file].names.back(), name_within_root(call.process, path));
    if (neighbour == Neighbour::none) continue;
    see(file, neighbour == Neighbour::log ? Sight::log_beside : Sight::file_beside,
        said_of(call, fmt::format("{} to {}", name, path)));
  }
}

void Calls::note_unmapped(const Call& call, const FileKey& file, const std::string& path) {
  const bool is_of_kernel =
      path.starts_with("/dev/") || path.starts_with("/proc/") || path.starts_with("/sys/");
  if (is_known(file) || is_of_kernel || !path.starts_with('/') ||
      process(call.process).holds.empty()) {
    return;
  }
  once_done([this, number = call.process, file, path, behind = files_behind(call, file)] {
    for (const FileKey& one : behind) {
      auto& ahead = facts_.files[one].changed_ahead;
      if (ahead.size() < kUnmappedMax || ahead.contains(path)) ahead[path] += 1;
    }
    if (facts_.unmapped.size() == kUnmappedMax && !facts_.unmapped.contains(file)) {
      facts_.limits.insert(fmt::format(
          "more than {} files are changed and not mapped; the others are not named", kUnmappedMax));
      return;
    }
    facts_.unmapped[file] = path;
    for (const FileKey& held : process(number).holds) facts_.files[held].changed_along.insert(file);
  });
}

void Calls::protected_anew(const Call& call) {
  if ((call.arguments[2] & PROT_WRITE) == 0) return;
  const std::uint64_t begin = call.arguments[0];
  const std::uint64_t end = page_end(begin + call.arguments[1]);
  for (const Window& window : process(call.process).windows) {
    if (begin < window.end && window.begin < end && is_known(window.file))
      once_done([this, file = window.file] { facts_.files[file].is_mapped_writable = true; });
  }
}

void Calls::truncated_by_name(const Call& call) {
  const auto file = known_file_at(call, AT_FDCWD, call.arguments[0], true, nullptr);
  if (file && is_by_holder(call, *file, "truncate")) note_changed(*file, "truncate");
}

void Calls::allocated(const Call& call) {
  const int descriptor = number(call.arguments[0]);
  const auto open = open_file(call.thread, descriptor);
  if (open && (number(call.arguments[1]) & kMovesBlocks) != 0 &&
      holds_still(call.process, process(call.process), open->key)) {
    see_also_if_unsupported(open->key, Sight::move_blocks, said_of(call, "fallocate"));
  }
  changed(call, "fallocate", descriptor);
}

void Calls::shared_blocks(const Call& call) {
  std::vector<int> descriptors = {number(call.arguments[0])};
  const auto request = static_cast<std::uint32_t>(call.arguments[1]);
  if (request == static_cast<std::uint32_t>(FICLONE)) {
    descriptors.push_back(number(call.arguments[2]));
  } else if (request == static_cast<std::uint32_t>(FICLONERANGE)) {
    const auto source = tracing::read_object<std::int64_t>(call.thread, call.arguments[2]);
    if (source) descriptors.push_back(static_cast<int>(*source));
  }
  for (const int descriptor : descriptors) {
    const auto open = open_file(call.thread, descriptor);
    if (open && holds_still(call.process, process(call.process), open->key)) {
      see_also_if_unsupported(open->key, Sight::share_blocks, said_of(call, "ioctl"));
    }
  }
}

void Calls::submitted(const Call& call) {
  if (call.arguments[1] > kBatchMax) {
    facts_.limits.insert(fmt::format(
        "of requests of io_submit(2) only the first {} of a call were looked at", kBatchMax));
  }
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(call.arguments[1], kBatchMax); ++i) {
    const auto pointer =
        tracing::read_object<std::uint64_t>(call.thread, call.arguments[2] + i * 8);
    const auto request = pointer ? tracing::read_object<iocb>(call.thread, *pointer) : std::nullopt;
    if (!request) return;
    const auto open = open_file(call.thread, static_cast<int>(request->aio_fildes));
    if (open && holds_still(call.process, process(call.process), open->key)) {
      see(open->key, Sight::linux_aio, said_of(call, "io_submit"));
    }
  }
}

void Calls::opened(const Call& call, std::uint64_t result) {
  const auto descriptor = static_cast<int>(result);
  Process& caller = process(call.process);
  const auto open = open_file(call.thread, descriptor, Kind::any);
  if (!open || (open->flags & O_PATH) != 0) {
    caller.opened.erase(descriptor);
    return;
  }
  const Origin origin = caller.code.origin_of(call);
  const bool is_stream = origin == Origin::stream;
  const int flags = call.number == SYS_creat
                        ? O_CREAT | O_TRUNC
                        : number(call.arguments[call.number == SYS_openat ? 2 : 1]);
  // mkstemp(3) opens from within libc.
  const bool is_new = (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0;
  const std::string path =
      is_new ? target_of(link_to(call.thread, fmt::format("fd/{}", descriptor))) : std::string();
  if (is_new && (origin == Origin::inside_libc || is_made_up(path)) &&
      has_room_for_random(facts_.random_names.size()))
    facts_.random_names.insert(name_within_root(call.process, path));
  if (is_new && is_known(open->key)) retire(open->key);
  if (caller.opened.size() == kOpenedMax && !caller.opened.contains(descriptor)) {
    facts_.limits.insert(fmt::format(
        "a process opened more than {} files at a time; streams among the others were not seen",
        kOpenedMax));
  } else {
    caller.opened[descriptor] = {open->key, is_stream};
  }
  const bool truncates = (flags & O_TRUNC) != 0;
  if (!is_known(open->key)) {
    if (open->is_regular && open->is_writable() && (truncates || is_new))
      note_unmapped(call, open->key,
                    target_of(link_to(call.thread, fmt::format("fd/{}", descriptor))));
    return;
  }
  if (holds_still(call.process, caller, open->key, descriptor)) {
    if (is_stream) see(open->key, Sight::stream_open, said_of(call, "fopen"));
    if (truncates) note_changed(open->key, "open(O_TRUNC)");
  } else if (truncates) {
    is_by_holder(call, open->key, "open with O_TRUNC");
  } else if (!open->is_writable() && other_holder(call.process, open->key) != 0) {
    see(open->key, Sight::reader, said_of(call, "open for reading"));
  }
}

// For its user alone, as whoever makes up a name makes it.
void Calls::made_directory(const Call& call) {
  const bool is_at = call.number == SYS_mkdirat;
  const std::uint64_t mode = call.arguments[is_at ? 2 : 1];
  if ((mode & 0777) != 0700) return;
  std::error_code error;
  const std::string path =
      std::filesystem::canonical(path_of(call, is_at ? number(call.arguments[0]) : AT_FDCWD,
                                         call.arguments[is_at ? 1 : 0]),
                                 error)
          .string();
  const Origin origin = process(call.process).code.origin_of(call);
  const std::size_t letters = random_letters_at_end(path, origin == Origin::inside_libc);
  if (error || letters == 0) return;
  if (has_room_for_random(facts_.random_directories.size()))
    facts_.random_directories.emplace(name_within_root(call.process, path), letters);
}

bool Calls::has_room_for_random(std::size_t count) {
  if (count < kRandomNamesMax) return true;
  facts_.limits.insert(
      fmt::format("more than {} files or directories got random names; the globs have the others "
                  "as they are",
                  kRandomNamesMax));
  return false;
}

// Another file got the number of one that is gone.
void Calls::retire(const FileKey& file) {
  const FileKey retired{0, ++retired_};  // no file system has these
  for (auto& [number, state] : processes_) {
    life_ended(state, file);
    for (auto& [other, life] : state.lives) life.others_synchronised.erase(file);
    state.holds.erase(file);
    state.inherits.erase(file);
    if (state.last_synchronised == file) state.last_synchronised.reset();
  }
  auto entry = facts_.files.extract(file);
  holder_let_go(entry.mapped());
  entry.key() = retired;
  facts_.files.insert(std::move(entry));
  std::ranges::replace(facts_.order, file, retired);
  for (auto* const all : {&facts_.in_one_go, &facts_.synchronised_ahead}) {
    std::map<std::pair<FileKey, FileKey>, std::uint64_t> pairs;
    for (const auto& [pair, count] : *all) {
      const auto now = [&](const FileKey& one) { return one == file ? retired : one; };
      pairs[{now(pair.first), now(pair.second)}] = count;
    }
    *all = std::move(pairs);
  }
}

void Calls::name_removed(const Call& call, int directory, std::uint64_t path) {
  std::uint64_t links = 0;
  const auto file = known_file_at(call, directory, path, false, &links);
  if (!file) return;
  if (is_by_holder(call, *file, "unlink") && links > 1) {
    see(*file, Sight::one_of_two_names, said_of(call, "unlink"));
  }
}

// A file that another one is renamed over loses its name, as by unlink().
bool Calls::name_replaced(const Call& call, int directory, std::uint64_t path) {
  std::uint64_t links = 0;
  const auto file = known_file_at(call, directory, path, false, &links);
  if (file) is_by_holder(call, *file, "rename");
  return file.has_value();
}

Wants Calls::rename_entered(const Call& call) {
  // Both may be known, and change their names: RENAME_EXCHANGE.
  bool is_any_known = false;
  for (const auto& [directory, path] : names_of_rename(call))
    is_any_known = name_replaced(call, directory, path) || is_any_known;
  return is_any_known || !process(call.process).holds.empty() ? Wants::result : Wants::nothing;
}

void Calls::renamed(const Call& call) {
  const auto [new_directory, new_path] = names_of_rename(call)[1];
  struct stat status{};
  std::error_code error;
  const std::string whole = path_of(call, new_directory, new_path);
  if (::lstat(whole.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
    note_unmapped(call, {status.st_dev, status.st_ino},
                  std::filesystem::canonical(whole, error).string());
  }
  for (const auto& [directory, path] : names_of_rename(call)) {
    const auto file = known_file_at(call, directory, path, false, nullptr);
    if (!file) continue;
    const auto name = std::filesystem::canonical(path_of(call, directory, path), error);
    FileFacts& facts = facts_.files[*file];
    const std::string new_name = name_within_root(call.process, name.string());
    if (error || facts.names.back() == new_name) continue;
    see(*file, Sight::renamed, fmt::format("from {} to {}", facts.names.back(), new_name));
    add_name(facts, new_name);
  }
}

void Calls::message_sent(const Call& call, std::uint64_t header) {
  if (process(call.process).holds.empty()) return;
  const auto message = tracing::read_object<msghdr>(call.thread, header);
  if (!message || message->msg_controllen < sizeof(cmsghdr)) return;
  std::vector<char> control(std::min<std::size_t>(message->msg_controllen, kControlBytesMax));
  if (!tracing::read_memory(call.thread, reinterpret_cast<std::uint64_t>(message->msg_control),
                            control.data(), control.size())) {
    return;
  }
  for (std::size_t at = 0; at + sizeof(cmsghdr) <= control.size();) {
    cmsghdr part{};
    std::memcpy(&part, control.data() + at, sizeof(part));
    if (part.cmsg_len < sizeof(part) || part.cmsg_len > control.size() - at) return;
    const bool has_descriptors = part.cmsg_level == SOL_SOCKET && part.cmsg_type == SCM_RIGHTS;
    for (std::size_t i = sizeof(part); has_descriptors && i + sizeof(int) <= part.cmsg_len;
         i += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, control.data() + at + i, sizeof(descriptor));
      const auto open = open_file(call.thread, descriptor);
      if (open && holds_still(call.process, process(call.process), open->key)) {
        see(open->key, Sight::passed_on, said_of(call, "sendmsg"));
      }
    }
    at += CMSG_ALIGN(part.cmsg_len);
  }
}

// Under the face whoever gives up a lock on a whole file that is not mapped lets go of it.
void Calls::unlocked(const Call& call) {
  if (call.number == SYS_flock) {
    if ((number(call.arguments[1]) & ~LOCK_NB) != LOCK_UN) return;
  } else {
    const auto lock = tracing::read_object<struct flock>(call.thread, call.arguments[2]);
    if (!lock || lock->l_type != F_UNLCK || lock->l_whence != SEEK_SET || lock->l_start != 0 ||
        lock->l_len != 0) {
      return;
    }
  }
  const auto open = open_file(call.thread, number(call.arguments[0]));
  if (!open) return;
  Process& caller = process(call.process);
  const bool has_window = std::ranges::any_of(
      caller.windows, [&](const Window& window) { return window.file == open->key; });
  if (has_window) return;
  once_done([this, number = call.process, file = open->key] {
    Process& letting_go = process(number);
    if (letting_go.holds.erase(file) == 0) return;
    facts_.files[file].unlockings += 1;
    Life& life = letting_go.lives[file];
    note_synchronised_life(life, std::chrono::steady_clock::now());
    life_ended(letting_go, file);
  });
}

bool Calls::is_of_stream(const Call& call, int descriptor) {
  if (descriptor >= 0 && descriptor <= STDERR_FILENO) return true;
  const Process& caller = process(call.process);
  const auto own = caller.opened.find(descriptor);
  if (own == caller.opened.end() || !own->second.is_stream) return false;
  const auto open =
      open_file(call.thread, descriptor, Kind::any);  // another may have the number by now
  return open && open->key == own->second.file;
}

void Calls::note_stream(const Call& call, int descriptor, const FileKey& file) {
  once_done([this, number = call.process, descriptor, file] {
    auto& opened = process(number).opened;
    if (opened.size() < kOpenedMax || opened.contains(descriptor))
      opened[descriptor] = {file, true};
  });
}

// Of all functions of stdio only fdopen(3) does.
void Calls::flags_asked(const Call& call) {
  const int descriptor = number(call.arguments[0]);
  const auto open = open_file(call.thread, descriptor);
  Process& caller = process(call.process);
  if (!open || caller.code.origin_of(call) != Origin::stream) return;
  note_stream(call, descriptor, open->key);
  if (holds_still(call.process, caller, open->key))
    see(open->key, Sight::stream_open, said_of(call, "fdopen"));
}

void Calls::duplicated(const Call& call) {
  const auto open = open_file(call.thread, number(call.arguments[0]));
  // freopen(3) gives the new file the number of the old one.
  if (open && process(call.process).code.origin_of(call) == Origin::stream)
    note_stream(call, number(call.arguments[1]), open->key);
  if (call.arguments[0] == call.arguments[1] || !open || !is_known(open->key)) return;
  if (holds_still(call.process, process(call.process), open->key) &&
      is_of_stream(call, number(call.arguments[1]))) {
    see(open->key, Sight::stream_open, said_of(call, "dup2 onto the number of a stream"));
  }
}

// A process of one thread may do it; with Pawl's it has more.
void Calls::unshared(const Call& call, const char* name) {
  for (const FileKey& file : still_held(call.process, process(call.process)))
    see(file, Sight::unshares, said_of(call, name));
}

void Calls::left_session(const Call& call) {
  Process& caller = process(call.process);
  for (const Window& window : caller.windows) {
    if (caller.inherits.contains(window.file)) {
      see(window.file, Sight::daemon, said_of(call, "setsid"));
    }
  }
}

void Calls::ends_itself(const Call& call) {
  Process& caller = process(call.process);
  look_for_stores(caller, call.thread, 0, ~std::uint64_t{0});
  look_at_inherited(call.process, call.thread, 0, ~std::uint64_t{0});
  count_descriptors(call);  // leaves in `holds` what is still held
  if (caller.holds.empty() || caller.code.origin_of(call) != Origin::raw) return;
  for (const FileKey& file : caller.holds) see(file, Sight::raw_call, said_of(call, "exit_group"));
}

// ------------------------------------------------------------------------------ which is which

Wants Calls::call_entered(const Call& call) {
  if (call.number == SYS_exit_group) {  // which does not return
    ends_itself(call);
    return Wants::nothing;
  }
  if (call.number == SYS_execve || call.number == SYS_execveat) {  // behind it that memory is gone
    look_at_inherited(call.process, call.thread, 0, ~std::uint64_t{0});
    return Wants::nothing;
  }
  Entered entered;
  entering_ = &entered;
  const Wants wants = look_at_entry(call);
  entering_ = nullptr;
  in_calls_.erase(call.thread);  // one that never returned
  if (entered.once_done.empty() && entered.if_failed.empty()) return wants;
  in_calls_[call.thread] = std::move(entered);
  return Wants::result;
}

Wants Calls::look_at_entry(const Call& call) {
  const auto& arguments = call.arguments;
  switch (call.number) {
    case SYS_mmap:
      return map_entered(call);
    case SYS_mremap:
      return remap_entered(call);
    case SYS_open:
    case SYS_openat:
    case SYS_creat:
    case SYS_mkdir:
    case SYS_mkdirat:
      return Wants::result;
    case SYS_dup2:
    case SYS_dup3:
      duplicated(call);
      return Wants::nothing;
    case SYS_fcntl:
      if (arguments[1] == F_GETFL) {
        flags_asked(call);
        return Wants::nothing;
      }
      break;
    case SYS_seccomp:
    case SYS_prctl:  // PR_SET_SECCOMP: the filter passes no other
      sandboxed(call);
      return Wants::nothing;
    case SYS_io_uring_setup:
      if (facts_.io_uring.count++ == 0) facts_.io_uring.example = said_of(call, "io_uring_setup");
      return Wants::nothing;
    case SYS_io_uring_register:  // of buffers: the filter passes no other
      if (facts_.pinned_buffers.count++ == 0)
        facts_.pinned_buffers.example = said_of(call, "io_uring_register");
      return Wants::nothing;
    default:
      break;
  }
  // All others matter for files that are known only.
  if (facts_.files.empty()) {
    if (call.number == SYS_munmap) {
      unmapped_by_call(call);
    }
    return Wants::nothing;
  }
  switch (call.number) {
    case SYS_munmap:
      unmapped_by_call(call);
      break;
    case SYS_msync:
      range_synchronised(call);
      break;
    case SYS_remap_file_pages:
      window_refused(call, Sight::remap_file_pages, "remap_file_pages");
      break;
    case SYS_mprotect:
      protected_anew(call);
      break;
    case SYS_pkey_mprotect:
      protected_anew(call);
      if (number(arguments[3]) != -1) {
        window_refused(call, Sight::protection_key, "pkey_mprotect");
      }
      break;
    case SYS_write:
      changed(call, "write", number(arguments[0]));
      break;
    case SYS_writev:
      changed(call, "writev", number(arguments[0]));
      break;
    case SYS_pwrite64:
      changed(call, "pwrite", number(arguments[0]));
      break;
    case SYS_pwritev:
      changed(call, "pwritev", number(arguments[0]));
      break;
    case SYS_pwritev2:
      changed(call, "pwritev2", number(arguments[0]));
      break;
    case SYS_sendfile:
      changed(call, "sendfile", number(arguments[0]));
      break;
    case SYS_splice:
      changed(call, "splice", number(arguments[2]));
      break;
    case SYS_copy_file_range:
      changed(call, "copy_file_range", number(arguments[2]));
      break;
    case SYS_ftruncate:
      changed(call, "ftruncate", number(arguments[0]));
      break;
    case SYS_truncate:
      truncated_by_name(call);
      break;
    case SYS_fallocate:
      allocated(call);
      break;
    case SYS_ioctl:
      shared_blocks(call);
      break;
    case SYS_io_submit:
      submitted(call);
      break;
    case SYS_fsync:
      synchronised(call, kFsync, number(arguments[0]));
      break;
    case SYS_fdatasync:
      synchronised(call, kFdatasync, number(arguments[0]));
      break;
    case SYS_sync:
      all_synchronised(call, kSync);
      break;
    case SYS_syncfs:
      all_synchronised(call, kSyncfs);
      break;
    case SYS_sync_file_range:
      range_hinted(call);
      break;
    case SYS_unlink:
      name_removed(call, AT_FDCWD, arguments[0]);
      break;
    case SYS_unlinkat:
      name_removed(call, number(arguments[0]), arguments[1]);
      break;
    case SYS_rename:
    case SYS_renameat:
    case SYS_renameat2:
      return rename_entered(call);
    case SYS_sendmsg:
      message_sent(call, arguments[1]);
      break;
    case SYS_sendmmsg:
      if (arguments[2] > kBatchMax) {
        facts_.limits.insert(fmt::format(
            "of messages of sendmmsg(2) only the first {} of a call were looked at", kBatchMax));
      }
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(arguments[2], kBatchMax); ++i) {
        message_sent(call, arguments[1] + i * sizeof(mmsghdr));
      }
      break;
    case SYS_flock:
    case SYS_fcntl:
      unlocked(call);
      break;
    case SYS_unshare:
      return Wants::result;
    case SYS_setns:
      return target_of(link_to(call.thread, fmt::format("fd/{}", number(arguments[0]))))
                     .starts_with("user:")
                 ? Wants::result
                 : Wants::nothing;
    case SYS_setsid:
      left_session(call);
      break;
    default:
      break;
  }
  return Wants::nothing;
}

void Calls::call_returned(const Call& call, std::uint64_t result) {
  if (auto entered = in_calls_.extract(call.thread)) {
    for (const auto& effect : entered.mapped().once_done) effect();
  }
  switch (call.number) {
    case SYS_open:
    case SYS_openat:
    case SYS_creat:
      return opened(call, result);
    case SYS_mmap:
      return mapped(call, result);
    case SYS_mremap:
      return remapped(call, result);
    case SYS_mkdir:
    case SYS_mkdirat:
      return made_directory(call);
    case SYS_rename:
    case SYS_renameat:
    case SYS_renameat2:
      return renamed(call);
    case SYS_unshare:
      return unshared(call, "unshare");
    case SYS_setns:
      return unshared(call, "setns");
    default:
      return;
  }
}

void Calls::call_failed(const Call& call, int error_number) {
  const auto entered = in_calls_.extract(call.thread);
  if (entered.empty()) return;
  // What is mapped of a range that has holes is synchronised all the same.
  if (call.number == SYS_msync && error_number == ENOMEM) {
    for (const auto& effect : entered.mapped().once_done) effect();
    return;
  }
  for (const auto& effect : entered.mapped().if_failed) effect(error_number);
}

ProgramFacts Calls::finish(const Ending& ending) {
  facts_.ending = ending;
  for (auto& [number, state] : processes_) end_lives(state);
  std::set<FileKey> files;
  for (auto& [key, facts] : facts_.files) {
    holder_let_go(facts);
    struct stat status{};
    const auto is_at = [&](const std::string& path) {
      return ::stat(path.c_str(), &status) == 0 && FileKey{status.st_dev, status.st_ino} == key;
    };
    const bool keeps_path = is_at(facts.path);
    if (keeps_path) facts.last_size_bytes = static_cast<std::uint64_t>(status.st_size);
    // The inode of a removed file may belong to another file by now, which a stranger has.
    if (keeps_path || std::ranges::any_of(facts.names, is_at)) files.insert(key);
  }
  // Some are mapped later, or removed, or have another name by now.
  std::erase_if(facts_.unmapped, [&](const auto& entry) {
    struct stat status{};
    return is_known(entry.first) || ::stat(entry.second.c_str(), &status) != 0 ||
           FileKey{status.st_dev, status.st_ino} != entry.first;
  });
  for (auto& [key, facts] : facts_.files) {
    std::erase_if(facts.changed_ahead,
                  [](const auto& entry) { return ::access(entry.first.c_str(), F_OK) != 0; });
  }
  Scan scan = find_holders(files, {});
  for (const Holder& holder : scan.holders) see(holder.file, Sight::outsider, holder.text);
  facts_.limits.merge(scan.limits);
  // A script's own number, which the shell puts into names ($$), may be that of who started us.
  facts_.process_numbers.insert(std::to_string(::getppid()));
  note_date();
  std::vector<std::string> names;
  for (const auto& [key, facts] : facts_.files)
    names.insert(names.end(), facts.names.begin(), facts.names.end());
  facts_.unmatched_globs = globs_.without_match(names);
  return std::move(facts_);
}

}  // namespace pawl::cli::watch
