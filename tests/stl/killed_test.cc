// A process that inserts, syncs and acknowledges is killed at random moments: every insert that was
// acknowledged is there, and at most one that was not.
//
//   stl_killed --insert HEAP    is that process: it tells how many inserts it finds, then each it
//                               has made; what it finds must be whole
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "support.h"

extern char** environ;

namespace stl_test {
namespace {

constexpr int kKills = 50;
constexpr int kMicrosecondsMax = 20000;  // before a kill

// Three containers that must agree.
struct Books {
  pawl::map<long, pawl::string> by_number;
  pawl::unordered_map<pawl::string, long> by_name;
  pawl::vector<pawl::string> in_order;
};

pawl::string name_of(long number) { return pawl::string(std::to_string(number)) + " is " + kLong; }

bool whole(const Books& books) {
  const long count = static_cast<long>(books.in_order.size());
  if (books.by_number.size() != books.in_order.size() ||
      books.by_name.size() != books.in_order.size())
    return false;
  for (long number = 0; number < count; ++number) {
    const pawl::string name = name_of(number);
    const auto found = books.by_name.find(name);
    if (books.in_order[static_cast<std::size_t>(number)] != name ||
        books.by_number.at(number) != name || found == books.by_name.end() ||
        found->second != number)
      return false;
  }
  return true;
}

void tell(long number) {
  if (::write(STDOUT_FILENO, &number, sizeof number) != sizeof number) ::_exit(1);
}

int insert_for_ever(const char* path) {
  pawl::heap heap = open_heap(path);
  auto& books = heap.root<Books>();
  if (heap.check() != 0 || !whole(books)) return 1;
  long number = static_cast<long>(books.in_order.size());
  tell(number);
  for (;; ++number) {
    const pawl::string name = name_of(number);
    books.by_number.emplace(number, name);
    books.by_name.emplace(name, number);
    books.in_order.push_back(name);
    heap.sync();
    tell(number + 1);
  }
}

class Killed : public testing::Test {
 protected:
  // Runs the process until it is killed; returns the numbers that it told.
  std::vector<long> run_and_kill() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const std::string path = directory_ / "heap";
    const char* const arguments[] = {"stl_killed", "--insert", path.c_str(), nullptr};
    pid_t child = 0;
    EXPECT_EQ(::posix_spawn(&child, "/proc/self/exe", &actions, nullptr,
                            const_cast<char**>(arguments), environ),
              0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    std::vector<long> told;
    const auto hear = [&] {
      long number = 0;
      if (::read(ends[0], &number, sizeof number) != sizeof number) return false;
      told.push_back(number);
      return true;
    };
    // From its first word on, so that there is something to kill.
    if (hear())
      std::this_thread::sleep_for(
          std::chrono::microseconds(std::uniform_int_distribution(0, kMicrosecondsMax)(random_)));
    ::kill(child, SIGKILL);
    while (hear()) {
    }
    ::close(ends[0]);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "it ended by itself";
    return told;
  }

  pawl::test::TemporaryDirectory directory_;
  std::mt19937 random_{std::random_device{}()};
};

TEST_F(Killed, NothingAcknowledgedIsLost) {
  long acknowledged = 0;
  int while_inserting = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    const std::vector<long> told = run_and_kill();
    ASSERT_FALSE(told.empty()) << "kill " << kill << ": what it found was not whole";
    ASSERT_TRUE(told.front() == acknowledged || told.front() == acknowledged + 1)
        << "kill " << kill << ": " << acknowledged << " were acknowledged, and " << told.front()
        << " are there";
    acknowledged = told.back();
    if (told.size() > 1) ++while_inserting;
  }
  EXPECT_GT(while_inserting, 0);
}

}  // namespace
}  // namespace stl_test

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--insert") {
    try {
      return stl_test::insert_for_ever(argv[2]);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "%s\n", failure.what());
      return 1;
    }
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
