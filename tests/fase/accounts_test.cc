// Several locks, several threads: what a FASE has released is not done again, and FASEs that were
// interrupted together are finished together.
#include "fase/accounts.h"

#include <gtest/gtest.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <set>
#include <string>
#include <thread>

#include "fase/crash_everywhere.h"
#include "fase/hand_made.h"
#include "fase/recovery_locks.h"

namespace pawl {
namespace {

using test::Account;
using test::accounts_of;

class FaseAccounts : public test::FaseTest {
 protected:
  FaseAccounts() {
    open_and([](pawl_fase* fase) { test::make_accounts(fase); });
  }
  // Returns the exit status of a child that does it; -1: it had none.
  template <class Work>
  static int run_child(Work work) {
    EXPECT_EQ(std::fflush(nullptr), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      work();
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void interrupt_two_that_wait() {
    ASSERT_EQ(run_child([&] {
                static Account* const accounts = accounts_of(open());
                test::count_both(accounts, accounts + 1, [] {
                  std::thread([] {
                    test::count_both(accounts + 1, accounts + 2, [] { ::_exit(42); });
                  }).join();
                });
              }),
              42);
  }
  void expect_two_finished() {
    open_and([](pawl_fase* fase) {
      const Account* const accounts = accounts_of(fase);
      EXPECT_EQ(accounts[0].transfers, 1u);
      EXPECT_EQ(accounts[1].transfers, 2u);
      EXPECT_EQ(accounts[2].transfers, 1u);
      pawl_fase_statistics statistics;
      ASSERT_EQ(pawl_fase_stats(fase, &statistics), 0);
      EXPECT_EQ(statistics.sections_recovered, 2u);
    });
  }

  static constexpr std::size_t kStackThatIsNotThere = std::size_t{1} << 46;
  void* note_before_ = nullptr;
};

TEST_F(FaseAccounts, ATransferIsDoneOrNotAtAll) {
  std::set<std::uint64_t> balances;
  crash_everywhere(
      [](pawl_fase* fase) { test::transfer(accounts_of(fase), accounts_of(fase) + 1, 100); },
      [&](pawl_fase* fase) {
        const Account* const accounts = accounts_of(fase);
        test::expect_balanced(accounts);
        EXPECT_EQ(accounts[0].balance + 100 * accounts[0].transfers, test::kBalance);
        balances.insert(accounts[1].balance);
      });
  EXPECT_EQ(balances, (std::set<std::uint64_t>{1000, 1100}));
}

// Another thread gets the lock that was released, and what it does then stays.
TEST_F(FaseAccounts, WhatFollowsAReleaseIsNotUndone) {
  static pawl_fase* opened = nullptr;
  std::uint64_t both = 0;
  crash_everywhere(
      [](pawl_fase* fase) {
        opened = fase;
        test::transfer(accounts_of(fase), accounts_of(fase) + 1, 100);
      },
      [&](pawl_fase* fase) {
        const Account* const accounts = accounts_of(fase);
        test::expect_balanced(accounts);
        if (accounts[0].transfers == 1 && accounts[1].deposits == 1) ++both;
      },
      [] {
        if (opened != nullptr) test::try_deposit(accounts_of(opened) + 1);
      });
  EXPECT_GT(both, 0u);
}

// A release that is put off is done before another lock is taken, and what was allocated since is
// allocated again.
TEST_F(FaseAccounts, WhatFollowsAReleaseThatWasPutOffIsDoneAgain) {
  static pawl_fase* opened = nullptr;
  for (std::uint64_t turn = 0; turn < 2; ++turn) {
    crash_everywhere(
        [](pawl_fase* fase) {
          opened = fase;
          Account* const accounts = accounts_of(fase);
          test::leave_note(fase, accounts, accounts + 1, accounts + 2, nullptr);
        },
        [&](pawl_fase* fase) {
          const Account* const accounts = accounts_of(fase);
          test::expect_balanced(accounts);
          EXPECT_EQ(blocks_used(), accounts[2].note == nullptr ? 1u : 2u);
          EXPECT_EQ(accounts[0].balance < test::kBalance - 100 * turn,
                    accounts[2].note != nullptr && (turn == 0 || accounts[2].note != note_before_));
        },
        // The second one logs an end when the file is closed, while no thread can come or go.
        turn > 0 ? std::function<void()>() : [] {
          if (opened != nullptr) test::try_deposit(accounts_of(opened) + 1);
        });
    // The second one frees the note of the first.
    open_and([&](pawl_fase* fase) {
      Account* const accounts = accounts_of(fase);
      if (accounts[2].note == nullptr)
        test::leave_note(fase, accounts, accounts + 1, accounts + 2, nullptr);
      note_before_ = accounts[2].note;
    });
  }
}

TEST_F(FaseAccounts, AReleaseThatWasPutOffIsDoneBeforeAnotherLockIsTaken) {
  static Account* accounts = nullptr;
  static bool was_free_between = false;
  open_and([](pawl_fase* fase) {
    accounts = accounts_of(fase);
    test::leave_note(fase, accounts, accounts + 1, accounts + 2, [] {
      // The program has released it, and the thread has not.
      std::thread([] { was_free_between = test::try_deposit(accounts + 1); }).join();
    });
    EXPECT_FALSE(was_free_between);
    EXPECT_TRUE(test::try_deposit(accounts + 1));
    EXPECT_TRUE(test::try_deposit(accounts + 2));
    // Whoever holds the next lock may wait for that one.
    static std::atomic<int> stage{0};
    std::thread other([] {
      pawl_fase_mutex_lock(&accounts[2].mutex);
      stage = 1;
      while (stage != 2) std::this_thread::yield();
      pawl_fase_mutex_lock(&accounts[1].mutex);
      pawl_fase_mutex_unlock(&accounts[1].mutex, nullptr, 0, nullptr);
      pawl_fase_mutex_unlock(&accounts[2].mutex, nullptr, 0, nullptr);
    });
    while (stage != 1) std::this_thread::yield();
    test::leave_note(fase, accounts, accounts + 1, accounts + 2, [] { stage = 2; });
    other.join();
  });
}

// An end stays where it is until another frame is durable, whoever has the log next.
TEST_F(FaseAccounts, WhatHasEndedDoesNotComeBackInTheNextRun) {
  static constexpr std::uint64_t kTransfers = 50;
  open_and([](pawl_fase* fase) { test::transfer(accounts_of(fase), accounts_of(fase) + 1, 100); });
  open_and([](pawl_fase* fase) {
    std::uint64_t& transfers = accounts_of(fase)->transfers;
    test::store(transfers, kTransfers);
    pawl_fase_persist(&transfers, sizeof transfers);
  });
  crash_everywhere([](pawl_fase* fase) { test::try_deposit(accounts_of(fase) + 2); },
                   [](pawl_fase* fase) { EXPECT_EQ(accounts_of(fase)->transfers, kTransfers); });
}

// Two FASEs of which one needs a lock that the other has.  The first to log is the first to be
// finished, and must wait all the same.
TEST_F(FaseAccounts, FasesThatWaitForOneAnotherAreFinished) {
  ASSERT_NO_FATAL_FAILURE(interrupt_two_that_wait());
  expect_two_finished();
}

// The program was ended by the library when a thread could not be started.
TEST_F(FaseAccounts, WithTooFewThreadsNothingIsFinishedAndTheNextOpenDoes) {
  ASSERT_NO_FATAL_FAILURE(interrupt_two_that_wait());
  EXPECT_EQ(run_child([&] {
              pthread_attr_t attributes;
              if (::pthread_attr_init(&attributes) != 0 ||
                  ::pthread_attr_setstacksize(&attributes, kStackThatIsNotThere) != 0 ||
                  ::pthread_setattr_default_np(&attributes) != 0)
                ::_exit(1);
              const bool is_refused =
                  open() == nullptr && errno == EAGAIN &&
                  std::string(::pawl_last_error()).find("cannot start a thread") !=
                      std::string::npos;
              if (!is_refused) std::fprintf(stderr, "%s\n", ::pawl_last_error());
              ::_exit(is_refused ? 42 : 1);
            }),
            42);
  expect_two_finished();
}

// Where each waits for the other, one whose wait has an end is done waiting, as it would have been
// in the program.
TEST(FaseRecoveryLocks, AWaitWithAnEndEndsWhereAllWaitForOneAnother) {
  using fase::Patience;
  using fase::RecoveryLocks;
  constexpr std::uint64_t kFirst = 0x120000000000;
  constexpr std::uint64_t kSecond = kFirst + 64;
  for (const bool timed_is_last : {false, true}) {
    RecoveryLocks locks;
    const fase::LockOwner waits;
    const fase::LockOwner times_out;
    locks.enter();
    locks.enter();
    ASSERT_EQ(locks.take(waits, kFirst, Patience::none), RecoveryLocks::Outcome::taken);
    ASSERT_EQ(locks.take(times_out, kSecond, Patience::none), RecoveryLocks::Outcome::taken);
    constexpr useconds_t kLongUs = 20'000;
    std::thread waiting([&] {
      if (!timed_is_last) ::usleep(kLongUs);
      EXPECT_EQ(locks.take(waits, kSecond, Patience::unlimited), RecoveryLocks::Outcome::taken);
      locks.leave(waits, true);
    });
    if (timed_is_last) ::usleep(kLongUs);
    EXPECT_EQ(locks.take(times_out, kFirst, Patience::limited), RecoveryLocks::Outcome::timed_out);
    locks.leave(times_out, true);
    waiting.join();
  }
}

TEST_F(FaseAccounts, ManyThreadsAreKilledAndNothingIsMissing) {
  constexpr int kRounds = 20;
  constexpr int kThreads = 4;
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_EQ(std::fflush(nullptr), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      Account* const accounts = accounts_of(open());
      std::vector<std::thread> threads;
      for (int number = 0; number < kThreads; ++number) {
        threads.emplace_back([=] {
          for (unsigned i = static_cast<unsigned>(number);; ++i) {
            Account* const from = accounts + i % test::kAccounts;
            Account* const to = accounts + (i / test::kAccounts) % test::kAccounts;
            if (from != to) test::transfer(from, to, 1);
            test::try_deposit(to);
          }
        });
      }
      for (auto& thread : threads) thread.join();
    }
    ::usleep(2000 * static_cast<unsigned>(1 + round % 5));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    open_and([](pawl_fase* fase) { test::expect_balanced(accounts_of(fase)); });
  }
}

}  // namespace
}  // namespace pawl
