// Every kind of container, against a model, through many processes.
//
//   stl_containers --play KIND HEAP SEED ROUND [last]    is one of those processes
//   stl_containers --where                               says where its stack is
#include <spawn.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "play.h"
#include "support/temporary_directory.h"

extern char** environ;

namespace stl_test {
namespace {

constexpr std::uint64_t kRounds = 10;
constexpr unsigned long kAskPersonality = 0xffffffff;

const Kinds& kinds() {
  static const Kinds all = [] {
    Kinds made = kinds_of_pawl();
    made.merge(kinds_of_pmr());
    made.merge(kinds_of_boost());
    return made;
  }();
  return all;
}

class Containers : public testing::TestWithParam<std::string> {
 protected:
  // Plays a round in a new process, which the kernel loads elsewhere.
  bool play_elsewhere(const Game& game) const {
    const std::string seed = std::to_string(game.seed);
    const std::string round = std::to_string(game.round);
    std::vector<const char*> arguments{"stl_containers",  "--play",     GetParam().c_str(),
                                       game.path.c_str(), seed.c_str(), round.c_str()};
    if (game.last) arguments.push_back("last");
    arguments.push_back(nullptr);
    pid_t child = 0;
    if (::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr,
                      const_cast<char**>(arguments.data()), environ) != 0)
      return false;
    int status = 0;
    return ::waitpid(child, &status, 0) == child && status == 0;
  }

  pawl::test::TemporaryDirectory directory_;
};

TEST_P(Containers, AreAsTheyWereInEveryProcess) {
  const std::uint64_t seed = std::hash<std::string>()(GetParam()) % 100000;
  for (std::uint64_t round = 0; round <= kRounds; ++round) {
    const Game game{directory_ / "heap", seed, round, round == kRounds};
    ASSERT_TRUE(play_elsewhere(game)) << GetParam() << ", seed " << seed << ", round " << round;
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, play] : kinds()) all.push_back(name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Kinds, Containers, testing::ValuesIn(names()),
                         [](const auto& kind) { return kind.param; });

// Else the rounds would show less than they seem to: code, stack and memory of new lie elsewhere in
// the next process.
TEST(Containers, ProcessesAreLoadedElsewhere) {
  if ((::personality(kAskPersonality) & ADDR_NO_RANDOMIZE) != 0)
    GTEST_SKIP() << "address space randomisation is off for this process";
  const std::string command = std::filesystem::canonical("/proc/self/exe").string() + " --where";
  std::set<std::string> places;
  for (int i = 0; i < 4; ++i) {
    std::FILE* const output = ::popen(command.c_str(), "r");
    ASSERT_NE(output, nullptr);
    char line[100] = {};
    ASSERT_NE(std::fgets(line, sizeof line, output), nullptr);
    ::pclose(output);
    places.insert(line);
  }
  EXPECT_GT(places.size(), 1u);
}

}  // namespace
}  // namespace stl_test

int main(int argc, char** argv) {
  // Small, so that opening is quick.
  ::setenv("PAWL_JOURNAL_SIZE", "1M", 0);
  if (argc >= 6 && std::string_view(argv[1]) == "--play") {
    try {
      const stl_test::Game game{argv[3], std::strtoull(argv[4], nullptr, 10),
                                std::strtoull(argv[5], nullptr, 10), argc > 6};
      return stl_test::kinds().at(argv[2])(game);
    } catch (const std::exception& failure) {
      return stl_test::complain(failure.what());
    }
  }
  if (argc == 2 && std::string_view(argv[1]) == "--where")
    return std::printf("%p\n", static_cast<void*>(&argc)) > 0 ? 0 : 1;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
