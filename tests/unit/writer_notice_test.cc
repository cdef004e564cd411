// The kernel's table of locks, in which a writer is found: it is read in pieces.
#include "medium/writer_notice.h"

#include <fcntl.h>

#include <algorithm>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "medium/descriptor.h"
#include "medium/lock_table.h"
#include "support/locks_of_another.h"
#include "support/temporary_directory.h"

namespace pawl {
namespace {

// More than one piece of the table has.
constexpr off_t kLocks = 400;

class WriterNotice : public testing::Test {
 protected:
  Descriptor make(const char* name) const {
    return Descriptor(::open((directory_ / name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  }
  std::size_t count(Notice notice) const {
    const auto found = count_notices(file_, notice);
    EXPECT_TRUE(found.ok()) << found.status().text();
    return found.ok() ? found.value() : 0;
  }

  test::TemporaryDirectory directory_;
  Descriptor user_ = make("file");
  struct stat file_ = [this] {
    struct stat status{};
    EXPECT_EQ(::fstat(user_.get(), &status), 0);
    return status;
  }();
};

TEST_F(WriterNotice, IsOfOneKindAndGoesWithItsDescriptor) {
  std::list<Descriptor> sides;
  for (const char* const name : {"one", "two"}) {
    sides.push_back(make(name));
    ASSERT_TRUE(put_notice(sides.back().get(), file_, Notice::opener).ok());
  }
  EXPECT_EQ(count(Notice::opener), 2u);
  EXPECT_EQ(count(Notice::writer), 0u);
  sides.pop_front();
  EXPECT_EQ(count(Notice::opener), 1u);
}

// Those that are given up before the place of the next piece move it past others.
TEST_F(WriterNotice, WasMissedWhileOthersGaveUpLocks) {
  const test::LocksOfAnother first(directory_ / "first", kLocks);
  const Descriptor side = make("side");
  ASSERT_TRUE(put_notice(side.get(), file_, Notice::writer).ok());
  const test::LocksOfAnother second(directory_ / "second", kLocks);
  for (int reading = 0; reading < 300 && !HasFailure(); ++reading)
    EXPECT_EQ(count(Notice::writer), 1u) << "in reading " << reading;
}

// ------------------------------------------------------------------------------------- its pieces

std::string line(std::size_t number, std::size_t lock) {
  return std::to_string(number) + ": POSIX  ADVISORY  WRITE " + std::to_string(1000 + lock) +
         " fe:00:1234567 " + std::to_string(lock) + " " + std::to_string(lock) + "\n";
}

// Hands out locks, of which some are given up between two pieces.
class Table {
 public:
  explicit Table(std::size_t locks) {
    for (std::size_t lock = 0; lock < locks; ++lock) locks_.push_back(lock);
  }
  void give_up(std::size_t first, std::size_t count) {
    locks_.erase(locks_.begin() + static_cast<std::ptrdiff_t>(first),
                 locks_.begin() + static_cast<std::ptrdiff_t>(first + count));
  }
  // As the kernel does: whole lines, from a number on.
  void read(std::vector<std::string>& pieces, std::size_t& from,
            std::size_t bytes = kLockTablePieceBytes) const {
    std::string piece;
    for (; from < locks_.size(); ++from) {
      const std::string next = line(from + 1, locks_[from]);
      if (piece.size() + next.size() > bytes) break;
      piece += next;
    }
    if (!piece.empty()) pieces.push_back(piece);
  }

 private:
  std::vector<std::size_t> locks_;
};

struct Reading {
  std::vector<std::string> behind;
  std::vector<std::string> ahead;
  std::size_t behind_at = 0;
  std::size_t ahead_at = 0;

  explicit Reading(const Table& table) {
    table.read(ahead, ahead_at, kLockTablePieceBytes / 2);
    table.read(behind, behind_at);
  }
  void go_on(const Table& table) {
    table.read(ahead, ahead_at);
    table.read(behind, behind_at);
  }
  std::optional<std::vector<std::string>> join() const { return join_lock_table(behind, ahead); }
};

bool has(const std::vector<std::string>& lines, std::size_t lock) {
  const std::string wanted = line(0, lock);  // "0: ...", and a newline
  return std::count(lines.begin(), lines.end(), wanted.substr(2, wanted.size() - 3)) != 0;
}

TEST(LockTable, IsJoinedWhenNothingChanges) {
  for (const std::size_t locks : {0u, 1u, 60u, 70u, 75u, 90u, 150u, 1000u}) {
    const Table table(locks);
    Reading reading(table);
    for (std::size_t i = 0; i < locks / 60 + 1; ++i) reading.go_on(table);
    const auto lines = reading.join();
    ASSERT_TRUE(lines.has_value()) << locks;
    for (std::size_t lock = 0; lock < locks; ++lock) ASSERT_TRUE(has(*lines, lock)) << lock;
  }
}

TEST(LockTable, IsJoinedOverLocksThatAreGivenUp) {
  Table table(300);
  Reading reading(table);
  for (std::size_t i = 0; i < 8; ++i) {
    table.give_up(3 * i, 2);
    reading.go_on(table);
  }
  const auto lines = reading.join();
  ASSERT_TRUE(lines.has_value());
  for (std::size_t lock = 100; lock < 300; ++lock) EXPECT_TRUE(has(*lines, lock)) << lock;
}

TEST(LockTable, IsNotJoinedOverAGap) {
  Table table(300);
  Reading reading(table);
  table.give_up(0, 60);
  for (std::size_t i = 0; i < 8; ++i) reading.go_on(table);
  EXPECT_FALSE(reading.join().has_value());
}

TEST(LockTable, DoesNotEndWithAFullPiece) {
  Table table(120);
  Reading reading(table);
  table.give_up(0, 90);
  for (std::size_t i = 0; i < 3; ++i) reading.go_on(table);
  EXPECT_FALSE(reading.join().has_value());
}

TEST(LockTable, TakesALineThatWasBegunForOneOfItsMoment) {
  const std::string text = line(1, 0) + line(2, 1) + line(3, 2);
  const auto lines = join_lock_table({text}, {text.substr(0, 10), text.substr(10)});
  ASSERT_TRUE(lines.has_value());
  EXPECT_EQ(lines->size(), 3u);
  for (std::size_t lock = 0; lock < 3; ++lock) EXPECT_TRUE(has(*lines, lock)) << lock;
}

}  // namespace
}  // namespace pawl
