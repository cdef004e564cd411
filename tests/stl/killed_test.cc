// A process that inserts, syncs and acknowledges is killed at random moments: every insert that was
// acknowledged is there, and at most one that was not.
//
//   stl_killed --insert HEAP    is that process: it tells how many inserts it finds, then each it
//                               has made; what it finds must be whole
#include <chrono>
#include <random>

#include "support.h"
#include "support/killed_process.h"

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

int insert_for_ever(const char* path) {
  pawl::heap heap = open_heap(path);
  auto& books = heap.root<Books>();
  if (heap.check() != 0 || !whole(books)) return 1;
  long number = static_cast<long>(books.in_order.size());
  pawl::test::tell(number);
  for (;; ++number) {
    const pawl::string name = name_of(number);
    books.by_number.emplace(number, name);
    books.by_name.emplace(name, number);
    books.in_order.push_back(name);
    heap.sync();
    pawl::test::tell(number + 1);
  }
}

class Killed : public testing::Test {
 protected:
  // From its first word on, so that there is something to kill.
  std::vector<long> insert_and_kill() {
    const std::chrono::microseconds later(
        std::uniform_int_distribution(0, kMicrosecondsMax)(random_));
    return pawl::test::run_and_kill<long>({"--insert", directory_ / "heap"}, 1, later);
  }

  pawl::test::TemporaryDirectory directory_;
  std::mt19937 random_{std::random_device{}()};
};

TEST_F(Killed, NothingAcknowledgedIsLost) {
  long acknowledged = 0;
  int while_inserting = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    const std::vector<long> told = insert_and_kill();
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
