// Hostile directories: one user puts whatever it may into a folder where the files of others are,
// and those and root open, recover and copy what is there.  Nobody's file may change but by its own
// commits, nothing may hang, and what is refused says why.
//
//   hostile [--rounds N] [--seed S] [--scratch DIR]
//
// Prints what was lost with the seed of its round, and a summary in JSON.  Ends with 0; with 1 when
// something was lost, hung, or refused without a reason; with 77 where it cannot be tried.
#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "mapping/mapping.h"
#include "medium/block_medium.h"
#include "medium/descriptor.h"
#include "pawl/pawl.h"
#include "support/access_list.h"
#include "support/hostile_journals.h"
#include "support/rounds.h"
#include "workload/random.h"

namespace pawl::test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBytes = 2 * kPageBytes;
constexpr uid_t kRoot = 0;
constexpr uid_t kOwner = 51001;
constexpr uid_t kOther = 51002;  // in a group with kOwner
constexpr uid_t kHostile = 51003;
constexpr gid_t kShared = 52000;
constexpr unsigned kSecondsMax = 30;  // what takes longer hangs
constexpr int kSkipped = 77;
constexpr int kDied = 128;
enum Outcome : int { kDone = 0, kRefused = 1, kWithoutReason = 2, kCannot = 3 };

// What stands in the files: before, as the crash's last commit left it, as an opener commits.
constexpr char kBase = 'a';
constexpr char kCommitted = 'b';
constexpr char kOpened = 'c';
constexpr char kSecret = 's';
constexpr char kEvil = 'H';

int as_user(uid_t user, const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kSecondsMax);
    const gid_t shared = kShared;
    const std::size_t groups = user == kOwner || user == kOther ? 1 : 0;
    if (user != kRoot && (::setgroups(groups, &shared) != 0 || ::setresgid(user, user, user) != 0 ||
                          ::setresuid(user, user, user) != 0))
      ::_exit(kCannot);
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kDied + WTERMSIG(status);
}

bool make_file(const std::string& path, char value, uid_t owner, mode_t mode) {
  std::ofstream(path, std::ios::binary) << std::string(kBytes, value);
  return ::chown(path.c_str(), owner, owner == kRoot ? 0 : kShared) == 0 &&
         ::chmod(path.c_str(), mode) == 0;
}

// Everybody but this user may read and write the file; false where it can have no list of rights.
bool deny_by_list(const std::string& path, uid_t user) {
  constexpr std::uint16_t kBoth = ACL_READ | ACL_WRITE;
  return test::give_access_list(path, {{ACL_USER_OBJ, kBoth, test::kNoId},
                                       {ACL_USER, 0, user},
                                       {ACL_GROUP_OBJ, kBoth, test::kNoId},
                                       {ACL_MASK, kBoth, test::kNoId},
                                       {ACL_OTHER, kBoth, test::kNoId}});
}

Outcome refused() {
  constexpr std::size_t kReasonMin = 20;
  return std::strlen(pawl_last_error()) >= kReasonMin ? kRefused : kWithoutReason;
}

char* map_file(const std::string& path, pawl_group* group = nullptr) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_NONBLOCK);
  if (descriptor < 0) return nullptr;
  void* const at =
      group == nullptr
          ? pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0)
          : pawl_group_mmap(group, nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor,
                            0);
  ::close(descriptor);
  return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
}

// Commits a value in each of the files, which are in the group if there is one, and dies.
int commit_and_die(const std::vector<std::string>& paths, const std::string& group) {
  ::umask(0);  // all may write the file of the group
  pawl_group* const opened = group.empty() ? nullptr : pawl_group_open(group.c_str(), nullptr);
  if (opened == nullptr && !group.empty()) return kCannot;
  std::vector<char*> mapped;
  for (const std::string& path : paths) {
    char* const at = map_file(path, opened);
    if (at == nullptr) return kCannot;
    std::memset(at, kCommitted, kBytes);
    if (opened == nullptr && pawl_msync(at, kBytes, MS_SYNC) != 0) return kCannot;
  }
  if (opened != nullptr && pawl_group_msync(opened, MS_SYNC) != 0) return kCannot;
  ::raise(SIGKILL);
  return kCannot;
}

// One round: its files, who does what to them, and what must hold.
class Round {
 public:
  Round(std::string directory, std::uint64_t seed)
      : directory_(std::move(directory)), random_(static_cast<std::uint32_t>(seed)) {}

  // Empty when all went well.
  std::string run();
  std::size_t openings() const { return openings_; }
  std::size_t refusals() const { return refusals_; }

 private:
  struct Protected {
    std::string path;
    bool in_private;             // nobody else may remove its journal
    std::string expected;        // which values may stand in it
    FileIdentity identity = {};  // filled where others may give its name to another file
  };

  bool make();
  void change_as_hostile(std::uint64_t seed) const;
  std::string open_something();
  std::string judge() const;
  std::string judge_at_the_end();
  template <class Choices>
  auto one_of(const Choices& choices) {
    return choices[below(random_, choices.size())];
  }
  std::string shared(const std::string& name) const { return directory_ + "/shared/" + name; }
  std::string own(const std::string& name) const { return directory_ + "/private/" + name; }

  const std::string directory_;
  mutable Random random_;
  std::vector<Protected> protected_;
  std::size_t openings_ = 0;
  std::size_t refusals_ = 0;
};

bool Round::make() {
  std::error_code failure;
  fs::remove_all(directory_, failure);
  if (failure) fs::remove_all(directory_);  // a process that was killed had not ended yet
  fs::create_directories(directory_ + "/private");
  fs::create_directories(directory_ + "/shared");
  fs::create_directories(directory_ + "/copies");
  const std::array<mode_t, 5> modes = {0777, 01777, 02777, 03777, 0755};
  const mode_t mode = one_of(modes);
  const uid_t owner_of_shared = mode == 0755 ? kHostile : one_of(std::array{kRoot, kHostile});
  const bool made = ::chmod(directory_.c_str(), 0755) == 0 &&
                    ::chown((directory_ + "/private").c_str(), kOwner, kShared) == 0 &&
                    ::chown((directory_ + "/shared").c_str(), owner_of_shared, kShared) == 0 &&
                    ::chmod((directory_ + "/shared").c_str(), mode) == 0 &&
                    ::chmod((directory_ + "/copies").c_str(), 01777) == 0 &&
                    make_file(own("v0"), kBase, kOwner, 0644) &&
                    make_file(own("v1"), kBase, kOwner, 0644) &&
                    make_file(own("secret"), kSecret, kRoot, 0600);
  if (!made) return false;
  const mode_t mode_of_file = one_of(std::array<mode_t, 3>{0644, 0664, 0666});
  if (!make_file(shared("s0"), kBase, kOwner, mode_of_file)) return false;
  const bool v1_in_group = below(random_, 2) == 0;
  protected_ = {{own("v0"), true, "abc"}, {own("v1"), true, "abc"}, {own("secret"), true, "s"}};
  const Protected in_shared{shared("s0"), false, "abc", identity_of(shared("s0"))};
  if (mode_of_file != 0666) protected_.push_back(in_shared);
  const int died = kDied + SIGKILL;
  if (as_user(kOwner, [&] { return commit_and_die({own("v0")}, ""); }) != died) return false;
  if (v1_in_group &&
      as_user(kOwner, [&] { return commit_and_die({own("v1")}, own("group")); }) != died)
    return false;
  // Where it may not make a journal, the file stays as it was.
  const bool may_be_denied = mode_of_file == 0666 && below(random_, 2) == 0;
  const uid_t user = mode_of_file == 0644 ? kOwner
                     : may_be_denied      ? one_of(std::array{kOwner, kOther, kHostile})
                                          : one_of(std::array{kOwner, kOther});
  [[maybe_unused]] const int left =
      as_user(user, [&] { return commit_and_die({shared("s0")}, ""); });
  if (may_be_denied && deny_by_list(shared("s0"), kHostile)) protected_.push_back(in_shared);
  return true;
}

// As the hostile user: what may not be done is not done.
void Round::change_as_hostile(std::uint64_t seed) const {
  Random random(static_cast<std::uint32_t>(seed));
  const std::vector<std::string> names = {"s0.pawl", "s0.pawl.new", "evil", "evil.pawl", "s0",
                                          "link",    "link.pawl",   "away", "s0.pawl"};
  const std::vector<std::string> targets = {
      own("v0"),         own("v0.pawl"), own("v1"),    own("v1.pawl"),    own("group"),
      own("group.pawl"), own("secret"),  shared("s0"), shared("s0.pawl"), "s0",
      "../private/v0",   "link",         "/dev/tty"};
  const std::vector<std::string> victims = {own("v0"), own("v1"), shared("s0")};
  const auto name = [&] { return shared(names[below(random, names.size())]); };
  const auto target = [&] { return targets[below(random, targets.size())]; };
  const std::string content(kBytes, kEvil);
  // Not a pipe, at which it would wait itself.
  const auto may_be_written = [](const std::string& path) {
    std::error_code ignored;
    const auto status = fs::status(path, ignored);
    return !fs::exists(status) || fs::is_regular_file(status);
  };
  const auto copy = [&](const std::string& from, const std::string& to) {
    std::error_code ignored;
    constexpr std::uintmax_t kCopiedMax = 1 << 20;  // not one that was made long
    if (may_be_written(from) && may_be_written(to) && fs::file_size(from, ignored) < kCopiedMax)
      fs::copy_file(from, to, fs::copy_options::overwrite_existing, ignored);
  };
  constexpr int kChangesMax = 6;
  for (std::uint64_t left = 1 + below(random, kChangesMax); left > 0; --left) {
    const std::string at = name();
    constexpr int kKinds = 15;
    const std::uint64_t kind = below(random, kKinds);
    if (kind < 9 && below(random, 3) != 0) ::unlink(at.c_str());
    JournalId id{};
    const std::string victim = victims[below(random, victims.size())];
    [[maybe_unused]] const bool is_marked = read_marked_id(victim, id);
    const mode_t mode = below(random, 2) == 0 ? 0666 : 0644;
    int outcome = 0;
    switch (kind) {
      case 0:
        outcome = ::symlink(target().c_str(), at.c_str());
        break;
      case 1:
        outcome = ::mkfifo(at.c_str(), 0666);
        break;
      case 2:
        outcome = ::mkdir(at.c_str(), 0777);
        break;
      case 3:
        if (may_be_written(at)) std::ofstream(at) << content;
        break;
      case 4:
        copy(target(), at);
        break;
      case 5:
        outcome = ::link(target().c_str(), at.c_str());
        break;
      case 6: {  // far longer than it has bytes
        copy(target(), at);
        constexpr off_t kHuge = off_t{1} << 40;
        outcome = ::truncate(at.c_str(), kHuge);
        break;
      }
      case 7: {
        const int listening = ::socket(AF_UNIX, SOCK_STREAM, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        if (at.size() < sizeof address.sun_path) {
          std::memcpy(address.sun_path, at.c_str(), at.size());
          outcome = ::bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address);
        }
        ::close(listening);
        break;
      }
      case 8:
        outcome = ::rename(name().c_str(), at.c_str());
        break;
      case 9:
        ::unlink(shared("evil").c_str());
        ::unlink(shared("evil.pawl").c_str());
        outcome = make_journal_of_group(shared("evil"), target(), id, content, kBytes) ? 0 : -1;
        ::chmod(shared("evil.pawl").c_str(), mode);
        break;
      case 10: {
        const std::array<std::string, 4> ways = {"../private/v0", "../private/v1", "link", "s0"};
        for (const char* const old : {"link", "evil", "evil.pawl"}) ::unlink(shared(old).c_str());
        outcome = ::symlink(victim.c_str(), shared("link").c_str());
        outcome = make_journal_of_group(shared("evil"), ways[below(random, ways.size())], id,
                                        content, kBytes)
                      ? 0
                      : -1;
        break;
      }
      case 11:  // a new one, or in the place of the bytes that a crash left
        if (below(random, 2) == 0 || !may_be_written(shared("s0.pawl")))
          ::unlink(shared("s0.pawl").c_str());
        // What a file's mark says nobody has to guess: whoever may read the file, may read it.
        if (below(random, 2) == 0) read_marked_id(shared("s0"), id);
        outcome = make_journal_of_file(shared("s0"), id, content, kBytes) ? 0 : -1;
        ::chmod(shared("s0.pawl").c_str(), mode);
        break;
      case 12:
        ::unlink(shared("s0.pawl").c_str());
        outcome = make_side_file_of_member(shared("s0"), "evil", id) ? 0 : -1;
        ::chmod(shared("s0.pawl").c_str(), mode);
        break;
      case 13: {  // a file of its own with the mark of another
        std::array<char, 4096> mark{};
        const ssize_t length = ::getxattr(victim.c_str(), "user.pawl", mark.data(), mark.size());
        if (length > 0)
          outcome =
              ::setxattr(at.c_str(), "user.pawl", mark.data(), static_cast<std::size_t>(length), 0);
        break;
      }
      default:
        outcome = ::chmod(at.c_str(), mode);
        break;
    }
    [[maybe_unused]] const int done_or_not = outcome;
  }
}

// Somebody opens, recovers or copies one of the files.  A sentence when that went wrong.
std::string Round::open_something() {
  const uid_t user = one_of(std::array{kRoot, kRoot, kOwner, kOther});
  const std::vector<std::string> paths = {shared("s0"),   shared("s0"),   shared("evil"),
                                          shared("evil"), shared("link"), shared("s0.pawl"),
                                          own("v0"),      own("v1"),      own("group")};
  const std::string path = one_of(paths);
  const bool in_private = path.starts_with(directory_ + "/private/");
  constexpr int kWays = 5;
  const std::uint64_t way = below(random_, kWays);
  const std::string copy = directory_ + "/copies/" + std::to_string(openings_);
  const int outcome = as_user(user, [&]() -> int {
    switch (way) {
      case 0:
        return pawl_recover(path.c_str()) >= 0 ? kDone : refused();
      case 1: {
        if (in_private) return kDone;  // nothing of these may be lost
        auto medium = open_block_medium(path, false);
        if (!medium.ok()) return medium.status().text().empty() ? kWithoutReason : kRefused;
        const auto recovered = recover(*medium.value(), true);
        if (recovered.ok()) return kDone;
        return recovered.status().text().empty() ? kWithoutReason : kRefused;
      }
      case 2: {
        char* const at = map_file(path);
        if (at == nullptr) return kRefused;
        struct stat status{};
        // By a link it may be a journal, or the secret, that it maps: who then stores harms itself.
        const std::string_view stored_to{"abc"};
        if (::stat(path.c_str(), &status) == 0 && status.st_size == kBytes &&
            stored_to.find(at[0]) != std::string_view::npos) {
          std::memset(at, kOpened, kBytes);
          if (pawl_msync(at, kBytes, MS_SYNC) != 0) return refused();
        }
        return pawl_munmap(at, kBytes) == 0 ? kDone : refused();
      }
      case 3: {
        pawl_group* const group = pawl_group_open(path.c_str(), nullptr);
        if (group == nullptr) return refused();
        return pawl_group_close(group) == 0 ? kDone : refused();
      }
      default:
        return pawl_snapshot(path.c_str(), copy.c_str(), 0) == 0 ? kDone : refused();
    }
  });
  openings_ += 1;
  refusals_ += outcome == kRefused ? 1 : 0;
  if (outcome == kDone || outcome == kRefused) return {};
  return "user " + std::to_string(user) + ", way " + std::to_string(way) + " on " + path +
         (outcome == kDied + SIGALRM  ? " hung"
          : outcome == kWithoutReason ? " was refused without a reason"
                                      : " ended with " + std::to_string(outcome));
}

// Each protected file is as one of its own commits left it.
std::string Round::judge() const {
  for (const Protected& one : protected_) {
    // Once, for by its name it may be another one each time.
    const Descriptor file(::open(one.path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    struct stat status{};
    const std::string opened = "/proc/self/fd/" + std::to_string(file.get());
    // The hostile user may remove and replace what is in a folder that it may write.
    const bool is_another = !one.in_private && identity_of(opened) != one.identity;
    if (is_another) continue;
    if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
      return one.path + " is missing";
    const std::string content = content_of(opened);
    if (content.size() != kBytes || content != std::string(kBytes, content[0]) ||
        one.expected.find(content[0]) == std::string::npos)
      return one.path + " holds what no commit of its own left: " + content.substr(0, 8);
  }
  return {};
}

// What was acknowledged, and was never given up, is there.
std::string Round::judge_at_the_end() {
  // All may write it, and so give it a mark, with which it is another one: its owner takes that
  // away.
  [[maybe_unused]] const int ignored = ::removexattr(own("group").c_str(), "user.pawl");
  for (const char* const name : {"v0", "v1"}) {
    const std::string path = own(name);
    const auto recover_it = [&]() -> int {
      if (pawl_recover(path.c_str()) >= 0) return kDone;
      std::printf("%s\n", pawl_last_error());
      std::fflush(stdout);
      return kRefused;
    };
    if (as_user(kOwner, recover_it) != kDone) return path + " cannot be recovered any more";
  }
  const std::string first = content_of(own("v0"));
  if (first[0] != kCommitted && first[0] != kOpened) return own("v0") + " lost its commit";
  return judge();
}

std::string Round::run() {
  if (!make()) return "cannot make the files";
  // In some rounds the folder changes while others look at it.
  const bool is_racing = below(random_, 3) == 0;
  const std::uint64_t seed = random_();
  pid_t racing = 0;
  if (is_racing) {
    racing = ::fork();
    if (racing > 0) ::setpgid(racing, racing);
    if (racing == 0) {
      ::setpgid(0, 0);  // with its children, which go with it
      ::alarm(kSecondsMax);
      for (std::uint64_t more = seed;; ++more)
        as_user(kHostile, [&] {
          change_as_hostile(more);
          return kDone;
        });
    }
  }
  std::string found;
  constexpr int kOpeningsMax = 6;
  for (int i = 0; i < kOpeningsMax && found.empty(); ++i) {
    const std::uint64_t of_change = random_();
    if (!is_racing && as_user(kHostile, [&] {
                        change_as_hostile(of_change);
                        return kDone;
                      }) != kDone)
      found = "the hostile user hung";
    if (found.empty()) found = open_something();
    if (found.empty()) found = judge();
  }
  if (racing > 0) {
    ::kill(-racing, SIGKILL);
    ::waitpid(racing, nullptr, 0);
  }
  if (found.empty()) found = judge_at_the_end();
  return found;
}

int run(const RoundsArguments& arguments) {
  ::setenv("PAWL_JOURNAL_SIZE", "65536", 0);
  std::string pattern = arguments.scratch + "/hostile-XXXXXX";
  if (::geteuid() != 0 || ::mkdtemp(pattern.data()) == nullptr ||
      ::chmod(pattern.c_str(), 0755) != 0) {
    std::puts("hostile: to be several users takes root, and a directory that may be written");
    return kSkipped;
  }
  const std::string scratch = fs::canonical(pattern);
  const bool can_enter = as_user(kOwner, [&] {
                           return ::access(scratch.c_str(), X_OK) == 0 ? kDone : kRefused;
                         }) == kDone;
  std::size_t openings = 0;
  std::size_t refusals = 0;
  int found = 0;
  for (std::uint64_t i = 0; can_enter && i < arguments.rounds; ++i) {
    const std::uint64_t seed = arguments.seed + i;
    Round round(scratch + "/round", seed);
    const std::string what = round.run();
    openings += round.openings();
    refusals += round.refusals();
    if (what.empty()) continue;
    found += 1;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), what.c_str());
  }
  fs::remove_all(scratch);
  if (!can_enter) {
    std::puts("hostile: other users may not enter the scratch directory; choose one (--scratch)");
    return kSkipped;
  }
  std::printf(
      "{\"try\":\"hostile\",\"seed\":%llu,\"rounds\":%llu,\"openings\":%zu,\"refused\":%zu,"
      "\"lost\":%d}\n",
      static_cast<unsigned long long>(arguments.seed),
      static_cast<unsigned long long>(arguments.rounds), openings, refusals, found);
  return found == 0 ? 0 : 1;
}

}  // namespace
}  // namespace pawl::test

int main(int count, char** values) {
  constexpr std::uint64_t kRoundsByDefault = 30;
  return pawl::test::run(pawl::test::parse_rounds(count, values, kRoundsByDefault));
}
