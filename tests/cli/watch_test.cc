// pawl doctor -- COMMAND: what is seen of a program, that nothing else is, and that `pawl run` then
// does as was said.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "support/temporary_directory.h"

namespace pawl::test {
namespace {

using cli::kExitProtectedBut;
using cli::kExitUnsafe;

using nlohmann::json;
using Codes = std::set<std::string>;
using Words = std::vector<std::string>;

constexpr std::size_t kPage = 4096;
constexpr int kPatienceMs = 60'000;  // with what ends at once, or never

std::string from_environment(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) ADD_FAILURE() << name << " is not set";
  return value != nullptr ? value : "";
}

std::string watched_program() { return PAWL_WATCHED_PROGRAM; }

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t count_of(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++count;
  return count;
}

bool shows_stores(const std::string& directory) {
  struct statfs system{};
  return ::statfs(directory.c_str(), &system) == 0 && system.f_type != TMPFS_MAGIC;
}

struct Case {
  const char* what;
  Codes codes;
};

struct Seen {
  int code = -1;
  json answer;
  std::string err;

  // What was found of the files and of the program, but for the file system that the tests run on.
  Codes codes() const {
    Codes all;
    for (const json& finding : answer["findings"]) all.insert(finding["code"]);
    for (const json& file : answer["files"]) {
      for (const json& finding : file["findings"]) all.insert(finding["code"]);
    }
    all.erase("unsafe_directory");
    return all;
  }
  json file(const std::string& path) const {
    for (const json& one : answer["files"]) {
      if (one["path"] == path) return one;
    }
    ADD_FAILURE() << path << " is not in " << answer.dump(1);
    return {};
  }
  // What was seen of it, and why that matters.
  std::string text_of(const std::string& path, const std::string& wanted) const {
    const json one = file(path);
    for (const json& finding : one["findings"]) {
      if (finding["code"] == wanted)
        return finding["seen"].get<std::string>() + "; " + finding["why"].get<std::string>();
    }
    return {};
  }
};

Seen watch(const Words& command, const Words& options = {}) {
  Words words = {"doctor", "--json"};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  const Answer answer = pawl(words);
  Seen seen{answer.code, json::parse(answer.out, nullptr, false), answer.err};
  EXPECT_FALSE(seen.answer.is_discarded()) << answer.out << answer.err;
  return seen;
}

class Watch : public ::testing::Test {
 protected:
  void SetUp() override {
    const Answer trial = pawl({"doctor", "--", "/bin/true"});
    if (trial.code == 1 && contains(trial.err, "ptrace")) GTEST_SKIP() << trial.err;
    const Answer of_directory = pawl({"doctor", "--json", directory_.path().string()});
    directory_is_safe_ = of_directory.code == 0;
  }
  Words doing(const std::string& what) const { return {watched_program(), what, file_}; }
  // 0 where the directory is safe: on others each file has a finding.
  int fine() const { return directory_is_safe_ ? 0 : kExitProtectedBut; }

  const TemporaryDirectory directory_;
  const std::string file_ = directory_ / "data.db";
  bool directory_is_safe_ = true;
};

// ------------------------------------------------------------------------ what can be protected

TEST_F(Watch, FindsNothingInAGoodProgram) {
  const Seen seen = watch(doing("good"));
  EXPECT_EQ(seen.codes(), Codes{}) << seen.answer.dump(1);
  EXPECT_EQ(seen.code, fine());
  const json file = seen.file(file_);
  EXPECT_EQ(file["mappings"], 1);
  EXPECT_EQ(file["writable"], true);
  EXPECT_EQ(file["synchronisations"], json({{"msync", 2}}));
  EXPECT_EQ(seen.answer["ended"]["exit_code"], 0);
  EXPECT_EQ(seen.answer["limits"], json::array());
}

TEST_F(Watch, CountsHowAFileGrowsAndIsWritten) {
  const Seen seen = watch(doing("grow"));
  EXPECT_EQ(seen.codes(), Codes{}) << seen.answer.dump(1);
  const json file = seen.file(file_);
  EXPECT_EQ(file["changes"], json({{"ftruncate", 1}, {"mremap", 1}, {"pwrite", 1}}));
  EXPECT_EQ(file["synchronisations"], json({{"fdatasync", 1}, {"msync", 1}}));
  EXPECT_EQ(file["first_size_bytes"], 4 * kPage);
  EXPECT_EQ(file["last_size_bytes"], 8 * kPage);
  EXPECT_EQ(file["longest_mapping_bytes"], 8 * kPage);
}

// Two writers of libc's functions are told apart from stdio by their callers only, and in a program
// of several threads those functions keep other things on their stacks.
TEST_F(Watch, FindsNothingInThreads) {
  const Seen seen = watch(doing("threads"));
  EXPECT_EQ(seen.codes(), Codes{}) << seen.answer.dump(1);
  EXPECT_EQ(seen.file(file_)["synchronisations"], json({{"msync", 34}}));
}

TEST_F(Watch, FindsNothingWhereAFileIsReadAfterItWasLetGo) {
  const Seen seen = watch(doing("reads_later"));
  EXPECT_EQ(seen.codes(), Codes{"synchronised_once"}) << seen.answer.dump(1);
}

// The line that was suggested named the file as it was called first, which no later run uses.
TEST_F(Watch, NamesEachNameThatAFileIsMappedUnder) {
  const Seen seen = watch(doing("renames"));
  EXPECT_EQ(seen.codes(), Codes{"renamed"}) << seen.answer.dump(1);
  EXPECT_EQ(seen.code, kExitProtectedBut);
  const json file = seen.answer["files"][0];
  EXPECT_EQ(file["names"].size(), 2u);
  EXPECT_EQ(file["names"][1], file_);
  EXPECT_TRUE(contains(file["run"], "--atomic '" + file_ + "' -- ")) << file["run"];
  // Its first name is another one in each run.
  EXPECT_TRUE(contains(file["run"], "--atomic '" + file_ + ".new-*' ")) << file["run"];
}

TEST_F(Watch, NamesNumberedFilesByOneGlob) {
  const Seen seen = watch({watched_program(), "many", file_, "12"});
  EXPECT_EQ(seen.answer["run"], "pawl run --atomic '" + file_ + ".*' -- " + watched_program() +
                                    " many " + file_ + " 12");
  EXPECT_LE(seen.answer["findings"].size(), 1u) << seen.answer["findings"].dump(1);
}

TEST_F(Watch, FollowsAChainOfPrograms) {
  const std::string command = watched_program() + " exec x " + watched_program() + " good " + file_;
  const Seen seen = watch({"sh", "-c", command + "; " + command + "; true"});
  EXPECT_EQ(seen.codes(), Codes{}) << seen.answer.dump(1);
  EXPECT_EQ(seen.file(file_)["mappings"], 2);
  EXPECT_EQ(seen.answer["processes"], 3);
}

TEST_F(Watch, TellsOfASignalThatEndedTheProgram) {
  const Seen seen = watch(doing("killed"));
  EXPECT_EQ(seen.codes(), Codes{"killed"}) << seen.answer.dump(1);
  EXPECT_EQ(seen.code, fine());
  EXPECT_EQ(seen.answer["ended"]["signal"], SIGKILL);
}

TEST_F(Watch, NamesFilesThatAreSynchronisedInOneGo) {
  const std::string other = directory_ / "other.db";
  const Seen seen = watch({watched_program(), "both", file_, other});
  EXPECT_EQ(seen.codes(), Codes{"in_one_go"}) << seen.answer.dump(1);
  EXPECT_EQ(seen.code, fine());
  EXPECT_TRUE(
      contains(seen.answer["run"], "--atomic '" + file_ + "' --atomic '" + other + "' -- "));
}

// ------------------------------------------------------------------------ what cannot

TEST_F(Watch, FindsEachThingThatPawlRefusesAndNothingElse) {
  const std::vector<Case> cases = {
      {"raw", {"raw_call"}},
      {"namespace", {"raw_call"}},
      {"fork_writes", {"forked_child"}},
      {"daemon", {"daemon"}},
      // The other process sets the file's size before it maps it.
      {"other_maps", {"second_process", "other_process"}},
      {"other_writes", {"other_process"}},
      {"stream", {"stream"}},
      {"stream_writes", {"stream"}},
      {"dup_beneath_stream", {"stream"}},
      {"dup_beneath_output", {"stream"}},
      {"two_mappings", {"second_mapping"}},
      {"posix_aio", {"inside_libc"}},
      {"fixed", {"fixed_over_part"}},
      {"collapse", {"move_blocks"}},
      {"clone", {"share_blocks"}},
      {"two_names", {"several_names"}},
      {"pass_on", {"passed_on"}},
      {"remap_part", {"remap_part"}},
      {"file_pages", {"remap_file_pages"}},
      {"unmaps_too_late", {"second_mapping"}},
      {"sandbox", {"sandbox"}},
  };
  for (const Case& one : cases) {
    std::filesystem::remove(file_);
    const Seen seen = watch(doing(one.what));
    EXPECT_EQ(seen.codes(), one.codes) << one.what << seen.answer.dump(1) << seen.err;
    EXPECT_EQ(seen.code, kExitUnsafe) << one.what;
    const json file = seen.file(file_);
    EXPECT_EQ(file["verdict"], "cannot") << one.what;
    EXPECT_EQ(file["run"], "") << one.what;
    for (const json& finding : file["findings"]) {
      EXPECT_FALSE(finding["why"].get<std::string>().empty()) << one.what;
      EXPECT_FALSE(finding["advice"].get<std::string>().empty()) << one.what;
    }
  }
}

TEST_F(Watch, FindsEachThingThatPawlDoesOtherwiseAndNothingElse) {
  const std::vector<Case> cases = {
      {"fork_reads", {"inherited"}},
      {"fork_unmaps", {"inherited"}},
      {"other_reads", {"reader"}},
      {"store_only", {"never_synchronised"}},
      {"hint_only", {"never_synchronised"}},
      {"later_only", {"only_asynchronous"}},
      {"sync_only", {"synchronised_by_sync"}},
      {"sandbox_refuses", {"sandbox"}},
      {"unmaps_late", {"late_unmapping"}},
      {"uring", {"io_uring"}},
      {"pinned_buffers", {"pinned_buffers"}},
      {"ask", {"asks_for_pawl"}},
  };
  for (const Case& one : cases) {
    std::filesystem::remove(file_);
    const Seen seen = watch(doing(one.what));
    EXPECT_EQ(seen.codes(), one.codes) << one.what << seen.answer.dump(1) << seen.err;
    EXPECT_EQ(seen.code, kExitProtectedBut) << one.what;
    EXPECT_NE(seen.file(file_)["verdict"], "cannot") << one.what;
  }
}

TEST_F(Watch, SeesThatAProgramIsStatic) {
  const Seen seen = watch({std::string(PAWL_WATCHED_STATIC_PROGRAM), "good", file_});
  EXPECT_EQ(seen.codes(), Codes{"static_program"}) << seen.answer.dump(1);
  EXPECT_EQ(seen.file(file_)["verdict"], "cannot");
}

TEST_F(Watch, SeesThatAProgramIsStartedWithAnotherEnvironment) {
  const Seen seen = watch({"env", "-i", watched_program(), "good", file_});
  EXPECT_EQ(seen.codes(), Codes{"own_environment"}) << seen.answer.dump(1);
}

// Doctor said yes, and under run the program that maps the file ran without the library.
TEST_F(Watch, SeesThatLdPreloadIsReplacedOrRemovedOnTheWay) {
  for (const std::string change : {"LD_PRELOAD=libc.so.6 ", "unset LD_PRELOAD; "}) {
    const std::string script = change + watched_program() + " good " + file_ + "; true";
    const Seen seen = watch({"sh", "-c", script});
    EXPECT_EQ(seen.codes(), Codes{"own_preload"}) << change << seen.answer.dump(1);
    EXPECT_EQ(seen.file(file_)["verdict"], "cannot") << change;
  }
  const std::string adds = "LD_PRELOAD=libc.so.6:$LD_PRELOAD " + watched_program();
  const Seen seen = watch({"sh", "-c", adds + " good " + file_ + "; true"});
  EXPECT_EQ(seen.codes(), Codes{}) << seen.answer.dump(1) << seen.err;
}

// The same where the variables arrive and the library is not there.
TEST_F(Watch, SeesThatARootDirectoryLacksTheLibrary) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can change its root directory";
  const std::string root = directory_ / "root";
  for (const std::string path :
       {"/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"}) {
    if (::access(path.c_str(), F_OK) != 0) GTEST_SKIP() << "no " << path;
    std::filesystem::create_directories(root + path.substr(0, path.rfind('/')));
    std::filesystem::copy_file(path, root + path);
  }
  std::filesystem::copy_file(watched_program(), root + "/program");
  const Seen seen = watch({"chroot", root, "/program", "good", "/data.db"});
  EXPECT_EQ(seen.codes(), Codes{"other_root"}) << seen.answer.dump(1) << seen.err;
  const json file = seen.file(root + "/data.db");
  EXPECT_EQ(file["names"], json({"/data.db"}));
}

// Doctor and run called the loader a static program.
TEST_F(Watch, FollowsAProgramThatTheLoaderStarts) {
  const std::string loader = "/lib64/ld-linux-x86-64.so.2";
  if (::access(loader.c_str(), X_OK) != 0) GTEST_SKIP() << "no " << loader;
  const Seen seen = watch({loader, watched_program(), "good", file_});
  EXPECT_EQ(seen.codes(), Codes{}) << seen.answer.dump(1);
  const Answer run =
      pawl({"run", "--atomic", "*.db", "--", loader, watched_program(), "two_mappings", file_});
  EXPECT_EQ(run.code, 3) << run.err;
}

TEST_F(Watch, SeesThatAProgramGainsPrivileges) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make one";
  const std::string program = directory_ / "privileged";
  std::filesystem::copy_file(watched_program(), program);
  // Of another group: it is root's still, so that it can use the file.
  ASSERT_EQ(::chown(program.c_str(), 0, 65534), 0);
  ASSERT_EQ(::chmod(program.c_str(), 02755), 0);
  const Seen seen = watch({watched_program(), "exec", "x", program, "good", file_});
  EXPECT_EQ(seen.codes(), Codes{"set_user_id"}) << seen.answer.dump(1);
  EXPECT_EQ(seen.file(file_)["verdict"], "cannot");

  ASSERT_EQ(::chown(program.c_str(), 65534, 0), 0);
  ASSERT_EQ(::chmod(program.c_str(), 04755), 0);
  const Seen maps_nothing = watch({watched_program(), "exec", "x", program});
  EXPECT_EQ(maps_nothing.codes(), (Codes{"not_preloadable", "nothing_mapped"}));
}

TEST_F(Watch, SeesAProcessThatTheProgramDidNotStart) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string program = watched_program();
  const pid_t other = ::fork();
  if (other == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::execl(program.c_str(), program.c_str(), "stay", file_.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  char ready = 0;
  ASSERT_EQ(::read(ends[0], &ready, 1), 1);
  ::close(ends[0]);
  const Seen seen = watch(doing("good"));
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  EXPECT_EQ(seen.codes(), Codes{"outsider"}) << seen.answer.dump(1);
  EXPECT_TRUE(contains(seen.file(file_)["findings"][0]["seen"], std::to_string(other)));
  EXPECT_EQ(watch(doing("good")).codes(), Codes{});
}

// A temporary file was said to be had by a stranger, who had got its number after it was removed.
TEST_F(Watch, TookWhoGotTheNumberOfARemovedFileForAStranger) {
  constexpr int kTakenMax = 2000;
  const pid_t taker = ::fork();
  if (taker == 0) {
    for (int i = 0; i < kTakenMax; ++i) {
      const std::string name = directory_ / ("taken" + std::to_string(i));
      ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
      ::usleep(1000);
    }
    ::pause();
  }
  const Seen seen = watch(doing("temporaries"));
  ::kill(taker, SIGKILL);
  ::waitpid(taker, nullptr, 0);
  EXPECT_EQ(seen.codes().count("outsider"), 0u) << seen.answer.dump(1);
}

TEST_F(Watch, SaysThatAFileLivesInMemory) {
  const TemporaryDirectory memory("/dev/shm");
  if (pawl({"doctor", memory.path().string()}).code != kExitUnsafe)
    GTEST_SKIP() << "/dev/shm is no tmpfs";
  const Seen seen = watch({watched_program(), "good", memory / "data.db"});
  EXPECT_EQ(seen.file(memory / "data.db")["findings"][0]["code"], "unsafe_directory");
  EXPECT_EQ(seen.code, kExitProtectedBut);
}

// ------------------------------------------------------------------------ what is judged

TEST_F(Watch, JudgesOnlyWhatIsAskedFor) {
  const std::string other = directory_ / "other.log";
  const Words both = {watched_program(), "both", file_, other};
  for (const std::string& glob : Words{"*.db", directory_.path().string() + "/da*"}) {
    const Seen seen = watch(both, {"--atomic", glob});
    EXPECT_EQ(seen.answer["files"].size(), 1u) << glob;
    EXPECT_EQ(seen.file(file_)["verdict"], fine() == 0 ? "can" : "can, but") << glob;
    EXPECT_EQ(seen.codes(), Codes{}) << glob;
  }
  const Seen nothing = watch(both, {"--atomic", "*.nothing"});
  EXPECT_EQ(nothing.codes(), Codes{"nothing_mapped"});
  EXPECT_EQ(nothing.code, kExitUnsafe);
}

TEST_F(Watch, SeesThatAProgramCallsPawlByItself) {
  const Seen seen = watch({PAWL_CALLING_PROGRAM, file_});
  EXPECT_EQ(seen.codes(), Codes{"calls_pawl"}) << seen.answer.dump(1);
  EXPECT_EQ(seen.code, 0);
  EXPECT_EQ(seen.answer["ended"]["exit_code"], 0);
}

TEST_F(Watch, AFileOfSectionsNeedsNoProtectionAndIsNotOffered) {
  const std::string file = directory_ / "new.sections";
  for (int run = 0; run < 2; ++run) {  // it is made by the first
    const Seen seen = watch({PAWL_CALLING_PROGRAM, file, "sections"});
    EXPECT_EQ(seen.codes(), Codes{"file_of_sections"}) << seen.answer.dump(1);
    EXPECT_EQ(seen.code, 0);
    EXPECT_EQ(seen.file(file)["verdict"], "not needed");
  }
  const Answer answer = pawl({"doctor", "--", PAWL_CALLING_PROGRAM, file, "sections"});
  EXPECT_TRUE(contains(answer.out, "It needs no protection:")) << answer.out;
  EXPECT_FALSE(contains(answer.out, "pawl run --atomic")) << answer.out;
}

TEST_F(Watch, SaysWhenMoreFilesAreMappedThanItRemembers) {
  const Seen seen = watch({watched_program(), "many", file_, "257"});
  EXPECT_EQ(seen.answer["files"].size(), 256u);
  bool is_told = false;
  for (const json& limit : seen.answer["limits"]) {
    is_told = is_told || contains(limit, "more than 256 files");
  }
  EXPECT_TRUE(is_told) << seen.answer["limits"].dump(1);
}

TEST_F(Watch, AnswersInWords) {
  const Answer good = pawl({"doctor", "--", watched_program(), "good", file_});
  EXPECT_EQ(good.code, fine());
  EXPECT_TRUE(contains(good.out, "Pawl can protect it")) << good.out;
  EXPECT_TRUE(contains(good.out, "pawl run --atomic '" + file_ + "' -- " + watched_program() +
                                     " good " + file_ + "\n"))
      << good.out;
  const Answer bad = pawl({"doctor", "--", watched_program(), "two_mappings", file_});
  EXPECT_EQ(bad.code, kExitUnsafe);
  EXPECT_TRUE(contains(bad.out, "Pawl cannot protect it:")) << bad.out;
  EXPECT_TRUE(contains(bad.out, "second_mapping")) << bad.out;
  EXPECT_TRUE(contains(bad.out, "What to do: ")) << bad.out;
}

// ------------------------------------------------------------------------ the program's own life

TEST_F(Watch, LeavesSignalsAndStopsToTheProgram) {
  const Seen trapped = watch({"sh", "-c", "trap 'echo caught' USR1; kill -USR1 $$; exit 5"});
  EXPECT_EQ(trapped.answer["ended"]["exit_code"], 5);
  EXPECT_EQ(trapped.err, "caught\n");  // its own output, for the answer is on the standard output
  const Seen stopped = watch(doing("stop_child"));
  EXPECT_EQ(stopped.answer["ended"]["exit_code"], 6);
}

TEST_F(Watch, TakesTheProgramAlongWhenItIsKilled) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const std::string command = from_environment("PAWL_COMMAND");
  const std::string program = watched_program();
  const pid_t doctor = ::fork();
  if (doctor == 0) {
    ::setpgid(0, 0);  // to end what should have ended
    ::dup2(ends[1], STDOUT_FILENO);
    ::execl(command.c_str(), command.c_str(), "doctor", "--", program.c_str(), "stay",
            file_.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  char ready = 0;
  ASSERT_EQ(::read(ends[0], &ready, 1), 1);
  ::kill(doctor, SIGKILL);
  ::waitpid(doctor, nullptr, 0);
  // The pipe ends when nobody has it any more, the program included.
  pollfd end{ends[0], POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, kPatienceMs), 1) << "the program lives on";
  ::kill(-doctor, SIGKILL);
  EXPECT_EQ(::read(ends[0], &ready, 1), 0);
  ::close(ends[0]);
}

TEST_F(Watch, RefusesWhatCannotBeWatched) {
  EXPECT_EQ(pawl({"doctor", "--"}).code, 2);
  EXPECT_EQ(pawl({"doctor", "/tmp", "--", "/bin/true"}).code, 2);
  EXPECT_EQ(pawl({"doctor", "--atomic", "*"}).code, 2);
  EXPECT_EQ(pawl({"doctor", "--", "no-such-program-anywhere"}).code, 127);
  EXPECT_EQ(pawl({"doctor", "--", "/etc/passwd"}).code, 126);
  const std::string strange = directory_ / "strange";
  write_file(strange, "neither a script nor a program");
  ASSERT_EQ(::chmod(strange.c_str(), 0755), 0);
  EXPECT_EQ(pawl({"doctor", "--", strange}).code, 126);
}

TEST(WatchRefuses, WherePtraceIsForbidden) {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  const std::string line = std::string(PAWL_WITHOUT_PTRACE) + " " +
                           from_environment("PAWL_COMMAND") + " doctor -- /bin/true >" + out +
                           " 2>&1";
  const int status = std::system(line.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_TRUE(contains(read_file(out), "SYS_PTRACE")) << read_file(out);
}

// What the doctor picks failed with ENOSYS in a thread that asks not to be traced; LeakSanitizer
// waited for such a one for ever, and the doctor with it.
TEST_F(Watch, HungOnAThreadThatAsksNotToBeTraced) {
  const Seen seen = watch(doing("untraced"));
  EXPECT_EQ(seen.answer["ended"]["exit_code"], 0) << seen.err;
  EXPECT_EQ(seen.codes(), Codes{}) << seen.answer.dump(1);
  EXPECT_EQ(seen.file(file_)["synchronisations"], json({{"msync", 3}}));
}

TEST_F(Watch, SeesThatAProgramIsBuiltWithASanitizer) {
  const std::string any = "/lib/x86_64-linux-gnu/libm.so.6";
  if (::access(any.c_str(), F_OK) != 0) GTEST_SKIP() << "no " << any;
  const std::string runtime = directory_ / "libasan.so.8";
  std::filesystem::copy_file(any, runtime);
  const Seen seen = watch({"sh", "-c",
                           "LD_PRELOAD=$LD_PRELOAD:" + runtime + " " + watched_program() +
                               " good " + file_ + "; true"});
  EXPECT_EQ(seen.codes(), Codes{"sanitizer"}) << seen.answer.dump(1);
  EXPECT_EQ(seen.file(file_)["verdict"], "cannot");
}

// ------------------------------------------------------------------------ and then pawl run

TEST_F(Watch, SaysFineOfWhatRunThenKeepsThroughAKill) {
  const Seen seen = watch(doing("killed"), {"--atomic", "*.db"});
  EXPECT_EQ(seen.file(file_)["verdict"], fine() == 0 ? "can" : "can, but");
  // Without Pawl the store that was never synchronised is in the file.
  EXPECT_EQ(read_file(file_)[0], 100);
  std::filesystem::remove(file_);
  std::string line = seen.file(file_)["run"];
  ASSERT_TRUE(line.starts_with("pawl run --atomic '")) << line;
  line = from_environment("PAWL_COMMAND") + line.substr(4);
  const int status = std::system(line.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGKILL);
  EXPECT_EQ(pawl({"recover", file_}).code, 0);
  EXPECT_EQ(read_file(file_)[0], 1);
  EXPECT_EQ(read_file(file_)[kPage], 1);
}

TEST_F(Watch, AgreesWithRun) {
  for (const char* what : {"good", "grow", "threads", "sandbox_of_others"}) {
    std::filesystem::remove(file_);
    EXPECT_EQ(watch(doing(what)).code, fine()) << what;
    std::filesystem::remove(file_);
    EXPECT_EQ(pawl({"run", "--atomic", "*.db", "--", watched_program(), what, file_}).code, 0)
        << what;
  }
  // The second mapping was refused, though the first was about to go.
  std::filesystem::remove(file_);
  EXPECT_EQ(pawl({"run", "--atomic", "*.db", "--", watched_program(), "unmaps_late", file_}).code,
            0);
  for (const char* what :
       {"fork_writes", "other_maps", "unmaps_too_late", "stream", "stream_writes",
        "dup_beneath_stream", "dup_beneath_output", "two_mappings", "posix_aio", "fixed",
        "collapse", "clone", "two_names", "remap_part", "file_pages"}) {
    std::filesystem::remove(file_);
    EXPECT_EQ(watch(doing(what)).file(file_)["verdict"], "cannot") << what;
    std::filesystem::remove(file_);
    const Answer answer = pawl({"run", "--atomic", "*.db", "--", watched_program(), what, file_});
    EXPECT_EQ(answer.code, 3) << what << answer.err;
    EXPECT_TRUE(contains(answer.err, "pawl: ")) << what << answer.err;
  }
}

// Doctor said yes to a program whose standard output is the file that it maps.
TEST_F(Watch, AgreesWithRunOnAStandardStream) {
  write_file(file_, "");
  const std::string line = watched_program() + " good " + file_ + " >>" + file_;
  EXPECT_EQ(watch({"sh", "-c", line + "; true"}).codes(), Codes{"stream"});
  const Answer run = pawl({"run", "--atomic", "*.db", "--", "sh", "-c", line});
  EXPECT_EQ(run.code, 3) << run.err;
}

// Doctor said yes to what is mapped by the descriptor of a stream, unless fopen() had opened it:
// Perl's Sys::Mmap, faiss.
TEST_F(Watch, AgreesWithRunOnEachWayToAStream) {
  for (const char* what : {"fdopen", "fopen", "freopen", "fdopen_mapped"}) {
    std::filesystem::remove(file_);
    EXPECT_EQ(watch(doing(what)).codes(), Codes{"stream"}) << what;
    std::filesystem::remove(file_);
    const Answer run = pawl({"run", "--atomic", "*.db", "--", watched_program(), what, file_});
    EXPECT_EQ(run.code, 3) << what << run.err;
  }
  EXPECT_EQ(watch(doing("after_a_stream")).codes(), Codes{});
  EXPECT_EQ(
      pawl({"run", "--atomic", "*.db", "--", watched_program(), "after_a_stream", file_}).code, 0);
  // Standard input, too, where it is the file that is mapped.
  const std::string line = watched_program() + " good " + file_ + " <>" + file_;
  EXPECT_EQ(watch({"sh", "-c", line + "; true"}).codes(), Codes{"stream"});
  EXPECT_EQ(pawl({"run", "--atomic", "*.db", "--", "sh", "-c", line}).code, 3);
}

// Doctor said yes, and the call failed: Pawl has threads.
TEST_F(Watch, AgreesWithRunOnAUserNamespace) {
  if (pawl({"run", "--atomic", "*.none", "--", watched_program(), "unshare_user", file_}).code != 0)
    GTEST_SKIP() << "no user namespaces here";
  EXPECT_EQ(watch(doing("unshare_user")).codes(), Codes{"unshares"});
  EXPECT_EQ(pawl({"run", "--atomic", "*.db", "--", watched_program(), "unshare_user", file_}).code,
            3);
}

// Doctor said yes, and the program was killed in its next msync().
TEST_F(Watch, AgreesWithRunOnASandbox) {
  EXPECT_EQ(pawl({"run", "--atomic", "*.db", "--", watched_program(), "sandbox", file_}).code,
            128 + SIGSYS);
  // Of a file that has its space no commit reserves any.
  const Words refuses = {"run",
                         "--atomic",
                         "*.db",
                         "--",
                         watched_program(),
                         "sandbox_refuses",
                         directory_ / "other.db"};
  EXPECT_EQ(pawl(refuses).code, 0);
}

// The same with a bound on descriptors; 5 files take 35 of Pawl's.
TEST_F(Watch, CountsPawlsDescriptors) {
  const std::string line = "ulimit -n 40; exec " + watched_program() + " at_once " + file_ + " ";
  for (const char* files : {"3", "6"}) {
    const Seen seen = watch({"sh", "-c", line + files});
    const Answer run =
        pawl({"run", "--journal-size", "1M", "--atomic", "*.db.*", "--", "sh", "-c", line + files});
    const bool fits = std::string(files) == "3";
    EXPECT_EQ(seen.codes().contains("descriptors"), !fits) << seen.answer.dump(1);
    EXPECT_EQ(run.code, fits ? 0 : 3) << run.err;
  }
}

// Files of 16 KiB, whose journals begin with 64.
TEST_F(Watch, CountsTheSpaceOfJournals) {
  ASSERT_EQ(::setenv("PROGRAM", watched_program().c_str(), 1), 0);
  const Answer answer = with_own_mounts(
      "mount -t tmpfs -o size=188K none \"$0\" || exit 77\n"
      "for files in 2 3; do\n"
      "  \"$PAWL_COMMAND\" doctor -- \"$PROGRAM\" at_once \"$0/data.db\" $files | grep -c "
      "journal_space\n"
      "  \"$PAWL_COMMAND\" run --atomic '*.db.*' -- \"$PROGRAM\" at_once \"$0/data.db\" $files "
      ">/dev/null 2>&1; echo $?\n"
      "  rm -f \"$0\"/*\n"
      "done\n",
      directory_.path().string());
  if (answer.code == kNoMounts) GTEST_SKIP() << "no mounts here";
  EXPECT_TRUE(answer.out.starts_with("0\n0\n")) << answer.out << answer.err;
  EXPECT_TRUE(answer.out.ends_with("\n3\n")) << answer.out << answer.err;
  EXPECT_FALSE(answer.out.ends_with("\n0\n3\n")) << answer.out << answer.err;
}

// 32 KiB are less than a journal begins with; 64 are enough for that, and not for all of the file.
TEST_F(Watch, DidNotKnowTheLimitOfAFilesSize) {
  struct Limited {
    const char* kibibytes;
    const char* what;
    const char* weight;
    int code;
  };
  for (const auto& [kibibytes, what, weight, code] : {Limited{"32", "good", "cannot", 3},
                                                      {"64", "change_all", "but", 3},
                                                      {"64", "good", "", 0}}) {
    const Words command = {"bash", "-c",
                           std::string("ulimit -f ") + kibibytes + "; exec " + watched_program() +
                               " " + what + " " + file_};
    const Seen seen = watch(command);
    std::string found;
    const json file = seen.file(file_);
    for (const json& finding : file["findings"]) {
      if (finding["code"] == "size_limit") found = finding["weight"];
    }
    EXPECT_EQ(found, weight) << seen.answer.dump(1);
    std::filesystem::remove(file_);
    Words run = {"run", "--atomic", "*.db", "--"};
    run.insert(run.end(), command.begin(), command.end());
    const Answer answer = pawl(run);
    EXPECT_EQ(answer.code, code) << answer.err;
  }
}

// Of a process that has nothing to do with the program, and a file of a server that stands still.
TEST_F(Watch, WaitedForAFileServerOfAnotherProcess) {
  const std::string served = directory_ / "served";
  const std::string mounted = directory_ / "mounted";
  std::filesystem::create_directory(served);
  std::filesystem::create_directory(mounted);
  std::ofstream(served + "/file") << "x";
  const std::string script =
      "command -v bindfs >/dev/null || exit 77\n"
      "bindfs -f -o attr_timeout=0 \"$1\" \"$2\" & server=$!\n"
      "for i in $(seq 100); do [ -e \"$2/file\" ] && break; sleep 0.1; done\n"
      "[ -e \"$2/file\" ] || { kill $server; exit 77; }\n"
      "sleep 300 <>\"$2/file\" & other=$!\n"
      "sleep 0.2; kill -STOP $server\n"
      "timeout -s KILL 30 \"$PAWL_COMMAND\" doctor -- \"$3\" good \"$4\" >/dev/null; code=$?\n"
      "kill -CONT $server; kill $other; wait $other; umount \"$2\"; wait $server\n"
      "exit $code\n";
  const int status = std::system(("exec bash -c '" + script + "' bash " + served + " " + mounted +
                                  " " + watched_program() + " " + file_ + " 2>/dev/null")
                                     .c_str());
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoMounts) GTEST_SKIP() << "no file system in user space here";
  EXPECT_EQ(WEXITSTATUS(status), fine());
}

TEST_F(Watch, PrintedTheNameOfAFileAsItIs) {
  const std::string file = directory_ / "x\nPawl can protect all of it as it is.\x1b[8m";
  const Answer answer = pawl({"doctor", "--", watched_program(), "good", file});
  EXPECT_FALSE(contains(answer.out, "\x1b")) << answer.out;
  EXPECT_TRUE(contains(answer.out, "/x\\nPawl can protect all of it as it is.\\x1b[8m\n"))
      << answer.out;
}

// Doctor spoke of writing instead of fallocate(2), which nothing does.
TEST_F(Watch, SeesThatAFileSystemCannotReserveSpace) {
  const std::string image = directory_ / "image";
  const std::string mounted = directory_ / "mounted";
  std::filesystem::create_directory(mounted);
  const std::string make = "truncate -s 100M " + image + " && mkfs.ext2 -q " + image +
                           " && mount -o loop " + image + " " + mounted;
  if (std::system((make + " 2>/dev/null").c_str()) != 0) GTEST_SKIP() << "no ext2 here";
  const std::string file = mounted + "/data.db";
  const Seen seen = watch({watched_program(), "good", file});
  const Answer of_directory = pawl({"doctor", mounted});
  const Answer run = pawl({"run", "--atomic", "*.db", "--", watched_program(), "good", file});
  EXPECT_EQ(std::system(("umount " + mounted).c_str()), 0);
  EXPECT_EQ(seen.codes(), Codes{"no_reservation"}) << seen.answer.dump(1);
  EXPECT_EQ(of_directory.code, kExitUnsafe) << of_directory.out;
  EXPECT_EQ(run.code, 3) << run.err;
  EXPECT_TRUE(contains(run.err, "fallocate")) << run.err;
}

// The suggested line matched no file of the next run.
TEST_F(Watch, PutsAStarForAProcessNumber) {
  const Seen seen = watch(doing("own_name"));
  EXPECT_TRUE(contains(seen.answer["run"], "--atomic '" + file_ + ".*' -- ")) << seen.answer["run"];
}

// Chronicle Queue: the line protected nothing from the next day on.
TEST_F(Watch, PutsAStarForADateAndForANumberThatCounts) {
  const std::time_t now = std::time(nullptr);
  for (const std::string ending : {"F.db", ".db"}) {
    const char* const format = ending == "F.db" ? "%Y%m%d" : "%Y-%m-%d";
    char date[16];
    std::strftime(date, sizeof(date), format, std::localtime(&now));
    const Seen seen = watch({watched_program(), "good", directory_ / ("log" + (date + ending))});
    EXPECT_TRUE(contains(seen.answer["run"], "/log*" + ending + "' -- ")) << seen.answer["run"];
  }
  const Seen counts = watch({watched_program(), "good", directory_ / "segment-000017.db"});
  EXPECT_TRUE(contains(counts.answer["run"], "/segment-*.db' -- ")) << counts.answer["run"];
}

// Files of the next day were mapped without protection beside those that had it, in silence; or it
// was said at the end, to which a server does not come.
TEST_F(Watch, SaysAtOnceWhatIsMappedBesideAndIsCalledAlike) {
  const Answer run = pawl(
      {"run", "--atomic", "*.0", "--atomic", "*.1", "--", watched_program(), "many", file_, "9"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(count_of("pawl: mmap: ", run.err), 4u) << run.err;
  EXPECT_EQ(count_of("pawl: ", run.err), 4u) << run.err;
  EXPECT_EQ(count_of("no more such files are named", run.err), 1u) << run.err;
  EXPECT_TRUE(contains(run.err, file_ + ".2 is mapped without protection")) << run.err;
  EXPECT_FALSE(contains(run.err, file_ + ".6")) << run.err;
  // The one that is not matched may be the first.
  const Answer first =
      pawl({"run", "--atomic", "*.1", "--", watched_program(), "at_once", file_, "2"});
  EXPECT_EQ(count_of(file_ + ".0 is mapped without protection", first.err), 1u) << first.err;
  // What has another name may be left out on purpose.
  const Answer other = pawl({"run", "--atomic", "data.db", "--", watched_program(), "both", file_,
                             directory_ / "lock.mdb"});
  EXPECT_EQ(other.err, "");
}

// RocketMQ's index: of the date a part was left, and no later run has that.
TEST_F(Watch, LeftTheTimeBehindADate) {
  const std::time_t now = std::time(nullptr);
  for (const char* const format :
       {"%Y%m%d143015123.idx", "%Y-%m-%dT14-30-15.idx", "%Y-%m-%d_14:30:15.123.idx"}) {
    std::array<char, 64> name{};
    std::strftime(name.data(), name.size(), format, std::localtime(&now));
    const Seen seen =
        watch({watched_program(), "good", directory_ / (std::string("at") + name.data())});
    const std::string ending = contains(format, ".123") ? "/at*.123.idx' -- " : "/at*.idx' -- ";
    EXPECT_TRUE(contains(seen.answer["run"], ending)) << seen.answer["run"];
  }
}

// Segments that are made, closed, and opened again.
TEST_F(Watch, NamedFilesAsTheirMakersMadeThemUp) {
  const Seen ending = watch({watched_program(), "made_before", directory_ / "part-4f1e09a7c2"});
  EXPECT_TRUE(contains(ending.answer["run"], "/part-*' -- ")) << ending.answer["run"];
  const Seen uuid = watch(
      {watched_program(), "made_before", directory_ / "b9791762-1575-4c1e-9d33-0242ac120002"});
  EXPECT_TRUE(contains(uuid.answer["run"], "/*' -- ")) << uuid.answer["run"];
  const Seen digest = watch(
      {"sh", "-c",
       watched_program() + " good " + (directory_ / "new") + " && mv " + (directory_ / "new ") +
           (directory_ / "pack-1310e3d1637a76f2e0cfa2e3795be6db571dfdbf.idx; ") +
           watched_program() + " good " +
           (directory_ / "pack-1310e3d1637a76f2e0cfa2e3795be6db571dfdbf.idx")});
  EXPECT_TRUE(contains(digest.answer["run"], "/pack-*.idx' -- ")) << digest.answer["run"];
  const Seen letters = watch({watched_program(), "in_new_directory", directory_ / "tmp.XXXXXX"});
  EXPECT_TRUE(contains(letters.answer["run"], "/tmp.*/idx' -- ")) << letters.answer["run"];
  const Seen of_python =
      watch({watched_program(), "in_new_directory", directory_ / "pack-tmp-xob7u19x"});
  EXPECT_TRUE(contains(of_python.answer["run"], "/pack-tmp-*/idx' -- ")) << of_python.answer["run"];
  const Seen named = watch({watched_program(), "in_new_directory", directory_ / "shard0000012"});
  EXPECT_TRUE(contains(named.answer["run"], "/shard0000012/idx' -- ")) << named.answer["run"];
}

TEST_F(Watch, TookHexadecimalNumbersForWords) {
  const std::string program = watched_program() + " good " + file_ + "_00_";
  const Seen seen = watch({"sh", "-c", "for i in 0a 0b 1f; do " + program + "$i; done"});
  EXPECT_TRUE(contains(seen.answer["run"], "run --atomic '" + file_ + "_*_*' -- "))
      << seen.answer["run"];
  EXPECT_EQ(count_of("--atomic", seen.answer["run"]), 1u) << seen.answer["run"];
  const Seen words = watch({"sh", "-c", program + "db; " + program + "fade; true"});
  EXPECT_TRUE(contains(words.answer["run"], "_00_db'")) << words.answer["run"];
}

// A name that is a digest made the line take all files of the directory, one that it refuses, too.
TEST_F(Watch, TookByItsLineWhatItRefuses) {
  const std::string digest = directory_ / "d41d8cd98f00b204e9800998ecf8427e";
  const std::string refused = directory_ / "counters";
  const Seen seen = watch({"sh", "-c",
                           watched_program() + " good " + digest + " && " + watched_program() +
                               " worker_stores " + refused});
  EXPECT_EQ(seen.file(refused)["run"], "") << seen.answer.dump(1);
  EXPECT_TRUE(contains(seen.file(digest)["run"], "d41d8cd98f00b204e9800998ecf8427e"))
      << seen.file(digest)["run"];
}

// Of two segments of a journal the third was not protected.
TEST_F(Watch, NamedTwoNumberedFilesByTheirNumbers) {
  const Seen seen = watch({watched_program(), "at_once", directory_ / "j", "2"});
  EXPECT_TRUE(contains(seen.answer["run"], "/j.*' -- ")) << seen.answer["run"];
}

// RocketMQ: a segment that was made beforehand was to be left out, and the line took it.
TEST_F(Watch, SaidToLeaveOutWhatItsLineTakes) {
  const Seen seen = watch({watched_program(), "shared_state", directory_ / "00000000000000000000",
                           directory_ / "00000000000004194304"});
  EXPECT_TRUE(contains(seen.answer["run"], "/*' -- ")) << seen.answer["run"];
  EXPECT_EQ(seen.answer["leave_out"].size(), 0u) << seen.answer["leave_out"];
}

// lld: of two temporary files one was reported, under a name that no later run has.
TEST_F(Watch, TookTemporaryFilesForOne) {
  const Seen seen = watch(doing("temporaries"));
  EXPECT_EQ(seen.answer["files"].size(), 3u) << seen.answer.dump(1);
  EXPECT_TRUE(contains(seen.answer["run"], "run --atomic '" + file_ + ".tmp*' -- "))
      << seen.answer["run"];
}

TEST_F(Watch, NamesNoGlobThatAnotherOneCovers) {
  const std::string line = watched_program() + " many " + file_ + " 4; " + watched_program() +
                           " many " + file_ + ".e 4; true";
  const Seen seen = watch({"sh", "-c", line});
  EXPECT_EQ(count_of("--atomic", seen.answer["run"]), 1u) << seen.answer["run"];
}

TEST_F(Watch, ExplainsOnceWhatIsSaidOfManyFiles) {
  const std::string told =
      pawl({"doctor", "--", watched_program(), "both", file_, directory_ / "other.db"}).out;
  EXPECT_EQ(count_of("one right after the other", told), 1u) << told;
  EXPECT_EQ(count_of("Likewise ", told), 1u) << told;
}

// libpmem asks twice for each file that it opens, and goes on without.
TEST_F(Watch, SaysOnceThatThereIsNoMapSync) {
  const Answer run = pawl({"run", "--atomic", "*.db", "--", watched_program(), "map_sync", file_});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(count_of("pawl: ", run.err), 1u) << run.err;
}

TEST_F(Watch, NamesAGlobThatMatchesNothing) {
  const Seen seen = watch(doing("good"), {"--atomic", "*.db", "--atomic", "*.dbx"});
  EXPECT_EQ(seen.codes(), Codes{"unmatched_glob"}) << seen.answer.dump(1);
  EXPECT_EQ(seen.answer["findings"][0]["seen"], "*.dbx");
  EXPECT_EQ(seen.code, kExitProtectedBut);
}

TEST_F(Watch, TellsOfManyFilesInOneBlock) {
  const Answer answer = pawl({"doctor", "--", watched_program(), "many", file_, "20"});
  EXPECT_TRUE(contains(answer.out, "Likewise 19 other files")) << answer.out;
  EXPECT_FALSE(contains(answer.out, file_ + ".7\n")) << answer.out;
}

// A group of so many is refused.
TEST_F(Watch, SuggestsNoGroupOfMoreFilesThanOneHas) {
  const Seen seen = watch({watched_program(), "at_once", file_, "17"});
  bool is_told = false;
  for (const json& finding : seen.answer["findings"]) {
    is_told = is_told || contains(finding["advice"], "at most 16 files");
  }
  EXPECT_TRUE(is_told) << seen.answer["findings"].dump(1);
}

// Such a program lost what it took for saved, behind an answer that said that all was well.
TEST_F(Watch, SuggestsDurableCallsWhereAllAreAsynchronous) {
  const Seen seen = watch(doing("later_only"));
  EXPECT_TRUE(contains(seen.answer["run"].get<std::string>(), "pawl run --ms-async sync --atomic"))
      << seen.answer.dump(1);
}

// The one durable call hid all the others: what such a program took for saved was lost by a kill.
TEST_F(Watch, OneDurableCallHidThatAllOthersAreAsynchronous) {
  const Seen seen = watch(doing("later_mostly"));
  EXPECT_EQ(seen.codes(), Codes{"mostly_asynchronous"}) << seen.answer.dump(1);
  EXPECT_EQ(seen.code, kExitProtectedBut);
  EXPECT_TRUE(contains(seen.text_of(file_, "mostly_asynchronous"),
                       "32 times, up to 32 in a row, and 1 other synchronisation;"))
      << seen.answer.dump(1);
  EXPECT_TRUE(contains(seen.answer["run"].get<std::string>(), "pawl run --ms-async sync --atomic"))
      << seen.answer.dump(1);
}

// LMDB with MDB_MAPASYNC.
TEST_F(Watch, FindsNothingWhereADurableCallFollowsAsynchronousOnes) {
  const Seen seen = watch(doing("later_and_then"));
  EXPECT_EQ(seen.codes(), Codes{}) << seen.answer.dump(1);
  EXPECT_EQ(seen.code, fine());
}

// ------------------------------------------------------------------------ ranges

// lmdb of Node.js with useWritemap was called fine. Its msync() leaves out the last page of a
// database, and what a kill left of that was corrupt.
TEST_F(Watch, CalledAFileFineWhoseLastPageIsInNoRangeThatIsSynchronised) {
  const Seen seen = watch(doing("syncs_in_part"));
  EXPECT_EQ(seen.codes(), Codes{"synchronised_in_part"}) << seen.answer.dump(1);
  EXPECT_EQ(seen.code, kExitProtectedBut);
  const std::string told = seen.text_of(file_, "synchronised_in_part");
  EXPECT_TRUE(contains(told, "1 page, while")) << told;
}

TEST_F(Watch, FindsNothingWhereEachPageIsSynchronisedByItself) {
  const Seen seen = watch(doing("syncs_page_by_page"));
  EXPECT_EQ(seen.codes(), Codes{}) << seen.answer.dump(1);
  EXPECT_EQ(seen.code, fine());
}

// ------------------------------------------------------------------------ half a power cut

// SQLite with mmap_size and synchronous=OFF was called fine, and a kill left its database
// malformed.
TEST_F(Watch, CalledAFileFineWhoseLogAKillDoesNotTakeBack) {
  const Seen seen = watch(doing("log_beside"));
  EXPECT_EQ(seen.codes(), (Codes{"companion", "synchronised_early"})) << seen.answer.dump(1);
  EXPECT_EQ(seen.file(file_)["verdict"], "cannot");
  EXPECT_EQ(seen.code, kExitUnsafe);
  EXPECT_EQ(seen.answer["run"], "");
}

TEST_F(Watch, TellsWhatBelongsToAFileByItsName) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"-journal", "cannot"}, {".wal", "cannot"}, {".log.1", "cannot"}, {".new", "can, but"}};
  for (const auto& [ending, verdict] : cases) {
    std::filesystem::remove(file_);
    const Seen seen = watch({watched_program(), "log_beside", file_, ending});
    EXPECT_EQ(seen.codes(), (Codes{"companion", "synchronised_early"})) << ending;
    EXPECT_EQ(seen.file(file_)["verdict"], verdict) << ending;
  }
  for (const std::string ending : {"2", "-shm", "-lock", ".pawl", "/../other-wal"}) {
    std::filesystem::remove(file_);
    const Seen seen = watch({watched_program(), "log_beside", file_, ending});
    EXPECT_FALSE(seen.codes().contains("companion")) << ending << seen.answer.dump(1);
  }
}

TEST_F(Watch, TellsOfALogBesideAFileThatIsSynchronised) {
  const Seen seen = watch(doing("store_beside"));
  EXPECT_EQ(seen.codes(), Codes{"companion"}) << seen.answer.dump(1);
  EXPECT_EQ(seen.file(file_)["verdict"], "can, but");
}

// libtorrent: its file of resumption said what the other one no longer had, and nobody had been
// told.
TEST_F(Watch, NamesWhatElseIsWrittenBesideAFileThatAKillTakesBack) {
  const std::string other = directory_ / "resume";
  const Seen seen = watch({watched_program(), "writes_elsewhere", file_, other});
  EXPECT_EQ(seen.codes(), (Codes{"never_synchronised", "changed_along"})) << seen.answer.dump(1);
  const std::string told = seen.text_of(file_, "changed_along");
  EXPECT_TRUE(contains(told, other + ".1, ")) << told;
  EXPECT_TRUE(contains(told, " and 2 other files")) << told;
  EXPECT_FALSE(contains(told, other + ".0")) << told;
  EXPECT_FALSE(contains(told, other + ".15")) << told;
  const Seen synchronised = watch({watched_program(), "writes_elsewhere_and_syncs", file_, other});
  EXPECT_EQ(synchronised.codes(), Codes{}) << synchronised.answer.dump(1);
}

// "Pawl can protect all of it as it is" of two files that belong together, one of which was
// synchronised when it was opened and closed, and the other one at each step: each kill tore them.
TEST_F(Watch, CalledFilesFineThatAreSynchronisedAtDifferentTimes) {
  if (!shows_stores(directory_.path().string())) GTEST_SKIP() << "no marks on tmpfs";
  const std::string other = directory_ / "index.db";
  const Seen seen = watch({watched_program(), "apart", file_, other});
  EXPECT_EQ(seen.codes(), (Codes{"in_one_go", "synchronised_apart"})) << seen.answer.dump(1);
  EXPECT_EQ(seen.code, kExitProtectedBut);
  EXPECT_EQ(seen.file(file_)["verdict"], "can, but");
  const std::string told = seen.text_of(file_, "synchronised_apart");
  EXPECT_TRUE(contains(told, other + " 20 times")) << told;
  for (const json& finding : seen.file(file_)["findings"]) {
    if (finding["code"] != "synchronised_apart") continue;
    EXPECT_TRUE(contains(finding["advice"], "--group")) << finding;
  }
}

// The same with a catalogue that is not mapped, replaced at each step and ahead of the file.
TEST_F(Watch, CalledAFileFineWhoseCatalogueIsAheadOfIt) {
  if (!shows_stores(directory_.path().string())) GTEST_SKIP() << "no marks on tmpfs";
  const std::string catalogue = directory_ / "catalogue.json";
  for (const char* what :
       {"catalogue", "catalogue_at_last", "catalogue_late", "catalogue_of_windows"}) {
    std::filesystem::remove(file_);
    const Seen seen = watch({watched_program(), what, file_, catalogue});
    Codes codes = seen.codes();
    codes.erase("synchronised_once");
    codes.erase("unmapped_unsynchronised");
    EXPECT_EQ(codes, Codes{"changed_along"}) << what << seen.answer.dump(1);
    EXPECT_EQ(seen.code, kExitProtectedBut) << what;
    EXPECT_TRUE(seen.text_of(file_, "changed_along").starts_with(catalogue + "; "))
        << seen.answer.dump(1);
  }
  // By its name it is the file's own.
  const Seen log = watch({watched_program(), "catalogue", file_, file_ + "-wal"});
  EXPECT_EQ(log.codes(), Codes{"companion"}) << log.answer.dump(1);
  EXPECT_EQ(log.file(file_)["verdict"], "cannot");
}

// aria2, krb5, timslite: what they have besides a mapped file waits for that, or was not changed.
TEST_F(Watch, FindsNothingWhereOtherFilesWaitForThisOne) {
  const std::string other = directory_ / "other";
  const std::vector<Case> cases = {{"catalogue_ordered", {}},
                                   {"logs_before", {}},
                                   {"three", {"in_one_go"}},
                                   {"apart_and_idle", {"in_one_go"}}};
  for (const Case& one : cases) {
    std::filesystem::remove(file_);
    const Seen seen = watch({watched_program(), one.what, file_, other});
    EXPECT_EQ(seen.codes(), one.codes) << one.what << seen.answer.dump(1);
    EXPECT_EQ(seen.code, fine()) << one.what;
  }
}

// A prefork server lost all that its workers stored, behind an answer that said "can be protected".
TEST_F(Watch, CalledAFileProtectableThatForkedChildrenStoreTo) {
  if (!shows_stores(directory_.path().string())) GTEST_SKIP() << "no marks on tmpfs";
  for (const char* what : {"worker_stores", "worker_of_worker", "worker_stores_long"}) {
    std::filesystem::remove(file_);
    const Seen seen = watch(doing(what));
    EXPECT_EQ(seen.codes(), Codes{"child_stores"}) << what << seen.answer.dump(1);
    EXPECT_EQ(seen.code, kExitUnsafe) << what;
    EXPECT_EQ(seen.file(file_)["run"], "") << what;
  }
  std::filesystem::remove(file_);
  EXPECT_EQ(std::system((watched_program() + " worker_stores " + file_).c_str()), 0);
  EXPECT_EQ(read_file(file_)[kPage], 'c');
  std::filesystem::remove(file_);
  EXPECT_EQ(pawl({"run", "--atomic", "*.db", "--", watched_program(), "worker_stores", file_}).code,
            0);
  EXPECT_EQ(read_file(file_)[kPage], '\0');
}

// Where that is not certain, the line to type looked like a way out.
TEST_F(Watch, OfferedALineForAFileThatForkedChildrenMayStoreTo) {
  const Seen seen = watch(doing("worker_reads_long"));
  EXPECT_EQ(seen.codes(), Codes{"inherited"}) << seen.answer.dump(1);
  EXPECT_EQ(seen.code, kExitProtectedBut);
  EXPECT_EQ(seen.file(file_)["run"], "");
  const std::string told = seen.text_of(file_, "inherited");
  EXPECT_TRUE(contains(told, "if a child stores there, all of it is lost")) << told;
  EXPECT_FALSE(contains(told, "EPERM")) << told;
  const Seen waits = watch(doing("worker_waits"));
  EXPECT_EQ(waits.codes(), Codes{}) << waits.answer.dump(1);
  EXPECT_NE(waits.file(file_)["run"], "");
}

TEST_F(Watch, CalledAFileFineThatAChildStoresToBeforeItExecutesAProgram) {
  const Seen seen = watch(doing("worker_executes"));
  EXPECT_TRUE(seen.codes().contains("inherited") || seen.codes().contains("child_stores"))
      << seen.answer.dump(1);
  EXPECT_EQ(seen.file(file_)["run"], "");
}

// gunicorn: --apply eager does nothing for a file that is never committed.
TEST_F(Watch, AdvisedToApplyEagerlyWhereNothingIsCommitted) {
  const Seen seen = watch(doing("for_readers"));
  EXPECT_EQ(seen.codes(), (Codes{"never_synchronised", "reader"})) << seen.answer.dump(1);
  EXPECT_TRUE(contains(seen.text_of(file_, "reader"), "until it is closed"));
  EXPECT_FALSE(contains(seen.answer.dump(), "eager")) << seen.answer.dump(1);
}

TEST_F(Watch, CalledAFileFineThatIsSynchronisedWhenItIsOpenedAndClosedOnly) {
  if (!shows_stores(directory_.path().string())) GTEST_SKIP() << "no marks on tmpfs";
  const Seen seen = watch(doing("ends_and_stores"));
  EXPECT_EQ(seen.codes(), Codes{"synchronised_at_ends"}) << seen.answer.dump(1);
  EXPECT_EQ(seen.code, kExitProtectedBut);
  std::filesystem::remove(file_);
  const Seen idles = watch(doing("ends_and_idles"));
  EXPECT_EQ(idles.codes(), Codes{}) << idles.answer.dump(1);
}

// MapDB: of three files that belong together the line to type had two.
TEST_F(Watch, CalledAFileFineWhoseNeighbourIsRefused) {
  const Seen seen = watch(doing("refused_beside"));
  EXPECT_EQ(seen.codes(), (Codes{"companion", "in_one_go", "second_mapping"}))
      << seen.answer.dump(1);
  EXPECT_EQ(seen.file(file_)["verdict"], "can, but");
  EXPECT_EQ(seen.file(file_ + ".p")["verdict"], "cannot");
}

// SQLite and LMDB in their own ways were told to run under Pawl, and bbolt that it cannot.
TEST_F(Watch, AskedForProtectionOfAFileThatNeedsNone) {
  for (const std::string& program : {watched_program(), std::string(PAWL_WATCHED_STATIC_PROGRAM)}) {
    std::filesystem::remove(file_);
    const Seen seen = watch({program, "own_fsync", file_});
    EXPECT_EQ(seen.codes(), Codes{"synchronises_itself"}) << seen.answer.dump(1);
    EXPECT_EQ(seen.file(file_)["verdict"], "not needed");
    EXPECT_EQ(seen.file(file_)["run"], "");
    EXPECT_EQ(seen.code, 0);
    const Seen reads = watch({program, "read_only", file_});
    EXPECT_EQ(reads.codes(), Codes{"only_read"}) << reads.answer.dump(1);
    EXPECT_EQ(reads.code, 0);
  }
  const std::string told = pawl({"doctor", "--", watched_program(), "own_fsync", file_}).out;
  EXPECT_TRUE(contains(told, "It needs no protection:")) << told;
  EXPECT_TRUE(contains(told, "None of it needs 'pawl run'.")) << told;
}

TEST_F(Watch, SeesThatAMappingForReadingIsStoredTo) {
  const Seen seen = watch(doing("protect_later"));
  EXPECT_EQ(seen.codes(), Codes{}) << seen.answer.dump(1);
  EXPECT_EQ(seen.file(file_)["writable"], true);
  EXPECT_NE(seen.answer["run"], "");
}

// A second JVM, sqlite3 or reader of LMDB or libmdbx was refused under the line that the doctor
// ended with.
TEST_F(Watch, NamedLocksAndSharedStateInTheLineToType) {
  for (const std::string name : {"hsperfdata_root/123", "s.db-shm", "lock.mdb", "data-lock",
                                 "mdbx.lck", "data-lck", "__db.001"}) {
    const std::string state = directory_ / name;
    std::filesystem::create_directories(std::filesystem::path(state).parent_path());
    const Seen seen = watch({watched_program(), "shared_state", file_, state});
    EXPECT_EQ(seen.codes(), Codes{"shared_state"}) << seen.answer.dump(1);
    EXPECT_EQ(seen.code, fine());
    EXPECT_EQ(seen.file(state)["verdict"], "not needed");
    EXPECT_EQ(seen.answer["leave_out"], json({state}));
    EXPECT_TRUE(contains(seen.answer["run"], "--atomic '" + file_ + "' --")) << seen.answer["run"];
  }
  const std::string state = directory_ / "table";
  const Seen seen = watch({watched_program(), "shared_state", file_, state});
  EXPECT_EQ(seen.codes(), Codes{"never_synchronised"}) << seen.answer.dump(1);
  EXPECT_EQ(seen.file(state)["verdict"], "can, but");
  EXPECT_EQ(seen.file(state)["run"], "");
  EXPECT_EQ(seen.answer["leave_out"], json({state}));
  EXPECT_FALSE(contains(seen.answer["run"], "table' ")) << seen.answer["run"];
  const std::string told =
      pawl({"doctor", "--", watched_program(), "shared_state", file_, state}).out;
  EXPECT_TRUE(contains(told, "Leave out, ")) << told;
}

// ------------------------------------------------------------------------ calls that fail

// Chronicle Queue synchronises ranges that begin anywhere: each call fails, and the doctor counted
// it. What the program took for saved was lost.
TEST_F(Watch, CountedASynchronisationThatFailed) {
  const Seen seen = watch(doing("syncs_in_vain"));
  EXPECT_EQ(seen.codes(), Codes{"synchronisation_fails"}) << seen.answer.dump(1);
  EXPECT_EQ(seen.code, 9);
  const json file = seen.file(file_);
  EXPECT_EQ(file["verdict"], "cannot");
  EXPECT_EQ(file["run"], "");
  EXPECT_EQ(file["synchronisations"], json({{"msync", 2}}));
  EXPECT_EQ(file["failed_synchronisations"].size(), 2u) << file.dump(1);
  const std::string told = seen.text_of(file_, "synchronisation_fails");
  EXPECT_TRUE(contains(told, "20 times: EINVAL, for its address is not on a page boundary"))
      << told;
}

TEST_F(Watch, SaysOnceThatAnMsyncOfItsFileIsInvalid) {
  const Answer run =
      pawl({"run", "--atomic", "*.db", "--", watched_program(), "syncs_in_vain", file_});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(count_of("pawl: msync: ", run.err), 1u) << run.err;
  EXPECT_TRUE(contains(run.err, file_)) << run.err;
  EXPECT_TRUE(contains(run.err, "page boundary")) << run.err;
}

// The kernel and Pawl synchronise what is mapped of such a range.
TEST_F(Watch, CountsASynchronisationThatGoesPastTheEnd) {
  const Seen seen = watch(doing("syncs_past_the_end"));
  EXPECT_EQ(seen.codes(), Codes{}) << seen.answer.dump(1);
  EXPECT_EQ(seen.file(file_)["synchronisations"], json({{"msync", 2}}));
}

TEST_F(Watch, BelievedCallsThatFailed) {
  const Seen seen = watch(doing("in_vain"));
  EXPECT_EQ(seen.codes(), Codes{}) << seen.answer.dump(1);
  EXPECT_EQ(seen.file(file_)["changes"], json::object());
  EXPECT_EQ(seen.file(file_)["sync_file_range"], 0);
  EXPECT_EQ(seen.code, fine());
}

// ------------------------------------------------------------------------ the last synchronisation

// Chronicle Map was called fine. Its one commit was made while the file was not ready; a kill hours
// later took it back to that, and nothing could open it any more.
TEST_F(Watch, CalledAFileFineThatIsSynchronisedWhileItIsMadeOnly) {
  const Seen seen = watch(doing("makes_and_stores"));
  EXPECT_EQ(seen.codes(), Codes{"synchronised_early"}) << seen.answer.dump(1);
  EXPECT_EQ(seen.code, 13);
  EXPECT_EQ(seen.file(file_)["verdict"], "can, but");
  const std::string told = seen.text_of(file_, "synchronised_early");
  EXPECT_TRUE(contains(told, "after it 1 write")) << told;
  EXPECT_TRUE(contains(told, "takes the file back to that moment")) << told;
}

TEST_F(Watch, SeesStoresAfterTheLastSynchronisation) {
  if (!shows_stores(directory_.path().string())) GTEST_SKIP() << "no marks on tmpfs";
  for (const char* what :
       {"syncs_first", "syncs_first_and_exits", "syncs_first_and_dies", "syncs_at_first"}) {
    std::filesystem::remove(file_);
    const Seen seen = watch(doing(what));
    Codes codes = seen.codes();
    codes.erase("killed");
    EXPECT_EQ(codes, Codes{"synchronised_early"}) << what << seen.answer.dump(1);
    EXPECT_TRUE(contains(seen.text_of(file_, "synchronised_early"), "stored to after it")) << what;
    EXPECT_EQ(seen.code, 13) << what;
  }
}

TEST_F(Watch, DoesNotBelieveASingleEarlySynchronisation) {
  const Seen seen = watch(doing("syncs_once_and_idles"));
  EXPECT_EQ(seen.codes(), Codes{"synchronised_early"}) << seen.answer.dump(1);
}

// What these change they synchronise, however long they have the file after that.
TEST_F(Watch, FindsNothingWhereNothingFollowsTheLastSynchronisation) {
  const std::vector<Case> cases = {{"syncs_last", {"synchronised_once"}},
                                   {"syncs_and_idles", {}},
                                   {"in_rounds", {"synchronised_once"}}};
  for (const Case& one : cases) {
    // Not written out yet, which is no store of the program's.
    write_file(file_, std::string(4 * kPage, 'x'));
    const Seen seen = watch(doing(one.what));
    EXPECT_EQ(seen.codes(), one.codes) << one.what << seen.answer.dump(1);
    EXPECT_EQ(seen.code, fine()) << one.what;
  }
}

// crm114 touches the time of its file in the end.
TEST_F(Watch, TookAWriteOfWhatIsThereForAChange) {
  const Seen same = watch(doing("touches"));
  EXPECT_EQ(same.codes(), Codes{"synchronised_once"}) << same.answer.dump(1);
  EXPECT_EQ(same.file(file_)["changes"], json::object());
  const Seen other = watch(doing("touches_and_writes"));
  EXPECT_EQ(other.codes(), Codes{"synchronised_early"}) << other.answer.dump(1);
}

TEST_F(Watch, TellsThatGivingUpALockCommits) {
  const Seen seen = watch(doing("unlocks"));
  EXPECT_EQ(seen.codes(), Codes{"never_synchronised"}) << seen.answer.dump(1);
  const std::string told = seen.text_of(file_, "never_synchronised");
  EXPECT_TRUE(contains(told, "when the lock was given up")) << told;
}

// What was written before the mapping stays: a file that was made in the run was all zeros.
TEST_F(Watch, SaidThatACrashLeavesTheFileAsItWasWhenItWasOpened) {
  for (const auto& [what, code] : {std::pair{"store_only", "never_synchronised"},
                                   {"hint_only", "never_synchronised"},
                                   {"syncs_last", "synchronised_once"}}) {
    const std::string told = watch(doing(what)).text_of(file_, code);
    EXPECT_TRUE(contains(told, "as it was when it was first mapped")) << told;
  }
}

// "Pawl cannot protect all": a program that maps nothing read as one that Pawl cannot help.
TEST_F(Watch, SpokeOfAProgramThatMapsNothingAsOfOneThatItCannotProtect) {
  const Answer answer = pawl({"doctor", "--", "/bin/true"});
  EXPECT_EQ(answer.code, kExitUnsafe);
  EXPECT_TRUE(contains(answer.out, "There is nothing here for 'pawl run' to protect"))
      << answer.out;
  EXPECT_FALSE(contains(answer.out, "Not as it is")) << answer.out;
  // Nor is what a JVM maps for itself a yes.
  const Seen locks = watch({watched_program(), "store_only", directory_ / "lock.mdb"});
  EXPECT_EQ(locks.codes(), (Codes{"nothing_mapped", "shared_state"})) << locks.answer.dump(1);
  EXPECT_EQ(locks.code, kExitUnsafe);
}

TEST_F(Watch, SaysThatOnlyThisRunWasJudged) {
  const std::string told = pawl({"doctor", "--", watched_program(), "good", file_}).out;
  EXPECT_TRUE(contains(told, "Only what ran this time was judged")) << told;
}

// ------------------------------------------------------------------------ what run starts

// `pawl run -- STATIC` refused, and `pawl run -- sh -c STATIC` ran it in silence, unprotected.
TEST_F(Watch, StartedAStaticProgramWithoutProtectionAndWithoutAWord) {
  const std::string program = PAWL_WATCHED_STATIC_PROGRAM;
  const std::string line = program + " good " + file_;
  const std::string script = directory_ / "script";
  write_file(script, "#!" + program + " read\n");
  ASSERT_EQ(::chmod(script.c_str(), 0755), 0);
  const std::vector<Words> commands = {
      {"sh", "-c", line},
      {"sh", "-c", line + "; " + line + "; true"},
      {"timeout", "60", program, "good", file_},
      {"env", "PATH=" + program.substr(0, program.rfind('/')),
       program.substr(program.rfind('/') + 1), "good", file_},
      {watched_program(), "exec", "x", program, "good", file_},
      {watched_program(), "spawn", "x", program, "good", file_},
      {"sh", "-c", script + "; true"},
  };
  for (const Words& command : commands) {
    Words words = {"run", "--atomic", "*.db", "--"};
    words.insert(words.end(), command.begin(), command.end());
    const Answer answer = pawl(words);
    EXPECT_EQ(answer.code, 0) << answer.err;
    EXPECT_EQ(count_of(" is statically linked", answer.err), 1u) << command.back() << answer.err;
  }
  // One that is harmless does not hide the next.
  const std::string other = directory_ / "other";
  std::filesystem::copy_file(program, other);
  const Answer two = pawl({"run", "--atomic", "*.db", "--", "sh", "-c",
                           other + " read " + file_ + "; " + line + "; " + line + "; true"});
  EXPECT_EQ(count_of(" is statically linked", two.err), 2u) << two.err;
  const Answer dynamic =
      pawl({"run", "--atomic", "*.db", "--", "sh", "-c", watched_program() + " good " + file_});
  EXPECT_EQ(dynamic.err, "");
  const Answer unnamed = pawl({"run", "--atomic", "*.db", "--", "sh", "-c", "exec /no/such"});
  EXPECT_EQ(count_of("pawl: ", unnamed.err), 0u) << unnamed.err;
}

// groonga got the same line sixty times, and each time after 100 ms.
TEST_F(Watch, RefusedTheSameAgainAndAgainWithAWaitAndALineEach) {
  const Answer answer =
      pawl({"run", "--atomic", "*.db", "--", watched_program(), "tries_again", file_});
  EXPECT_EQ(answer.code, 0) << answer.err;  // 4: it took too long
  EXPECT_EQ(count_of("is mapped atomically already", answer.err), 7u) << answer.err;
  EXPECT_EQ(count_of("equal lines left out before this one: 15", answer.err), 1u) << answer.err;
}

// ------------------------------------------------------------------------ programs of Debian's

bool has_program(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

TEST_F(Watch, JudgesKyotoCabinet) {
  if (!has_program("/usr/bin/kchashmgr")) GTEST_SKIP() << "no kchashmgr";
  const std::string database = directory_ / "casket.kch";
  ASSERT_EQ(pawl({"run", "--", "kchashmgr", "create", database}).code, 0);
  const Seen seen = watch({"kchashmgr", "set", database, "key", "value"});
  // It opens its file without -oas or -oat: nothing is synchronised before the end.
  EXPECT_EQ(seen.codes(), Codes{"never_synchronised"}) << seen.answer.dump(1);
  // docs/preload.md shows it as a program for `pawl run`, which makes of it one commit.
  const std::string told = pawl({"doctor", "--", "kchashmgr", "set", database, "key", "value"}).out;
  EXPECT_TRUE(contains(told, "Pawl can protect it; what is different")) << told;
  EXPECT_FALSE(contains(told, "Not as it is")) << told;
  const Seen synchronised = watch({"kcpolytest", "tran", "-hard", database, "10"});
  EXPECT_GT(synchronised.file(database)["synchronisations"].size(), 0u)
      << synchronised.answer.dump(1);
}

TEST_F(Watch, JudgesPython) {
  if (!has_program("/usr/bin/python3")) GTEST_SKIP() << "no python3";
  const std::string script = directory_ / "script.py";
  write_file(script,
             "import mmap, os, sys\n"
             "file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
             "os.ftruncate(file, 8192)\n"
             "memory = mmap.mmap(file, 8192)\n"
             "memory[0:4] = b'text'\n"
             "memory.flush()\n"
             "memory.close()\n");
  const Seen seen = watch({"/usr/bin/python3", script, file_});
  // It maps a duplicate of the descriptor and keeps that with the mapping.
  EXPECT_EQ(seen.codes(), Codes{"synchronised_once"}) << seen.answer.dump(1);
  EXPECT_EQ(seen.file(file_)["synchronisations"], json({{"msync", 1}}));
}

TEST_F(Watch, JudgesLmdb) {
  if (!has_program("/usr/bin/mdb_load")) GTEST_SKIP() << "no mdb_load";
  const std::string environment = directory_ / "environment";
  std::filesystem::create_directory(environment);
  const std::string dump = directory_ / "dump";
  write_file(dump,
             "VERSION=3\nformat=print\ntype=btree\nmapsize=1048576\nmaxreaders=126\nHEADER=END\n"
             " key\n value\nDATA=END\n");
  const Seen seen = watch({"mdb_load", "-f", dump, environment}, {"--atomic", "data.mdb"});
  EXPECT_EQ(seen.codes(), Codes{"synchronises_itself"}) << seen.answer.dump(1);
  const json file = seen.file(environment + "/data.mdb");
  EXPECT_EQ(file["writable"], false);
  EXPECT_TRUE(file["changes"].contains("pwrite")) << file.dump(1);
  std::filesystem::remove_all(environment);
  std::filesystem::create_directory(environment);
  const Answer run =
      pawl({"run", "--atomic", "data.mdb", "--", "mdb_load", "-f", dump, environment});
  EXPECT_EQ(run.code, 0) << run.err;
}

}  // namespace
}  // namespace pawl::test
