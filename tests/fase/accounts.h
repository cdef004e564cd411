// Accounts with a lock each, in a file of failure-atomic sections; functions as the compiler would
// make them.
#pragma once

#include <pthread.h>
#include <cstdint>

#include "pawl/fase.h"

namespace pawl::test {

struct alignas(64) Account {
  pthread_mutex_t mutex;
  std::uint64_t balance;
  std::uint64_t transfers;  // from it
  std::uint64_t deposits;
  void* note;  // a block
};

constexpr std::uint64_t kAccounts = 4;
constexpr std::uint64_t kBalance = 1000;  // of each, to begin
constexpr std::uint64_t kDeposit = 10;

Account* make_accounts(pawl_fase* fase);
inline Account* accounts_of(pawl_fase* fase) { return static_cast<Account*>(pawl_fase_root(fase)); }

// One FASE: takes both locks, and releases that of `to` before it counts the transfer.
void transfer(Account* from, Account* to, std::uint64_t amount);
// One FASE; or none, when the lock is taken.
bool try_deposit(Account* to);

// Takes the lock of `first`, stores there, calls between(), and takes that of `second` for the
// rest. Each of both counts a transfer.
void count_both(Account* first, Account* second, void (*between)());

// One FASE: takes the locks of `from` and `to` and moves the amount, and releases that of `to`;
// then it allocates a note, takes the lock of `third`, and leaves the note there, in the place of
// another. Calls between(), if there is one, before the lock is taken.
void leave_note(pawl_fase* fase, Account* from, Account* to, Account* third, void (*between)());

// Nothing is missing, and nothing too much.
void expect_balanced(const Account* accounts);

}  // namespace pawl::test
