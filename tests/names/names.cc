// Names: files and journals are renamed, linked, removed, copied, exchanged, shown elsewhere and
// lose their marks, while two processes open, commit, recover, close and are killed.  A file is
// known by its inode: it has never two writers, and whoever opens it finds its last acknowledged
// commit, or is refused.  At the end each journal is put beside its file, and everything is found.
//
//   names [--rounds N] [--seed S] [--scratch DIR]
//
// Prints what was wrong with the seed of its round, and a summary in JSON.  Ends with 0, or with 1
// when something was wrong.  As root the directories are also shown by bind mounts.
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "medium/descriptor.h"
#include "names/actor.h"
#include "support/rounds.h"
#include "workload/random.h"

namespace pawl::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSuffix = ".pawl";
constexpr const char* kMark = "user.pawl";
constexpr std::size_t kActors = 2;
constexpr int kNobody = -1;
constexpr unsigned kStepsMax = 60;
constexpr unsigned kKillDelayMicrosecondsMax = 400;

// What is known of one file, whatever it is called.
struct File {
  std::set<Stamp> allowed;  // what whoever opens it may find
  int writer = kNobody;
  bool is_judged = true;  // false: a user made what it holds, or gave up what was committed
};

struct Counts {
  std::uint64_t opened = 0;
  std::uint64_t busy = 0;
  std::uint64_t refused = 0;
  std::uint64_t commits = 0;
  std::uint64_t kills = 0;
  std::uint64_t recovered = 0;
};

// A number is given to another file once nobody has the first one; its birth tells them apart.
using Inode = std::pair<std::uint64_t, std::uint64_t>;
constexpr Inode kNothing{};

Inode inode_of(const std::string& path) {
  constexpr std::uint64_t kNanoseconds = 1'000'000'000;
  struct statx status{};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME | STATX_TYPE,
              &status) != 0 ||
      !S_ISREG(status.stx_mode))
    return kNothing;
  const auto& birth = status.stx_btime;
  return {status.stx_ino, static_cast<std::uint64_t>(birth.tv_sec) * kNanoseconds + birth.tv_nsec};
}

bool is_journal_name(const std::string& path) { return path.ends_with(kSuffix); }

std::optional<Stamp> stamp_of_file(const std::string& path) {
  const std::string content = content_of(path);
  return content.size() == kFileBytes ? stamp_of(content.data()) : std::nullopt;
}

std::string mark_of(const std::string& path) {
  std::array<char, 8192> mark{};
  const ssize_t length = ::getxattr(path.c_str(), kMark, mark.data(), mark.size());
  return length < 0 ? std::string() : std::string(mark.data(), static_cast<std::size_t>(length));
}

// Of the journal that the mark names (docs/journal-format.md).
Inode marked_journal(const std::string& path) {
  Inode inode;
  const std::string mark = mark_of(path);
  if (std::sscanf(mark.c_str(), "2 %*s open %*u:%*u %" SCNu64 ":%" SCNu64, &inode.first,
                  &inode.second) != 2)
    return kNothing;
  return inode;
}

class Round {
 public:
  Round(std::string directory, std::uint64_t seed, Stamp& next, bool may_mount, Counts& counts)
      : directory_(std::move(directory)),
        random_(static_cast<std::uint32_t>(seed)),
        next_(next),
        may_mount_(may_mount),
        counts_(counts) {}

  // Empty when all went well.
  std::string run();

 private:
  void make();
  void clean_up() const;
  void step();
  void rename_something();
  void copy_something();
  void link_something();
  void open(std::size_t number);
  void open_two_names();
  void commit(std::size_t number);
  void close(std::size_t number);
  void recover(Order order);
  void note_opened(std::size_t number, const std::string& path, Inode inode, const Answer& answer);
  void put_journal_beside(const std::string& path, Inode journal);
  void judge_at_the_end();
  void lose(std::size_t number);
  void fail(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }
  // Of a failed round it is told what happened.
  void note(const std::string& what, const std::string& path, const std::string& more = {}) {
    history_ += "  " + what + " " + fs::path(path).lexically_relative(directory_).string() +
                (more.empty() ? "" : " " + more) + "\n";
  }
  std::string short_name(const std::string& path) const {
    return fs::path(path).lexically_relative(directory_).string();
  }

  // Names with the same file behind them in two of these are no other files.
  std::vector<std::string> present() const;
  std::string any_present(bool is_journal);
  std::string any_name(bool is_journal);
  std::string name_of(Inode inode) const;
  File* known(Inode inode) {
    const auto found = files_.find(inode);
    return found == files_.end() ? nullptr : &found->second;
  }

  const std::string directory_;
  Random random_;
  Stamp& next_;
  const bool may_mount_;
  Counts& counts_;
  std::array<Actor, kActors> actors_;
  std::array<Inode, kActors> mapped_{};
  std::array<Inode, kActors> journals_{};  // of what is mapped
  std::map<Inode, File> files_;
  std::string history_;
  std::string wrong_;
};

void Round::clean_up() const {
  for (const char* const name : {"/shown", "/b/bound"})
    ::umount2((directory_ + name).c_str(), MNT_DETACH);
  fs::remove_all(directory_);
}

void Round::make() {
  clean_up();
  for (const char* const name : {"/a", "/b", "/shown", "/aside"})
    fs::create_directories(directory_ + name);
  for (const char* const name : {"/a/f0", "/a/f1", "/b/f2"}) {
    const Stamp stamp = next_++;
    const std::vector<Stamp> words(kFileBytes / sizeof stamp, stamp);
    std::ofstream(directory_ + name, std::ios::binary)
        .write(reinterpret_cast<const char*>(words.data()), kFileBytes);
    files_[inode_of(directory_ + name)] = File{{stamp}};
  }
  if (!may_mount_) return;
  std::ofstream(directory_ + "/b/bound").flush();
  const bool is_shown = ::mount((directory_ + "/a").c_str(), (directory_ + "/shown").c_str(),
                                nullptr, MS_BIND, nullptr) == 0 &&
                        ::mount((directory_ + "/a/f0").c_str(), (directory_ + "/b/bound").c_str(),
                                nullptr, MS_BIND, nullptr) == 0;
  if (!is_shown) fail("cannot make a bind mount");
}

std::vector<std::string> Round::present() const {
  std::vector<std::string> found;
  for (const char* const name : {"/a", "/b", "/shown", "/aside"})
    for (const auto& entry : fs::directory_iterator(directory_ + name))
      found.push_back(entry.path().string());
  return found;
}

std::string Round::any_present(bool is_journal) {
  std::vector<std::string> found;
  for (const std::string& path : present())
    if (is_journal_name(path) == is_journal) found.push_back(path);
  return found.empty() ? std::string() : found[below(random_, found.size())];
}

std::string Round::any_name(bool is_journal) {
  constexpr std::array<const char*, 4> kDirectories = {"/a/f", "/b/f", "/shown/f", "/aside/f"};
  return directory_ + kDirectories[below(random_, kDirectories.size())] +
         std::to_string(below(random_, 3)) + (is_journal ? kSuffix : "");
}

std::string Round::name_of(Inode inode) const {
  std::string bound;
  for (const std::string& path : present()) {
    if (inode_of(path) != inode || path.starts_with(directory_ + "/shown/")) continue;
    if (!path.ends_with("/bound")) return path;
    bound = path;
  }
  return bound;
}

// ------------------------------------------------------------------------------------- what users
// do

void Round::rename_something() {
  const bool is_journal = below(random_, 2) == 0;
  const std::string from = any_present(is_journal);
  const std::string to = any_name(is_journal);
  if (from.empty()) return;
  const unsigned flags = below(random_, 4) == 0 ? RENAME_EXCHANGE : 0;
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0)
    note(flags == 0 ? "rename" : "exchange", from, short_name(to));
}

// Of a file with its mark or without; never over another one's bytes.
void Round::copy_something() {
  const bool is_journal = below(random_, 3) == 0;
  const std::string from = any_present(is_journal);
  const std::string to = any_name(is_journal);
  if (from.empty() || ::access(to.c_str(), F_OK) == 0) return;
  const Descriptor source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  const Descriptor target(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!source.valid() || !target.valid()) return;
  if (below(random_, 2) != 0 || ::ioctl(target.get(), FICLONE, source.get()) != 0) {
    const std::string content = content_of(from);
    if (::write(target.get(), content.data(), content.size()) < 0) return;
  }
  const std::string mark = mark_of(from);
  if (!mark.empty() && below(random_, 2) == 0) {
    [[maybe_unused]] const int done_or_not =
        ::setxattr(to.c_str(), kMark, mark.data(), mark.size(), 0);
  }
  note("copy", from, short_name(to) + (mark_of(to).empty() ? "" : ", with its mark"));
  if (!is_journal) files_[inode_of(to)] = File{{}, kNobody, false};
}

void Round::link_something() {
  const std::string from = any_present(false);
  const std::string to = any_name(false);
  if (!from.empty() && ::link(from.c_str(), to.c_str()) == 0) note("link", from, short_name(to));
}

void Round::step() {
  const std::size_t number = below(random_, kActors);
  const bool is_mapped = mapped_[number] != kNothing;
  switch (below(random_, 16)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return is_mapped ? commit(number) : open(number);
    case 4:
      return is_mapped ? close(number) : open_two_names();
    case 5:
    case 6:
      return lose(number);
    case 7:
      return recover(Order::recover);
    case 8:
      return recover(below(random_, 2) == 0 ? Order::recover_with_loss : Order::recover);
    case 9:
      return link_something();
    case 10:
    case 11:
      return copy_something();
    case 12: {
      const std::string path = any_present(below(random_, 3) == 0);
      if (!path.empty() && ::unlink(path.c_str()) == 0) note("remove", path);
      return;
    }
    case 13: {  // a mark that goes: a writer must be found all the same
      const std::string path = any_present(false);
      File* const file = path.empty() ? nullptr : known(inode_of(path));
      if (file == nullptr || ::removexattr(path.c_str(), kMark) != 0) return;
      note("unmark", path);
      file->is_judged = false;
      return;
    }
    default:
      return rename_something();
  }
}

// -------------------------------------------------------------------------------- what processes
// do

void Round::note_opened(std::size_t number, const std::string& path, Inode inode,
                        const Answer& answer) {
  File* const file = known(inode);
  note("open", path,
       "by " + std::to_string(number) + ": " +
           (answer.is_done ? "holds " + std::to_string(answer.stamp) : answer.text));
  if (!answer.is_done) {
    (answer.error_number == EBUSY ? counts_.busy : counts_.refused) += 1;
    if (answer.text.empty()) fail(path + " is refused without a reason");
    return;
  }
  counts_.opened += 1;
  mapped_[number] = inode;
  journals_[number] = inode_of(path + kSuffix);
  if (file == nullptr) {  // a journal's own name, or an empty file: no one's promise
    files_[inode] = File{{answer.stamp}, static_cast<int>(number), false};
    return;
  }
  if (file->writer != kNobody) return fail(path + " has two writers");
  if (file->is_judged && (!answer.is_whole || !file->allowed.contains(answer.stamp))) {
    fail(path + " is opened, and holds " +
         (answer.is_whole ? std::to_string(answer.stamp) : "several commits") + ", not " +
         std::to_string(file->allowed.empty() ? 0 : *file->allowed.begin()));
  }
  *file = File{{answer.stamp}, static_cast<int>(number), answer.is_whole};
}

void Round::open(std::size_t number) {
  const std::string path = below(random_, 8) == 0 ? any_present(true) : any_present(false);
  if (path.empty()) return;
  const Inode inode = inode_of(path);
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 || status.st_size != kFileBytes) return;
  if (below(random_, 6) != 0)
    return note_opened(number, path, inode, actors_[number].ask(Order::open, path));
  const auto delay_us = static_cast<unsigned>(below(random_, kKillDelayMicrosecondsMax));
  const auto answer = actors_[number].ask_and_kill(Order::open, path, 0, delay_us);
  if (answer.has_value()) note_opened(number, path, inode, *answer);
  lose(number);
}

// Two names of one file, one after the other: the second is refused.
void Round::open_two_names() {
  const std::string path = any_present(false);
  if (path.empty()) return;
  const std::string other = any_name(false);
  if (::link(path.c_str(), other.c_str()) == 0) note("link", path, short_name(other));
  for (std::size_t number = 0; number < kActors; ++number) {
    const std::string& name = number == 0 ? path : other;
    const Inode inode = inode_of(name);
    struct stat status{};
    if (mapped_[number] != kNothing || inode == kNothing || ::stat(name.c_str(), &status) != 0 ||
        status.st_size != kFileBytes)
      continue;
    note_opened(number, name, inode, actors_[number].ask(Order::open, name));
  }
}

void Round::commit(std::size_t number) {
  File& file = files_[mapped_[number]];
  const Stamp stamp = next_++;
  file.allowed.insert(stamp);
  const bool is_killed = below(random_, 6) == 0;
  const auto delay_us = static_cast<unsigned>(below(random_, kKillDelayMicrosecondsMax));
  const std::optional<Answer> answer =
      is_killed ? actors_[number].ask_and_kill(Order::commit, {}, stamp, delay_us)
                : actors_[number].ask(Order::commit, {}, stamp);
  note(is_killed ? "die in a commit of" : "commit", name_of(mapped_[number]),
       std::to_string(stamp) + " by " + std::to_string(number));
  if (answer.has_value() && !answer->is_done) {
    file.allowed.erase(stamp);
    if (answer->error_number != ESTALE || !name_of(journals_[number]).empty())
      fail("a commit is refused: " + answer->text);
  }
  if (answer.has_value() && answer->is_done) {
    file.allowed = {stamp};
    counts_.commits += 1;
  }
  if (is_killed) lose(number);
}

void Round::close(std::size_t number) {
  File& file = files_[mapped_[number]];
  note("close", name_of(mapped_[number]), "by " + std::to_string(number));
  const Answer answer = actors_[number].ask(Order::close, {});
  if (!answer.is_done) return fail("a close is refused: " + answer.text);
  file.writer = kNobody;
  mapped_[number] = kNothing;
}

// The process dies, and another takes its place.
void Round::lose(std::size_t number) {
  counts_.kills += 1;
  note("kill", mapped_[number] == kNothing ? directory_ : name_of(mapped_[number]),
       "the process " + std::to_string(number));
  actors_[number].begin();
  if (mapped_[number] != kNothing) files_[mapped_[number]].writer = kNobody;
  mapped_[number] = kNothing;
}

void Round::recover(Order order) {
  const std::string path = any_present(false);
  const auto idle = mapped_[0] == kNothing ? 0 : mapped_[1] == kNothing ? 1 : kNobody;
  const Inode inode = inode_of(path);
  File* const file = known(inode);
  if (path.empty() || idle == kNobody || file == nullptr) return;
  const Inode journal = marked_journal(path);
  const bool is_there = journal != kNothing && inode_of(path + kSuffix) == journal;
  const bool is_open = !mark_of(path).empty();
  const Answer answer = actors_[static_cast<std::size_t>(idle)].ask(order, path);
  note(order == Order::recover ? "recover" : "recover with loss", path,
       answer.is_done ? "done" : answer.text);
  if (!answer.is_done) {
    counts_.refused += 1;
    if (answer.text.empty()) fail(path + " is not recovered, without a reason");
    if (file->writer != kNobody && answer.error_number == ENODATA)
      fail(path + " has a writer, and recover says that its journal is missing: " + answer.text);
    return;
  }
  counts_.recovered += 1;
  if (file->writer != kNobody && is_open) return fail(path + " is recovered beside its writer");
  if (order == Order::recover_with_loss && !is_there) {
    file->is_judged = false;  // asked for
    return;
  }
  const auto found = stamp_of_file(path);
  if (file->is_judged && file->writer == kNobody && !file->allowed.contains(found.value_or(0)))
    fail(path + " is recovered, and holds " + std::to_string(found.value_or(0)) + ", not " +
         std::to_string(file->allowed.empty() ? 0 : *file->allowed.begin()));
}

// ------------------------------------------------------------------------------------------- the
// end

void Round::put_journal_beside(const std::string& path, Inode journal) {
  const std::string wanted = path + kSuffix;
  if (journal != kNothing && inode_of(wanted) == journal) return;
  std::error_code ignored;
  const std::string aside = directory_ + "/aside/" + std::to_string(next_++);
  fs::rename(wanted, aside, ignored);
  const std::string at = journal == kNothing ? std::string() : name_of(journal);
  if (!at.empty()) fs::rename(at, wanted);
}

void Round::judge_at_the_end() {
  for (std::size_t number = 0; number < kActors; ++number) lose(number);
  for (auto& [inode, file] : files_) {
    const std::string path = name_of(inode);
    if (!wrong_.empty() || !file.is_judged || path.empty()) continue;
    const Inode journal = marked_journal(path);
    const bool is_lost = journal != kNothing && name_of(journal).empty();
    put_journal_beside(path, journal);
    const Answer answer = actors_[0].ask(Order::recover, path);
    if (!answer.is_done) {
      if (!is_lost) fail(path + " cannot be recovered, with its journal beside it: " + answer.text);
      continue;
    }
    const auto found = stamp_of_file(path);
    if (!found.has_value() || !file.allowed.contains(*found))
      fail(path + " holds " + std::to_string(found.value_or(0)) + " at the end, not " +
           std::to_string(*file.allowed.begin()));
  }
}

std::string Round::run() {
  make();
  for (unsigned i = 0; i < kStepsMax && wrong_.empty(); ++i) step();
  if (wrong_.empty()) judge_at_the_end();
  if (!wrong_.empty()) return wrong_ + ":\n" + history_;
  clean_up();
  return {};
}

int run(const RoundsArguments& arguments) {
  ::setenv("PAWL_JOURNAL_SIZE", "65536", 0);
  const bool may_mount = ::unshare(CLONE_NEWNS) == 0 &&
                         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  std::string pattern = arguments.scratch + "/names-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) {
    std::printf("names: cannot make a directory in %s\n", arguments.scratch.c_str());
    return 2;
  }
  const std::string scratch = fs::canonical(pattern);
  Counts counts;
  Stamp next = 1;
  unsigned wrong = 0;
  for (std::uint64_t i = 0; i < arguments.rounds; ++i) {
    const std::string what =
        Round(scratch + "/round", arguments.seed + i, next, may_mount, counts).run();
    if (what.empty()) continue;
    wrong += 1;
    std::printf("seed %" PRIu64 ": %s\n", arguments.seed + i, what.c_str());
  }
  for (const char* const name : {"/round/shown", "/round/b/bound"})
    ::umount2((scratch + name).c_str(), MNT_DETACH);
  fs::remove_all(scratch);
  std::printf("{\"try\":\"names\",\"seed\":%" PRIu64 ",\"rounds\":%" PRIu64
              ",\"bind_mounts\":%s,\"opened\":%" PRIu64 ",\"busy\":%" PRIu64 ",\"refused\":%" PRIu64
              ",\"recovered\":%" PRIu64 ",\"commits\":%" PRIu64 ",\"kills\":%" PRIu64
              ",\"wrong\":%u}\n",
              arguments.seed, arguments.rounds, may_mount ? "true" : "false", counts.opened,
              counts.busy, counts.refused, counts.recovered, counts.commits, counts.kills, wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace pawl::test

int main(int count, char** values) {
  constexpr std::uint64_t kRoundsByDefault = 100;
  return pawl::test::run(pawl::test::parse_rounds(count, values, kRoundsByDefault));
}
