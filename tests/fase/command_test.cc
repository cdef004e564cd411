// pawl fase info and pawl fase recover.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "fase/accounts.h"
#include "fase/crash_everywhere.h"
#include "fase/format.h"
#include "fase/program.h"
#include "pawl/pawl.h"

namespace pawl {
namespace {

using test::Account;
using test::accounts_of;
using test::Answer;
using testing::HasSubstr;

class FaseCommand : public test::FaseTest {
 protected:
  FaseCommand() {
    open_and([](pawl_fase* fase) { test::make_accounts(fase); });
  }
  void interrupt() {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      Account* const accounts = accounts_of(open());
      test::count_both(accounts, accounts + 1, [] { ::_exit(42); });
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(WEXITSTATUS(status), 42);
  }
};

TEST_F(FaseCommand, InfoTellsWhatACrashLeft) {
  Answer answer = test::pawl({"fase", "info", path_});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("state         clean"));
  EXPECT_THAT(answer.out, HasSubstr(fase::fingerprint_text(fase::Program::own().fingerprint())));
  interrupt();
  answer = test::pawl({"fase", "info", path_, "--json"});
  EXPECT_EQ(answer.code, 3) << answer.err;
  const auto parsed = nlohmann::json::parse(answer.out);
  EXPECT_EQ(parsed["state"], "needs recovery");
  EXPECT_EQ(parsed["opened"], 2);
  ASSERT_EQ(parsed["interrupted_sections"].size(), 1u);
  EXPECT_EQ(parsed["interrupted_sections"][0]["locks"], 1);
  answer = test::pawl({"fase", "info", path_});
  EXPECT_THAT(answer.out, HasSubstr("interrupted   function 3, region 0, in 0 calls, with 1 lock"));
  open_and([&](pawl_fase*) {
    EXPECT_EQ(test::pawl({"fase", "info", path_}).code, 7);
    EXPECT_EQ(test::pawl({"fase", "recover", "--binary", "/proc/self/exe", path_}).code, 7);
  });
}

TEST_F(FaseCommand, RecoverRunsTheProgramThatWasInterrupted) {
  const std::string own = std::filesystem::canonical("/proc/self/exe").string();
  EXPECT_THAT(test::pawl({"fase", "recover", "--binary", own, path_}).out,
              HasSubstr("nothing to recover"));
  EXPECT_EQ(test::pawl({"fase", "recover", "--binary", path_ + ".none", path_}).code, 127);
  interrupt();
  // Another program is not run.
  Answer answer = test::pawl({"fase", "recover", "--binary", "/bin/true", path_});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.err, HasSubstr("/bin/true is not the program that was interrupted"));
  for (const char* verb : {"recover", "info"})
    EXPECT_EQ(test::pawl({"fase", verb, "--binary", path_ + ".none", path_}).code, 127);
  answer = test::pawl({"fase", "recover", "--binary", own, path_});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("recovered, 1 section finished"));
  EXPECT_EQ(test::pawl({"fase", "info", path_}).code, 0);
  open_and([](pawl_fase* fase) { EXPECT_EQ(accounts_of(fase)[1].transfers, 1u); });
}

// All of it was read into memory.
TEST_F(FaseCommand, ReadAProgramOfWhateverSize) {
  interrupt();
  const std::string program = path_ + ".program";
  std::filesystem::copy_file(std::filesystem::canonical("/proc/self/exe"), program);
  std::filesystem::resize_file(program, std::uintmax_t{6} << 30);
  const Answer answer = test::pawl({"fase", "info", "--binary", program, path_});
  std::filesystem::remove(program);
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.err, HasSubstr("has 6.0 GiB, more than the 1.0 GiB that are read of it"));
}

TEST_F(FaseCommand, ASnapshotIsNotTornAndHasNoHalfOfASection) {
  const std::string copy = path_ + ".copy";
  interrupt();
  Answer answer = test::pawl({"snapshot", path_, copy});
  EXPECT_EQ(answer.code, 1) << answer.out;
  EXPECT_THAT(answer.err, HasSubstr("pawl fase recover"));
  EXPECT_EQ(pawl_snapshot(path_.c_str(), copy.c_str(), 0), -1);
  EXPECT_EQ(errno, EBUSY);
  open_and([&](pawl_fase*) {
    answer = test::pawl({"snapshot", path_, copy});
    EXPECT_EQ(answer.code, 1) << answer.out;
    EXPECT_THAT(answer.err, HasSubstr("is open (pawl_fase_open)"));
    EXPECT_EQ(pawl_snapshot(path_.c_str(), copy.c_str(), 0), -1);
    EXPECT_EQ(errno, EBUSY);
  });
  EXPECT_EQ(pawl_snapshot(path_.c_str(), copy.c_str(), 0), 0) << pawl_last_error();
  EXPECT_EQ(test::pawl({"fase", "info", copy}).code, 0);
}

TEST_F(FaseCommand, AFileThatWasLeftWithoutProtectionIsNotClean) {
  ASSERT_EQ(std::fflush(nullptr), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    pawl_fase_options options;
    pawl_fase_options_init(&options);
    options.unprotected = 1;
    ::_exit(pawl_fase_open(path_.c_str(), &options) == nullptr ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  for (const char* verb : {"info", "recover"}) {
    std::vector<std::string> words{"fase", verb, path_};
    if (words[1] == "recover") words.insert(words.end() - 1, {"--binary", "/bin/true"});
    const Answer answer = test::pawl(words);
    EXPECT_EQ(answer.code, 1) << answer.out;
    EXPECT_THAT(answer.err, HasSubstr("was open without protection"));
  }
}

TEST_F(FaseCommand, OtherFilesAreRefused) {
  test::write_file(path_, "something else");
  const Answer answer = test::pawl({"fase", "info", path_});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.err, HasSubstr("no file of failure-atomic sections"));
  EXPECT_EQ(test::pawl({"fase", "info", path_ + ".none"}).code, 1);
}

}  // namespace
}  // namespace pawl
