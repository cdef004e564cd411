// Transactions in persistent memory happen whole or not at all: wherever the power fails in a
// commit or in the recovery after it, and whenever the process is killed.
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "stm/accounts.h"
#include "stm/cut_memory.h"
#include "stm/region.h"

namespace pawl {
namespace {

using bench::stm::Region;
using test::Accounts;
using test::CutMemory;
using test::kAccounts;

constexpr std::uint64_t kBalance = 1'000'000;
constexpr std::uint64_t kTransfersCut = 10;
constexpr std::uint64_t kSeeds = 3;  // states of memory at each step
constexpr int kKills = 20;
constexpr int kKilledThreads = 3;

struct Transfer {
  std::size_t from;
  std::size_t to;
  std::uint16_t amount;
};
Transfer draw(std::mt19937_64& random) {
  const std::size_t from = random() % kAccounts;
  return {from, (from + 1 + random() % (kAccounts - 1)) % kAccounts,
          static_cast<std::uint16_t>(1 + random() % 1000)};
}

std::uint64_t sum_of(const Accounts& accounts) {
  std::uint64_t sum = 0;
  for (const test::Account& account : accounts.accounts) sum += account.balance;
  return sum;
}

class StmRecovery : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(directory_.data()), nullptr); }
  void TearDown() override {
    region_.reset();
    std::filesystem::remove_all(directory_);
  }

  Accounts& open() {
    region_.reset();
    auto opened = Region::open(directory_ + "/region", sizeof(Accounts));
    EXPECT_TRUE(opened.ok()) << opened.status().text();
    region_ = std::move(opened.value());
    bench::stm::set_the_region(region_.get());
    return *reinterpret_cast<Accounts*>(region_->data());
  }

  std::string directory_ = "/dev/shm/pawl-test-XXXXXX";
  std::unique_ptr<Region> region_;
};

// States after so many transfers, as they come of it without any crash.
class History {
 public:
  explicit History(std::uint64_t transfers) {
    Accounts accounts{};
    test::open_accounts(accounts, kBalance);
    states_.push_back(accounts);
    std::mt19937_64 random(1);
    for (std::uint64_t n = 0; n < transfers; ++n) {
      transfers_.push_back(draw(random));
      test::transfer(accounts, transfers_[n].from, transfers_[n].to, transfers_[n].amount);
      states_.push_back(accounts);
    }
  }
  const std::vector<Transfer>& transfers() const { return transfers_; }
  void expect_at(const Accounts& found, std::uint64_t at_least, std::uint64_t at_most) const {
    ASSERT_GE(found.done, at_least + 1);
    ASSERT_LE(found.done, at_most + 1);
    EXPECT_EQ(std::memcmp(&found, &states_[found.done - 1], sizeof found), 0) << found.done;
  }

 private:
  std::vector<Transfer> transfers_;
  std::vector<Accounts> states_;
};

Accounts recovered(std::vector<std::byte>& image) {
  auto memory = make_persistent_memory({});
  EXPECT_TRUE(memory.ok());
  EXPECT_TRUE(Region::recover_bytes(image, *memory.value()).ok());
  Accounts accounts;
  std::memcpy(&accounts, image.data() + Region::kDataOffset, sizeof accounts);
  return accounts;
}

TEST_F(StmRecovery, APowerCutAtAnyStepLeavesATransactionWholeOrNot) {
  const History history(kTransfersCut);
  Accounts& accounts = open();
  test::open_accounts(accounts, kBalance);
  std::uint64_t acknowledged = 0;
  std::uint64_t steps = 0;
  std::uint64_t steps_of_recovery = 0;
  CutMemory* memory = nullptr;
  const auto look = [&](std::uint64_t at_most) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      std::vector<std::byte> image = memory->image(steps * kSeeds + seed);
      std::vector<std::byte> again = image;
      history.expect_at(recovered(image), acknowledged, at_most);
      if (::testing::Test::HasFatalFailure()) return;
      // Recovery, too, is cut at each of its steps.
      const CutMemory* inner = nullptr;
      CutMemory of_recovery(again, [&] {
        std::vector<std::byte> cut_again = inner->image(++steps_of_recovery);
        history.expect_at(recovered(cut_again), acknowledged, at_most);
      });
      inner = &of_recovery;
      EXPECT_TRUE(Region::recover_bytes(again, of_recovery).ok());
    }
  };
  auto cut = std::make_unique<CutMemory>(region_->bytes(), [&] {
    ++steps;
    look(acknowledged + 1);
  });
  memory = cut.get();
  region_->use_memory(std::move(cut));
  for (const Transfer& transfer : history.transfers()) {
    SCOPED_TRACE("transfer " + std::to_string(acknowledged + 1));
    test::transfer(accounts, transfer.from, transfer.to, transfer.amount);
    ++acknowledged;
    look(acknowledged);
    test::transfer_and_cancel(accounts, transfer.to, transfer.from, transfer.amount);
    ASSERT_FALSE(HasFailure());
  }
  // A record, several lines that it changes, and its end.
  EXPECT_GT(steps, kTransfersCut * 6);
  EXPECT_GT(steps_of_recovery, steps);
}

TEST_F(StmRecovery, ATransactionThatIsCancelledHasDoneNothing) {
  Accounts& accounts = open();
  test::open_accounts(accounts, kBalance);
  const Accounts before = accounts;
  test::transfer_and_cancel(accounts, 1, 2, 3);
  EXPECT_EQ(std::memcmp(&accounts, &before, sizeof before), 0);
  test::transfer(accounts, 1, 2, 3);
  EXPECT_EQ(accounts.accounts[1].balance, kBalance - 3);
  EXPECT_EQ(accounts.accounts[2].last_partner, 1);
}

TEST_F(StmRecovery, WhatIsInNoLogOrLeadsOutOfTheRegionIsNotReplayed) {
  Accounts& accounts = open();
  test::open_accounts(accounts, kBalance);
  const Accounts before = accounts;
  // With all its words but the checksum; and whole, but of another place.
  bench::stm::LogOfThread& log = region_->log(3);
  bench::stm::RedoLog writer(log, region_->memory());
  const std::vector<bench::stm::LoggedWord> inside{{Region::kDataOffset, 77}};
  writer.commit(5, inside);
  ++log.header.checksum;
  open();
  EXPECT_EQ(region_->recovered(), 0u);
  bench::stm::RedoLog(region_->log(3), region_->memory())
      .commit(5, std::vector<bench::stm::LoggedWord>{{std::uint64_t{1} << 40, 77}});
  Accounts& after = open();
  EXPECT_EQ(region_->recovered(), 0u);
  EXPECT_EQ(std::memcmp(&after, &before, sizeof before), 0);
  bench::stm::RedoLog(region_->log(3), region_->memory()).commit(5, inside);
  EXPECT_EQ(open().done, 77u);
  EXPECT_EQ(region_->recovered(), 1u);
}

// Two threads' records: the later one is replayed over the earlier.
TEST_F(StmRecovery, RecordsAreReplayedInTheOrderOfTheirCommits) {
  open();
  using Words = std::vector<bench::stm::LoggedWord>;
  bench::stm::RedoLog(region_->log(0), region_->memory())
      .commit(9, Words{{Region::kDataOffset, 9}});
  bench::stm::RedoLog(region_->log(1), region_->memory())
      .commit(8, Words{{Region::kDataOffset, 8}});
  EXPECT_EQ(open().done, 9u);
  EXPECT_EQ(region_->recovered(), 2u);
}

TEST_F(StmRecovery, AKillLeavesEachTransactionWholeOrNot) {
  test::open_accounts(open(), kBalance);
  region_.reset();
  void* const shared = ::mmap(nullptr, sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& acknowledged = *new (shared) std::atomic<std::uint64_t>{0};
  std::mt19937_64 random(7);
  for (int kill = 0; kill < kKills; ++kill) {
    SCOPED_TRACE("kill " + std::to_string(kill));
    const std::uint64_t before = acknowledged.load();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Accounts& accounts = open();
      std::vector<std::thread> threads;
      for (int i = 0; i < kKilledThreads; ++i) {
        threads.emplace_back([&, i] {
          std::mt19937_64 own(static_cast<std::uint64_t>(kill * kKilledThreads + i));
          for (;;) {
            const Transfer transfer = draw(own);
            test::transfer(accounts, transfer.from, transfer.to, transfer.amount);
            acknowledged.fetch_add(1);
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
    // Not before it works.
    while (acknowledged.load() == before) std::this_thread::yield();
    ::usleep(static_cast<useconds_t>(random() % 3000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const Accounts& accounts = open();
    EXPECT_EQ(sum_of(accounts), kAccounts * kBalance);
    EXPECT_GE(accounts.done, acknowledged.load() + 1);
    std::uint64_t transfers = 0;
    for (const test::Account& account : accounts.accounts) transfers += account.transfers;
    EXPECT_EQ(transfers, 2 * (accounts.done - 1));
    ASSERT_FALSE(HasFailure());
    // Those that had no time to tell, too.
    acknowledged.store(accounts.done - 1);
    region_.reset();
  }
  ::munmap(shared, sizeof(std::atomic<std::uint64_t>));
}

}  // namespace
}  // namespace pawl
