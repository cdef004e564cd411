// The command line itself, and the verbs run, doctor and bench.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/command.h"
#include "support/temporary_directory.h"

namespace pawl::test {
namespace {

using nlohmann::json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const char* static_program() {
#ifdef PAWL_STATIC_PROGRAM
  return PAWL_STATIC_PROGRAM;
#else
  return nullptr;
#endif
}

TEST(Command, ShowsHelpWithAnExampleForEachVerb) {
  const Answer help = pawl({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_TRUE(contains(help.out, "Exit codes"));
  for (const char* verb : {"run", "info", "recover", "verify", "log", "doctor", "bench"}) {
    EXPECT_TRUE(contains(help.out, verb)) << verb;
    const Answer of_verb = pawl({verb, "--help"});
    EXPECT_EQ(of_verb.code, 0) << verb;
    EXPECT_TRUE(contains(of_verb.out, std::string("Example:\n  pawl ") + verb)) << of_verb.out;
  }
}

TEST(Command, HelpOfVerbsWithVerbsIsTheirOwn) {
  for (const char* verb : {"fase", "heap"}) {
    const Answer help = pawl({verb, "--help"});
    EXPECT_TRUE(contains(help.out, std::string("Example:\n  pawl ") + verb)) << help.out;
    EXPECT_FALSE(contains(help.out, "pawl run")) << help.out;
  }
}

TEST(Command, TellsItsVersion) {
  const Answer answer = pawl({"--version"});
  EXPECT_EQ(answer.code, 0);
  EXPECT_TRUE(contains(answer.out, "pawl 0.")) << answer.out;
}

TEST(Command, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(pawl({}).code, 2);
  EXPECT_EQ(pawl({"--bogus"}).code, 2);
  const Answer verb = pawl({"frobnicate"});
  EXPECT_EQ(verb.code, 2);
  EXPECT_TRUE(contains(verb.err, "frobnicate")) << verb.err;
  EXPECT_EQ(pawl({"doctor", "--bogus"}).code, 2);
  EXPECT_EQ(pawl({"bench", "--pages", "0"}).code, 2);
  EXPECT_EQ(pawl({"bench", "--pages", "many"}).code, 2);
  EXPECT_EQ(pawl({"bench", "--seconds", "100000"}).code, 2);
}

TEST(Command, SaysHowToNameAFileThatBeginsWithADash) {
  const TemporaryDirectory directory;
  write_file(directory / "-dash", "a");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  for (const char* verb : {"info", "recover"}) {
    const Answer answer = pawl({verb, "-dash"});
    EXPECT_EQ(answer.code, 2);
    EXPECT_TRUE(contains(answer.err, "./-dash")) << answer.err;
  }
  std::filesystem::current_path(before);
}

// The loader would look for a library of that name, and nothing of its libraries would be judged.
TEST(Command, DoctorJudgesTheLibrariesOfAProgramThatIsNamedWithoutASlash) {
  const TemporaryDirectory directory;
  const char* const command = std::getenv("PAWL_COMMAND");
  ASSERT_NE(command, nullptr);
  std::filesystem::copy(command, directory / "program");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  const Answer bare = pawl({"doctor", "program"});
  const Answer named = pawl({"doctor", "./program"});
  std::filesystem::current_path(before);
  EXPECT_EQ(bare.err, "");
  EXPECT_TRUE(contains(named.out, "libfmt")) << named.out;
  EXPECT_TRUE(contains(bare.out, "libfmt")) << bare.out;
}

TEST(Command, SaysHowToNameAProgramThatIsHere) {
  const TemporaryDirectory directory;
  std::filesystem::copy("/usr/bin/env", directory / "stack");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  const Answer answer = pawl({"run", "--", "stack"}, {"PAWL_ATOMIC="});
  std::filesystem::current_path(before);
  EXPECT_EQ(answer.code, 127);
  EXPECT_TRUE(contains(answer.err,
                       "there is no program stack in the directories of PATH (write "
                       "./stack)"))
      << answer.err;
  EXPECT_FALSE(contains(answer.err, "--atomic")) << answer.err;
}

TEST(Command, SaysWhenItsAnswerIsLost) {
  const char* const command = std::getenv("PAWL_COMMAND");
  ASSERT_NE(command, nullptr);
  const std::string line = std::string(command) + " doctor >/dev/full 2>/dev/null";
  const int status = std::system(line.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

class Run : public ::testing::Test {
 protected:
  void SetUp() override {
    if (pawl({"run", "--", "/bin/true"}).code != 0) GTEST_SKIP() << "the preload face is not built";
  }
};

TEST_F(Run, BecomesTheProgram) {
  const Answer answer =
      pawl({"run", "--atomic", "*.db", "--", "sh", "-c", "echo out; echo err >&2; exit 7"});
  EXPECT_EQ(answer.code, 7);
  EXPECT_EQ(answer.out, "out\n");
  EXPECT_EQ(answer.err, "err\n");
  EXPECT_EQ(pawl({"run", "--", "sh", "-c", "kill -9 $$"}).code, 128 + 9);
}

TEST_F(Run, SetsTheEnvironment) {
  const std::string print =
      "echo "
      "\"$PAWL_ATOMIC|$PAWL_TRACKER|$PAWL_APPLY|$PAWL_JOURNAL_SIZE|$PAWL_MS_ASYNC|$PAWL_GROUP\"";
  const Answer answer = pawl({"run", "--atomic", "*.kch", "--atomic", "/srv/*", "--tracker",
                              "fault", "--apply", "eager", "--journal-size", "2M", "--ms-async",
                              "sync", "--group", "/srv/group", "--", "sh", "-c", print});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(answer.out, "*.kch:/srv/*|fault|eager|2M|sync|/srv/group\n");
  const Answer inherited = pawl({"run", "--", "sh", "-c", print}, {"PAWL_ATOMIC=*.db"});
  EXPECT_EQ(inherited.out, "*.db|||||\n");
  EXPECT_EQ(pawl({"run", "--ms-async", "never", "--", "true"}).code, 2);
}

TEST_F(Run, SaidNothingWhereItProtectsNothing) {
  const Answer answer = pawl({"run", "--", "true"}, {"PAWL_ATOMIC="});
  EXPECT_EQ(answer.code, 0);
  EXPECT_TRUE(contains(answer.err, "no --atomic GLOB")) << answer.err;
  EXPECT_EQ(pawl({"run", "--", "true"}, {"PAWL_ATOMIC=*.db"}).err, "");
}

TEST_F(Run, SaidNothingWhereNoFileMatched) {
  const TemporaryDirectory directory;
  const std::string file = directory / "a.db";
  write_file(file, std::string(4096, 'a'));
  const std::string script =
      "import mmap, sys; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 4096)";
  const auto ran = [&](const char* glob) {
    return pawl({"run", "--atomic", glob, "--", "/usr/bin/python3", "-c", script, file});
  };
  EXPECT_TRUE(contains(ran("*.dat").err, "no file that this process mapped matches a glob"));
  EXPECT_EQ(ran("*.db").err, "");
}

// Varnish: the manager maps a file that no glob matches, and its child the one that is protected.
TEST_F(Run, SaidNothingWasProtectedOfAChildThatWas) {
  const TemporaryDirectory directory;
  const std::string file = directory / "a.db";
  const std::string other = directory / "b.other";
  write_file(file, std::string(4096, 'a'));
  write_file(other, std::string(4096, 'b'));
  const std::string script =
      "import mmap, os, sys\n"
      "def take(name):\n"
      "  f = open(name, 'r+b')\n"
      "  return mmap.mmap(f.fileno(), 4096)\n"
      "held = take(sys.argv[2])\n"
      "if os.fork() == 0: held = take(sys.argv[1])\n"
      "else: os.wait()\n";
  const auto ran = [&](const char* glob) {
    return pawl({"run", "--atomic", glob, "--", "/usr/bin/python3", "-c", script, file, other});
  };
  EXPECT_EQ(ran("*.db").err, "");
  EXPECT_TRUE(contains(ran("*.dat").err, "b.other was the first that does not"));
}

TEST_F(Run, RefusesAGroupOfNoFiles) {
  const Answer answer = pawl({"run", "--group", "/srv/group", "--", "true"}, {"PAWL_ATOMIC="});
  EXPECT_EQ(answer.code, 2);
  EXPECT_TRUE(contains(answer.err, "--group without --atomic GLOB")) << answer.err;
  EXPECT_EQ(pawl({"run", "--group", "/srv/group", "--", "true"}, {"PAWL_ATOMIC=*.db"}).code, 0);
}

TEST_F(Run, SaysThatAGlobTakesQuotes) {
  const TemporaryDirectory directory;
  write_file(directory / "b.db", "a");
  for (const std::string& second : {std::string("b.db"), directory / "b.db"}) {
    const Answer answer = pawl({"run", "--atomic", "a.db", second, "--", "true"});
    EXPECT_NE(answer.code, 0);
    EXPECT_TRUE(contains(answer.err, "put the glob in quotes")) << answer.err;
  }
  EXPECT_FALSE(contains(pawl({"run", "--atomic", "a.db", "--", "no-such"}).err, "quotes"));
}

TEST_F(Run, PutsItsLibraryBeforeOthers) {
  const Answer answer =
      pawl({"run", "--", "sh", "-c", "echo $LD_PRELOAD"}, {"LD_PRELOAD=libm.so.6"});
  EXPECT_TRUE(contains(answer.out, "libpawl-preload.so:libm.so.6\n")) << answer.out;
}

TEST_F(Run, LeavesTheProgramsOwnDashesAlone) {
  const Answer answer = pawl({"run", "--", "printf", "%s|", "--atomic", "--", "x"});
  EXPECT_EQ(answer.out, "--atomic|--|x|");
  const Answer bare = pawl({"run", "printf", "%s|", "--", "x"});
  EXPECT_EQ(bare.out, "--|x|") << bare.err;
}

TEST_F(Run, RefusesAStaticProgram) {
  const char* const program = static_program();
  if (program == nullptr) GTEST_SKIP() << "no static program could be built";
  const Answer answer = pawl({"run", "--", program});
  EXPECT_EQ(answer.code, 126);
  EXPECT_TRUE(contains(answer.err, "statically linked")) << answer.err;
}

TEST_F(Run, RefusesAProgramOfAnotherCLibrary) {
  const Answer answer = pawl({"run", "--", PAWL_MUSL_PROGRAM});
  EXPECT_EQ(answer.code, 126);
  EXPECT_TRUE(contains(answer.err, "linked with musl")) << answer.err;
}

TEST_F(Run, RefusesASetuidProgram) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make one";
  const TemporaryDirectory directory;
  const std::string program = directory / "privileged";
  std::filesystem::copy_file("/bin/true", program);
  ASSERT_EQ(::chown(program.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(program.c_str(), 04755), 0);
  const Answer answer = pawl({"run", "--", program});
  EXPECT_EQ(answer.code, 126);
  EXPECT_TRUE(contains(answer.err, "setuid")) << answer.err;
}

TEST_F(Run, LooksThroughScripts) {
  const TemporaryDirectory directory;
  const std::string script = directory / "script";
  write_file(script, "#! /bin/sh -e\nexit 3\n");
  ASSERT_EQ(::chmod(script.c_str(), 0755), 0);
  EXPECT_EQ(pawl({"run", "--", script}).code, 3);
  const char* const program = static_program();
  if (program == nullptr) GTEST_SKIP() << "no static program could be built";
  write_file(script, std::string("#!") + program + "\n");
  EXPECT_EQ(pawl({"run", "--", script}).code, 126);
}

// It waited for somebody to write there.
TEST_F(Run, AScriptWhoseInterpreterIsAFifoHeldTheCommandUp) {
  const TemporaryDirectory directory;
  const std::string fifo = directory / "fifo";
  const std::string script = directory / "script";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0700), 0);
  write_file(script, "#!" + fifo + "\n");
  ASSERT_EQ(::chmod(script.c_str(), 0755), 0);
  const Answer answer = pawl({"run", "--", script});
  EXPECT_EQ(answer.code, 126);
  EXPECT_TRUE(contains(answer.err, "not a regular file")) << answer.err;
}

TEST(RunRefuses, BadArguments) {
  EXPECT_EQ(pawl({"run"}).code, 2);
  EXPECT_EQ(pawl({"run", "--"}).code, 2);
  EXPECT_EQ(pawl({"run", "--bogus", "/bin/true"}).code, 2);
  EXPECT_EQ(pawl({"run", "--tracker", "psychic", "--", "/bin/true"}).code, 2);
  EXPECT_EQ(pawl({"run", "--apply", "never", "--", "/bin/true"}).code, 2);
  EXPECT_EQ(pawl({"run", "--journal-size", "much", "--", "/bin/true"}).code, 2);
  EXPECT_EQ(pawl({"run", "--journal-size", "1", "--", "/bin/true"}).code, 2);
  EXPECT_EQ(pawl({"run", "--atomic", "a:b", "--", "/bin/true"}).code, 2);
  EXPECT_EQ(pawl({"run", "--", "/bin/true"}, {"PAWL_APPLY=never"}).code, 2);
}

TEST(RunRefuses, WhatIsNoProgram) {
  EXPECT_EQ(pawl({"run", "--", "no-such-program-anywhere"}).code, 127);
  EXPECT_EQ(pawl({"run", "--", "/no/such/program"}).code, 127);
  EXPECT_EQ(pawl({"run", "--", "/"}).code, 126);
  EXPECT_EQ(pawl({"run", "--", "/etc/passwd"}).code, 126);
}

TEST(Doctor, ExaminesADirectory) {
  const TemporaryDirectory directory;
  const Answer answer = pawl({"doctor", "--json", directory.path().string()});
  const json parsed = json::parse(answer.out, nullptr, false);
  ASSERT_FALSE(parsed.is_discarded()) << answer.out << answer.err;
  EXPECT_EQ(answer.code, parsed["safe"] ? 0 : 9);
  for (const char* name : {"kernel", "scan", "fault log", "auto chooses", "file system", "O_DIRECT",
                           "marks", "reservation", "swap", "max_map_count", "disk", "on-fail"}) {
    bool found = false;
    for (const json& finding : parsed["findings"]) found = found || finding["name"] == name;
    EXPECT_TRUE(found) << name;
  }
  const Answer text = pawl({"doctor", directory.path().string()});
  EXPECT_EQ(text.code, answer.code);
  EXPECT_TRUE(contains(text.out, "auto chooses")) << text.out;
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Doctor, DidNotSayWhoseErrorALinkToItselfWas) {
  const TemporaryDirectory directory;
  const std::filesystem::path loop = directory.path() / "loop";
  std::filesystem::create_symlink(loop, loop);
  const Answer answer = pawl({"doctor", loop.string()});
  EXPECT_EQ(answer.code, 1);
  EXPECT_TRUE(answer.err.starts_with("pawl doctor: ")) << answer.err;
  EXPECT_TRUE(contains(answer.err, "Too many levels of symbolic links")) << answer.err;
}

TEST(Doctor, CallsMemoryUnsafe) {
  const Answer answer = pawl({"doctor", "--json", "/dev/shm"});
  const json parsed = json::parse(answer.out, nullptr, false);
  ASSERT_FALSE(parsed.is_discarded()) << answer.out << answer.err;
  for (const json& finding : parsed["findings"]) {
    if (finding["name"] != "file system") continue;
    if (!contains(finding["value"], "tmpfs")) GTEST_SKIP() << "/dev/shm is no tmpfs";
    EXPECT_EQ(finding["level"], "unsafe");
    EXPECT_TRUE(contains(finding["why"], "memory"));
  }
  EXPECT_EQ(answer.code, 9);
}

// "Not one that Pawl knows" it said of those whose files Pawl refuses by name.
TEST(Doctor, DidNotKnowTheFileSystemsThatPawlRefuses) {
  for (const std::string where : {"/proc", "/sys"}) {
    const Answer answer = pawl({"doctor", "--json", where});
    const json parsed = json::parse(answer.out, nullptr, false);
    ASSERT_FALSE(parsed.is_discarded()) << answer.out << answer.err;
    for (const json& finding : parsed["findings"]) {
      if (finding["name"] != "file system") continue;
      EXPECT_EQ(finding["level"], "unsafe") << where;
      EXPECT_TRUE(contains(finding["why"], "its files are not storage")) << finding.dump(1);
    }
    EXPECT_EQ(answer.code, 9) << where;
  }
}

// Nothing was unsafe where no journal can be removed.
TEST(Doctor, TookAnAppendOnlyDirectoryForSafe) {
  const TemporaryDirectory directory;
  const int descriptor = ::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int attributes = 0;
  const bool has_attributes = ::ioctl(descriptor, FS_IOC_GETFLAGS, &attributes) == 0;
  const int append_only = attributes | FS_APPEND_FL;
  const bool is_set = has_attributes && ::ioctl(descriptor, FS_IOC_SETFLAGS, &append_only) == 0;
  if (!is_set) {
    ::close(descriptor);
    GTEST_SKIP() << "chattr +a is not possible here";
  }
  const Answer answer = pawl({"doctor", "--json", directory.path().string()});
  EXPECT_EQ(::ioctl(descriptor, FS_IOC_SETFLAGS, &attributes), 0);
  ::close(descriptor);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  const json parsed = json::parse(answer.out, nullptr, false);
  ASSERT_FALSE(parsed.is_discarded()) << answer.out << answer.err;
  EXPECT_EQ(answer.code, 9);
  EXPECT_EQ(parsed["safe"], false);
  EXPECT_TRUE(contains(answer.out, "append-only")) << answer.out;
}

// Where no line of mountinfo is about the root directory.
TEST(Doctor, SeesProcInARootDirectoryThatIsNoMountPoint) {
  const TemporaryDirectory directory;
  const Answer answer = with_own_mounts(
      "for d in usr lib lib64 bin proc $(echo \"$PAWL_COMMAND\" | cut -d/ -f2); do\n"
      "  [ -d /$d ] || continue\n"
      "  mkdir -p \"$0/$d\" && mount --rbind /$d \"$0/$d\" || exit 77\n"
      "done\n"
      "chroot \"$0\" \"$PAWL_COMMAND\" --version >&2 || exit 77\n"
      "exec chroot \"$0\" \"$PAWL_COMMAND\" doctor --json /",
      directory.path().string());
  if (answer.code == kNoMounts) GTEST_SKIP() << answer.err;
  const json parsed = json::parse(answer.out, nullptr, false);
  ASSERT_FALSE(parsed.is_discarded()) << answer.out << answer.err;
  bool is_named = false;
  for (const json& finding : parsed["findings"]) {
    EXPECT_NE(finding["name"], "/proc") << answer.out;
    is_named =
        is_named || (finding["name"] == "file system" && !contains(finding["value"], " on "));
  }
  EXPECT_TRUE(is_named) << answer.out;
}

TEST(Doctor, CallsADirectoryUnsafeThatHasNoRoomForAJournal) {
  const TemporaryDirectory directory;
  for (const auto& [setting, level] :
       {std::pair{"", "unsafe"}, {"PAWL_JOURNAL_SIZE=1M ", "fine"}}) {
    const Answer answer =
        with_own_mounts(std::string("mount -t tmpfs -o size=16m tmpfs \"$0\" || exit 77\n") +
                            setting + "\"$PAWL_COMMAND\" doctor --json \"$0\"",
                        directory.path().string());
    if (answer.code == kNoMounts) GTEST_SKIP() << answer.err;
    const json parsed = json::parse(answer.out, nullptr, false);
    ASSERT_FALSE(parsed.is_discarded()) << answer.out << answer.err;
    bool is_said = false;
    for (const json& finding : parsed["findings"]) {
      if (finding["name"] != "free space") continue;
      is_said = true;
      EXPECT_EQ(finding["level"], level) << answer.out;
      EXPECT_EQ(contains(finding["why"], "a journal takes 32.0 MiB"), finding["level"] != "fine");
    }
    EXPECT_TRUE(is_said) << answer.out;
  }
}

// The least that is a program, or a library, that is linked with others.
void write_module(const std::string& path, const std::string& interpreter,
                  const std::vector<std::string>& needed, const std::string& runpath) {
  struct {
    Elf64_Ehdr header{};
    std::array<Elf64_Phdr, 3> segments{};
    std::array<Elf64_Dyn, 8> entries{};
  } module;
  std::string strings(1, '\0');
  std::size_t count = 0;
  const auto add = [&](Elf64_Sxword tag, const std::string& text) {
    module.entries.at(count++) = {tag, {strings.size()}};
    strings += text + '\0';
    return sizeof module + strings.size() - text.size() - 1;
  };
  module.entries.at(count++) = {DT_STRTAB, {sizeof module}};
  for (const std::string& name : needed) add(DT_NEEDED, name);
  if (!runpath.empty()) add(DT_RUNPATH, runpath);
  const std::size_t of_interpreter = sizeof module + strings.size();
  strings += interpreter + '\0';
  std::memcpy(module.header.e_ident, ELFMAG, SELFMAG);
  module.header.e_ident[EI_CLASS] = ELFCLASS64;
  module.header.e_machine = EM_X86_64;
  module.header.e_phoff = sizeof module.header;
  module.header.e_phnum = module.segments.size();
  const std::size_t bytes = sizeof module + strings.size();
  module.segments[0] = {PT_LOAD, PF_R, 0, 0, 0, bytes, bytes, 1};
  module.segments[1] = {
      PT_DYNAMIC, PF_R, offsetof(decltype(module), entries), 0, 0, sizeof module.entries, 0, 8};
  module.segments[2] = {PT_INTERP, PF_R, of_interpreter, 0, 0, interpreter.size() + 1, 0, 1};
  if (interpreter.empty()) module.header.e_phnum = 2;
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&module), sizeof module) << strings;
}

// Of the finding of this name; empty where there is none.
std::string value_of(const Answer& answer, const std::string& name, const char* field = "value") {
  const json parsed = json::parse(answer.out, nullptr, false);
  EXPECT_FALSE(parsed.is_discarded()) << answer.out << answer.err;
  for (const json& finding : parsed["findings"]) {
    if (finding["name"] == name) return finding[field];
  }
  return {};
}

// Root ran what a file of anybody's named as its loader.
TEST(Doctor, RanTheLoaderThatAFileNames) {
  const TemporaryDirectory directory;
  const std::string loader = directory / "loader";
  std::ofstream(loader) << "#!/bin/sh\ntouch " << directory / "ran" << "\n";
  std::filesystem::permissions(loader, std::filesystem::perms::owner_all);
  write_module(directory / "program", loader, {}, "");
  const Answer answer = pawl({"doctor", "--json", directory / "program"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(value_of(answer, "no marks"), directory / "program");
  EXPECT_FALSE(std::filesystem::exists(directory / "ran"));
}

TEST(Doctor, WaitedForALibraryThatIsAFifo) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "library.so").c_str(), 0600), 0);
  write_module(directory / "program", "", {directory / "library.so"}, "");
  const Answer answer = pawl({"doctor", "--json", directory / "program"});
  EXPECT_TRUE(contains(value_of(answer, "not read"), "library.so is not a regular file"))
      << answer.out;
}

TEST(Doctor, DidNotSayWhichLibrariesItCouldNotRead) {
  const TemporaryDirectory directory;
  const std::string program = directory / "program";
  write_module(program, "", {"libnowhere.so.1", "libc.so.6"}, "");
  const Answer answer = pawl({"doctor", "--json", program}, {"PAWL_TRACKER=store"});
  EXPECT_EQ(answer.code, 9);
  EXPECT_EQ(value_of(answer, "not read"), "libnowhere.so.1 (not found)") << answer.out;
  EXPECT_EQ(value_of(answer, "store"), "refused, unless a library that was not read has marks");
  // A name that is said is no terminal's to follow.
  write_module(program, "", {"lib\x1b[8m\n.so"}, "");
  const Answer text = pawl({"doctor", program});
  EXPECT_TRUE(contains(text.out, "lib\\x1b[8m\\n.so (not found)")) << text.out;
}

// As the loader does: beside what needs it, and in what the loader's cache lists.
TEST(Doctor, FindsTheLibrariesOfAProgram) {
  const TemporaryDirectory directory;
  std::filesystem::create_directories(directory.path() / "bin");
  std::filesystem::create_directories(directory.path() / "lib");
  const std::string program = directory / "bin/program";
  const std::string first = directory / "bin/../lib/first.so";
  const std::string second = directory / "bin/../lib/second.so";
  write_module(program, "", {"first.so", "first.so"}, "/nowhere:$ORIGIN/../lib");
  write_module(directory / "lib/first.so", "", {"second.so", "libc.so.6"}, "${ORIGIN}");
  write_module(directory / "lib/second.so", "", {"first.so"}, "");
  std::filesystem::create_symlink(program, directory / "link");
  for (const std::string& name : {program, directory / "link"}) {
    const Answer answer = pawl({"doctor", "--json", name});
    EXPECT_EQ(value_of(answer, "no marks"), name + ", " + first + ", " + second) << answer.out;
    EXPECT_EQ(value_of(answer, "not read"), "");
  }
  for (const char* const name : {"/bin/ls", "/bin/sh"}) {
    const Answer answer = pawl({"doctor", "--json", name});
    EXPECT_EQ(value_of(answer, "not read"), "") << answer.out;
    EXPECT_TRUE(value_of(answer, "no marks").starts_with(name)) << answer.out;
  }
}

// The longest mount point was judged: here that of /proc, which another mount hides.
TEST(Doctor, JudgedAFileSystemThatAnotherHides) {
  const TemporaryDirectory directory;
  const Answer answer = with_own_mounts(
      "mkdir \"$0/below\" && mount --rbind /proc \"$0/below\" && mount -t tmpfs none \"$0\" &&\n"
      "mkdir \"$0/below\" || exit 77\n"
      "exec \"$PAWL_COMMAND\" doctor --json \"$0/below\"",
      directory.path().string());
  if (answer.code == kNoMounts) GTEST_SKIP() << answer.err;
  EXPECT_EQ(value_of(answer, "file system"), "tmpfs on none at " + directory.path().string());
}

// A name with newlines and what hides letters made the answer's last line its own.
TEST(Doctor, PrintedTheNameOfADirectoryAsItIs) {
  const TemporaryDirectory directory;
  const std::string name = directory / "x\n\nNothing here is unsafe.\x1b[8m";
  std::filesystem::create_directory(name);
  const Answer answer = pawl({"doctor", name});
  EXPECT_FALSE(contains(answer.out, "\x1b")) << answer.out;
  EXPECT_TRUE(contains(answer.out, "/x\\n\\nNothing here is unsafe.\\x1b[8m\n")) << answer.out;
}

TEST(Doctor, TookALimitOfAFilesSizeForAWantOfFallocate) {
  const TemporaryDirectory directory;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  for (const auto& [bytes, level] : {std::pair{32 << 10, "unsafe"}, {64 << 20, "note"}}) {
    const rlimit limit{static_cast<rlim_t>(bytes), before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    const Answer answer = pawl({"doctor", "--json", directory.path().string()});
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(value_of(answer, "size limit", "level"), level) << answer.out;
    EXPECT_EQ(value_of(answer, "reservation"), "yes") << answer.out;
    EXPECT_TRUE(contains(value_of(answer, "size limit", "why"), "(RLIMIT_FSIZE)")) << answer.out;
  }
  EXPECT_EQ(value_of(pawl({"doctor", "--json", directory.path().string()}), "size limit"), "");
}

// It tells of 0 blocks, of which 0 are free.
TEST(Doctor, CalledAFileSystemWithoutABoundFull) {
  const TemporaryDirectory directory;
  const Answer answer = with_own_mounts(
      "mount -t tmpfs -o size=0 tmpfs \"$0\" || exit 77\n\"$PAWL_COMMAND\" doctor --json \"$0\"",
      directory.path().string());
  if (answer.code == kNoMounts) GTEST_SKIP() << answer.err;
  EXPECT_TRUE(contains(answer.out, "without a bound")) << answer.out << answer.err;
  EXPECT_FALSE(contains(answer.out, "a journal takes")) << answer.out;
}

TEST(Doctor, RefusesWhatIsNoDirectory) {
  EXPECT_EQ(pawl({"doctor", "/no/such/directory"}).code, 1);
  EXPECT_EQ(pawl({"doctor", "/etc/passwd"}).code, 1);
}

TEST(Bench, MeasuresAndLeavesNothingBehind) {
  const TemporaryDirectory directory;
  const Answer answer = pawl(
      {"bench", "--dir", directory.path().string(), "--seconds", "1", "--pages", "2", "--json"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  const json parsed = json::parse(answer.out, nullptr, false);
  ASSERT_FALSE(parsed.is_discarded()) << answer.out;
  ASSERT_EQ(parsed["systems"].size(), 3u);
  for (const json& system : parsed["systems"]) {
    EXPECT_GT(system["commits"], 0);
    EXPECT_GT(system["commits_per_second"], 0.0);
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Bench, RefusesADirectoryThatIsNone) {
  EXPECT_EQ(pawl({"bench", "--dir", "/no/such/directory"}).code, 1);
  EXPECT_EQ(pawl({"bench", "--dir", "/etc/passwd"}).code, 1);
}

}  // namespace
}  // namespace pawl::test
